//! One way through the engine.

use std::collections::VecDeque;

use base::{Duration, Instant};
use qos::tree::{Overhead, Spec, SpecError, Tree};
use qos::{Discipline, Packet, Pool, Reason};
use reactor::port::{BATCH, Cut, Frames, Large, OpenChecksum, Port, PortError, Uncut};
use wire::ecn;
use wire::flow::Keys;
use wire::segment::{self, Kind, Segments};

use super::control::LaneSnapshot;
use super::hosts::{Counting, HostBytes};
use super::{Direction, EngineError, Rewrite, Way};

/// Frames that wait until the other interface takes them; the queue holds any beyond.
const OUTGOING: usize = BATCH;

/// Frames without IP that may wait for the interface; further ones are lost.
const PAST_MAX: usize = 256;

/// Bytes of Ethernet's header.
const ETHERNET: usize = 14;

/// Counters of one way, beside those of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneStats {
    /// IP packets taken in.
    pub packets: u64,
    /// Frames without IP, which bypass the queue.
    pub past: u64,
    /// Large frames that were segmented.
    pub cut: u64,
    /// Large frames of which several packets each were kept together.
    pub kept: u64,
    /// Frames that were too long, or could not be segmented.
    pub too_long: u64,
    /// Packets discarded because their queue was full.
    pub full: u64,
    /// Packets discarded for another packet, because their flow had the longest queue.
    pub overlimit: u64,
    /// Packets discarded because they had waited too long.
    pub late: u64,
    /// Packets discarded because no class matched.
    pub unclassified: u64,
    /// Packets lost because there was no room left in all queues together, or for a segment.
    pub no_room: u64,
    /// Packets marked "congestion experienced".
    pub marked: u64,
    /// Frames lost because the other interface was down.
    pub down: u64,
}

#[derive(Debug)]
pub(super) struct Lane {
    tree: Tree,
    pool: Pool,
    overhead: Overhead,
    /// Bytes on the line of the longest piece of a large frame.
    longest: u32,
    delay: Duration,
    pub(super) entering: Option<Rewrite>,
    pub(super) leaving: Option<Rewrite>,
    /// Frames in the delay, by arrival time.
    travelling: VecDeque<(Instant, u32)>,
    outgoing: Vec<u32>,
    /// Whether the other interface takes no more frames for now.
    blocked: bool,
    stats: LaneStats,
    way: Way,
    /// The count of hosts, while a client asks.
    hosts: Option<Box<Counting>>,
}

impl Lane {
    pub(super) fn new(way: Way, direction: &Direction, now: Instant) -> Result<Self, EngineError> {
        Ok(Self {
            way,
            hosts: None,
            tree: Tree::new(&direction.spec, direction.seed, now)?,
            pool: Pool::new(direction.packets_max.max(1)),
            overhead: direction.overhead,
            longest: direction.spec.longest(),
            delay: direction.delay,
            entering: None,
            leaving: None,
            travelling: VecDeque::new(),
            outgoing: Vec::with_capacity(OUTGOING + PAST_MAX),
            blocked: false,
            stats: LaneStats::default(),
        })
    }

    /// Takes a frame from a slot.
    pub(super) fn take(&mut self, frames: &mut Frames, handle: u32, now: Instant) {
        if let Some(change) = self.entering {
            rewrite(frames, handle, change);
        }
        let frame = frames.get(handle);
        let Some(packet) = segment::ip_packet(frame) else {
            self.stats.past += 1;
            self.pass(frames, handle, now);
            return;
        };
        self.stats.packets += 1;
        // A slot is smaller than that.
        let length = self.overhead.on_line(packet.len() as u32);
        let keys = Keys::read_frame(frame);
        self.enqueue(frames, (handle, length), keys, now);
    }

    /// Queues a frame that takes so many bytes of the line.
    fn enqueue(
        &mut self,
        frames: &mut Frames,
        (handle, length): (u32, u32),
        keys: Keys,
        now: Instant,
    ) {
        let packet = Packet {
            handle,
            length,
            keys,
            arrived: now,
            marked: false,
        };
        match self.pool.insert(packet) {
            Some(id) => {
                self.tree.enqueue(&mut self.pool, id, now);
            }
            None => {
                self.stats.no_room += 1;
                frames.give_back(handle);
            }
        }
    }

