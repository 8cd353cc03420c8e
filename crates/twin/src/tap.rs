//! Turns the packets of one direction of a connection into a [`Flow`]. Captured and simulated packets pass through the
//! same code.

use std::collections::VecDeque;

/// Segments in flight that a tap keeps. Beyond it, the oldest are forgotten and give no round trip.
const FLIGHT_MAX: usize = 1 << 17;

/// Records of each kind that a flow keeps. Later ones are only counted.
pub const RECORDS_MAX: usize = 4_000_000;

/// Data that follows the last ACK sooner than this is no new burst of the application.
const PAUSE_MIN: u64 = 5_000_000;

/// A packet with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// When it passed the tap.
    pub at: u64,
    /// Offset of its first byte in the flow.
    pub start: u64,
    /// Bytes of payload.
    pub bytes: u32,
}

/// An ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// When it passed the tap.
    pub at: u64,
    /// Offset after the last byte that is acknowledged without a gap.
    pub to: u64,
    /// Bytes that have arrived, including those selectively acknowledged.
    pub delivered: u64,
    /// The receiver's window, in bytes.
    pub window: u64,
}

/// A round trip: the newest segment that an ACK acknowledges, unless any of the acknowledged segments was sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// When the ACK came.
    pub at: u64,
    /// Its time.
    pub time: u64,
    /// Bytes of its segment, without headers.
    pub bytes: u32,
}

impl Trip {
    /// When its segment was sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.at - self.time
    }
}

/// A segment that was retransmitted before it was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// When the lost segment was sent.
    pub sent: u64,
    /// When it was sent again.
    pub found: u64,
}

/// A reduction of the window after a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reduction {
    /// When the first retransmission was sent.
    pub at: u64,
    /// Bytes in flight before it.
    pub before: u64,
    /// Bytes in flight after the recovery.
    pub after: u64,
}

/// Data that the application wrote after all earlier data was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Offset of its first byte.
    pub start: u64,
    /// Time since the ACK of all earlier data; for the first burst, since the start of the capture.
    pub pause: u64,
}

/// One direction of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Largest payload of a segment on the line.
    pub mss: u32,
    /// Bytes of headers of a segment on the line.
    pub header: u32,
    /// Packets with data, in order of time.
    pub sent: Vec<Sent>,
    /// ACKs, in order of time.
    pub acked: Vec<Acked>,
    /// Round trips, in order of their ACKs.
    pub trips: Vec<Trip>,
    /// Round trip of the SYN.
    pub handshake: Option<Trip>,
    /// Losses, in order of the retransmissions.
    pub lost: Vec<Lost>,
    /// Reductions of the window.
    pub reductions: Vec<Reduction>,
    /// Bursts of the application.
    pub bursts: Vec<Burst>,
    /// Bytes sent before the first ACK of data.
    pub initial: u64,
    /// Time between the tap and the sender, both ways; 0 if the tap is at the sender.
    pub near: u64,
    /// Records that did not fit.
    pub beyond: u64,
}

impl Flow {
    /// Bytes sent at least once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sent
            .iter()
            .map(|sent| sent.start + u64::from(sent.bytes))
            .max()
            .unwrap_or(0)
    }

    /// Bytes that arrived.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.acked.last().map_or(0, |acked| acked.delivered)
    }

    /// Bytes on the line for each byte of payload, in full segments.
    #[must_use]
    pub fn expansion(&self) -> f64 {
        1.0 + f64::from(self.header) / f64::from(self.mss.max(1))
    }

    /// Segments on the line, with retransmissions.
    #[must_use]
    pub fn segments(&self) -> u64 {
        let mss = self.mss.max(1);
        let segments = self.sent.iter().map(|sent| sent.bytes.div_ceil(mss));
        segments.map(u64::from).sum()
    }

    /// Time from the first data to the last ACK of new data.
    #[must_use]
    pub fn duration(&self) -> u64 {
        let first = self.sent.first().map_or(0, |sent| sent.at);
        self.finished().saturating_sub(first)
    }

    /// When the last new data was acknowledged.
    #[must_use]
    pub fn finished(&self) -> u64 {
        let last = self.delivered();
        let at = self.acked.partition_point(|acked| acked.delivered < last);
        self.acked.get(at).map_or(0, |acked| acked.at)
    }
}

