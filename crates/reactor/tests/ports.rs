//! Tests ports on virtual wires between namespaces.

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use common::privileged;
use reactor::namespace::{Namespace, veth};
use reactor::port::offloads::OffloadsOff;
use reactor::port::{BATCH, Cut, Frames, Io, Port, PortError, PortOptions, Received};

/// Two namespaces joined by a wire that is up, with 192.0.2.1 at the first end. IPv6 is off, so nothing is sent
/// unasked.
fn pair() -> (Namespace, Namespace) {
    let (a, b) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    for namespace in [&a, &b] {
        namespace
            .set("ipv6/conf/default/disable_ipv6", "1")
            .unwrap();
    }
    veth((&a, "a0"), (&b, "b0")).unwrap();
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        namespace.netlink().unwrap().set_up(name, true).unwrap();
    }
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        let mut netlink = namespace.netlink().unwrap();
        netlink
            .wait_until_running(name, base::Duration::from_secs(10))
            .unwrap();
    }
    let address = "192.0.2.1".parse().unwrap();
    a.netlink().unwrap().add_address("a0", address, 24).unwrap();
    (a, b)
}

fn open(namespace: &Namespace, name: &str, io: Io) -> Result<Port, PortError> {
    sized(namespace, name, io, 4 << 20)
}

fn sized(namespace: &Namespace, name: &str, io: Io, bytes: usize) -> Result<Port, PortError> {
    let options = PortOptions {
        recv_buffer_bytes: Some(bytes),
        io,
        ..PortOptions::default()
    };
    let port = namespace.run(|| Port::open(name, &options)).unwrap();
    if let Ok(port) = &port {
        let fallbacks: Vec<_> = port.fallbacks().collect();
        assert!(fallbacks.is_empty(), "{fallbacks:?}");
        assert_eq!(port.sends_by_ring(), io == Io::Rings);
    }
    port
}

/// Runs a test with each way to receive and send.
fn each(test: impl Fn(Io)) {
    for io in [Io::Calls, Io::Rings] {
        eprintln!("{io:?}");
        test(io);
    }
}

