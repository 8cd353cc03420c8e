//! The steps of a schedule, one after the other, on a translator.

use super::packet::{self, Segment};
use super::{EXTERNAL, End, Line, Schedule, Side, Translator};
use anyhow::{Result, ensure};
use std::collections::HashMap;

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Udp {
        length: usize,
        has_checksum: bool,
    },
    Tcp(Segment),
    /// An ICMP query or reply of this type.
    Query(u8),
    /// An ICMP error about the last packet that passed in the other direction.
    Error {
        kind: (u8, u8),
        quote: Quote,
    },
    /// A UDP datagram in two fragments, the second one first if `is_reversed`.
    Fragments {
        length: usize,
        at: usize,
        is_reversed: bool,
    },
    /// The same, with one fragment missing.
    Fragment {
        is_first: bool,
    },
    /// A UDP datagram whose checksum is wrong.
    Damaged,
    /// A protocol without ports.
    Other(u8),
}

/// What an ICMP error quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Whole,
    /// The header and this many bytes.
    Cut(usize),
    /// The first bytes of a packet that nobody sent, from an external port without a mapping.
    Stranger,
    /// A header whose checksum is wrong.
    DamagedHeader,
    /// A packet of another external address.
    OtherSource,
    /// The error's own checksum is wrong.
    DamagedError,
}

/// A packet, or two fragments of one.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) what: &'static str,
    pub(super) from: Side,
    pub(super) inside: End,
    /// Where the packet is from or to; for a packet to another inside host that host's end.
    pub(super) outside: End,
    pub(super) content: Content,
    /// The inside and the outside end whose conversation shows the external port that the packet is sent to. By default
    /// `inside` and `outside`, for a packet from outside.
    pub(super) by: Option<(End, End)>,
    /// The name of the difference that this step shows.
    pub(super) difference: &'static str,
    /// Pause before it, in microseconds.
    pub(super) pause_us: u64,
}

/// A protocol, an inside end and an outside end.
type Flow = (u8, End, End);

/// A protocol, an external port and an outside end.
type Taken = (u8, u16, End);

/// How long an external port is one inside endpoint's after its last packet: the shortest time-out.
const SHORTEST_US: u64 = 30_000_000;

/// A run of a schedule.
pub(super) struct Run<'a> {
    translator: &'a mut dyn Translator,
    at_us: u64,
    number: u16,
    /// The external port of each flow.
    ports: HashMap<Flow, u16>,
    /// The inside endpoint of each external port, and when it was last seen.
    takers: HashMap<Taken, (End, u64)>,
    /// The last packet of each flow that was let out, in both directions.
    last: HashMap<(Flow, Side), Vec<u8>>,
    lines: Vec<Line>,
}

/// Runs a schedule.
///
/// # Errors
/// The translator fails, or gives one external port to two.
pub(super) fn run(schedule: Schedule, translator: &mut dyn Translator) -> Result<Vec<Line>> {
    let steps = match schedule {
        Schedule::Mixed(seed) => super::conversation::mixed(seed),
        Schedule::Patient => super::patience::patient(),
        Schedule::Defaults => super::patience::defaults(),
    };
    let mut run = Run {
        translator,
        at_us: 0,
        number: 0,
        ports: HashMap::new(),
        takers: HashMap::new(),
        last: HashMap::new(),
        lines: Vec::new(),
    };
    for step in &steps {
        run.step(step)?;
    }
    Ok(run.lines)
}

