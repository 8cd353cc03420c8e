//! BGP4-MIB: RFC 4273, without the tables of routes. Peers with IPv6 addresses have no rows there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use agentx::pdu::Value;
use base::{Duration, Instant};
use bgp::fsm::State;
use bgp::speaker::NeighborView;
use bgp::{PeerId, Speaker};
use reactor::Slice;

use crate::core::Core;

/// How long sorted addresses are used.
const FRESH: Duration = Duration::from_secs(2);
/// Peers that are visited between two looks at the clock.
const PEERS: usize = 256;
/// The autonomous system in place of one with four octets (RFC 6793, section 9).
const AS_TRANS: u32 = 23_456;

/// The peers by address, sorted while a manager asks.
#[derive(Default)]
pub(super) struct Peers {
    sorted: BTreeMap<Ipv4Addr, PeerId>,
    /// When they were sorted.
    at: Option<Instant>,
    /// The addresses that are being sorted, and the peer to go on from.
    next: Option<(PeerId, BTreeMap<Ipv4Addr, PeerId>)>,
}

impl Peers {
    /// Sorts the addresses again if they are old; `false` if the slice is over before.
    pub(super) fn refresh(&mut self, speaker: &Speaker, slice: Slice, now: Instant) -> bool {
        if self.at.is_some_and(|at| now.since(at) < FRESH) {
            return true;
        }
        let (mut from, mut sorted) = self.next.take().unwrap_or((PeerId(0), BTreeMap::new()));
        loop {
            for _ in 0..PEERS {
                let Some((id, address)) = speaker.next_address(from) else {
                    (self.sorted, self.at) = (sorted, Some(now));
                    return true;
                };
                if let IpAddr::V4(address) = address {
                    sorted.insert(address, id);
                }
                from = PeerId(id.0 + 1);
            }
            if slice.is_over() {
                self.next = Some((from, sorted));
                return false;
            }
        }
    }

    /// The first peer at `address` or after it.
    pub(super) fn next_from(&self, address: Ipv4Addr) -> Option<(Ipv4Addr, PeerId)> {
        let (address, peer) = self.sorted.range(address..).next()?;
        Some((*address, *peer))
    }
}

fn asn(number: u32) -> Value {
    Value::Integer(u16::try_from(number).map_or(AS_TRANS as i32, i32::from))
}

fn counter(count: u64) -> Value {
    Value::Counter32(count as u32)
}

/// bgpVersion, bgpLocalAs and bgpIdentifier
pub(super) fn scalar(core: &Core, column: u32) -> Option<Value> {
    let summary = core.routes.as_ref()?.speaker.summary();
    Some(match column {
        // A bit for each version, the first one for version 1.
        1 => Value::Octets(vec![0x10]),
        2 => asn(summary.asn),
        4 => Value::IpAddress(summary.router_id.octets()),
        _ => return None,
    })
}

/// bgpPeerTable
pub(super) fn peer(core: &Core, peer: PeerId, column: u32) -> Option<Value> {
    let view = core.routes.as_ref()?.speaker.neighbor(peer, core.now)?;
    Some(match column {
        1 => {
            let id = view.agreed.as_ref().map(|agreed| agreed.router_id);
            Value::IpAddress(id.map_or([0; 4], |id| id.octets()))
        }
        2 => Value::Integer(match view.state {
            State::Idle => 1,
            State::Connect => 2,
            State::Active => 3,
            State::OpenSent => 4,
            State::OpenConfirm => 5,
            State::Established => 6,
        }),
        // bgpPeerAdminStatus: start or stop
        3 => Value::Integer(if view.is_started { 2 } else { 1 }),
        4 => Value::Integer(if view.agreed.is_some() { 4 } else { 0 }),
        5..=8 => end(&view, column)?,
        9 => {
            let agreed = view.agreed.as_ref().map(|agreed| agreed.remote_asn);
            let expected = match view.expected_asn {
                bgp::RemoteAsn::Exactly(number) => Some(number),
                _ => None,
            };
            agreed.or(expected).map_or(Value::Integer(0), asn)
        }
        10 => counter(view.counts.updates_in),
        11 => counter(view.counts.updates_out),
        12 => counter(messages(&view, true)),
        13 => counter(messages(&view, false)),
        14 => {
            let last = view.last_end.as_ref();
            let sent = match last {
                Some(bgp::CloseReason::Received(received)) => Some((**received).clone()),
                other => other.and_then(bgp::CloseReason::notification),
            };
            Value::Octets(sent.map_or(vec![0, 0], |error| vec![error.code, error.subcode]))
        }
        15 => Value::Counter32(view.counts.ups),
        16 => {
            let since = view.since.map(|since| core.now.since(since));
            let seconds = since.map_or(0, |since| since.as_nanos() / 1_000_000_000);
            Value::Gauge32(u32::try_from(seconds).unwrap_or(u32::MAX))
        }
        18 => seconds(view.agreed.as_ref().map(|agreed| agreed.hold_time_s)),
        19 => seconds(view.agreed.as_ref().map(|agreed| agreed.keepalive_s)),
        20 => seconds(Some(view.hold_time_s)),
        _ => return None,
    })
}

fn seconds(number: Option<u16>) -> Value {
    Value::Integer(i32::from(number.unwrap_or(0)))
}

/// bgpPeerLocalAddr to bgpPeerRemotePort
fn end(view: &NeighborView, column: u32) -> Option<Value> {
    let address = |ip: Option<IpAddr>| match ip {
        Some(IpAddr::V4(ip)) => Value::IpAddress(ip.octets()),
        Some(IpAddr::V6(_)) | None => Value::IpAddress([0; 4]),
    };
    let port = |port: Option<u16>| Value::Integer(port.map_or(0, i32::from));
    let (local, remote) = view.connection.unzip();
    Some(match column {
        5 => address(local.map(|end| end.ip())),
        6 => port(local.map(|end| end.port())),
        7 => address(Some(view.remote)),
        8 => port(remote.map(|end| end.port())),
        _ => return None,
    })
}

/// All messages in one direction.
fn messages(view: &NeighborView, is_in: bool) -> u64 {
    let counts = &view.counts;
    let (small, updates, keepalives) = match is_in {
        true => (
            [
                counts.opens_in,
                counts.notifications_in,
                counts.refreshes_in,
            ],
            counts.updates_in,
            counts.keepalives_in,
        ),
        false => (
            [
                counts.opens_out,
                counts.notifications_out,
                counts.refreshes_out,
            ],
            counts.updates_out,
            counts.keepalives_out,
        ),
    };
    small.into_iter().map(u64::from).sum::<u64>() + updates + keepalives
}