    /// Lets a frame bypass the queue.
    fn pass(&mut self, frames: &mut Frames, handle: u32, now: Instant) {
        if self.delay == Duration::ZERO && self.outgoing.len() >= OUTGOING + PAST_MAX {
            self.stats.no_room += 1;
            frames.give_back(handle);
        } else {
            self.leave(handle, now);
        }
    }

    /// Segments a frame and queues the packets. Packets that all together take the line for a millisecond at most stay
    /// in one piece, which the interface segments, if it takes segments of up to `segment_max` bytes.
    pub(super) fn cut(
        &mut self,
        frames: &mut Frames,
        large: Large<'_>,
        segment_max: Option<usize>,
        now: Instant,
    ) {
        let segments = match large.cut {
            Some(Cut::Tcp(size)) => Segments::new(large.bytes, Kind::Tcp, size).ok(),
            Some(Cut::Udp(size)) => Segments::new(large.bytes, Kind::Udp, size).ok(),
            None => None,
        };
        let fitting = segments.filter(|segments| segments.length_max() <= frames.frame_max());
        let (Some(segments), Some(cut)) = (fitting, large.cut) else {
            self.stats.too_long += 1;
            return;
        };
        let each = self.packets_of_a_piece(&segments, segment_max);
        *if each > 1 {
            &mut self.stats.kept
        } else {
            &mut self.stats.cut
        } += 1;
        let mut n = 0;
        while n < segments.count() {
            let count = each.min(segments.count() - n);
            if count > 1 && self.keep(frames, (&segments, cut), (n, count), now) {
                n += count;
                continue;
            }
            n += 1;
            let Some(handle) = frames.take() else {
                self.stats.no_room += 1;
                continue;
            };
            frames.fill(handle, |room| segments.write(n - 1, room).unwrap_or(0));
            self.take(frames, handle, now);
        }
    }

    /// How many packets of a frame may stay together.
    fn packets_of_a_piece(&self, segments: &Segments<'_>, segment_max: Option<usize>) -> usize {
        let length = segments.length_max();
        let is_rewritten = self.entering.is_some() || self.leaving.is_some();
        if is_rewritten || !segments.has_pieces() || segment_max.is_none_or(|most| length > most) {
            return 1;
        }
        (self.longest / self.line_length(length)).max(1) as usize
    }

    /// Bytes on the line of a segment's frame.
    fn line_length(&self, length: usize) -> u32 {
        self.overhead.on_line((length - ETHERNET) as u32)
    }

