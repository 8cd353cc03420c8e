//! A conversation of two hosts as a list of segments.

use trace::{
    Analyzer, Clock, Config, Connection, Finished, FlowKey, Nobody, Segment, SegmentOptions,
};
use wire::tcp::Options;

pub(crate) const FIN: u16 = 0x01;
pub(crate) const SYN: u16 = 0x02;
pub(crate) const RST: u16 = 0x04;
pub(crate) const ACK: u16 = 0x10;

/// A millisecond, in nanoseconds.
pub(crate) const MS: i64 = 1_000_000;

/// Which end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    A,
    B,
}

use End::{A, B};

impl End {
    pub(crate) fn other(self) -> End {
        match self {
            A => B,
            B => A,
        }
    }
}

/// Segments of one connection; each comes a millisecond after the one before, and has the next IP identification of its
/// sender. Offsets are those of the stream: the SYN is at 0, the first octet at 1.
pub(crate) struct Script {
    pub(crate) segments: Vec<Segment>,
    /// Time of the next one.
    pub(crate) time: i64,
    isn: [u32; 2],
    next: [u32; 2],
    id: [u16; 2],
    window: u16,
    port: u16,
}

impl Script {
    pub(crate) fn new() -> Script {
        Script::starting_at(1_000, 5_000_000)
    }

    /// With these initial sequence numbers.
    pub(crate) fn starting_at(a: u32, b: u32) -> Script {
        Script {
            segments: Vec::new(),
            time: 1_600_000_000_000 * MS,
            isn: [a, b],
            next: [a, b],
            id: [100, 30_000],
            window: 8_000,
            port: 40_000,
        }
    }

    /// Starts with a handshake in which both ends offer SACK; the round trip is 20 ms.
    pub(crate) fn begun() -> Script {
        let mut script = Script::new();
        script.handshake();
        script
    }

    pub(crate) fn handshake(&mut self) {
        self.flags(A, SYN);
        self.wait(19);
        self.flags(B, SYN | ACK);
        self.ack(A);
    }

    /// End `a` uses another port from here on.
    pub(crate) fn port(&mut self, port: u16) {
        self.port = port;
    }

    /// Lets time pass without packets.
    pub(crate) fn wait(&mut self, milliseconds: i64) {
        self.time += milliseconds * MS;
    }

    fn index(end: End) -> usize {
        usize::from(end == B)
    }

    /// A segment without payload and flags but ACK, which everything else is made of.
    fn segment(&mut self, from: End) -> &mut Segment {
        let (mine, other) = (Script::index(from), Script::index(from.other()));
        let ends = [([1; 16], self.port), ([2; 16], 80)];
        let (key, from_low) = FlowKey::new(
            &ends[mine].0,
            ends[mine].1,
            &ends[other].0,
            ends[other].1,
            0,
        );
        self.segments.push(Segment {
            number: self.segments.len() as u64 + 1,
            time: self.time,
            key,
            from_low,
            version: 4,
            id: self.id[mine],
            flags: ACK,
            sequence: self.next[mine],
            acknowledgment: self.next[other],
            window: self.window,
            ..Segment::default()
        });
        self.id[mine] = self.id[mine].wrapping_add(1);
        self.time += MS;
        self.segments.last_mut().unwrap()
    }

    /// The next `length` bytes of `from`, with an ACK of everything the other end sent.
    pub(crate) fn data(&mut self, from: End, length: u32) -> &mut Segment {
        let next = &mut self.next[Script::index(from)];
        *next = next.wrapping_add(length);
        let segment = self.segment(from);
        segment.sequence = segment.sequence.wrapping_sub(length);
        (segment.payload, segment.captured) = (length, length);
        segment
    }

    /// Bytes `first` to `end` of `from`, independent of what was sent before.
    pub(crate) fn octets(&mut self, from: End, first: u32, end: u32) -> &mut Segment {
        let isn = self.isn[Script::index(from)];
        let next = &mut self.next[Script::index(from)];
        if isn.wrapping_add(end).wrapping_sub(*next) as i32 > 0 {
            *next = isn.wrapping_add(end);
        }
        let segment = self.segment(from);
        segment.sequence = isn.wrapping_add(first);
        (segment.payload, segment.captured) = (end - first, end - first);
        segment
    }

    /// An ACK of all that the other end sent.
    pub(crate) fn ack(&mut self, from: End) -> &mut Segment {
        self.segment(from)
    }

    /// An ACK of what lies below `offset`.
    pub(crate) fn ack_of(&mut self, from: End, offset: u32) -> &mut Segment {
        let isn = self.isn[Script::index(from.other())];
        let segment = self.segment(from);
        segment.acknowledgment = isn.wrapping_add(offset);
        segment
    }

    /// An ACK with SACK blocks.
    pub(crate) fn sack(&mut self, from: End, offset: u32, blocks: &[(u32, u32)]) -> &mut Segment {
        let isn = self.isn[Script::index(from.other())];
        let mut written = vec![5, blocks.len() as u8 * 8 + 2];
        for (left, right) in blocks {
            written.extend(isn.wrapping_add(*left).to_be_bytes());
            written.extend(isn.wrapping_add(*right).to_be_bytes());
        }
        let segment = self.ack_of(from, offset);
        segment.options = options(&written);
        segment
    }

    /// A segment with these flags and no payload; SYN and FIN take their octet.
    pub(crate) fn flags(&mut self, from: End, flags: u16) -> &mut Segment {
        let takes = u32::from(flags & (SYN | FIN) != 0);
        let next = &mut self.next[Script::index(from)];
        *next = next.wrapping_add(takes);
        let segment = self.segment(from);
        segment.sequence = segment.sequence.wrapping_sub(takes);
        segment.flags = flags;
        if flags & ACK == 0 {
            segment.acknowledgment = 0;
        }
        segment
    }

    /// Both ends close.
    pub(crate) fn close(&mut self) {
        self.flags(A, FIN | ACK);
        self.flags(B, FIN | ACK);
        self.ack(A);
    }

    /// The only connection.
    pub(crate) fn connection(&self) -> Connection {
        let mut connections = connections(&self.segments);
        assert_eq!(connections.len(), 1, "one connection");
        connections.remove(0)
    }
}

pub(crate) fn options(octets: &[u8]) -> SegmentOptions {
    let mut options = SegmentOptions::default();
    options.set(&Options::parse(octets));
    options
}

/// The connections of segments, in the order of their first ones.
pub(crate) fn connections(segments: &[Segment]) -> Vec<Connection> {
    thawed(&analysed(segments, Config::default(), |_| true))
}

/// The connections, kept; of those segments only that are wanted, but with the clock of all.
pub(crate) fn analysed(
    segments: &[Segment],
    config: Config,
    wanted: impl Fn(&Segment) -> bool,
) -> Vec<Finished> {
    let mut analyzer = Analyzer::new(config);
    let mut clock = Clock::default();
    for segment in segments {
        clock.tick(segment.time);
        if wanted(segment) {
            let segment = Segment {
                clock: clock.now(),
                ..*segment
            };
            analyzer.packet(&segment, &[], &mut Nobody);
        }
    }
    analyzer.finish();
    let mut finished = analyzer.take_finished();
    finished.sort_by_key(|finished| finished.first_packet);
    finished
}

pub(crate) fn thawed(finished: &[Finished]) -> Vec<Connection> {
    let thaw = |finished: &Finished| {
        let mut connection = Connection::default();
        connection.thaw(&finished.octets).unwrap();
        connection
    };
    finished.iter().map(thaw).collect()
}
