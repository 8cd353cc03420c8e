//! The graphs of a connection: its files, and the strokes of a packet in each.

use core::net::IpAddr;

use super::Options;
use super::ends::{self, Outstanding, Passed, Throughput};
use super::line::{self, Zero};
use super::page::Page;
use super::plot::{Plot, Pool, Studio};
use super::stroke::{Stroke, What, bits};
use super::timeline;
use crate::connection::Connection;
use crate::direction::Direction;
use crate::segment::Segment;
use crate::text::{Names, letters};
use crate::verdict::Verdict;

/// The context of drawing.
pub(super) struct Drawing<'a, S> {
    pub(super) options: &'a Options,
    pub(super) names: &'a dyn Names,
    pub(super) pool: &'a mut Pool<S>,
    /// Origin of sequence numbers in all time lines.
    pub(super) bases: &'a mut [u32; 2],
}

/// The graphs of the data that one end sends.
#[derive(Debug)]
struct Side {
    /// Its first sequence number that is not 0; 0 before it.
    base: u32,
    /// The last acknowledgement number it sent, or the other end's SYN; 0 before either.
    ack: u32,
    /// End of its last window, of any ACK.
    window_end: u32,
    /// The window of its last packet other than a reset.
    window: u32,
    sequence: Option<Plot>,
    rtt: Option<Plot>,
    throughput: Option<Box<Throughput>>,
    outstanding: Option<Box<Outstanding>>,
    sizes: Option<Plot>,
}

/// A connection's graphs.
#[derive(Debug)]
pub(super) struct Pair {
    /// Letters of both ends, by the number of the pair.
    letters: u64,
    complete: bool,
    a: Side,
    b: Side,
    time_line: Option<Plot>,
    /// Origin of sequence numbers in its time line, if it has an origin of its own.
    bases: [u32; 2],
}

/// Nanoseconds as microseconds, to the nearest.
const fn micros(nanoseconds: i64) -> i64 {
    nanoseconds.saturating_add(500).div_euclid(1000)
}

/// The graph that a file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sequence,
    Rtt,
    Throughput,
    Outstanding,
    Sizes,
    TimeLine,
}

/// A graph's file name, its title, and its y axis.
struct Words {
    file: &'static str,
    title: &'static str,
    y: &'static str,
}

impl Kind {
    fn words(self) -> Words {
        let (file, title, y) = match self {
            Kind::Sequence => ("_tsg.xpl", "time sequence graph", "sequence number"),
            Kind::Rtt => ("_rtt.xpl", "rtt samples", "rtt (ms)"),
            Kind::Throughput => ("_tput.xpl", "throughput", "thruput (bytes/sec)"),
            Kind::Outstanding => ("_owin.xpl", "outstanding data", "Outstanding Data (bytes)"),
            Kind::Sizes => ("_ssize.xpl", "segment size graph", "segment size (bytes)"),
            Kind::TimeLine => ("_tline.xpl", "time line graph", "relative time"),
        };
        Words { file, title, y }
    }
}

