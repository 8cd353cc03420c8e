//! Tests `headend qos apply` with IPv6 through a router: datagrams in both directions, counted in the class they belong to.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use reactor::namespace::{Namespace, veth};

use crate::apply::Router;
use crate::support::{Home, until};

/// The classes 1:10, 1:30, 1:31, 1:32 and 1:33.
const POLICY: &str = r#"
[link]
up = "80mbit"
down = "80mbit"
[[first]]
name = "names"
proto = "udp"
port = 53
[[class]]
name = "server"
rate = "5%"
host = "2001:db8:1::80"
proto = "udp"
[[class]]
name = "games"
rate = "5%"
port = "5000-5010"
[[class]]
name = "work"
rate = "5%"
remote = "2001:db8:2:1::/64"
# Neighbour discovery is not counted.
proto = "udp"
[[class]]
name = "calls"
rate = "5%"
dscp = "ef"
"#;

/// Addresses of the near and of the far host.
const NEAR: [&str; 2] = ["2001:db8:1::2", "2001:db8:1::80"];
const FAR: [&str; 2] = ["2001:db8:2::7", "2001:db8:2:1::7"];

/// A class, its datagrams, the near address, the far address, the far port, and the traffic class.
const SENT: [(&str, usize, usize, usize, u16, u32); 7] = [
    ("1:10", 7, 0, 0, 53, 0),
    // The first section that matches decides.
    ("1:10", 2, 1, 0, 53, 0),
    ("1:30", 11, 1, 0, 9, 0),
    ("1:31", 13, 0, 0, 5_000, 0),
    ("1:31", 17, 0, 1, 5_010, 0),
    ("1:32", 19, 0, 1, 5_011, 0),
    ("1:33", 23, 0, 0, 9, 0xb8),
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A router between two hosts, each of which has two addresses.
struct World {
    router: Router,
    near: Namespace,
    far: Namespace,
}

impl World {
    fn new(name: &str) -> Self {
        let make = || Namespace::new().expect("root, or leave to make namespaces");
        let (near, far, namespace) = (make(), make(), make());
        veth((&near, "eth0"), (&namespace, "lan0")).unwrap();
        veth((&far, "eth0"), (&namespace, "wan0")).unwrap();
        let home = Home::new(name);
        let world = Self {
            router: Router { home, namespace },
            near,
            far,
        };
        let router = &world.router.namespace;
        for (place, name, addresses) in [
            (&world.near, "eth0", NEAR),
            (&world.far, "eth0", FAR),
            (router, "lan0", ["2001:db8:1::1", "2001:db8:1::fe"]),
            (router, "wan0", ["2001:db8:2::1", "2001:db8:2:1::1"]),
        ] {
            // A new address must be usable at once.
            let setting = format!("ipv6/conf/{name}/accept_dad");
            place.set(&setting, "0").unwrap();
            let mut netlink = place.netlink().unwrap();
            netlink.set_up(name, true).unwrap();
            for address in addresses {
                netlink.add_address(name, ip(address), 64).unwrap();
            }
        }
        router.forward().unwrap();
        for (place, gateway) in [
            (&world.near, "2001:db8:1::1"),
            (&world.far, "2001:db8:2::1"),
        ] {
            let mut command = std::process::Command::new("ip");
            command.args(["-6", "route", "add", "default", "via", gateway]);
            let status = place.command(&mut command).unwrap().status().unwrap();
            assert!(status.success());
        }
        world
    }

    /// Sends what [`SENT`] says, up and down, and waits until each has arrived.
    fn send(&self) {
        for (_, count, near, far, port, traffic_class) in SENT {
            let ends = [
                (&self.near, SocketAddr::new(ip(NEAR[near]), 40_000)),
                (&self.far, SocketAddr::new(ip(FAR[far]), port)),
            ];
            let [one, other] = ends.map(|(place, at)| {
                // A process that another test starts at this time has the earlier socket until it executes its program.
                let open = || until("a free port", || UdpSocket::bind(at).ok());
                place.run(open).unwrap()
            });
            for (from, to, at) in [(&one, &other, ends[1].1), (&other, &one, ends[0].1)] {
                rustix::net::sockopt::set_ipv6_tclass(from, traffic_class).unwrap();
                to.set_nonblocking(true).unwrap();
                for _ in 0..count {
                    from.send_to(&[0; 100], at).unwrap();
                    until("a datagram", || to.recv(&mut [0; 200]).ok());
                }
            }
        }
    }

    /// The packets of a class.
    fn count(&self, device: &str, class: &str) -> usize {
        let text = self
            .router
            .tc(&format!("-s class show dev {device} classid {class}"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "pkt").unwrap();
        words[at - 1].parse().unwrap()
    }
}

fn expected(class: &str) -> usize {
    let all = SENT.iter().filter(|(sent, ..)| *sent == class);
    all.map(|(_, count, ..)| count).sum()
}

#[test]
fn hosts_ports_and_marks_of_ipv6_choose_the_class_in_both_directions() {
    for classifier in ["u32", "bpf"] {
        let world = World::new(&format!("six-{classifier}"));
        let policy = format!("{POLICY}[kernel]\nclassifier = \"{classifier}\"\n");
        world.router.home.write("home.toml", &policy);
        for lan in [&[][..], &["--lan", "lan0"]] {
            let words = [&["apply", "home.toml", "--wan", "wan0"], lan].concat();
            world.router.done(&words);
            world.send();
            let down = if lan.is_empty() { "ifb4wan0" } else { "lan0" };
            for device in ["wan0", down] {
                for class in ["1:10", "1:30", "1:31", "1:32", "1:33"] {
                    let count = world.count(device, class);
                    assert_eq!(count, expected(class), "{classifier}: {device} {class}");
                }
            }
            world.router.done(&["remove", "--wan", "wan0"]);
        }
    }
}