impl Content {
    fn protocol(&self) -> u8 {
        match self {
            Self::Udp { .. } | Self::Damaged => packet::UDP,
            Self::Fragments { .. } | Self::Fragment { .. } => packet::UDP,
            Self::Tcp(_) => packet::TCP,
            Self::Query(_) | Self::Error { .. } => packet::ICMP,
            Self::Other(protocol) => *protocol,
        }
    }
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.at_us += step.pause_us;
        self.number += 1;
        let mut out = Vec::new();
        for packet in self.packets(step) {
            self.at_us += 20_000;
            out.extend(self.translator.pass(self.at_us, step.from, &packet)?);
        }
        self.note(step, &out)?;
        self.line(step, out);
        Ok(())
    }

    /// The flow of a step. An error is about a flow of the protocol of the last packet.
    fn flow(&self, step: &Step) -> Flow {
        let Content::Error { .. } = step.content else {
            return (step.content.protocol(), step.inside, step.outside);
        };
        let (inside, outside) = step.by.unwrap_or((step.inside, step.outside));
        let has = |protocol| self.ports.contains_key(&(protocol, inside, outside));
        let mut all = [packet::UDP, packet::TCP, packet::ICMP].into_iter();
        let protocol = all.find(|&protocol| has(protocol)).unwrap_or(packet::UDP);
        (protocol, inside, outside)
    }

    fn packets(&self, step: &Step) -> Vec<Vec<u8>> {
        let flow = self.flow(step);
        let (inside, outside) = step.by.unwrap_or((step.inside, step.outside));
        // Port 9 has no mapping.
        let port = self.ports.get(&(flow.0, inside, outside)).copied();
        let port = port.unwrap_or(9);
        let external = End {
            address: EXTERNAL,
            port,
        };
        let (from, to, identifier) = match step.from {
            Side::Inside if step.by.is_some() => (step.inside, external, step.inside.port),
            Side::Inside => (step.inside, step.outside, step.inside.port),
            Side::Outside => (step.outside, external, external.port),
        };
        let id = 0x4000 + self.number;
        match &step.content {
            Content::Udp {
                length,
                has_checksum,
            } => vec![packet::udp(from, to, id, *length, *has_checksum)],
            Content::Damaged => {
                let mut packet = packet::udp(from, to, id, 40, true);
                packet::damage(&mut packet);
                vec![packet]
            }
            Content::Tcp(segment) => vec![packet::tcp(from, to, id, *segment)],
            Content::Query(kind) => vec![packet::query(*kind, from, to, id, identifier)],
            Content::Other(protocol) => {
                vec![packet::ip(
                    *protocol,
                    [from.address, to.address],
                    id,
                    &[7; 32],
                )]
            }
            Content::Fragments {
                length,
                at,
                is_reversed,
            } => {
                let whole = packet::udp(from, to, id, *length, true);
                let mut pieces = packet::fragments(&whole, *at);
                if *is_reversed {
                    pieces.reverse();
                }
                pieces.into()
            }
            Content::Fragment { is_first } => {
                let [first, second] = packet::fragments(&packet::udp(from, to, id, 400, true), 200);
                vec![if *is_first { first } else { second }]
            }
            Content::Error { kind, quote } => {
                vec![self.error(step, flow, *kind, *quote, [from, to], id)]
            }
        }
    }

    fn error(
        &self,
        step: &Step,
        flow: Flow,
        kind: (u8, u8),
        quote: Quote,
        [from, to]: [End; 2],
        id: u16,
    ) -> Vec<u8> {
        let other = match step.from {
            Side::Inside => Side::Outside,
            Side::Outside => Side::Inside,
        };
        let stranger = packet::udp(to, from, id, 32, true);
        let mut about = self.last.get(&(flow, other)).cloned().unwrap_or(stranger);
        let port_at = if other == Side::Inside { 20 } else { 22 };
        match quote {
            Quote::Whole | Quote::DamagedError => {}
            Quote::Cut(bytes) => about.truncate(20 + bytes),
            Quote::Stranger => about[port_at..port_at + 2].copy_from_slice(&9_u16.to_be_bytes()),
            Quote::DamagedHeader => about[8] ^= 1,
            Quote::OtherSource => {
                about = packet::udp(
                    End {
                        address: [203, 0, 113, 77],
                        ..to
                    },
                    from,
                    id,
                    32,
                    true,
                );
            }
        }
        let mut error = packet::error(kind, [from.address, to.address], id, &about);
        if quote == Quote::DamagedError {
            packet::damage(&mut error);
        }
        error
    }

    /// Learns the external port of a packet that went out, and keeps packets that errors may quote.
    fn note(&mut self, step: &Step, out: &[(Side, Vec<u8>)]) -> Result<()> {
        let flow = self.flow(step);
        for (side, packet) in out {
            if packet::quote(packet).is_some() {
                continue;
            }
            self.last.insert((flow, step.from), packet.clone());
            let Some([from, _]) = packet::ends(packet) else {
                continue;
            };
            let is_later = packet[6] & 0x1f != 0 || packet[7] != 0;
            if step.from == Side::Inside && *side == Side::Outside && !is_later {
                self.ports.insert(flow, from.port);
                let taken = (flow.0, from.port, step.outside);
                let before = self.takers.insert(taken, (step.inside, self.at_us));
                if let Some((taker, last_us)) = before {
                    ensure!(
                        taker == step.inside || last_us + SHORTEST_US < self.at_us,
                        "{}: port {} is that of {taker:?} and of {:?}",
                        step.what,
                        from.port,
                        step.inside
                    );
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, step: &Step, out: Vec<(Side, Vec<u8>)>) {
        // The last fragment lets out the rest of a datagram, so each side has all of it.
        let mut texts = Vec::new();
        for side in [Side::Inside, Side::Outside] {
            let own = out.iter().filter(|(one, _)| *one == side);
            let packets = packet::join(own.map(|(_, packet)| packet.clone()).collect());
            let name = |protocol, end, peer| self.name(protocol, end, peer);
            texts.extend(
                packets
                    .iter()
                    .map(|packet| format!("{side:?}: {}", packet::describe(packet, &name))),
            );
        }
        texts.sort();
        if texts.is_empty() {
            texts.push("-".to_owned());
        }
        self.lines.push(Line {
            step: format!("{:03} {}", self.number, step.what),
            difference: step.difference.to_owned(),
            outcome: texts.join(" + "),
        });
    }

    /// An end of a packet; the external port by the inside endpoint that has it.
    fn name(&self, protocol: u8, end: End, peer: End) -> String {
        let text = |end: End| {
            // Both ends of a query have its identifier, which the translator changes for the outside one too.
            let is_outside = protocol == packet::ICMP && end.address[0] == 198;
            let end = if is_outside {
                End { port: 0, ..end }
            } else {
                end
            };
            let [_, _, c, d] = end.address;
            format!("{}.{c}.{d}:{}", end.address[0], end.port)
        };
        if end.address != EXTERNAL || end.port == 0 {
            return text(end);
        }
        let peer = match protocol {
            packet::ICMP => End { port: 0, ..peer },
            _ => peer,
        };
        let peer = self.takers.get(&(protocol, end.port, peer));
        let any = || {
            let takers = self.takers.iter();
            let takers = takers.filter(|((of, port, _), _)| (*of, *port) == (protocol, end.port));
            takers.map(|(_, taker)| taker).max_by_key(|taker| taker.1)
        };
        match peer.or_else(any) {
            Some((inside, _)) => format!("external({})", text(*inside)),
            None => format!("external:{}", end.port),
        }
    }
}