impl<S: Studio> Drawing<'_, S> {
    /// A file for one direction of a connection, beginning at `now`. `x` names its axis, unless times are relative.
    fn file(
        &mut self,
        connection: &Connection,
        letters_of: u64,
        from_a: bool,
        kind: Kind,
        now: i64,
    ) -> Plot {
        let options = self.options;
        let (mut from, mut to) = letters(letters_of);
        let (mut near, mut far) = (connection.a_end(), connection.b_end());
        if !from_a {
            core::mem::swap(&mut from, &mut to);
            core::mem::swap(&mut near, &mut far);
        }
        let between = if kind == Kind::TimeLine { "_" } else { "2" };
        let name = format!("{}{from}{between}{to}{}", options.prefix, kind.words().file);
        let head = self.head(near, far, kind);
        let zero = if kind == Kind::TimeLine || options.zero_time {
            now
        } else {
            0
        };
        let zero = Zero(zero);
        let began = micros(connection.first_time);
        let page = match kind {
            Kind::Sequence => Page::sequence(head, options, zero, began),
            Kind::TimeLine => Page::time_line(head, options, zero, began),
            Kind::Rtt => Page::lines(head, options, zero, &line::ROUND_TRIPS),
            Kind::Throughput => Page::lines(head, options, zero, &line::THROUGHPUT),
            Kind::Outstanding => Page::lines(head, options, zero, &line::OUTSTANDING),
            Kind::Sizes => Page::lines(head, options, zero, &line::SIZES),
        };
        Plot::new(self.pool, &name, page)
    }

    /// The head of a file of the data from one end to the other.
    fn head(&self, near: (IpAddr, u16), far: (IpAddr, u16), kind: Kind) -> String {
        let options = self.options;
        let (time_line, numbers) = (kind == Kind::TimeLine, kind == Kind::Sequence);
        // In tcptrace, graphs of throughput and round trips do not name relative time.
        let old = kind == Kind::Rtt || kind == Kind::Throughput;
        let mut head = String::with_capacity(200);
        head.push_str(
            match (
                time_line,
                options.zero_time,
                numbers && !options.zero_sequence,
            ) {
                (true, _, _) => "unsigned dtime",
                (false, true, true) => "dtime double",
                (false, true, false) => "dtime signed",
                (false, false, true) => "timeval double",
                (false, false, false) => "timeval signed",
            },
        );
        if options.title {
            head.push_str("\ntitle\n");
            if !options.title_prefix.is_empty() {
                head.push_str(&options.title_prefix);
                head.push(' ');
            }
            for (end, after) in [(near, "_==>_"), (far, " (")] {
                // Writing to a string cannot fail. An end that the resolver cannot name has no name.
                let _ = self.names.host(end.0, &mut head);
                head.push(':');
                let _ = self.names.port(end.1, &mut head);
                head.push_str(after);
            }
            head.push_str(kind.words().title);
            head.push(')');
        }
        head.push_str(match (time_line, options.zero_time && !old) {
            (true, _) => "\nxlabel\nsegments\nylabel\n",
            (false, true) => "\nxlabel\nrelative time\nylabel\n",
            (false, false) => "\nxlabel\ntime\nylabel\n",
        });
        head.push_str(if numbers && options.zero_sequence {
            "sequence offset"
        } else {
            kind.words().y
        });
        head.push('\n');
        if kind == Kind::Rtt && options.colour {
            head.push_str("red\n");
        }
        if time_line {
            head.push_str(timeline::ROOM);
        }
        head
    }
}

impl Side {
    fn new<S: Studio>(
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        letters: u64,
        from_a: bool,
    ) -> Side {
        let graphs = drawing.options.graphs;
        let begins = !drawing.options.complete_only || segment.syn();
        let now = micros(segment.time);
        let mut file = |kind| drawing.file(connection, letters, from_a, kind, now);
        Side {
            base: 0,
            ack: 0,
            window_end: 0,
            window: 0,
            sequence: (graphs.sequence && begins).then(|| file(Kind::Sequence)),
            rtt: None,
            throughput: None,
            outstanding: (graphs.outstanding && begins)
                .then(|| Box::new(Outstanding::new(file(Kind::Outstanding)))),
            sizes: graphs.sizes.then(|| file(Kind::Sizes)),
        }
    }

    fn plots(&mut self) -> impl Iterator<Item = &mut Plot> {
        [
            self.sequence.as_mut(),
            self.rtt.as_mut(),
            self.throughput.as_deref_mut().map(|graph| &mut graph.plot),
            self.outstanding.as_deref_mut().map(|graph| &mut graph.plot),
            self.sizes.as_mut(),
        ]
        .into_iter()
        .flatten()
    }

    fn into_plots(self) -> impl Iterator<Item = Plot> {
        [
            self.sequence,
            self.rtt,
            self.throughput.map(|graph| graph.plot),
            self.outstanding.map(|graph| graph.plot),
            self.sizes,
        ]
        .into_iter()
        .flatten()
    }

    /// Draws in its time sequence graph, if it has one.
    fn draw<S: Studio>(&mut self, pool: &mut Pool<S>, stroke: Stroke) {
        if let Some(plot) = &mut self.sequence {
            plot.draw(pool, stroke);
        }
    }
}

impl Pair {
    pub(super) fn new<S: Studio>(
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        letters: u64,
    ) -> Pair {
        let mut pair = Pair {
            letters,
            complete: false,
            a: Side::new(drawing, connection, segment, letters, true),
            b: Side::new(drawing, connection, segment, letters, false),
            time_line: None,
            bases: [0; 2],
        };
        let begins = !drawing.options.complete_only || segment.syn();
        if drawing.options.graphs.time_line && begins {
            let now = micros(segment.time);
            pair.time_line = Some(drawing.file(connection, letters, true, Kind::TimeLine, now));
        }
        pair
    }

    /// Empties its buffers.
    pub(super) fn flush<S: Studio>(&mut self, pool: &mut Pool<S>) {
        for plot in self
            .a
            .plots()
            .chain(self.b.plots())
            .chain(&mut self.time_line)
        {
            plot.flush(pool);
        }
    }

