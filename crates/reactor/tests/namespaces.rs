//! Tests namespaces, the links between them, and what remains after they are closed.

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::privileged;
use reactor::namespace::{Namespace, root_command, veth};
use reactor::netlink::{Netlink, ORIGIN_STATIC, Route, Way};
use reactor::timed::{Family, SocketKind, TimedBatch, TimedOptions, TimedSocket};
use reactor::tun::Tun;

/// Two namespaces joined by a wire: 192.0.2.1 and 2001:db8::1 in the first, .2 and ::2 in the second.
fn pair() -> (Namespace, Namespace) {
    let (a, b) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    veth((&a, "a0"), (&b, "b0")).unwrap();
    for (namespace, name, host) in [(&a, "a0", "1"), (&b, "b0", "2")] {
        let mut netlink = namespace.netlink().unwrap();
        netlink.set_up(name, true).unwrap();
        for (prefix, bits) in [("192.0.2.", 24), ("2001:db8::", 64)] {
            let address: IpAddr = format!("{prefix}{host}").parse().unwrap();
            netlink.add_address(name, address, bits).unwrap();
        }
    }
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        let mut netlink = namespace.netlink().unwrap();
        netlink
            .wait_until_running(name, base::Duration::from_secs(10))
            .unwrap();
    }
    (a, b)
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut buffer = [0; 100];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..length].to_vec(), from)
}

#[test]
fn a_datagram_crosses_the_wire_between_two_namespaces() {
    privileged("a_datagram_crosses_the_wire_between_two_namespaces", || {
        let (a, b) = pair();
        for (from, to) in [
            ("192.0.2.1:0", "192.0.2.2:0"),
            ("[2001:db8::1]:0", "[2001:db8::2]:0"),
        ] {
            let sender = a.run(|| UdpSocket::bind(from).unwrap()).unwrap();
            let receiver = b.run(|| UdpSocket::bind(to).unwrap()).unwrap();
            sender
                .send_to(b"across", receiver.local_addr().unwrap())
                .unwrap();
            let got = receive(&receiver);
            assert_eq!(got, (b"across".to_vec(), sender.local_addr().unwrap()));
        }
    });
}

