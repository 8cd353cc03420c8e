//! The way of a packet: record, frame, IP packet, TCP segment, connection.
//!
//! One [`Machine`] does this on one thread, for a block of records at a time. It is generic over the [`Watch`] that
//! looks at packets, so that nothing is prepared for it, and nothing paid, when there is none.

use capfile::{Block, Record};
use trace::{Analyzer, Connection, Nobody, Observer, Segment, Verdict};
use wire::packet::{Layer, Packet};
use wire::tcp::Tcp;

use super::decoder::{Decoded, Decoder, Step};
use super::tally::Tally;

/// A packet with an IP header.
pub(super) struct Seen<'a, 'p> {
    /// Its number in the input, from 1.
    pub(super) number: u64,
    pub(super) record: &'a Record,
    /// What was captured of its frame.
    pub(super) frame: &'p [u8],
    pub(super) packet: &'a Packet<'p>,
}

/// Looks at packets as they pass.
pub(super) trait Watch {
    /// False when nobody looks.
    const WANTED: bool;
    /// An IP packet, before it is analysed. False leaves it out.
    fn packet(&mut self, seen: &Seen<'_, '_>, tally: &mut Tally) -> bool;
    /// One that is no TCP segment.
    fn other(&mut self, seen: &Seen<'_, '_>);
    /// A TCP segment, once its connection has taken it in.
    fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    );
}

/// Nobody looks.
impl Watch for () {
    const WANTED: bool = false;
    fn packet(&mut self, _: &Seen<'_, '_>, _: &mut Tally) -> bool {
        true
    }
    fn other(&mut self, _: &Seen<'_, '_>) {}
    fn segment(&mut self, _: &Seen<'_, '_>, _: &Tcp<'_>, _: &Connection, _: &Segment, _: &Verdict) {
    }
}

/// What of the input is analysed, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) config: trace::Config,
    /// Number of the first packet that counts.
    pub(super) first: u64,
    /// Number of the last one.
    pub(super) last: u64,
    /// Part K, from 0, of N; N is 1 for all of it.
    pub(super) part: (u32, u32),
    /// Tunnels keep flows with the same addresses apart.
    pub(super) realm: bool,
}

impl Plan {
    /// Whether the flow with that hash belongs to this part.
    #[inline]
    pub(super) fn has(&self, hash: u64) -> bool {
        let (part, parts) = self.part;
        parts <= 1 || hash % u64::from(parts) == u64::from(part)
    }
}

/// What keeps flows with the same addresses and ports apart: 0, or a number made of the tunnel.
#[inline]
pub(super) fn realm_of(plan: &Plan, layers: &[Layer]) -> u32 {
    if plan.realm && !layers.is_empty() {
        realm(layers)
    } else {
        0
    }
}

/// Packets that are decoded before the first of them is analysed, so that the processor fetches what all of them need
/// at once.
pub(super) const AHEAD: usize = 32;

/// Connections held from which on that is worth it.
pub(super) const MANY: usize = 256;

/// Analyses packets, block by block.
pub(super) struct Machine<W> {
    pub(super) analyzer: Analyzer,
    pub(super) decoder: Decoder,
    pub(super) watch: W,
    /// The packets ahead.
    ahead: Decoded,
}

impl<W: Watch> Machine<W> {
    pub(super) fn new(plan: Plan, watch: W) -> Self {
        Machine {
            analyzer: Analyzer::new(plan.config),
            decoder: Decoder::new(plan),
            watch,
            ahead: Decoded::default(),
        }
    }

    /// Takes in a block. False when the last packet that counts has passed.
    pub(super) fn block(&mut self, block: &Block) -> bool {
        if W::WANTED {
            return self.watched(block);
        }
        let mut packet = Packet::new();
        for records in block.records().chunks(AHEAD) {
            self.ahead.clear();
            let ahead = std::slice::from_mut(&mut self.ahead);
            let mut steps = records
                .iter()
                .map(|record| self.decoder.decode(block, record, &mut packet, ahead));
            let past = steps.any(|step| step == Step::Past);
            take(&mut self.analyzer, &mut self.ahead, 0);
            if past {
                return false;
            }
        }
        true
    }

    /// The same packet by packet, with a watcher's look at each.
    fn watched(&mut self, block: &Block) -> bool {
        let mut packet = Packet::new();
        for record in block.records() {
            match self.decoder.record(block, record, &mut packet) {
                Step::Packet => {}
                Step::Nothing => continue,
                Step::Past => return false,
            }
            let seen = Seen {
                number: self.decoder.number,
                record,
                frame: block.bytes(record),
                packet: &packet,
            };
            if !self.watch.packet(&seen, &mut self.decoder.tally) {
                continue;
            }
            if let Some(tcp) = Tcp::plain(&packet) {
                self.look(&seen, &tcp);
                continue;
            }
            match Tcp::parse(&packet) {
                Ok(ref tcp) => self.look(&seen, tcp),
                Err(error) => {
                    self.decoder.tally.not_tcp(&packet, error);
                    self.watch.other(&seen);
                }
            }
        }
        true
    }