    /// Completes its files, or removes them if only complete connections are wanted and it is not.
    pub(super) fn close<S: Studio>(self, pool: &mut Pool<S>, complete_only: bool) {
        let wanted = self.complete || !complete_only;
        for plot in self
            .a
            .into_plots()
            .chain(self.b.into_plots())
            .chain(self.time_line)
        {
            plot.close(pool, wanted);
        }
    }

    /// Draws a packet.
    #[inline]
    pub(super) fn observe<S: Studio>(
        &mut self,
        drawing: &mut Drawing<'_, S>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        if segment.flags & 3 != 0 {
            self.complete = connection.is_complete();
        }
        let letters = self.letters;
        let packet = Packet::new(connection, segment, verdict);
        let (this, other) = if verdict.from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        let graphs = drawing.options.graphs;
        if graphs.throughput {
            packet.throughput(drawing, this, letters);
        }
        if let Some(sizes) = &mut this.sizes
            && segment.payload > 0
        {
            let mean = packet.sender.data_bytes / packet.sender.data_packets.max(1);
            ends::size(sizes, drawing.pool, packet.now, segment.payload, mean);
        }
        if segment.syn() {
            other.ack = segment.sequence;
            this.draw(drawing.pool, Stroke::one(What::Began, 0, segment.sequence));
        }
        if this.base == 0 && segment.sequence != 0 {
            this.base = segment.sequence;
            if drawing.options.zero_sequence {
                this.draw(drawing.pool, Stroke::one(What::Base, 0, segment.sequence));
            }
        }
        if graphs.rtt && verdict.sample.is_some() {
            packet.round_trip(drawing, other, letters);
        }
        packet.sequence(drawing, this, other);
        if let Some(plot) = &mut self.time_line {
            packet.time_line(drawing, plot, &mut self.bases, this.base);
        }
        if segment.ack() {
            this.window_end = segment.acknowledgment.wrapping_add(verdict.window);
            if segment.rst() {
                other.draw(drawing.pool, Stroke::one(What::Moved, 0, this.window_end));
            }
        }
        if segment.rst() {
            return;
        }
        this.window = verdict.window;
        if segment.ack() {
            this.ack = segment.acknowledgment;
        }
        if graphs.outstanding && !segment.syn() && !packet.again && !verdict.out_of_order {
            packet.outstanding(drawing, this, other);
        }
    }
}

/// A packet to draw.
struct Packet<'a> {
    connection: &'a Connection,
    sender: &'a Direction,
    segment: &'a Segment,
    verdict: &'a Verdict,
    /// It retransmits data, as the graph shows it.
    again: bool,
    /// Microseconds.
    now: i64,
}

impl<'a> Packet<'a> {
    #[inline]
    fn new(connection: &'a Connection, segment: &'a Segment, verdict: &'a Verdict) -> Packet<'a> {
        let sends = segment.payload > 0 || segment.flags & 3 != 0;
        Packet {
            connection,
            sender: if verdict.from_a {
                &connection.a
            } else {
                &connection.b
            },
            segment,
            verdict,
            again: verdict.retransmitted > 0
                || (sends && (verdict.hardware_duplicate || verdict.keep_alive)),
            now: micros(segment.time),
        }
    }

    fn throughput<S: Studio>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, letters: u64) {
        let octets = self.segment.payload;
        let Some(graph) = &mut this.throughput else {
            let from_a = self.verdict.from_a;
            let plot = drawing.file(self.connection, letters, from_a, Kind::Throughput, self.now);
            this.throughput = Some(Box::new(Throughput::new(plot, self.now, octets)));
            return;
        };
        let passed = Passed {
            now: self.now,
            octets,
            began: micros(self.connection.first_time),
            total: self.sender.data_bytes,
        };
        let options = drawing.options;
        graph.pass(
            drawing.pool,
            &passed,
            u64::from(options.interval),
            options.instant,
        );
    }

    /// The packet measured a round trip of the other end's data.
    fn round_trip<S: Studio>(&self, drawing: &mut Drawing<'_, S>, other: &mut Side, letters: u64) {
        let Some(sample) = self.verdict.sample else {
            return;
        };
        let plot = match &mut other.rtt {
            Some(plot) => plot,
            None => {
                let from_a = !self.verdict.from_a;
                let plot = drawing.file(self.connection, letters, from_a, Kind::Rtt, self.now);
                other.rtt.insert(plot)
            }
        };
        ends::round_trip(plot, drawing.pool, self.now, micros(sample.time));
    }