#[test]
fn a_router_in_between_forwards_by_its_routes() {
    privileged("a_router_in_between_forwards_by_its_routes", || {
        let (a, router) = pair();
        let far = Namespace::new().unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut netlink = router.netlink().unwrap();
        netlink.add_veth("c0", "far0", Some(far.as_fd())).unwrap();
        netlink.set_up("c0", true).unwrap();
        netlink.set_mtu("c0", 1400).unwrap();
        netlink
            .add_address("c0", address("198.51.100.1"), 24)
            .unwrap();
        router.forward().unwrap();
        let mut netlink = far.netlink().unwrap();
        netlink.set_up("far0", true).unwrap();
        netlink
            .add_address("far0", address("198.51.100.2"), 24)
            .unwrap();
        netlink
            .add_route(address("0.0.0.0"), 0, Some(address("198.51.100.1")), "far0")
            .unwrap();
        let mut netlink = a.netlink().unwrap();
        netlink
            .add_route(
                address("198.51.100.0"),
                24,
                Some(address("192.0.2.2")),
                "a0",
            )
            .unwrap();
        let receiver = far
            .run(|| UdpSocket::bind("198.51.100.2:0").unwrap())
            .unwrap();
        let sender = a.run(|| UdpSocket::bind("192.0.2.1:0").unwrap()).unwrap();
        sender
            .send_to(b"routed", receiver.local_addr().unwrap())
            .unwrap();
        assert_eq!(receive(&receiver).0, b"routed");
        // The router rejects packets too large for the second wire and reports its MTU.
        let options = TimedOptions {
            dont_fragment: true,
            ..TimedOptions::default()
        };
        let mut timed = a
            .run(|| TimedSocket::udp("192.0.2.1:0".parse().unwrap(), &options).unwrap())
            .unwrap();
        timed
            .send(&[0; 1450], receiver.local_addr().unwrap(), 0)
            .unwrap();
        let mut found = Vec::new();
        while found.is_empty() {
            timed.send_times(&mut Vec::new()).unwrap();
            found.extend(timed.errors());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(found[0].from, Some(address("192.0.2.2")));
        assert_eq!((found[0].errno, found[0].info), (libc_emsgsize(), 1400));
    });
}

/// `EMSGSIZE`, by its name.
fn libc_emsgsize() -> i32 {
    rustix::io::Errno::MSGSIZE.raw_os_error()
}

#[test]
fn the_way_to_an_address_is_told_and_a_second_default_route_goes_beside_the_first() {
    let name = "the_way_to_an_address_is_told_and_a_second_default_route_goes_beside_the_first";
    privileged(name, || {
        let (a, _b) = pair();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut netlink = a.netlink().unwrap();
        let interface = netlink.index("a0").unwrap();
        let way = |via: Option<&str>| Way {
            via: via.map(address),
            interface,
        };
        let far = address("203.0.113.9");
        assert!(netlink.way_to(far).is_err());
        let direct = Some(way(None));
        assert_eq!(netlink.way_to(address("192.0.2.7")).unwrap(), direct);
        assert_eq!(netlink.way_to(address("192.0.2.1")).unwrap(), None);
        let first = Route {
            to: (address("0.0.0.0"), 0),
            way: way(Some("192.0.2.2")),
            metric: 100,
            source: None,
            origin: ORIGIN_STATIC,
        };
        netlink.add(&first).unwrap();
        let by_router = Some(way(Some("192.0.2.2")));
        assert_eq!(netlink.way_to(far).unwrap(), by_router);
        let second = Route {
            way: way(None),
            source: Some(address("192.0.2.1")),
            ..first
        };
        let taken = netlink.add(&second).unwrap_err();
        assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
        let second = Route {
            metric: 0,
            ..second
        };
        netlink.add(&second).unwrap();
        assert_eq!(netlink.way_to(far).unwrap(), direct);
        netlink.remove(&second).unwrap();
        assert_eq!(netlink.way_to(far).unwrap(), by_router);
        assert!(netlink.remove(&second).is_err());
        // A route of one origin is left alone when those of another are removed.
        let to = (address("198.51.100.7"), 32);
        let own = Route {
            to,
            origin: 104,
            ..first
        };
        netlink.add(&own).unwrap();
        assert!(!netlink.remove_of(to, 105).unwrap());
        assert!(netlink.remove_of(to, 104).unwrap());
        assert!(!netlink.remove_of(to, 104).unwrap());
        // IPv6 as well.
        let router = Some(way(Some("2001:db8::2")));
        let other = address("2001:db8:1::1");
        netlink
            .add_route(
                address("2001:db8:1::"),
                48,
                Some(address("2001:db8::2")),
                "a0",
            )
            .unwrap();
        assert_eq!(netlink.way_to(other).unwrap(), router);
    });
}

/// Runs `drop` in a thread that is root in a namespace. Returns whether the thread may still add an address or open a
/// raw socket, and whether a process that it starts may do more.
fn powers_after(drop: fn() -> std::io::Result<()>) -> [bool; 3] {
    let namespace = Namespace::new().unwrap();
    namespace
        .run(|| {
            let mut netlink = Netlink::open().unwrap();
            drop().unwrap();
            let address: IpAddr = "192.0.2.1".parse().unwrap();
            let administers = netlink.add_address("lo", address, 32).is_ok();
            let raw = rustix::net::socket(
                rustix::net::AddressFamily::INET,
                rustix::net::SocketType::RAW,
                Some(rustix::net::ipproto::ICMP),
            );
            // Root of a user namespace would regain all privileges, unless its children are barred from gaining any.
            let status = ["CapPrm", "/proc/self/status"];
            let child = Command::new("grep").args(status).output().unwrap();
            let told = String::from_utf8(child.stdout).unwrap();
            let permitted = told.split_whitespace().next_back().unwrap();
            let permitted = u64::from_str_radix(permitted, 16).unwrap();
            let net_admin = rustix::thread::CapabilitySet::NET_ADMIN.bits();
            [administers, raw.is_ok(), permitted & !net_admin != 0]
        })
        .unwrap()
}

#[test]
fn who_gives_up_privileges_has_none_left_and_gets_none_back() {
    let name = "who_gives_up_privileges_has_none_left_and_gets_none_back";
    privileged(name, || {
        assert_eq!(powers_after(|| Ok(())), [true; 3]);
        assert_eq!(powers_after(reactor::drop_capabilities), [false; 3]);
        // Only addresses and routes.
        let kept = powers_after(reactor::drop_capabilities_but_net_admin);
        assert_eq!(kept, [true, false, false]);
    });
}

#[test]
fn a_time_to_live_that_runs_out_is_an_error_as_a_value() {
    privileged(
        "a_time_to_live_that_runs_out_is_an_error_as_a_value",
        || {
            let (a, router) = pair();
            router.forward().unwrap();
            let (far, via): (IpAddr, IpAddr) = (
                "198.51.100.0".parse().unwrap(),
                "192.0.2.2".parse().unwrap(),
            );
            a.netlink()
                .unwrap()
                .add_route(far, 24, Some(via), "a0")
                .unwrap();
            router
                .netlink()
                .unwrap()
                .add_route(far, 24, None, "lo")
                .unwrap();
            let options = TimedOptions {
                hop_limit: Some(1),
                interface: Some("a0".to_owned()),
                ..TimedOptions::default()
            };
            let mut timed = a
                .run(|| TimedSocket::icmp_raw(Family::V4, &options).unwrap())
                .unwrap();
            let message = request(timed.identifier());
            timed
                .send(&message, "198.51.100.7:0".parse().unwrap(), 0)
                .unwrap();
            let mut found = Vec::new();
            while found.is_empty() {
                timed.send_times(&mut Vec::new()).unwrap();
                found.extend(timed.errors());
                std::thread::sleep(Duration::from_millis(1));
            }
            let icmp = reactor::timed::ErrorSource::Icmp { kind: 11, code: 0 };
            assert_eq!((found[0].source, found[0].from), (icmp, Some(via)));
            assert_eq!(found[0].quote()[..8], message[..8]);
        },
    );
}

/// An echo request (RFC 792) with its checksum.
fn request(identifier: u16) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend([0, 1]);
    let sum = 0x0800 + u32::from(identifier) + 1;
    let sum = (sum >> 16) + (sum & 0xffff);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    message
}

