//! Analyses blocks of records on one thread: record, frame, IP packet, TCP segment, connection.
//!
//! [`Machine`] is generic over the [`Watch`] that observes packets, so that an analysis without an
//! observer has no cost for one.

use capfile::Block;
use wire::checksum;
use wire::packet::{Fragment, Packet};
use wire::tcp::Tcp;

use super::decoder::{Decoded, Decoder, Step};
use super::fragments::Part;
use super::plan::Plan;
use super::watch::{Checksum, Seen, Watch};
use crate::analyzer::Analyzer;
use crate::connection::Connection;
use crate::segment::Segment;
use crate::verdict::{Nobody, Observer, Verdict};

/// Packets decoded before the first of them is analysed, so that the processor fetches the connections of all of them at
/// once.
pub(crate) const AHEAD: usize = 32;

/// From this many connections on, fetching ahead is worth its cost.
const MANY: usize = 256;

/// Analyses packets, block by block.
pub(crate) struct Machine<W> {
    pub(crate) analyzer: Analyzer,
    pub(crate) decoder: Decoder,
    pub(crate) watch: W,
    /// The packets that are decoded but not yet analysed.
    ahead: Decoded,
    /// Checksums are verified.
    checksums: bool,
}

impl<W: Watch> Machine<W> {
    pub(crate) fn new(plan: Plan, watch: W) -> Self {
        Machine {
            analyzer: Analyzer::new(plan.config),
            decoder: Decoder::new(plan),
            watch,
            ahead: Decoded::default(),
            checksums: plan.checksums,
        }
    }

    /// Analyses a block. False when the last packet to be analysed has passed.
    pub(crate) fn block(&mut self, block: &Block) -> bool {
        if W::PACKETS || self.checksums {
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

    /// Analyses a block packet by packet, showing each to the observer.
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
            self.watch.packet(&seen);
            if packet.fragment != Fragment::Whole
                && let Some(part) = self.decoder.part(&packet)
            {
                match self.checksums.then(|| bad_checksum(&packet)).flatten() {
                    Some(which) => self.bad_checksum(&seen, which),
                    None => self.joined(&seen, part),
                }
                continue;
            }
            self.seen(&seen);
        }
        true
    }

    /// A fragment, which may be the last one that its packet lacks.
    #[cold]
    fn joined(&mut self, seen: &Seen<'_, '_>, part: Part) {
        let decoder = &mut self.decoder;
        let fragments = decoder.fragments.get_or_insert_default();
        let Some(whole) = fragments.add(part, &mut decoder.tally) else {
            return;
        };
        self.seen(&Seen {
            number: seen.number,
            record: seen.record,
            frame: seen.frame,
            packet: &whole.packet(),
        });
    }

    /// A packet that is no fragment, or was put together.
    #[inline]
    fn seen(&mut self, seen: &Seen<'_, '_>) {
        if self.checksums
            && let Some(which) = bad_checksum(seen.packet)
        {
            self.bad_checksum(seen, which);
            return;
        }
        if let Some(tcp) = Tcp::plain(seen.packet) {
            self.look(seen, &tcp);
            return;
        }
        match Tcp::parse(seen.packet) {
            Ok(ref tcp) => self.look(seen, tcp),
            Err(error) => {
                self.decoder.tally.not_tcp(seen.packet, error);
                self.watch.other(seen);
            }
        }
    }

    fn bad_checksum(&mut self, seen: &Seen<'_, '_>, which: Checksum) {
        self.decoder.tally.bad_checksums[which as usize] += 1;
        self.watch.bad_checksum(seen, which);
    }

    /// The analysis has ended.
    pub(crate) fn finish(&mut self) {
        self.analyzer.finish();
        let left = self.decoder.fragments.take();
        self.decoder.tally.incomplete += left.map_or(0, |left| left.incomplete());
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

/// Analyses segments without an observer. `before` packets precede the first of them.
#[inline]
pub(crate) fn take(analyzer: &mut Analyzer, decoded: &mut Decoded, before: u64) {
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

/// Shows one packet to the observer.
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

/// The first checksum of a packet that is wrong.
fn bad_checksum(packet: &Packet<'_>) -> Option<Checksum> {
    if checksum::ip_ok(packet.network) == Some(false) {
        Some(Checksum::Ip)
    } else if packet.protocol == wire::tcp::PROTOCOL && checksum::tcp_ok(packet) == Some(false) {
        Some(Checksum::Tcp)
    } else if packet.protocol == wire::udp::PROTOCOL && checksum::udp_ok(packet) == Some(false) {
        Some(Checksum::Udp)
    } else {
        None
    }
}
