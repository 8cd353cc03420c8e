//! Tests `headend qos apply` with eBPF programs: frames through an interface, counted in the class they belong to.

use reactor::bpf::Program;
use reactor::port::{Frames, Port, PortOptions, Received};
use serde_json::Value;

use crate::apply::Router;
use crate::support::until;

/// Conditions on headers that u32 filters cannot read.
const POLICY: &str = r#"
[link]
up = "80mbit"
overhead = "none"
[[class]]
name = "vlan"
rate = "5%"
vlan = 7
[[class]]
name = "ssh in tunnels"
rate = "5%"
header = "tunnel"
proto = "tcp"
port = 22
[[class]]
name = "names"
rate = "5%"
proto = "udp"
port = 53
[[class]]
name = "host"
rate = "5%"
host = "10.9.0.5"
[[class]]
name = "gre"
rate = "5%"
header = "outer"
proto = "gre"
"#;

/// The MTU of links for frames longer than a page.
const JUMBO: u32 = 9_000;

const NEAR: [u8; 4] = [192, 0, 2, 1];
const FAR: [u8; 4] = [198, 51, 100, 9];
const INNER: [u8; 4] = [10, 9, 0, 5];

/// A header of 20 bytes and its payload.
fn ipv4(source: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend(FAR);
    packet.extend(payload);
    packet
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// Ports, and as much as makes a UDP header and the beginning of TCP's.
fn ports(destination: u16) -> Vec<u8> {
    let mut header = 40_000_u16.to_be_bytes().to_vec();
    header.extend(destination.to_be_bytes());
    header.extend([0, 20]);
    header.resize(40, 0);
    header
}

fn ethernet(kinds: &[u8], packet: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    [&addresses[..], kinds, packet].concat()
}

fn gre(kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &kind, packet].concat()
}

/// A PPPoE session's frame with an IPv4 packet.
fn pppoe(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() as u16 + 2).to_be_bytes();
    let head = [&[0x11, 0, 0, 1][..], &length, &[0, 0x21]].concat();
    ethernet(&[0x88, 0x64], &[&head, packet].concat())
}

/// A UDP datagram with a frame.
fn vxlan(kinds: &[u8], packet: &[u8]) -> Vec<u8> {
    let frame = ethernet(kinds, packet);
    let length = (frame.len() as u16 + 16).to_be_bytes();
    let head = [&[0xc3, 0x51, 0x12, 0xb5][..], &length, &[0, 0]].concat();
    [&head[..], &[8, 0, 0, 0, 0, 0, 5, 0], &frame].concat()
}

/// What a frame is, the class it belongs to, and its octets.
// long: one row for each kind of frame
fn frames() -> Vec<(&'static str, u16, Vec<u8>)> {
    let (ip, ip6) = ([8, 0], [0x86, 0xdd]);
    let ssh = || ipv4(NEAR, 6, &ports(22));
    let names = || ipv4(NEAR, 17, &ports(53));
    let web = || ipv4(NEAR, 6, &ports(443));
    let host = || ipv4(INNER, 6, &ports(443));
    let l2tp = [
        &[0x06, 0xa5, 0x06, 0xa5, 0, 70, 0, 0][..],
        &[0, 2, 0, 7, 0, 8, 0xff, 3, 0, 0x21],
    ];
    vec![
        ("plain ssh", 0x20, ethernet(&ip, &ssh())),
        ("plain web", 0x20, ethernet(&ip, &web())),
        ("names", 0x32, ethernet(&ip, &names())),
        ("the host", 0x33, ethernet(&ip, &host())),
        ("VLAN 7", 0x30, ethernet(&[0x81, 0, 0x20, 7, 8, 0], &web())),
        (
            "names, VLAN 8",
            0x32,
            ethernet(&[0x81, 0, 0x20, 8, 8, 0], &names()),
        ),
        (
            "VLAN 7 in 802.1ad",
            0x30,
            ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0], &web()),
        ),
        ("ssh in IPIP", 0x31, ethernet(&ip, &ipv4(NEAR, 4, &ssh()))),
        (
            "names in IPIP",
            0x32,
            ethernet(&ip, &ipv4(NEAR, 4, &names())),
        ),
        (
            "the host in IPIP",
            0x33,
            ethernet(&ip, &ipv4(NEAR, 4, &host())),
        ),
        ("ssh in 4in6", 0x31, ethernet(&ip6, &ipv6(4, &ssh()))),
        (
            "ssh in 6in4",
            0x31,
            ethernet(&ip, &ipv4(NEAR, 41, &ipv6(6, &ports(22)))),
        ),
        (
            "names in 6in6",
            0x32,
            ethernet(&ip6, &ipv6(41, &ipv6(17, &ports(53)))),
        ),
        (
            "ssh in GRE",
            0x31,
            ethernet(&ip, &ipv4(NEAR, 47, &gre(ip, &ssh()))),
        ),
        (
            "web in GRE",
            0x34,
            ethernet(&ip, &ipv4(NEAR, 47, &gre(ip, &web()))),
        ),
        ("names in PPPoE", 0x32, pppoe(&names())),
        ("the host in PPPoE", 0x33, pppoe(&host())),
        ("ssh in PPPoE", 0x20, pppoe(&ssh())),
        (
            "ssh in VXLAN, tagged",
            0x31,
            ethernet(&ip, &ipv4(NEAR, 17, &vxlan(&[0x81, 0, 0, 9, 8, 0], &ssh()))),
        ),
        (
            "names in L2TP",
            0x32,
            ethernet(
                &ip,
                &ipv4(NEAR, 17, &[&l2tp.concat()[..], &names()].concat()),
            ),
        ),
    ]
}

