//! Captures of a few long connections.
//!
//! Initial sequence numbers are low in the sequence space, because an analyser that keeps a list
//! for each quarter of the space starts a new list at each quarter.

use std::net::{IpAddr, Ipv4Addr};

use sim::Rng;

use super::flow::{Ending, Faults, Plan, Seen};
use super::frame::Address;
use super::schedule::Load;
use super::{EPOCH_NS, Scale, named};

/// Payload of a segment in bytes with and without timestamps, at an MTU of 1,500.
pub(super) const MSS_STAMPED: u16 = 1_448;
pub(super) const MSS: u16 = 1_460;

/// A number of similar connections that start a millisecond apart.
struct Alike {
    plan: Plan,
    connections: u16,
    begun: u16,
}

impl Load for Alike {
    fn next(&mut self, rng: &mut Rng) -> Option<(u64, Plan)> {
        if self.begun == self.connections {
            return None;
        }
        let n = self.begun;
        self.begun += 1;
        let mut plan = self.plan.clone();
        plan.near.port += n;
        plan.isn = (
            0x10_0000 + rng.below(0x10_0000) as u32,
            rng.next_u64() as u32,
        );
        // Different paces, since otherwise their packets would alternate regularly.
        plan.gap_ns += plan.gap_ns / 100 * u64::from(n);
        plan.tail = 1 + rng.below(u64::from(plan.mss)) as u16;
        Some((EPOCH_NS + u64::from(n) * 1_000_000, plan))
    }
}

/// `connections` that together make as many packets as the kind of that name has. Each of their
/// segments makes `per_thousand` thousandths of a packet.
fn alike(name: &str, scale: Scale, connections: u16, per_thousand: u64, plan: Plan) -> Box<Alike> {
    let packets = named(name).map_or(1, |kind| kind.packets_at(scale));
    // Six packets belong to the handshake and the close.
    let each = (packets / u64::from(connections)).saturating_sub(6);
    let segments = (each * 1_000 / per_thousand).max(1) as u32;
    Box::new(Alike {
        plan: Plan { segments, ..plan },
        connections,
        begun: 0,
    })
}

/// A connection without faults, with SACK and timestamps: a segment every 100 microseconds, with a
/// round trip of 20 milliseconds.
fn plan() -> Plan {
    let address = |ip, port| Address {
        ip: IpAddr::V4(ip),
        port,
    };
    Plan {
        near: address(Ipv4Addr::new(198, 18, 0, 1), 49_152),
        far: address(Ipv4Addr::new(198, 19, 0, 1), 5_001),
        vlan: None,
        isn: (0, 0),
        request: 0,
        segments: 1,
        mss: MSS_STAMPED,
        tail: MSS_STAMPED,
        gap_ns: 100_000,
        round_trip_ns: 20_000_000,
        sack: true,
        timestamps: true,
        faults: Faults::default(),
        seen: Seen::Both,
        ending: Ending::Fin,
    }
}

pub(super) fn clean(scale: Scale) -> Box<dyn Load> {
    alike("clean", scale, 9, 1_500, plan())
}

pub(super) fn oneway_loss(scale: Scale) -> Box<dyn Load> {
    let plan = Plan {
        mss: MSS,
        sack: false,
        timestamps: false,
        round_trip_ns: 2_000_000,
        seen: Seen::Near,
        faults: Faults {
            // It is retransmitted 24 segments later.
            first: 75,
            lost_after: 500,
            ..Faults::default()
        },
        ..plan()
    };
    alike("oneway-loss", scale, 9, 1_001, plan)
}

pub(super) fn oneway_sack(scale: Scale) -> Box<dyn Load> {
    let faults = Faults {
        lost_after: 10_000,
        ..Faults::default()
    };
    let plan = Plan {
        seen: Seen::NearAndHandshake,
        faults,
        ..plan()
    };
    alike("oneway-sack", scale, 8, 1_010, plan)
}

pub(super) fn twoway_drops(scale: Scale) -> Box<dyn Load> {
    let faults = Faults {
        missed: 5_000,
        ..Faults::default()
    };
    alike("twoway-drops", scale, 8, 1_492, Plan { faults, ..plan() })
}
