//! The capture of ordinary traffic: connections of all sizes, some of them faulty, over several
//! networks, and other packets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sim::Rng;

use super::bulk::{MSS, MSS_STAMPED};
use super::flow::{Ending, Faults, Moment, Plan, Seen};
use super::frame::{Address, ethernet, fold, sum};
use super::schedule::Load;
use super::{EPOCH_NS, Scale};

const CONNECTIONS: u64 = 300_000;

const CLIENTS: u64 = 8_192;
const SERVERS: u64 = 1_000;
const PORT_FIRST: u64 = 10_000;
const PORTS: [u16; 4] = [80, 443, 22, 25];
const VLANS: [u16; 3] = [10, 20, 0x6000 | 30];

/// Mean time between the starts of two connections.
const BETWEEN_NS: u64 = 150_000;

/// The largest transfers have at least 2^16 segments.
const OCTAVE_MAX: u32 = 16;
/// Longest duration of a transfer.
const TRANSFER_NS_MAX: u64 = 20_000_000_000;

/// UDP's discard port (RFC 863).
const DISCARD: u16 = 9;

/// Packets other than TCP, per million.
const OTHERS: u64 = 30_000;

struct Mixed {
    connections: u64,
    begun: u64,
    clock_ns: u64,
}

pub(super) fn load(scale: Scale) -> Box<dyn Load> {
    Box::new(Mixed {
        connections: scale.of(CONNECTIONS),
        begun: 0,
        clock_ns: EPOCH_NS,
    })
}

impl Load for Mixed {
    fn next(&mut self, rng: &mut Rng) -> Option<(u64, Plan)> {
        if self.begun == self.connections {
            return None;
        }
        let n = self.begun;
        self.begun += 1;
        self.clock_ns += rng.below(2 * BETWEEN_NS);
        Some((self.clock_ns, plan(n, rng)))
    }

    fn beside(&mut self, at: &mut Moment<'_, '_>) -> io::Result<()> {
        if at.rng.below(1_000_000) >= OTHERS {
            return Ok(());
        }
        let (packet, len) = other(at.rng);
        at.capture.other(at.now, &packet, len)
    }
}

fn plan(n: u64, rng: &mut Rng) -> Plan {
    let is_ipv6 = rng.below(100) < 15;
    let timestamps = rng.below(100) < 60;
    let mss = if timestamps { MSS_STAMPED } else { MSS } - if is_ipv6 { 20 } else { 0 };
    let client = Address {
        ip: host(is_ipv6, 18, n % CLIENTS),
        port: (PORT_FIRST + n / CLIENTS) as u16,
    };
    let server = Address {
        ip: host(is_ipv6, 19, rng.below(SERVERS)),
        port: PORTS[rng.below(PORTS.len() as u64) as usize],
    };
    // Most connections download, and the capture is taken next to the sender.
    let downloads = rng.below(100) < 80;
    let (near, far) = if downloads {
        (server, client)
    } else {
        (client, server)
    };
    let segments = segments(n, rng);
    let gap_ns = 20_000 + rng.below(400_000);
    Plan {
        near,
        far,
        vlan: (rng.below(4) == 0).then(|| VLANS[rng.below(VLANS.len() as u64) as usize]),
        isn: (rng.next_u64() as u32, rng.next_u64() as u32),
        request: if downloads {
            50 + rng.below(900) as u16
        } else {
            0
        },
        segments,
        mss,
        tail: 1 + rng.below(u64::from(mss)) as u16,
        gap_ns: gap_ns.min(TRANSFER_NS_MAX / u64::from(segments)),
        round_trip_ns: 1_000_000 + rng.below(100_000_000),
        sack: rng.below(100) < 80,
        timestamps,
        faults: faults(rng),
        seen: if rng.below(100) < 5 {
            Seen::Near
        } else {
            Seen::Both
        },
        ending: match rng.below(100) {
            0..10 => Ending::Reset,
            10..15 => Ending::NoAnswer,
            _ => Ending::Fin,
        },
    }
}

/// Number of segments of transfer `n`. Half of the transfers have up to seven; the others are
/// spread over the octaves so that each octave carries the same number of segments.
fn segments(n: u64, rng: &mut Rng) -> u32 {
    if n.is_multiple_of(2) {
        return 1 + rng.below(7) as u32;
    }
    let octave = (n / 2 + 1).trailing_zeros().min(OCTAVE_MAX);
    (1 << octave) + rng.below(1 << octave) as u32
}

fn faults(rng: &mut Rng) -> Faults {
    let mut faults = Faults::default();
    if rng.below(100) < 40 {
        faults.lost_after = rng.below(10_000) as u32;
        faults.lost_before = rng.below(10_000) as u32;
        faults.spurious = rng.below(1_000) as u32;
    }
    if rng.below(100) < 10 {
        faults.overtaken = rng.below(20_000) as u32;
    }
    if rng.below(100) < 5 {
        faults.missed = rng.below(2_000) as u32;
    }
    faults
}

/// Host number `number` in a network for benchmarks (RFC 2544 C.2.2, RFC 5180 8).
fn host(is_ipv6: bool, network: u8, number: u64) -> IpAddr {
    let number = (number + 1) as u16;
    if is_ipv6 {
        let network = u16::from(network);
        Ipv6Addr::new(0x2001, 2, 0, network, 0, 0, 0, number).into()
    } else {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(198, network, high, low).into()
    }
}

/// A packet other than TCP: its headers and its length.
fn other(rng: &mut Rng) -> (Vec<u8>, usize) {
    let mut packet = ethernet(rng.below(2) == 0);
    let hosts = [
        host(false, 18, rng.below(16)),
        host(false, 19, rng.below(4)),
    ];
    match rng.below(10) {
        0 => {
            // An ARP request (RFC 826): Ethernet, IPv4.
            packet.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
            packet.extend_from_slice(&[2, 0, 0, 0, 0, 1, 198, 18, 0, 1]);
            packet.extend_from_slice(&[0, 0, 0, 0, 0, 0, 198, 18, 0, 2]);
            (packet, 60)
        }
        1 | 2 => {
            // An echo request (RFC 792).
            let mut echo = vec![8, 0, 0, 0, 0, 1];
            echo.extend_from_slice(&(rng.next_u64() as u16).to_be_bytes());
            let checksum = fold(sum(&echo));
            echo[2..4].copy_from_slice(&checksum.to_be_bytes());
            ipv4(&mut packet, 1, hosts, 8 + 56);
            packet.extend_from_slice(&echo);
            (packet, 14 + 20 + 8 + 56)
        }
        _ => {
            // A datagram of even length, without a checksum, as RFC 768 allows.
            let len = 2 * (20 + rng.below(500)) as usize;
            ipv4(&mut packet, 17, hosts, 8 + len as u16);
            packet.extend_from_slice(&(32_768 + rng.below(32) as u16).to_be_bytes());
            packet.extend_from_slice(&DISCARD.to_be_bytes());
            packet.extend_from_slice(&(8 + len as u16).to_be_bytes());
            packet.extend_from_slice(&[0, 0]);
            (packet, 14 + 20 + 8 + len)
        }
    }
}

fn ipv4(packet: &mut Vec<u8>, protocol: u8, hosts: [IpAddr; 2], payload: u16) {
    packet.extend_from_slice(&[8, 0]);
    let mut header = vec![0x45, 0];
    header.extend_from_slice(&(20 + payload).to_be_bytes());
    header.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    for host in hosts {
        if let IpAddr::V4(host) = host {
            header.extend_from_slice(&host.octets());
        }
    }
    let checksum = fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(&header);
}