impl Router {
    /// Packets of the classes 1:20 and 1:30 to 1:34 of an interface so far.
    fn counted(&self, name: &str) -> [u64; 6] {
        [0x20, 0x30, 0x31, 0x32, 0x33, 0x34].map(|class| {
            let text = self.tc(&format!("-s class show dev {name} classid 1:{class:x}"));
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "pkt").unwrap();
            words[at - 1].parse().unwrap()
        })
    }

    /// Sends frames out of an interface, through its queues.
    fn send(&self, name: &str, frames: &[&[u8]]) {
        let work = || {
            let mut port = Port::open(name, &PortOptions::default()).unwrap();
            let mut slots = Frames::new(64, JUMBO);
            for frame in frames {
                let handle = slots.take().unwrap();
                slots.fill(handle, |room| {
                    room[..frame.len()].copy_from_slice(frame);
                    frame.len()
                });
                assert_eq!(port.send(&slots, &[handle]).unwrap(), 1);
                slots.give_back(handle);
            }
        };
        self.namespace.run(work).unwrap();
    }

    /// The classes that count a frame that is sent three times.
    fn classes_of(&self, what: &str, frame: &[u8]) -> Vec<u16> {
        let before = self.counted("wan0");
        self.send("wan0", &[frame, frame, frame]);
        until(what, || {
            let places = [0x20, 0x30, 0x31, 0x32, 0x33, 0x34].into_iter();
            let pairs = places.zip(before.into_iter().zip(self.counted("wan0")));
            let found = pairs.filter(|(_, (before, after))| before + 3 <= *after);
            Some(found.map(|(class, _)| class).collect::<Vec<u16>>())
                .filter(|found| !found.is_empty())
        })
    }

    /// The numbers of the programs that filters of an interface run.
    fn programs(&self, name: &str) -> Vec<u32> {
        let text = self.tc(&format!("filter show dev {name}"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let ids = words.windows(2).filter(|pair| pair[0] == "id");
        ids.map(|pair| pair[1].parse().unwrap()).collect()
    }
}

/// Nothing but the test may send.
fn quiet(name: &str) -> Router {
    let router = Router::new(name);
    for setting in ["all", "default", "wan0", "far0"] {
        let setting = format!("ipv6/conf/{setting}/disable_ipv6");
        router.namespace.set(&setting, "1").unwrap();
    }
    router
}

#[test]
fn each_frame_is_counted_in_the_class_of_its_headers() {
    let router = quiet("apply-bpf");
    router.home.write("deep.toml", POLICY);
    let said = router.done(&["apply", "deep.toml", "--wan", "wan0", "--dry-run"]);
    assert!(
        said.contains("# wan0: headend attaches the eBPF program headend-"),
        "{said}"
    );
    assert!(
        said.contains("#   tunnel-proto 6 tunnel-proto-src 22 -> 1:31"),
        "{said}"
    );
    assert!(
        router.programs("wan0").is_empty(),
        "a dry run changes nothing"
    );
    let words = ["apply", "deep.toml", "--wan", "wan0"];
    let shown = router.done(&[&words[..], &["--json"]].concat());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["programs"][0]["parent"], "1:", "{shown}");
    for (what, class, frame) in frames() {
        assert_eq!(router.classes_of(what, &frame), [class], "{what}");
    }
    // The same again changes nothing.
    let again = router.done(&words);
    assert!(again.contains(" 0 changes"), "{again}");
    // Other conditions are another program in the same filter.
    let programs = router.programs("wan0");
    router
        .home
        .write("deep.toml", &POLICY.replace("vlan = 7", "vlan = 8"));
    let changed = router.done(&words);
    assert!(changed.contains(", 1 changes"), "{changed}");
    let web = ethernet(&[0x81, 0, 0, 8, 8, 0], &ipv4(NEAR, 6, &ports(443)));
    let before = router.counted("wan0")[1];
    router.send("wan0", &[&web]);
    until("VLAN 8", || {
        Some(()).filter(|()| router.counted("wan0")[1] > before)
    });
    let now = router.programs("wan0");
    assert!(now.len() == 1 && now != programs, "{now:?}");
    router.done(&["remove", "--wan", "wan0"]);
    for id in [programs, now].concat() {
        until("a program to be freed", || Program::by_id(id).err());
    }
}

