//! The capture with very many short connections.

use std::net::{IpAddr, Ipv4Addr};

use sim::Rng;

use super::bulk::{MSS, MSS_STAMPED};
use super::flow::{Ending, Faults, Plan, Seen};
use super::frame::Address;
use super::schedule::Load;
use super::{EPOCH_NS, Scale};

const CONNECTIONS: u64 = 1_000_000;

const CLIENTS: u64 = 4_096;
const SERVERS: u64 = 250;
const PORT_FIRST: u64 = 10_000;

/// Mean time between the starts of two connections.
const BETWEEN_NS: u64 = 20_000;

struct Short {
    connections: u64,
    begun: u64,
    clock_ns: u64,
}

pub(super) fn load(scale: Scale) -> Box<dyn Load> {
    Box::new(Short {
        connections: scale.of(CONNECTIONS),
        begun: 0,
        clock_ns: EPOCH_NS,
    })
}

impl Load for Short {
    fn next(&mut self, rng: &mut Rng) -> Option<(u64, Plan)> {
        if self.begun == self.connections {
            return None;
        }
        let n = self.begun;
        self.begun += 1;
        self.clock_ns += rng.below(2 * BETWEEN_NS);
        let timestamps = rng.chance(0.5);
        let mss = if timestamps { MSS_STAMPED } else { MSS };
        let server = rng.below(SERVERS);
        let plan = Plan {
            near: Address {
                ip: host(198, 19, server),
                port: 80,
            },
            // No client uses a port twice.
            far: Address {
                ip: host(198, 18, n % CLIENTS),
                port: (PORT_FIRST + n / CLIENTS) as u16,
            },
            vlan: None,
            isn: (rng.next_u64() as u32, rng.next_u64() as u32),
            request: 100 + rng.below(400) as u16,
            segments: 1 + rng.below(4) as u32,
            mss,
            tail: 1 + rng.below(u64::from(mss)) as u16,
            gap_ns: 50_000,
            round_trip_ns: 5_000_000 + rng.below(100_000_000),
            sack: true,
            timestamps,
            faults: Faults::default(),
            seen: Seen::Both,
            ending: match rng.below(10) {
                0 => Ending::Reset,
                1 => Ending::NoAnswer,
                _ => Ending::Fin,
            },
        };
        Some((self.clock_ns, plan))
    }
}

/// Host number `number` in a network of the range for benchmarks (RFC 2544 C.2.2).
fn host(first: u8, second: u8, number: u64) -> IpAddr {
    let [.., high, low] = (number + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(first, second, high, low))
}
