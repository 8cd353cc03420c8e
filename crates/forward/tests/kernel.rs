//! Linux as the judge of what is joined and what is cut: packets that it gave for several, cut here and joined again,
//! come back through the same device as what was sent.
//!
//! Takes root, or a system that lets users have namespaces.

#[path = "../../reactor/tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::privileged;
use forward::join::{Joiner, Options};
use forward::split::{Opened, open};
use reactor::SendBatch;
use reactor::namespace::Namespace;
use reactor::tun::{Tun, TunOptions};
use wire::checksum::{fold, pseudo_sum, sum};
use wire::virtio::{Gso, Header};

/// A namespace with a device that has all offloads: what is sent to `.2` or `::2` comes out of it, and may be sent back.
fn device() -> (Namespace, Tun) {
    let namespace = Namespace::new().unwrap();
    let options = TunOptions {
        offloads: true,
        queues: 1,
    };
    let opened = namespace.run(|| Tun::open_queues("tun0", &options).unwrap());
    let tun = opened.unwrap().pop().unwrap();
    let mut netlink = namespace.netlink().unwrap();
    for (address, bits) in [("192.0.2.1", 24), ("2001:db8::1", 64)] {
        let address = address.parse().unwrap();
        netlink.add_address("tun0", address, bits).unwrap();
    }
    netlink.set_up("tun0", true).unwrap();
    namespace.run(wait_for_own_address).unwrap();
    (namespace, tun)
}

/// Waits until the kernel accepts packets for the IPv6 address, which is a moment after it confirmed the address.
fn wait_for_own_address() {
    let own = "20010db8000000000000000000000001 80 ";
    for _ in 0..10_000 {
        // A kernel without IPv6 fails elsewhere.
        let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route");
        if routes.map_or(true, |routes| routes.contains(own)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the address is not usable after 10 s");
}

/// What [`reflect`] counted.
#[derive(Debug, Default)]
struct Seen {
    /// Packets of several segments: read from the device, and written to it.
    cut: usize,
    joined: usize,
    packets: usize,
}

/// Sends every packet from a device back into it, with its addresses swapped and its ports unchanged. It cuts each
/// packet into segments, checks their checksums and joins them again. A sender thus reaches the same port on this host.
fn reflect(tun: &Tun, udp: bool, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut joiner = Joiner::new(Options { lanes: 4, udp });
    let (mut buffer, mut packets) = (vec![0; 70_000], Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let mut emit = |octets: &[u8]| {
            let header = Header::parse(octets).unwrap();
            seen.joined += usize::from(header.gso != Gso::None);
            tun.send(octets).unwrap();
        };
        let Some(length) = tun.receive(&mut buffer).unwrap() else {
            joiner.flush(&mut emit);
            std::thread::sleep(Duration::from_micros(200));
            continue;
        };
        packets.clear();
        match open(&mut buffer[..length]).unwrap() {
            Opened::One(packet) => packets.push(packet.to_vec()),
            Opened::Several(segments) => {
                seen.cut += 1;
                let mut out = vec![0; segments.layout(20).octets()];
                let layout = segments.write_all(20, &mut out).unwrap();
                let ranges = (0..layout.count).map(|n| layout.range(n).unwrap());
                packets.extend(ranges.map(|range| out[range][20..].to_vec()));
            }
        }
        for packet in &mut packets {
            if exchange(packet) {
                seen.packets += 1;
                joiner.push(packet, &mut emit);
            }
        }
    }
    seen
}

/// Exchanges the addresses, which leaves checksums right; looks at those. Says whether it is TCP or UDP.
fn exchange(packet: &mut [u8]) -> bool {
    let (at, size, start) = match packet[0] >> 4 {
        4 => (12, 4, 20),
        _ => (8, 16, 40),
    };
    let protocol = if start == 20 { packet[9] } else { packet[6] };
    if ![6, 17].contains(&protocol) {
        return false;
    }
    if start == 20 {
        assert_eq!(sum(&packet[..20]), 0xffff, "IPv4 checksum");
    }
    let pseudo = pseudo_sum(&packet[at..at + 2 * size], protocol, packet.len() - start);
    let total = u64::from(pseudo) + u64::from(sum(&packet[start..]));
    assert_eq!(fold(total), 0xffff, "TCP or UDP checksum");
    packet[at..at + 2 * size].rotate_left(size);
    true
}

fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * n / 251) as u8).collect()
}

