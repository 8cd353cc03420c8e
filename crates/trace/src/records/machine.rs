//! Analyses blocks of records on one thread: record, frame, IP packet, TCP segment, connection.
//!
//! [`Machine`] is generic over the [`Watch`] that observes packets, so that an analysis without an
//! observer has no cost for one.

use capfile::Block;
use wire::checksum;
use wire::packet::{Fragment, Packet};
use wire::tcp::Tcp;

use super::decoded::{Decoded, Sorted};
use super::decoder::{Decoder, Step};
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

/// From this many hot connections on, they no longer fit a core's cache, and sorting packets by flow is worth its cost.
const SORTED_FROM: usize = 512;

/// Packets that are sorted at once, for each hot connection: each is fetched once for that many of its packets.
const SORTED_PER_CONNECTION: usize = 8;

/// The most packets that are sorted at once, in 6 MB.
const SORTED_MAX: usize = 1 << 15;

/// Analyses packets, block by block.
pub(crate) struct Machine<W> {
    pub(crate) analyzer: Analyzer,
    pub(crate) decoder: Decoder,
    pub(crate) watch: W,
    /// The packets that are decoded but not yet analysed.
    ahead: Decoded,
    /// Packets of different flows may be analysed in another order.
    sorts: bool,
    /// Checksums are verified.
    checksums: bool,
    /// Details need the payload of each packet.
    details: bool,
}

impl<W: Watch> Machine<W> {
    pub(crate) fn new(plan: Plan, watch: W) -> Self {
        Machine {
            analyzer: Analyzer::new(plan.config),
            decoder: Decoder::new(plan),
            watch,
            ahead: Decoded::default(),
            sorts: false,
            checksums: plan.checksums,
            details: plan.config.details,
        }
    }

    /// From now on, it may analyse packets of different flows in another order. A connection depends only on its own
    /// packets, so that only the order in which connections finish changes.
    pub(crate) fn sort(&mut self) {
        self.sorts = true;
    }

    /// The following packets are from this file.
    pub(crate) fn set_file(&mut self, file: u32) {
        self.flush();
        self.analyzer.set_file(file);
        self.watch.set_file(file);
    }

    /// Analyses a block. False when the last packet to be analysed has passed.
    pub(crate) fn block(&mut self, block: &Block) -> bool {
        if W::PACKETS || self.checksums || self.details {
            return self.watched(block);
        }
        if self.sorts && self.analyzer.hot() >= SORTED_FROM {
            return self.sorted(block);
        }
        self.flush();
        let mut packet = Packet::new();
        for records in block.records().chunks(AHEAD) {
            let ahead = std::slice::from_mut(&mut self.ahead);
            let mut steps = records
                .iter()
                .map(|record| self.decoder.decode(block, record, &mut packet, ahead));
            let past = steps.any(|step| step == Step::Past);
            self.flush();
            if past {
                return false;
            }
        }
        true
    }

    /// Decodes a block, and analyses it with those before it once they have enough packets.
    fn sorted(&mut self, block: &Block) -> bool {
        let mut packet = Packet::new();
        let ahead = std::slice::from_mut(&mut self.ahead);
        let mut steps = (block.records().iter())
            .map(|record| self.decoder.decode(block, record, &mut packet, ahead));
        let past = steps.any(|step| step == Step::Past);
        let enough = self.analyzer.hot() * SORTED_PER_CONNECTION;
        if self.ahead.len() >= enough.min(SORTED_MAX) {
            self.flush();
        }
        !past
    }