/// Receives until `count` frames have arrived.
fn receive(port: &mut Port, frames: &mut Frames, count: usize) -> Vec<Received> {
    let mut received = Vec::new();
    while received.len() < count {
        port.receive(frames, &mut received).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    received
}

/// An Ethernet frame to the address that ends in `last`, with an EtherType for experiments.
fn frame(last: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend((0..payload).map(|n| n as u8));
    frame
}

fn put(frames: &mut Frames, bytes: &[u8]) -> u32 {
    let handle = frames.take().unwrap();
    frames.fill(handle, |room| {
        room[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    });
    handle
}

#[test]
fn frames_for_anyone_cross_in_their_order_and_our_own_do_not_come_back() {
    let name = "frames_for_anyone_cross_in_their_order_and_our_own_do_not_come_back";
    privileged(name, || {
        each(|io| {
            let (a, b) = pair();
            let (mut one, mut other) = (open(&a, "a0", io).unwrap(), open(&b, "b0", io).unwrap());
            let mut frames = Frames::new(1000, one.mtu().unwrap());
            let sent: Vec<_> = (0..3 * BATCH as u8)
                .map(|n| frame(n, 46 + usize::from(n)))
                .collect();
            let handles: Vec<_> = sent.iter().map(|bytes| put(&mut frames, bytes)).collect();
            assert_eq!(one.send(&frames, &handles).unwrap(), sent.len());
            let received = receive(&mut other, &mut frames, sent.len());
            for (received, sent) in received.iter().zip(&sent) {
                let Received::Frame(handle) = *received else {
                    panic!("a large frame");
                };
                assert_eq!(frames.get(handle), sent);
            }
            let mut own = Vec::new();
            assert_eq!(one.receive(&mut frames, &mut own).unwrap(), 0);
            let (sent_by, received_by) = (one.stats(), other.stats());
            assert_eq!((sent_by.sent, received_by.received), (192, 192));
            assert_eq!(sent_by.sent_bytes, received_by.received_bytes);
            assert_eq!(other.drops(), 0);
        })
    });
}

#[test]
fn a_vlan_tag_arrives_where_it_was() {
    privileged("a_vlan_tag_arrives_where_it_was", || {
        each(|io| {
            let (a, b) = pair();
            let (mut one, mut other) = (open(&a, "a0", io).unwrap(), open(&b, "b0", io).unwrap());
            let mut frames = Frames::new(200, 1500);
            // The kernel allows only the first kind of tag in addition to the MTU.
            for (kind, payload) in [(0x8100_u16, 1500), (0x88a8, 1496)] {
                let mut tagged = frame(9, payload);
                let tag = [&kind.to_be_bytes()[..], &[0x20, 7]].concat();
                tagged.splice(12..12, tag);
                let handle = put(&mut frames, &tagged);
                assert_eq!(one.send(&frames, &[handle]).unwrap(), 1);
                let Received::Frame(got) = receive(&mut other, &mut frames, 1)[0] else {
                    panic!("a large frame");
                };
                assert_eq!(frames.get(got), tagged);
            }
        })
    });
}

/// The first `count` IPv4 frames with UDP. Only the last one may be large.
fn datagrams(port: &mut Port, frames: &mut Frames, count: usize) -> Vec<Received> {
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        datagrams.extend(receive(port, frames, 1).into_iter().filter(|&received| {
            let bytes = match received {
                Received::Frame(handle) => frames.get(handle),
                Received::Large(index) => port.large(index).bytes,
            };
            bytes.get(12..14) == Some(&[8, 0]) && bytes.get(23) == Some(&17)
        }));
    }
    datagrams
}

/// Adds a neighbour entry to `a` for 192.0.2.2, an address that no host has.
fn neighbour(a: &Namespace) {
    let mut command = std::process::Command::new("ip");
    command.args([
        "neigh",
        "add",
        "192.0.2.2",
        "lladdr",
        "02:00:00:00:00:02",
        "dev",
        "a0",
    ]);
    assert!(a.command(&mut command).unwrap().status().unwrap().success());
}

#[test]
fn a_checksum_that_the_stack_left_open_is_known_and_one_left_to_the_interface_goes_through() {
    let name =
        "a_checksum_that_the_stack_left_open_is_known_and_one_left_to_the_interface_goes_through";
    privileged(name, || {
        each(|io| {
            let (a, b) = pair();
            neighbour(&a);
            let mut port = open(&b, "b0", io).unwrap();
            let mut frames = Frames::new(300, 1500);
            let socket = a
                .run(|| UdpSocket::bind("192.0.2.1:4000").unwrap())
                .unwrap();
            socket.send_to(b"open", "192.0.2.2:5000").unwrap();
            let Received::Frame(handle) = datagrams(&mut port, &mut frames, 1)[0] else {
                panic!("a large frame");
            };
            let open = frames.open_checksum(handle).expect("a checksum left open");
            assert_eq!((open.start, open.offset), (34, 6));
            // Send it back: the receiver trusts the checksum that the interface guarantees.
            let frame = frames.get_mut(handle);
            let (to, from) = (frame[..6].to_vec(), frame[6..12].to_vec());
            frame[..6].copy_from_slice(&from);
            frame[6..12].copy_from_slice(&to);
            let addresses = [&frame[30..34], &frame[26..30]].concat();
            frame[26..34].copy_from_slice(&addresses);
            let ports = [&frame[36..38], &frame[34..36]].concat();
            frame[34..38].copy_from_slice(&ports);
            assert_eq!(port.send(&frames, &[handle]).unwrap(), 1);
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let mut buffer = [0; 10];
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from.port()), (&b"open"[..], 5000));
        })
    });
}

#[test]
fn what_the_stack_left_to_be_cut_is_known_as_such_until_offloads_are_off() {
    let name = "what_the_stack_left_to_be_cut_is_known_as_such_until_offloads_are_off";
    privileged(name, || {
        each(|io| {
            let (a, b) = pair();
            neighbour(&a);
            let mut port = open(&b, "b0", io).unwrap();
            let mut frames = Frames::new(300, 1500);
            let address = "192.0.2.1:4000".parse().unwrap();
            let socket = || {
                let options = reactor::UdpOptions::default();
                a.run(|| reactor::UdpSocket::bind(address, &options).unwrap())
                    .unwrap()
            };
            let send = |socket: &mut reactor::UdpSocket| {
                let mut batch = reactor::SendBatch::new(16);
                for n in 0..10 {
                    batch.push(&[n; 1000], "192.0.2.2:5000".parse().unwrap(), None);
                }
                assert_eq!(socket.send(&mut batch).sent, 10);
            };
            let mut sender = socket();
            send(&mut sender);
            let Received::Large(index) = datagrams(&mut port, &mut frames, 1)[0] else {
                panic!("ten datagrams are larger than a slot");
            };
            let large = port.large(index);
            assert_eq!(large.cut, Some(Cut::Udp(1000)));
            assert_eq!(large.bytes.len(), 14 + 20 + 8 + 10_000);
            assert_eq!(
                large.bytes[42..],
                [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| [n; 1000]).concat()
            );
            drop(sender);
            let off = a.run(|| OffloadsOff::new("a0").unwrap()).unwrap();
            assert!(off.turned_off().any(|name| name == "tx checksum"));
            let mut sender = socket();
            send(&mut sender);
            let received = datagrams(&mut port, &mut frames, 10);
            for (n, received) in (0..).zip(received) {
                let Received::Frame(handle) = received else {
                    panic!("a large frame");
                };
                assert_eq!(frames.open_checksum(handle), None);
                assert_eq!(frames.get(handle)[42..], [n; 1000]);
            }
            drop((off, sender));
            send(&mut socket());
            let received = datagrams(&mut port, &mut frames, 1);
            assert!(matches!(received[..], [Received::Large(_)]));
        })
    });
}