#[test]
fn a_ping_socket_needs_no_privilege_where_its_group_may() {
    privileged(
        "a_ping_socket_needs_no_privilege_where_its_group_may",
        || {
            let (a, _b) = pair();
            a.set("ipv4/ping_group_range", "0 0").unwrap();
            for (family, target) in [(Family::V4, "192.0.2.2:0"), (Family::V6, "[2001:db8::2]:0")] {
                let options = TimedOptions::default();
                let mut socket = a
                    .run(|| TimedSocket::icmp(family, &options).unwrap())
                    .unwrap();
                assert_eq!(socket.kind(), SocketKind::Ping);
                assert_ne!(socket.identifier(), 0);
                // The kernel fills in identifier and checksum.
                let kind = if family == Family::V4 { 8 } else { 128 };
                let sent = socket.send(&[kind, 0, 0, 0, 0, 0, 0, 9], target.parse().unwrap(), 0x20);
                let sent = sent.unwrap();
                let mut batch = TimedBatch::new(4, 100);
                while socket.recv(&mut batch).unwrap() == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let reply = batch.iter().next().unwrap();
                let mut times = Vec::new();
                socket.send_times(&mut times).unwrap();
                assert_eq!(times[0].0, sent.id);
                assert!(reply.arrived.since(&times[0].1) > base::Duration::ZERO);
                assert_eq!(reply.bytes[4..6], socket.identifier().to_be_bytes());
                assert_eq!(reply.bytes[6..8], [0, 9]);
                assert_eq!(
                    (reply.hop_limit, reply.traffic_class),
                    (Some(64), Some(0x20))
                );
            }
        },
    );
}