/// Both families: an address and a port here, and the same port there.
const PORTS: [(&str, &str); 2] = [
    ("192.0.2.1:5000", "192.0.2.2:5000"),
    ("[2001:db8::1]:5000", "[2001:db8::2]:5000"),
];

const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

#[test]
fn datagrams_that_the_kernel_joined_come_back_whole() {
    privileged("datagrams_that_the_kernel_joined_come_back_whole", || {
        let (namespace, tun) = device();
        let stop = AtomicBool::new(false);
        let work = |here: &str, there: &str| {
            let receiver = UdpSocket::bind(here).unwrap();
            receiver.set_read_timeout(LIMIT).unwrap();
            let there: SocketAddr = there.parse().unwrap();
            let mut own: SocketAddr = here.parse().unwrap();
            own.set_port(0);
            let options = reactor::UdpOptions::default();
            let mut sender = reactor::UdpSocket::bind(own, &options).unwrap();
            let mut batch = SendBatch::new(64);
            for round in 0..20 {
                // 31 of them, the last one shorter.
                let sent = octets(3001 + round);
                sent.chunks(100)
                    .for_each(|part| batch.push(part, there, None));
                assert_eq!(sender.send(&mut batch).sent, 31);
                let mut buffer = [0; 2000];
                for part in sent.chunks(100) {
                    let length = receiver.recv(&mut buffer).unwrap();
                    assert_eq!(buffer[..length], *part);
                }
            }
        };
        let seen = with_reflection(&namespace, &tun, &stop, work);
        assert_eq!(seen.packets, 2 * 20 * 31, "{seen:?}");
        if tun.offloads().udp {
            assert_eq!((seen.cut, seen.joined), (40, 40), "{seen:?}");
        }
    });
}

#[test]
fn a_connection_whose_segments_the_kernel_left_to_be_cut_carries_its_octets() {
    let name = "a_connection_whose_segments_the_kernel_left_to_be_cut_carries_its_octets";
    privileged(name, || {
        let (namespace, tun) = device();
        let stop = AtomicBool::new(false);
        let work = |here: &str, there: &str| {
            let listener = TcpListener::bind(here).unwrap();
            let mut client = TcpStream::connect(there).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.set_write_timeout(LIMIT).unwrap();
            server.set_read_timeout(LIMIT).unwrap();
            let sent = octets(2_000_000);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    client.write_all(&sent).unwrap();
                    client.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let mut received = Vec::new();
                server.read_to_end(&mut received).unwrap();
                assert!(received == sent, "{} octets", received.len());
            });
        };
        let seen = with_reflection(&namespace, &tun, &stop, work);
        assert!(seen.cut > 0 && seen.joined > 0, "{seen:?}");
    });
}

/// Does `work` in the namespace for both families while packets are reflected.
fn with_reflection(
    namespace: &Namespace,
    tun: &Tun,
    stop: &AtomicBool,
    work: impl Fn(&str, &str) + Sync,
) -> Seen {
    let udp = tun.offloads().udp;
    std::thread::scope(|scope| {
        let reflecting = scope.spawn(|| reflect(tun, udp, stop));
        let working = scope.spawn(|| {
            let all = || PORTS.iter().for_each(|(here, there)| work(here, there));
            namespace.run(all).unwrap();
        });
        let worked = working.join();
        stop.store(true, Ordering::Relaxed);
        let seen = reflecting.join().unwrap();
        worked.unwrap();
        seen
    })
}