    /// Queues `count` segments from `first` on in one piece; returns whether there was a slot for it.
    fn keep(
        &mut self,
        frames: &mut Frames,
        (segments, cut): (&Segments<'_>, Cut),
        (first, count): (usize, usize),
        now: Instant,
    ) -> bool {
        let handle = take_piece(frames, segments, cut, (first, count));
        let Some(handle) = handle else {
            return false;
        };
        self.stats.packets += count as u64;
        let lengths = (first..first + count).map(|n| self.line_length(segments.length(n)));
        let length = lengths.sum();
        let keys = Keys::read_frame(frames.get(handle));
        self.enqueue(frames, (handle, length), keys, now);
        true
    }

    /// Releases packets from the queues, as far as the other interface is ready for them.
    pub(super) fn release(&mut self, frames: &mut Frames, now: Instant) {
        if self.delay == Duration::ZERO {
            while self.outgoing.len() < OUTGOING && self.serve(frames, now) {}
        } else {
            for _ in 0..OUTGOING {
                if !self.serve(frames, now) {
                    break;
                }
            }
            while self.outgoing.len() < OUTGOING
                && let Some(&(at, handle)) = self.travelling.front()
                && at <= now
            {
                self.travelling.pop_front();
                self.outgoing.push(handle);
            }
        }
        self.reclaim(frames);
    }

    /// Releases one packet; returns whether there was one.
    fn serve(&mut self, frames: &mut Frames, now: Instant) -> bool {
        let Some(id) = self.tree.dequeue(&mut self.pool, now) else {
            return false;
        };
        let packet = self.pool.take(id);
        if self.hosts.is_some() {
            self.count_host(&packet, now);
        }
        if packet.marked && ecn::mark_frame(frames.get_mut(packet.handle)) {
            self.stats.marked += 1;
        }
        if let Some(change) = self.leaving {
            rewrite(frames, packet.handle, change);
        }
        self.leave(packet.handle, now);
        true
    }

    /// Counts a packet for its host, unless the count is over.
    #[cold]
    fn count_host(&mut self, packet: &Packet, now: Instant) {
        if let Some(hosts) = &mut self.hosts {
            if hosts.is_over(now) {
                self.hosts = None;
            } else {
                hosts.count(&packet.keys, packet.length, self.way == Way::Up);
            }
        }
    }

    /// What each host sent or received since the last call; `None` if the count starts with this one.
    pub(super) fn take_hosts(&mut self, now: Instant) -> Option<HostBytes> {
        if let Some(hosts) = self.hosts.as_mut().filter(|hosts| !hosts.is_over(now)) {
            return Some(hosts.take(now));
        }
        self.hosts = Some(Box::new(Counting::new(now)));
        None
    }

    fn leave(&mut self, handle: u32, now: Instant) {
        if self.delay == Duration::ZERO {
            self.outgoing.push(handle);
        } else {
            self.travelling.push_back((now + self.delay, handle));
        }
    }

    /// Sends the ready frames. The lane is blocked afterwards if the interface did not take all.
    pub(super) fn send(&mut self, port: &mut Port, frames: &mut Frames) -> Result<(), PortError> {
        if self.blocked || self.outgoing.is_empty() {
            return Ok(());
        }
        if port.sends_by_ring() {
            for &handle in &self.outgoing {
                if let Some(open) = frames.close_checksum(handle) {
                    let (start, offset) = (open.start.into(), open.offset.into());
                    segment::complete_checksum(frames.get_mut(handle), start, offset);
                }
            }
        }
        let done = port.send(frames, &self.outgoing)?;
        for handle in self.outgoing.drain(..done) {
            frames.give_back(handle);
        }
        self.blocked = !self.outgoing.is_empty();
        Ok(())
    }

    /// Drops the ready frames, because the interface is down.
    pub(super) fn lose(&mut self, frames: &mut Frames) {
        self.stats.down += self.outgoing.len() as u64;
        for handle in self.outgoing.drain(..) {
            frames.give_back(handle);
        }
    }

    /// Frees the slots of discarded packets.
    pub(super) fn reclaim(&mut self, frames: &mut Frames) {
        for (handle, reason) in self.pool.discarded() {
            frames.give_back(handle);
            *match reason {
                Reason::Full => &mut self.stats.full,
                Reason::Overlimit => &mut self.stats.overlimit,
                Reason::Late => &mut self.stats.late,
                Reason::Unclassified => &mut self.stats.unclassified,
            } += 1;
        }
    }

    /// When to call again; `None` if nothing waits, or if the lane waits for the other interface.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        if self.blocked {
            return None;
        }
        let arrival = self.travelling.front().map(|&(at, _)| at);
        arrival.into_iter().chain(self.tree.next_time(now)).min()
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    pub(super) fn replace(&mut self, spec: &Spec, now: Instant) -> Result<(), SpecError> {
        self.tree.change(spec, &mut self.pool, now)?;
        self.longest = spec.longest();
        Ok(())
    }

    pub(super) fn set_overhead(&mut self, overhead: Overhead) {
        self.overhead = overhead;
    }

    pub(super) fn snapshot(&self) -> LaneSnapshot {
        LaneSnapshot {
            nodes: self.tree.walk(),
            statistics: self.tree.statistics(),
            backlog: self.tree.backlog(),
            travelling: self.travelling.len(),
            stats: self.stats,
        }
    }
}

fn rewrite(frames: &mut Frames, handle: u32, change: Rewrite) {
    if frames.open_checksum(handle).is_none()
        && let Some(frame) = change(frames.get(handle))
    {
        frames.fill(handle, |room| {
            let length = frame.len().min(room.len());
            room[..length].copy_from_slice(&frame[..length]);
            length
        });
    }
}

/// Takes a slot for `count` segments from `first` on, as one frame that the kernel cuts.
#[must_use]
pub fn take_piece(
    frames: &mut Frames,
    segments: &Segments<'_>,
    cut: Cut,
    (first, count): (usize, usize),
) -> Option<u32> {
    frames.take_uncut(|room| {
        let piece = segments.write_piece(first, count, room)?;
        let uncut = Uncut {
            cut,
            is_v6: piece.is_v6,
            has_cwr: piece.has_cwr,
            headers: piece.headers as u16,
            checksum: OpenChecksum {
                start: piece.transport as u16,
                offset: piece.checksum as u16,
            },
        };
        Some((piece.length, uncut))
    })
}