#[test]
fn nothing_is_left_of_a_wire_when_its_namespaces_go() {
    privileged("nothing_is_left_of_a_wire_when_its_namespaces_go", || {
        let (a, b) = pair();
        let left = b.netlink().unwrap();
        drop(b);
        // The netlink socket still keeps the namespace alive.
        assert!(left.index("b0").is_ok());
        drop(left);
        let netlink = a.netlink().unwrap();
        // The kernel removes the namespace on a thread of its own.
        while netlink.index("a0").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_child_runs_in_its_namespace_and_dies_with_the_thread_that_started_it() {
    let name = "a_child_runs_in_its_namespace_and_dies_with_the_thread_that_started_it";
    privileged(name, || {
        let (a, _b) = pair();
        let mut command = Command::new("cat");
        let output = a
            .command(command.arg("/proc/net/dev"))
            .unwrap()
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("a0:") && text.lines().count() < 8, "{text}");
        let mut child = std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                let mut command = Command::new("sleep");
                command.arg("1000").stdin(Stdio::null());
                a.command(&mut command).unwrap().spawn().unwrap()
            });
            starting.join().unwrap()
        });
        assert_eq!(child.wait().unwrap().code(), None);
    });
}

#[test]
fn a_tun_device_carries_packets_both_ways() {
    privileged("a_tun_device_carries_packets_both_ways", || {
        let a = Namespace::new().unwrap();
        let tun = a.run(|| Tun::open("tun7").unwrap()).unwrap();
        let mut netlink = a.netlink().unwrap();
        netlink
            .add_address("tun7", "192.0.2.1".parse().unwrap(), 24)
            .unwrap();
        netlink.set_up("tun7", true).unwrap();
        let socket = a
            .run(|| UdpSocket::bind("192.0.2.1:4000").unwrap())
            .unwrap();
        socket.send_to(b"out", "192.0.2.9:5000").unwrap();
        let mut buffer = [0; 2000];
        // The kernel's own packets, such as router solicitations, may arrive first.
        let packet = loop {
            match tun.receive(&mut buffer).unwrap() {
                Some(length) if buffer[0] == 0x45 => break &mut buffer[..length],
                Some(_) => {}
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(packet[28..], *b"out");
        // Send it back: swapping addresses and ports leaves the checksums valid.
        let (source, destination) = (packet[12..16].to_vec(), packet[16..20].to_vec());
        packet[12..16].copy_from_slice(&destination);
        packet[16..20].copy_from_slice(&source);
        let ports = [&packet[22..24], &packet[20..22]].concat();
        packet[20..24].copy_from_slice(&ports);
        tun.send(packet).unwrap();
        assert_eq!(
            receive(&socket),
            (b"out".to_vec(), "192.0.2.9:5000".parse().unwrap())
        );
    });
}

#[test]
fn a_tunnel_that_the_kernel_does_not_have_is_refused() {
    privileged("a_tunnel_that_the_kernel_does_not_have_is_refused", || {
        let (a, _b) = pair();
        let (from, to) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut netlink = a.netlink().unwrap();
        match netlink.add_ipip("tunnel7", from, to) {
            Ok(()) => netlink.set_up("tunnel7", true).unwrap(),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}"),
        }
    });
}

/// Root re-executes the test as another user, who then works in a user namespace.
#[test]
fn a_user_without_privileges_gets_namespaces() {
    const STEP: &str = "REACTOR_TEST_STEP";
    let again = |step: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_user_without_privileges_gets_namespaces", "--exact"]);
        command.env(STEP, step).stdout(Stdio::null());
        command
    };
    let step = std::env::var(STEP).unwrap_or_default();
    let mut command = match step.as_str() {
        "work" => {
            let (a, b) = pair();
            let socket = b.run(|| UdpSocket::bind("192.0.2.2:7").unwrap()).unwrap();
            let sender = a.run(|| UdpSocket::bind("192.0.2.1:0").unwrap()).unwrap();
            sender
                .send_to(b"rootless", socket.local_addr().unwrap())
                .unwrap();
            assert_eq!(receive(&socket).0, b"rootless");
            return;
        }
        "" if rustix::process::geteuid().is_root() => {
            let mut command = again("user");
            command.uid(65_534).gid(65_534);
            command
        }
        _ => {
            let mut command = again("work");
            root_command(&mut command);
            command
        }
    };
    let status = command
        .status()
        .expect("a system that allows user namespaces");
    assert!(status.success(), "{status}");
}