#[test]
fn an_interface_that_goes_down_or_vanishes_says_so() {
    privileged("an_interface_that_goes_down_or_vanishes_says_so", || {
        each(|io| {
            let (a, b) = pair();
            let mut port = open(&a, "a0", io).unwrap();
            let mut frames = Frames::new(200, 1500);
            let handle = put(&mut frames, &frame(1, 46));
            let mut netlink = a.netlink().unwrap();
            netlink.set_up("a0", false).unwrap();
            let error = port.receive(&mut frames, &mut Vec::new()).unwrap_err();
            assert!(matches!(error, PortError::Down(_)), "{error}");
            let error = port.send(&frames, &[handle]).unwrap_err();
            assert!(matches!(error, PortError::Down(_)), "{error}");
            assert!(matches!(open(&a, "a0", io), Err(PortError::Down(_))));
            netlink.set_up("a0", true).unwrap();
            // The port works as before.
            let mut other = open(&b, "b0", io).unwrap();
            assert_eq!(port.send(&frames, &[handle]).unwrap(), 1);
            receive(&mut other, &mut frames, 1);
            netlink.delete("a0").unwrap();
            for port in [&mut port, &mut other] {
                let error = port.receive(&mut frames, &mut Vec::new()).unwrap_err();
                assert!(matches!(error, PortError::Gone(_)), "{error}");
                let error = port.send(&frames, &[handle]).unwrap_err();
                assert!(matches!(error, PortError::Gone(_)), "{error}");
            }
        })
    });
}

#[test]
fn what_is_no_ethernet_or_not_there_is_refused() {
    privileged("what_is_no_ethernet_or_not_there_is_refused", || {
        each(|io| {
            let a = Namespace::new().unwrap();
            assert!(matches!(open(&a, "lo", io), Err(PortError::NotEthernet(_))));
            let error = open(&a, "no-such-if0", io).unwrap_err();
            assert_eq!(error.to_string(), "no-such-if0: no such interface");
        })
    });
}

#[test]
fn without_a_free_slot_frames_are_dropped_and_counted() {
    privileged("without_a_free_slot_frames_are_dropped_and_counted", || {
        each(|io| {
            let (a, b) = pair();
            let (mut one, mut other) = (open(&a, "a0", io).unwrap(), open(&b, "b0", io).unwrap());
            let mut ours = Frames::new(100, 1500);
            let handles: Vec<_> = (0..90).map(|n| put(&mut ours, &frame(n, 100))).collect();
            assert_eq!(one.send(&ours, &handles).unwrap(), 90);
            let mut few = Frames::new(20, 1500);
            let mut received = Vec::new();
            while other.stats().received < 90 {
                other.receive(&mut few, &mut received).unwrap();
            }
            assert_eq!((received.len(), other.stats().no_room), (20, 70));
            assert!(other.as_fd().try_clone_to_owned().is_ok());
        })
    });
}

/// Sends numbered frames of `port`, from `first` on.
fn send_numbered(port: &mut Port, frames: &mut Frames, first: u32, count: u32) {
    for n in first..first + count {
        let mut bytes = frame(1, 46 + n as usize % 1_400);
        bytes[14..18].copy_from_slice(&n.to_be_bytes());
        let handle = put(frames, &bytes);
        while port.send(frames, &[handle]).unwrap() == 0 {}
        frames.give_back(handle);
    }
}

/// Receives `count` frames, which must be numbered from `first` on; returns the slots.
fn expect_numbered(port: &mut Port, frames: &mut Frames, first: u32, count: u32) {
    let received = receive(port, frames, count as usize);
    assert_eq!(received.len(), count as usize);
    for (n, received) in (first..).zip(received) {
        let Received::Frame(handle) = received else {
            panic!("a large frame");
        };
        let got = frames.get(handle);
        assert_eq!(got.len(), 14 + 46 + n as usize % 1_400);
        assert_eq!(got[14..18], n.to_be_bytes());
        assert_eq!(got[18..], frame(1, 46 + n as usize % 1_400)[18..]);
        frames.give_back(handle);
    }
}

/// The smallest ring: a block with this many slots.
const SMALLEST: (usize, u32) = (1, 61);

