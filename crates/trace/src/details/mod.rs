//! What a connection's packets show beyond tcptrace's statistics: TLS names, ECN, clocks of time stamps, the SACK
//! scoreboard, shares of time, round trips over time, losses, and columns over time.
//!
//! [`Details`] is a part of a [`Connection`](crate::Connection) if [`Options::details`](crate::Options::details) or
//! [`Options::interval_ns`](crate::Options::interval_ns) asks for it. Without it, a packet costs one more branch.
//! Everything is per connection, so that parts of a capture agree, and every list has a limit.
//!
//! | file | what it has |
//! |---|---|
//! | `folding` | values per interval of time, with a limit |
//! | `intervals` | columns over time |
//! | `stamps` | time stamps (RFC 7323): the peer's clock rate, and round trips by their echo |
//! | `board` | the SACK scoreboard and the pipe (RFC 6675) |
//! | `shares` | time with data in flight, limited by the receiver's window, and in recovery |
//! | `losses` | a list of retransmissions with their causes |
//! | `stream` | the start of a stream, for a TLS hello |
//! | `ecn` | whether ECN, Accurate ECN (RFC 9768) or L4S (RFC 9331) is in use |
//! | `community` | community-id |
//! | `kept` | how all this is frozen |
//! | `rows` | columns over time and losses as rows |

mod board;
mod community;
mod ecn;
mod folding;
mod intervals;
mod kept;
mod losses;
pub mod rows;
mod shares;
mod stamps;
mod stream;

pub use board::Board;
pub use community::community_id;
pub use ecn::{Codepoints, Ecn};
pub use folding::{Folding, Merge};
pub use intervals::{Interval, IntervalSide};
pub use losses::{Loss, LossCause, Losses};
pub use shares::Shares;
pub use stamps::Stamps;
pub use stream::Tls;
pub(crate) use stream::version_name;

use crate::direction::Direction;
use crate::segment::Segment;
use crate::verdict::Verdict;
use stream::Stream;

/// The width of the windows of shortest round trips, until there are too many of them: 10 s.
pub const RTT_WINDOW: i64 = 10_000_000_000;

/// Windows of shortest round trips of a direction. Beyond it, their width doubles.
pub const RTT_WINDOWS_MAX: usize = 64;

/// Intervals of a connection. Beyond it, their width doubles.
pub const INTERVALS_MAX: usize = 4096;

/// The shortest round trip of a window of time, and how many were measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shortest {
    /// The shortest, in nanoseconds.
    pub min: i64,
    /// How many.
    pub count: u64,
}

impl Merge for Shortest {
    fn merge(&mut self, other: &Shortest) {
        self.min = match self.count {
            0 => other.min,
            _ if other.count == 0 => self.min,
            _ => self.min.min(other.min),
        };
        self.count += other.count;
    }
}

/// Details of what one end sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// TTL or hop limit of its first packet, and the bounds of all; 0 before the first.
    pub ttl: [u8; 3],
    /// Its time stamps.
    pub stamps: Stamps,
    /// ECN codepoints of its packets.
    pub codepoints: Codepoints,
    /// What the other end has selectively acknowledged of its data.
    pub board: Board,
    /// Shares of its time.
    pub shares: Shares,
    /// Its retransmissions.
    pub losses: Losses,
    /// Shortest round trips of its data, by windows of time.
    pub round_trips: Folding<Shortest>,
    stream: Stream,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            ttl: [0; 3],
            stamps: Stamps::default(),
            codepoints: Codepoints::default(),
            board: Board::default(),
            shares: Shares::default(),
            losses: Losses::default(),
            round_trips: Folding::new(RTT_WINDOW, RTT_WINDOWS_MAX),
            stream: Stream::default(),
        }
    }
}

/// Details of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Only the intervals are asked for.
    only_intervals: bool,
    /// What end `a` sent.
    pub a: Side,
    /// What end `b` sent.
    pub b: Side,
    /// ECN as the handshake negotiated it.
    pub ecn: Ecn,
    /// The start of TLS.
    pub tls: Tls,
    /// Columns over time; `None` unless they are asked for.
    pub intervals: Option<Folding<Interval>>,
}

impl Details {
    /// Details, if `details` is set, and columns over time, if `interval` is the width of an interval.
    pub(crate) fn new(details: bool, interval: i64) -> Details {
        Details {
            only_intervals: !details,
            intervals: (interval > 0).then(|| Folding::new(interval, INTERVALS_MAX)),
            ..Details::default()
        }
    }

    /// Whether it has more than columns over time.
    #[must_use]
    pub fn is_noted(&self) -> bool {
        !self.only_intervals
    }

    /// Memory is short: joins intervals, and gives up the streams whose hello is incomplete.
    #[cold]
    pub(crate) fn forget(&mut self) {
        if let Some(intervals) = &mut self.intervals {
            intervals.fold();
        }
        self.a.stream.finish();
        self.b.stream.finish();
    }

    /// Bytes of its lists that grow with the connection.
    pub(crate) fn memory(&self) -> usize {
        let intervals = self.intervals.as_ref().map_or(0, Folding::len);
        intervals * size_of::<(i64, Interval)>() + self.a.memory() + self.b.memory()
    }

    /// A packet of end `a` or `b`, after the statistics of both directions include it.
    pub(crate) fn packet(
        &mut self,
        segment: &Segment,
        verdict: &Verdict,
        (a, b): (&Direction, &Direction),
        payload: &[u8],
    ) {
        let from_a = verdict.from_a;
        let (this, other) = if from_a { (a, b) } else { (b, a) };
        if let Some(intervals) = &mut self.intervals {
            let interval = Interval::of(segment, verdict, this, other);
            intervals.add(segment.time, &interval);
        }
        if self.only_intervals || verdict.hardware_duplicate {
            return;
        }
        self.ecn.packet(segment);
        let (mine, theirs) = if from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        mine.arrive(segment);
        mine.stamps.sent(segment);
        theirs.stamps.echoed(segment);
        mine.losses.packet(segment, verdict, this);
        mine.board.sent(this, segment, verdict);
        theirs.board.acknowledged(other, segment);
        for (side, direction, window) in [(mine, this, other), (theirs, other, this)] {
            side.shares.packet(segment.time, direction, window);
        }
        let theirs = if from_a { &mut self.b } else { &mut self.a };
        if let Some(sample) = verdict.sample.filter(|sample| sample.time > 0) {
            let shortest = Shortest {
                min: sample.time,
                count: 1,
            };
            theirs.round_trips.add(segment.time, &shortest);
        }
        let mine = if from_a { &mut self.a } else { &mut self.b };
        if !payload.is_empty() && !mine.stream.is_over() {
            let offset = this.offset(segment.sequence) + u64::from(segment.syn());
            let base = this.syn.map_or(offset, |syn| syn + 1);
            mine.stream.add(base, offset, payload);
            self.tls.read(&mut mine.stream);
        }
    }
}

impl Side {
    fn memory(&self) -> usize {
        self.board.memory() + self.losses.memory() + self.stream.memory()
    }

    fn arrive(&mut self, segment: &Segment) {
        let ttl = segment.hop_limit;
        let [first, min, max] = &mut self.ttl;
        if *max == 0 {
            (*first, *min) = (ttl, ttl);
        }
        *min = (*min).min(ttl);
        *max = (*max).max(ttl);
        self.codepoints.add(segment.traffic_class & 3);
    }
}

#[cfg(test)]
mod tests;