/// The kernel keeps only the Ethernet header of a packet socket's frame in one piece if the frame is longer than a page of
/// 4,096 bytes: all other headers are in page fragments.
#[test]
fn a_frame_in_pieces_is_counted_in_the_class_of_its_headers() {
    let router = quiet("apply-bpf-pieces");
    for name in ["wan0", "far0"] {
        let mtu = JUMBO.to_string();
        let words = ["link", "set", "dev", name, "mtu", &mtu];
        let status = router.command("ip", &words).status().unwrap();
        assert!(status.success(), "{name}");
    }
    router.home.write("deep.toml", POLICY);
    router.done(&["apply", "deep.toml", "--wan", "wan0"]);
    for (what, class, mut frame) in frames() {
        // Behind the packet.
        frame.resize(5_000, 0);
        assert_eq!(router.classes_of(what, &frame), [class], "{what}");
    }
}

/// Sends a copy's packets and then a ping into one tunnel, and returns the place in which the ping arrives.
fn place_of_the_ping(router: &Router, classifier: &str) -> usize {
    const COPIED: usize = 9;
    let policy = format!(
        "[link]\nup = \"200kbit\"\noverhead = \"none\"\n[[first]]\nproto = \"icmp\"\n[kernel]\nclassifier = \"{classifier}\"\n"
    );
    router.home.write("tunnel.toml", &policy);
    router.done(&["apply", "tunnel.toml", "--wan", "wan0"]);
    let tunnel = |packet: &[u8]| ethernet(&[8, 0], &ipv4(NEAR, 4, packet));
    let copy = [ports(22), vec![0; 1_300]].concat();
    let copy = tunnel(&ipv4(INNER, 6, &copy));
    let ping = tunnel(&ipv4(INNER, 1, &[8, 0, 0, 0, 0, 1, 0, 1]));
    let mut sent: Vec<&[u8]> = vec![&copy; COPIED];
    sent.push(&ping);
    let lengths = router
        .namespace
        .run(|| {
            let mut port = Port::open("far0", &PortOptions::default()).unwrap();
            let mut slots = Frames::new(128, 1_500);
            router.send("wan0", &sent);
            let mut received = Vec::new();
            until("all frames", || {
                port.receive(&mut slots, &mut received).unwrap();
                (received.len() > COPIED).then_some(())
            });
            let lengths = received.iter().map(|one| match one {
                Received::Frame(handle) => slots.get(*handle).len(),
                other => panic!("{other:?}"),
            });
            lengths.collect::<Vec<usize>>()
        })
        .unwrap();
    router.done(&["remove", "--wan", "wan0"]);
    let place = lengths.iter().position(|length| *length == ping.len());
    place.expect("the ping")
}

#[test]
fn a_ping_in_the_tunnel_of_a_copy_waits_behind_it_unless_a_program_looks_into_the_tunnel() {
    let router = quiet("apply-tunnel");
    // Before: one queue, because the outer headers are the same.
    assert_eq!(place_of_the_ping(&router, "u32"), 9);
    // After: the program sees the ping in the tunnel.
    let place = place_of_the_ping(&router, "bpf");
    assert!(place < 6, "{place}");
}