/// A segment in flight.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    at: u64,
    again: bool,
    sacked: bool,
}

/// A recovery from losses.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    at: u64,
    point: u64,
    before: u64,
    /// When all data up to `point` was acknowledged, and the most in flight since.
    after: Option<(u64, u64)>,
}

/// Reads the packets of one direction in order of time.
#[derive(Debug)]
pub struct Tap {
    flow: Flow,
    flight: VecDeque<Segment>,
    top: u64,
    acked: u64,
    acked_at: u64,
    sacked: u64,
    blocks: [(u64, u64); 4],
    recovery: Option<Recovery>,
    last_trip: u64,
    /// Data that did not pass before later data: lost on its way to the tap. Start, end, and when it was sent.
    holes: VecDeque<(u64, u64, u64)>,
}

/// Holes that a tap keeps. Beyond it, the oldest are forgotten and give no loss.
const HOLES_MAX: usize = 4096;

impl Tap {
    /// A tap for segments of at most `mss` bytes and `header` bytes of headers each.
    #[must_use]
    pub fn new(mss: u32, header: u32) -> Tap {
        Tap {
            flow: Flow {
                mss: mss.max(1),
                header,
                ..Flow::default()
            },
            flight: VecDeque::new(),
            top: 0,
            acked: 0,
            acked_at: 0,
            sacked: 0,
            blocks: [(0, 0); 4],
            recovery: None,
            last_trip: 0,
            holes: VecDeque::new(),
        }
    }

    /// A larger segment than those before shows that `mss` was too small.
    pub fn raise_mss(&mut self, mss: u32) {
        self.flow.mss = self.flow.mss.max(mss);
    }

    /// Bytes of headers of a segment.
    pub fn set_header(&mut self, header: u32) {
        self.flow.header = header;
    }

    /// The round trip of the SYN.
    pub fn handshake(&mut self, at: u64, time: u64) {
        let bytes = 0;
        self.flow.handshake.get_or_insert(Trip { at, time, bytes });
    }

    /// The time between the tap and the sender, both ways.
    pub fn near(&mut self, time: u64) {
        self.flow.near = time;
    }