    #[inline]
    fn look(&mut self, seen: &Seen<'_, '_>, tcp: &Tcp<'_>) {
        self.ahead.clear();
        let ahead = std::slice::from_mut(&mut self.ahead);
        if let Some((hash, segment)) = self.decoder.segment(seen.packet, tcp, ahead) {
            let mut eye = Eye {
                watch: &mut self.watch,
                seen,
                tcp,
            };
            let layers = seen.packet.layers.as_slice();
            self.analyzer
                .packet_hashed(*hash, segment, layers, &mut eye);
        }
    }
}

/// Analyses segments that nobody watches, `before` packets having come before the first of them.
#[inline]
pub(super) fn take(analyzer: &mut Analyzer, decoded: &mut Decoded, before: u64) {
    let layers = std::mem::take(&mut decoded.layers);
    let mut layered = layers.iter().peekable();
    for (chunk, segments) in decoded.segments().chunks_mut(AHEAD).enumerate() {
        if analyzer.held() > MANY {
            let keys = segments.iter().map(|(hash, segment)| (*hash, &segment.key));
            std::hint::black_box(analyzer.touch(keys));
        }
        for (at, (hash, segment)) in segments.iter_mut().enumerate() {
            segment.number += before;
            let own = layered.next_if(|(of, _)| *of == chunk * AHEAD + at);
            let own = own.map_or(&[][..], |(_, layers)| layers.as_slice());
            analyzer.packet_hashed(*hash, segment, own, &mut Nobody);
        }
    }
    decoded.layers = layers;
}

/// A watcher's look at one packet.
struct Eye<'a, 'p, W> {
    watch: &'a mut W,
    seen: &'a Seen<'a, 'p>,
    tcp: &'a Tcp<'p>,
}

impl<W: Watch> Observer for Eye<'_, '_, W> {
    fn observe(&mut self, connection: &Connection, segment: &Segment, verdict: &Verdict) {
        self.watch
            .segment(self.seen, self.tcp, connection, segment, verdict);
    }
}

/// A number for the tunnel that carries a packet, the same for both its directions: made of what both have in common,
/// which are VLANs and outer addresses, and of identifiers where both directions have the same.
#[cold]
#[inline(never)]
fn realm(layers: &[Layer]) -> u32 {
    // FNV-1a: the parts of a capture have to agree on it, and so have the machines that read them.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| {
        for octet in value.to_be_bytes() {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for layer in layers {
        match *layer {
            Layer::Vlan { id, .. } => mix(1 << 32 | u64::from(id)),
            Layer::Pppoe { session } => mix(2 << 32 | u64::from(session)),
            Layer::Vxlan { vni } => mix(3 << 32 | u64::from(vni)),
            Layer::Geneve { vni } => mix(4 << 32 | u64::from(vni)),
            Layer::Gre { key: Some(key) } => mix(5 << 32 | u64::from(key)),
            Layer::Ipv4 {
                source,
                destination,
            } => {
                let (low, high) =
                    ordered(u32::from_be_bytes(source), u32::from_be_bytes(destination));
                mix(u64::from(low) << 32 | u64::from(high));
            }
            Layer::Ipv6 {
                source,
                destination,
            } => {
                let (low, high) = ordered(
                    u128::from_be_bytes(source),
                    u128::from_be_bytes(destination),
                );
                for part in [low >> 64, low, high >> 64, high] {
                    mix(part as u64);
                }
            }
            // The two directions have identifiers of their own.
            Layer::Mpls { .. }
            | Layer::Ppp
            | Layer::Gre { key: None }
            | Layer::Pptp { .. }
            | Layer::L2tp { .. }
            | Layer::Gtp { .. }
            | Layer::EtherIp => {}
        }
    }
    // 0 is for what is in no tunnel.
    (hash ^ hash >> 32) as u32 | 1
}

fn ordered<T: Ord>(one: T, other: T) -> (T, T) {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_tunnel_are_one_realm() {
        let there = [
            Layer::Vlan {
                id: 5,
                tpid: 0x8100,
            },
            Layer::Ipv4 {
                source: [1, 2, 3, 4],
                destination: [9, 8, 7, 6],
            },
            Layer::L2tp {
                version: 2,
                tunnel: 1,
                session: 2,
            },
        ];
        let mut back = there;
        back[1] = Layer::Ipv4 {
            source: [9, 8, 7, 6],
            destination: [1, 2, 3, 4],
        };
        back[2] = Layer::L2tp {
            version: 2,
            tunnel: 77,
            session: 88,
        };
        assert_eq!(realm(&there), realm(&back));
        back[0] = Layer::Vlan {
            id: 6,
            tpid: 0x8100,
        };
        assert_ne!(realm(&there), realm(&back));
    }
}
