//! `--realm` inside of tunnels whose sessions have an identifier for each direction: L2TP (RFC 2661, 3931), PPTP (RFC
//! 2637) and GTP-U (3GPP TS 29.281).
//!
//! The captured data itself shows which two identifiers are one session. If a packet acknowledges exactly what a packet
//! of the other direction sent, between the same addresses and ports inside of the same tunnel, both are of one session.
//! A UDP flow shows it if only one session of each direction has a flow between these ends. A session's first TCP packet
//! thus gets a realm of its own, and the answer finds it.
//!
//! Left out: the control messages that assign the identifiers, which the capture may lack.

use std::collections::HashMap;
use std::mem;

use wire::packet::{Layer, Packet};
use wire::tcp::Tcp;

use crate::key::FlowKey;

/// Sessions that are known, both directions counted. Beyond it, further sessions of a tunnel are one realm.
const SESSIONS_MAX: usize = 1 << 18;

/// Flows whose last packet is remembered. At the limit, those without packets since half of it are forgotten.
const FLOWS_MAX: usize = 1 << 16;

/// A session in one direction of its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Session {
    /// The realm of the tunnel and everything around it.
    tunnel: u32,
    /// The lower outer address sent it.
    from_low: bool,
    id: u64,
}

/// What was last sent in a flow, by each end.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// By the lower end and by the higher end.
    last: [Option<Last>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Last {
    session: Session,
    /// Next sequence number and acknowledgement; none in UDP.
    numbers: Option<(u32, u32)>,
    /// Several sessions have sent packets of such a flow.
    several: bool,
}

/// The realms of sessions.
#[derive(Debug, Default)]
pub(crate) struct Realms {
    sessions: HashMap<Session, u32>,
    flows: HashMap<FlowKey, Flow>,
    /// The flows before the last ones.
    older: HashMap<FlowKey, Flow>,
}

impl Realms {
    /// The realm of a packet in `layers`, given that of its tunnel. `tcp` is its segment, if it has one.
    pub(crate) fn of(
        &mut self,
        tunnel: u32,
        layers: &[Layer],
        packet: &Packet<'_>,
        tcp: Option<&Tcp<'_>>,
    ) -> u32 {
        let Some(session) = session(tunnel, layers) else {
            return tunnel;
        };
        let Some((ports, numbers)) = numbers(packet, tcp) else {
            return self.sessions.get(&session).copied().unwrap_or(tunnel);
        };
        let (key, from_low) = FlowKey::new(
            &packet.source,
            ports.0,
            &packet.destination,
            ports.1,
            tunnel,
        );
        let mut flow = self.take(&key);
        let [mine, theirs] = match from_low {
            true => [0, 1],
            false => [1, 0],
        };
        if !self.sessions.contains_key(&session) {
            let other = flow.last[theirs].filter(|last| last.answers(session, numbers));
            let realm = other.and_then(|last| self.sessions.get(&last.session).copied());
            // Without a known partner, only TCP needs a realm at once: the answer will find it.
            let own = tcp.map(|_| number(session));
            if let Some(realm) = realm.or(own).filter(|_| self.sessions.len() < SESSIONS_MAX) {
                self.sessions.insert(session, realm);
            }
        }
        let several = flow.last[mine].is_some_and(|last| last.several || last.session != session);
        flow.last[mine] = Some(Last {
            session,
            numbers,
            several,
        });
        self.flows.insert(key, flow);
        self.sessions.get(&session).copied().unwrap_or(tunnel)
    }

    /// The flow's last packets, which the caller puts back.
    fn take(&mut self, key: &FlowKey) -> Flow {
        if let Some(flow) = self.flows.get(key) {
            return *flow;
        }
        if self.flows.len() >= FLOWS_MAX / 2 {
            self.older = mem::take(&mut self.flows);
        }
        self.older.remove(key).unwrap_or_default()
    }
}

impl Last {
    /// Whether a packet of `session` answers it.
    fn answers(&self, session: Session, numbers: Option<(u32, u32)>) -> bool {
        let opposite =
            self.session.tunnel == session.tunnel && self.session.from_low != session.from_low;
        opposite
            && match (self.numbers, numbers) {
                (Some((next, acknowledged)), Some((sequence_end, ack))) => {
                    ack == next || acknowledged != 0 && sequence_end == acknowledged
                }
                (None, None) => !self.several,
                _ => false,
            }
    }
}

/// Source and destination port.
type Ports = (u16, u16);

/// The next sequence number, and the acknowledgement.
type Numbers = (u32, u32);

/// Ports, and the numbers of TCP; `None` for other protocols than TCP and UDP.
fn numbers(packet: &Packet<'_>, tcp: Option<&Tcp<'_>>) -> Option<(Ports, Option<Numbers>)> {
    if let Some(tcp) = tcp {
        let flags = u32::from(tcp.flags.contains(wire::tcp::Flags::SYN))
            + u32::from(tcp.flags.contains(wire::tcp::Flags::FIN));
        let next = tcp
            .sequence
            .wrapping_add(tcp.payload_length)
            .wrapping_add(flags);
        let numbers = (next, tcp.acknowledgment);
        return Some(((tcp.source_port, tcp.destination_port), Some(numbers)));
    }
    let udp = wire::udp::Udp::parse(packet).ok()?;
    Some(((udp.source_port, udp.destination_port), None))
}

/// The innermost session with an identifier for each direction.
fn session(tunnel: u32, layers: &[Layer]) -> Option<Session> {
    let at = layers.iter().rposition(|layer| {
        matches!(
            layer,
            Layer::L2tp { .. } | Layer::Pptp { .. } | Layer::Gtp { .. }
        )
    })?;
    let id = match layers[at] {
        Layer::L2tp {
            version,
            tunnel,
            session,
        } => 1 << 62 | u64::from(version) << 56 | u64::from(tunnel) << 32 | u64::from(session),
        Layer::Pptp { call } => 2 << 62 | u64::from(call),
        Layer::Gtp { teid } => 3 << 62 | u64::from(teid),
        _ => return None,
    };
    let from_low = layers[..at].iter().rev().find_map(|layer| match layer {
        Layer::Ipv4 {
            source,
            destination,
        } => Some(source <= destination),
        Layer::Ipv6 {
            source,
            destination,
        } => Some(source <= destination),
        _ => None,
    })?;
    Some(Session {
        tunnel,
        from_low,
        id,
    })
}

/// A number for a session that no other one has been paired with. The same on any machine.
fn number(session: Session) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for value in [
        u64::from(session.tunnel),
        session.id,
        session.from_low.into(),
    ] {
        for octet in value.to_be_bytes() {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (hash ^ hash >> 32) as u32 | 1
}

#[cfg(test)]
mod tests;