    /// The packet's bits in strokes.
    #[inline]
    fn bits(&self) -> u16 {
        let (segment, verdict) = (self.segment, self.verdict);
        let bit = |set: bool, bit: u16| if set { bit } else { 0 };
        segment.flags & bits::FLAGS
            | bit(segment.ce(), bits::CE)
            | bit(self.again, bits::AGAIN)
            | bit(verdict.out_of_order, bits::OUT_OF_ORDER)
            | bit(verdict.probe, bits::PROBE)
            | bit(verdict.hardware_duplicate, bits::COPY)
            | bit(verdict.from_a, bits::FROM_A)
    }

    #[inline]
    fn sequence<S: Studio>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, other: &mut Side) {
        let segment = self.segment;
        let (time, pool) = (self.now, &mut *drawing.pool);
        let (Some(own), Some(others)) = (&mut this.sequence, &mut other.sequence) else {
            return;
        };
        let sent = Stroke {
            time,
            a: segment.sequence,
            b: segment.payload,
            c: 0,
            bits: self.bits(),
            what: What::Sent,
        };
        own.draw(pool, sent);
        if segment.rst() {
            let at = if segment.ack() {
                segment.acknowledgment
            } else {
                this.ack
            };
            others.draw(pool, Stroke::one(What::ResetIn, time, at));
        } else if segment.ack() {
            let ack = Stroke {
                a: segment.acknowledgment,
                b: self.verdict.window,
                c: Stroke::number_of(self.verdict.ack),
                what: What::Ack,
                ..sent
            };
            others.draw(pool, ack);
            if !segment.options.sack().is_empty() {
                self.selective(others, pool);
            }
        }
    }

    /// Draws SACK blocks.
    #[cold]
    fn selective<S: Studio>(&self, plot: &mut Plot, pool: &mut Pool<S>) {
        let blocks = self.segment.options.sack();
        let higher = |one: u32, other: u32| {
            if other.wrapping_sub(one) as i32 > 0 {
                other
            } else {
                one
            }
        };
        let top = blocks.iter().map(|block| block.1).reduce(higher);
        let count = blocks.len() as u16;
        for (index, &(left, right)) in (1..).zip(blocks) {
            let block = Stroke {
                time: self.now,
                a: left,
                b: right,
                c: top.unwrap_or(right),
                bits: index | count << 4,
                what: What::Sack,
            };
            plot.draw(pool, block);
        }
    }

    fn time_line<S: Studio>(
        &self,
        drawing: &mut Drawing<'_, S>,
        plot: &mut Plot,
        own: &mut [u32; 2],
        first: u32,
    ) {
        let bases = if drawing.options.own_time_line {
            own
        } else {
            &mut *drawing.bases
        };
        let (this, other) = if self.verdict.from_a { (0, 1) } else { (1, 0) };
        // The handshake is shown with its numbers as sent. The reply is already relative to this.
        let shown = bases[this];
        if shown == 0 && !self.segment.syn() {
            bases[this] = first;
        }
        let segment = self.segment;
        // The capture is at one end. The time at the other end is estimated as a third of the round trip.
        let third = micros(self.sender.rtt_last) / 3;
        let there = if self.verdict.from_a {
            self.now.saturating_add(third)
        } else {
            self.now.saturating_sub(third).max(0)
        };
        let arrow = Stroke {
            time: self.now,
            a: segment.sequence.wrapping_sub(shown),
            b: segment.end().wrapping_sub(shown),
            c: segment.payload,
            bits: self.bits(),
            what: What::Arrow,
        };
        let head = Stroke {
            b: self.verdict.window,
            ..Stroke::one(
                What::Head,
                there,
                segment.acknowledgment.wrapping_sub(bases[other]),
            )
        };
        plot.draw_both(drawing.pool, [arrow, head]);
    }

    fn outstanding<S: Studio>(&self, drawing: &mut Drawing<'_, S>, this: &mut Side, other: &Side) {
        let Some(graph) = &mut this.outstanding else {
            return;
        };
        let segment = self.segment;
        let octets = if other.ack == 0 {
            i64::from(segment.payload)
        } else {
            let above = segment.end().wrapping_sub(other.ack).wrapping_add(1);
            i64::from(above as i32)
        };
        let window = drawing.options.window_line.then_some(other.window);
        let began = micros(self.connection.first_time);
        graph.sample(drawing.pool, self.now, octets, window, began);
    }
}