    /// Offset after the last byte sent.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Offset after the last byte acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Bytes sent that have not arrived, as far as ACKs tell.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        (self.top - self.acked).saturating_sub(self.sacked)
    }

    /// A packet with data. Offloads may have joined several segments.
    pub fn data(&mut self, at: u64, start: u64, bytes: u32) {
        let end = start + u64::from(bytes);
        if self.flow.sent.len() >= RECORDS_MAX {
            self.flow.beyond += 1;
            return;
        }
        self.flow.sent.push(Sent { at, start, bytes });
        if start < self.top {
            self.again(at, start, end);
        }
        let first = start.max(self.top);
        if first >= end {
            return;
        }
        let pause = at.saturating_sub(self.acked_at);
        let is_first = self.flow.bursts.is_empty();
        if is_first || (self.acked == self.top && pause >= PAUSE_MIN) {
            self.flow.bursts.push(Burst {
                start: first,
                pause,
            });
        }
        if first > self.top && self.top > 0 {
            let sent = at.saturating_sub(self.last_trip);
            self.holes.push_back((self.top, first, sent));
            if self.holes.len() > HOLES_MAX {
                self.holes.pop_front();
            }
        }
        let mut from = first;
        while from < end {
            let to = end.min(from + u64::from(self.flow.mss));
            self.flight.push_back(Segment {
                start: from,
                end: to,
                at,
                again: false,
                sacked: false,
            });
            from = to;
        }
        if self.flight.len() > FLIGHT_MAX {
            self.flight.drain(..self.flight.len() - FLIGHT_MAX);
        }
        self.top = end;
        if self.acked == 0 {
            self.flow.initial = end;
        }
    }

    /// Data that fills a hole.
    fn fill(&mut self, at: u64, start: u64, end: u64) {
        let inside = |hole: &(u64, u64, u64)| hole.0 <= start && start < hole.1;
        let Some(place) = self.holes.iter().position(inside) else {
            return;
        };
        let (from, to, sent) = self.holes[place];
        self.flow.lost.push(Lost { sent, found: at });
        self.holes.remove(place);
        for rest in [(from, start, sent), (end, to, sent)] {
            if rest.0 < rest.1 {
                self.holes.push_back(rest);
            }
        }
    }

    /// A retransmission.
    fn again(&mut self, at: u64, start: u64, end: u64) {
        self.fill(at, start, end);
        let from = self.flight.partition_point(|segment| segment.end <= start);
        let mut is_lost = false;
        for segment in self.flight.iter_mut().skip(from) {
            if segment.start >= end {
                break;
            }
            if segment.sacked {
                continue;
            }
            is_lost = true;
            self.flow.lost.push(Lost {
                sent: segment.at,
                found: at,
            });
            segment.at = at;
            segment.again = true;
        }
        if is_lost && self.recovery.is_none() {
            self.recovery = Some(Recovery {
                at,
                point: self.top,
                before: self.top - self.acked,
                after: None,
            });
        }
    }

    /// An ACK up to offset `to`, with the receiver's window and its SACK blocks.
    pub fn ack(&mut self, at: u64, to: u64, window: u64, blocks: &[(u64, u64)]) {
        if to > self.top || to < self.acked {
            return;
        }
        let is_new = to > self.acked;
        if is_new {
            self.advance(at, to);
        }
        for (place, &(left, right)) in blocks.iter().take(4).enumerate() {
            if right > to
                && right <= self.top
                && left < right
                && self.blocks[place] != (left, right)
            {
                self.blocks[place] = (left, right);
                self.sack(left.max(to), right);
            }
        }
        if self.flow.acked.len() < RECORDS_MAX {
            let delivered = self.acked + self.sacked;
            self.flow.acked.push(Acked {
                at,
                to,
                delivered,
                window,
            });
        } else {
            self.flow.beyond += 1;
        }
        if is_new {
            self.recover(at);
        }
    }

    /// Removes acknowledged segments from the flight.
    fn advance(&mut self, at: u64, to: u64) {
        let mut newest = None;
        let mut is_clean = true;
        while let Some(segment) = self.flight.front_mut().filter(|first| first.start < to) {
            is_clean &= !segment.again;
            if !segment.sacked {
                newest = Some(*segment);
            }
            if segment.end > to {
                if segment.sacked {
                    self.sacked -= to - segment.start;
                }
                segment.start = to;
                break;
            }
            if segment.sacked {
                self.sacked -= segment.end - segment.start;
            }
            self.flight.pop_front();
        }
        (self.acked, self.acked_at) = (to, at);
        if let Some(newest) = newest.filter(|_| is_clean) {
            let time = at.saturating_sub(newest.at);
            self.last_trip = time;
            self.flow.trips.push(Trip {
                at,
                time,
                bytes: (newest.end - newest.start) as u32,
            });
        }
    }

    /// Marks the segments of a block as arrived.
    fn sack(&mut self, left: u64, right: u64) {
        let from = self.flight.partition_point(|segment| segment.start < left);
        for segment in self.flight.iter_mut().skip(from) {
            if segment.end > right {
                break;
            }
            if !segment.sacked {
                segment.sacked = true;
                self.sacked += segment.end - segment.start;
            }
        }
    }

    /// Follows a recovery to its end, and one round trip beyond it.
    fn recover(&mut self, at: u64) {
        let Some(recovery) = &mut self.recovery else {
            return;
        };
        if self.acked < recovery.point {
            return;
        }
        let flight = self.top - self.acked;
        let (ended, most) = recovery.after.unwrap_or((at, 0));
        let most = most.max(flight);
        recovery.after = Some((ended, most));
        if at > ended + self.last_trip {
            let (at, before) = (recovery.at, recovery.before);
            self.flow.reductions.push(Reduction {
                at,
                before,
                after: most,
            });
            self.recovery = None;
        }
    }

    /// The time of the last round trip, for taps that do not measure it themselves.
    pub fn set_trip(&mut self, time: u64) {
        self.last_trip = time;
    }

    /// The flow.
    #[must_use]
    pub fn finish(self) -> Flow {
        self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn joined_segments_are_taken_apart_and_give_round_trips() {
        let mut tap = Tap::new(1000, 66);
        tap.data(0, 0, 4000);
        tap.ack(50 * MS, 2000, 60_000, &[]);
        tap.ack(52 * MS, 4000, 60_000, &[]);
        let flow = tap.finish();
        let times: Vec<u64> = flow.trips.iter().map(|trip| trip.time / MS).collect();
        assert_eq!(times, [50, 52]);
        assert_eq!(
            (flow.segments(), flow.delivered(), flow.initial),
            (4, 4000, 4000)
        );
    }

    #[test]
    fn sacked_bytes_count_as_delivered_and_a_hole_as_lost() {
        let mut tap = Tap::new(1000, 66);
        for segment in 0..5 {
            tap.data(segment * MS, segment * 1000, 1000);
        }
        tap.ack(50 * MS, 1000, 60_000, &[]);
        // Segment 1 is lost (RFC 2018: the block above it grows).
        for last in 3..=5 {
            tap.ack((49 + last) * MS, 1000, 60_000, &[(2000, last * 1000)]);
        }
        assert_eq!(tap.in_flight(), 1000);
        tap.data(60 * MS, 1000, 1000);
        tap.ack(110 * MS, 5000, 60_000, &[]);
        let flow = tap.finish();
        let delivered: Vec<u64> = flow.acked.iter().map(|acked| acked.delivered).collect();
        assert_eq!(delivered, [1000, 2000, 3000, 4000, 5000]);
        let lost = Lost {
            sent: MS,
            found: 60 * MS,
        };
        assert_eq!(flow.lost, [lost]);
        // Karn: the ACK of a retransmission is no round trip.
        assert_eq!(flow.trips.len(), 1);
    }

    #[test]
    fn behind_the_bottleneck_a_late_fill_is_a_loss() {
        let mut tap = Tap::new(1000, 66);
        tap.set_trip(30 * MS);
        tap.data(100 * MS, 0, 1000);
        tap.data(101 * MS, 3000, 1000);
        tap.data(140 * MS, 1000, 1000);
        tap.data(141 * MS, 2000, 1000);
        let lost = |found| Lost {
            sent: 71 * MS,
            found,
        };
        assert_eq!(tap.finish().lost, [lost(140 * MS), lost(141 * MS)]);
    }

    #[test]
    fn a_pause_of_the_application_starts_a_burst() {
        let mut tap = Tap::new(1000, 66);
        tap.data(10 * MS, 0, 1000);
        tap.ack(30 * MS, 1000, 60_000, &[]);
        tap.data(31 * MS, 1000, 1000);
        tap.ack(50 * MS, 2000, 60_000, &[]);
        tap.data(950 * MS, 2000, 500);
        let bursts = tap.finish().bursts;
        assert_eq!(bursts.len(), 2);
        assert_eq!((bursts[0].start, bursts[0].pause), (0, 10 * MS));
        assert_eq!((bursts[1].start, bursts[1].pause), (2000, 900 * MS));
    }
}