    /// Analyses the packets that are decoded but not yet analysed.
    pub(crate) fn flush(&mut self) {
        take(&mut self.analyzer, &mut self.ahead, 0);
        self.ahead.clear();
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
                realm: 0,
            };
            self.watch.packet(&seen);
            if packet.fragment != Fragment::Whole
                && let Some(part) = self.decoder.part(&packet)
            {
                if !(self.checksums && self.is_bad(&seen)) {
                    self.joined(&seen, part);
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
            realm: 0,
        });
    }

    /// A packet that is no fragment, or was put together.
    #[inline]
    fn seen(&mut self, seen: &Seen<'_, '_>) {
        if self.checksums && self.is_bad(seen) {
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
                let realm = self.decoder.realm(seen.packet, None);
                self.watch.other(&Seen { realm, ..*seen });
            }
        }
    }

    /// Whether a packet has a wrong checksum, which is counted. The checksum of a packet that was captured before its
    /// sender's network card filled it in is no fault.
    fn is_bad(&mut self, seen: &Seen<'_, '_>) -> bool {
        let Some(which) = bad_checksum(seen.packet) else {
            return false;
        };
        let tally = &mut self.decoder.tally;
        if which != Checksum::Ip && checksum::is_partial(seen.packet) {
            tally.partial_checksums += 1;
            return false;
        }
        tally.bad_checksums[which as usize] += 1;
        self.watch.bad_checksum(seen, which);
        true
    }

    /// The reading has ended.
    pub(crate) fn finish(&mut self) {
        let left = self.decoder.fragments.take();
        self.decoder.tally.incomplete += left.map_or(0, |left| left.incomplete());
    }

    #[inline]
    fn look(&mut self, seen: &Seen<'_, '_>, tcp: &Tcp<'_>) {
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
        self.ahead.clear();
    }
}

/// How many segments to pass to [`take`] at once.
pub(crate) fn at_once(analyzer: &Analyzer) -> usize {
    match analyzer.hot() {
        hot if hot >= SORTED_FROM => (hot * SORTED_PER_CONNECTION).min(SORTED_MAX),
        _ => AHEAD,
    }
}

/// Analyses segments without an observer. `before` packets precede the first of them.
#[inline]
pub(crate) fn take(analyzer: &mut Analyzer, decoded: &mut Decoded, before: u64) {
    if analyzer.hot() >= SORTED_FROM && decoded.len() > analyzer.hot() {
        return take_sorted(analyzer, decoded, before);
    }
    let (segments, layers) = decoded.parts();
    for (chunk, segments) in segments.chunks_mut(AHEAD).enumerate() {
        if analyzer.held() > MANY {
            let keys = segments.iter().map(|(hash, _)| *hash);
            std::hint::black_box(analyzer.touch(keys));
        }
        for (at, (hash, segment)) in segments.iter_mut().enumerate() {
            segment.number += before;
            let own = layers.of(chunk * AHEAD + at);
            analyzer.packet_hashed(*hash, segment, own, &mut Nobody);
        }
    }
}

/// The same, flow by flow: a connection is fetched once, for all its packets.
#[inline(never)]
fn take_sorted(analyzer: &mut Analyzer, decoded: &mut Decoded, before: u64) {
    let Sorted {
        segments,
        layers,
        order,
    } = decoded.sorted();
    analyzer.hold(segments.first().map(|(_, segment)| segment.clock));
    let mut last = None;
    let mut chunks = order.chunks(AHEAD).peekable();
    while let Some(chunk) = chunks.next() {
        // The next segments, and the connections of these.
        let next = chunks.peek().into_iter().flat_map(|next| next.iter());
        let fetched = next.fold(0, |sum, &(_, at)| {
            segments[at as usize].1.touch().wrapping_add(sum)
        });
        let flows = chunk.chunk_by(|(one, _), (other, _)| one == other);
        let hashes = flows.filter_map(|flow| Some(flow.first()?.0));
        std::hint::black_box(analyzer.touch(hashes).wrapping_add(fetched));
        for &(hash, at) in chunk {
            let segment = &mut segments[at as usize].1;
            segment.number += before;
            let own = || layers.of(at as usize);
            last = Some(analyzer.packet_after(last, hash, segment, own));
        }
    }
    analyzer.hold(None);
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

    fn payload(&self) -> &[u8] {
        self.tcp.payload
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