#[test]
fn a_ring_is_used_round_and_round_and_its_chunks_again() {
    let name = "a_ring_is_used_round_and_round_and_its_chunks_again";
    privileged(name, || {
        let (a, b) = pair();
        let mut one = open(&a, "a0", Io::Rings).unwrap();
        let mut other = sized(&b, "b0", Io::Rings, SMALLEST.0).unwrap();
        let mut frames = Frames::new(300, 1_500);
        // More than there are chunks to send from (512), and 25 times the slots.
        let mut first = 0;
        for count in (1..60).chain([61, 61, 1, 60]) {
            send_numbered(&mut one, &mut frames, first, count);
            expect_numbered(&mut other, &mut frames, first, count);
            first += count;
        }
        assert!(first > 1_500);
        assert_eq!((other.drops(), other.stats().no_room), (0, 0));
        assert_eq!(
            (one.stats().sent, one.stats().refused),
            (u64::from(first), 0)
        );
        assert_eq!(frames.used(), 0);
    });
}

#[test]
fn a_full_ring_loses_the_newest_frames_counts_them_and_goes_on() {
    let name = "a_full_ring_loses_the_newest_frames_counts_them_and_goes_on";
    privileged(name, || {
        let (a, b) = pair();
        let mut one = open(&a, "a0", Io::Rings).unwrap();
        let mut other = sized(&b, "b0", Io::Rings, SMALLEST.0).unwrap();
        let mut frames = Frames::new(300, 1_500);
        send_numbered(&mut one, &mut frames, 0, 200);
        expect_numbered(&mut other, &mut frames, 0, SMALLEST.1);
        let mut received = Vec::new();
        assert_eq!(other.receive(&mut frames, &mut received).unwrap(), 0);
        assert_eq!(other.drops(), u64::from(200 - SMALLEST.1));
        send_numbered(&mut one, &mut frames, 500, 50);
        expect_numbered(&mut other, &mut frames, 500, 50);
        assert_eq!(other.stats().missed, u64::from(200 - SMALLEST.1));
    });
}

#[test]
fn a_frame_longer_than_the_link_takes_is_refused_and_counted_and_those_around_it_pass() {
    let name = "a_frame_longer_than_the_link_takes_is_refused_and_counted_and_those_around_it_pass";
    privileged(name, || {
        each(|io| {
            let (a, b) = pair();
            let (mut one, mut other) = (open(&a, "a0", io).unwrap(), open(&b, "b0", io).unwrap());
            let mut frames = Frames::new(300, 1_500);
            let sent: Vec<_> = [100, 1_501, 1_500, 1_505, 200]
                .map(|payload| frame(3, payload))
                .into();
            let handles: Vec<_> = sent.iter().map(|bytes| put(&mut frames, bytes)).collect();
            assert_eq!(one.send(&frames, &handles).unwrap(), 5);
            assert_eq!((one.stats().sent, one.stats().refused), (3, 2));
            let received = receive(&mut other, &mut frames, 3);
            for (received, n) in received.iter().zip([0, 2, 4]) {
                let Received::Frame(handle) = *received else {
                    panic!("a large frame");
                };
                assert_eq!(frames.get(handle), sent[n]);
            }
        });
    });
}

#[test]
fn large_frames_stay_in_their_order_among_small_ones() {
    let name = "large_frames_stay_in_their_order_among_small_ones";
    privileged(name, || {
        each(|io| {
            let (a, b) = pair();
            neighbour(&a);
            let mut port = open(&b, "b0", io).unwrap();
            let mut frames = Frames::new(300, 1500);
            let options = reactor::UdpOptions::default();
            let from = "192.0.2.1:4000".parse().unwrap();
            let to = "192.0.2.2:5000".parse().unwrap();
            let socket = a.run(|| reactor::UdpSocket::bind(from, &options).unwrap());
            let mut socket = socket.unwrap();
            // Each is sent whole: of one datagram, of two that fit a slot, of ten that do not.
            let counts = [1_u8, 10, 1, 2, 2, 10, 10, 1];
            for (n, count) in (0..).zip(counts) {
                let mut batch = reactor::SendBatch::new(16);
                for _ in 0..count {
                    batch.push(&[n; 700], to, None);
                }
                assert_eq!(socket.send(&mut batch).sent, usize::from(count));
            }
            let mut seen = Vec::new();
            let udp = |bytes: &[u8]| bytes[12..14] == [8, 0] && bytes[23] == 17;
            while seen.len() < counts.len() {
                let mut received = Vec::new();
                port.receive(&mut frames, &mut received).unwrap();
                for received in received {
                    let bytes = match received {
                        Received::Frame(handle) => frames.get(handle),
                        Received::Large(index) => port.large(index).bytes,
                    };
                    if udp(bytes) {
                        let number = bytes[42];
                        assert!(bytes[42..].iter().all(|&byte| byte == number));
                        seen.push((number, (bytes.len() - 42) / 700));
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let sent = (0..).zip(counts.map(usize::from));
            assert!(seen.iter().copied().eq(sent), "{seen:?}");
        });
    });
}
