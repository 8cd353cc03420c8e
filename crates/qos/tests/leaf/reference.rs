//! The algorithms of RFC 8289 and RFC 8290 in the simplest form: queues of values, linear scans, floating point. The
//! disciplines must send, mark and drop the same packets at the same calls.

use std::collections::VecDeque;

use qos::Packet;

/// The parts of a packet that the RFCs use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) handle: u32,
    pub(crate) length: u32,
    pub(crate) tstamp: i64,
    /// Whether the packet may be marked.
    pub(crate) capable: bool,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Option<u32>,
    pub(crate) sent_length: u32,
    pub(crate) marked: bool,
    pub(crate) dropped: Vec<u32>,
}

impl Outcome {
    /// The results of a discipline.
    pub(crate) fn of(sent: Option<Packet>, dropped: Vec<u32>) -> Self {
        Self {
            sent: sent.map(|packet| packet.handle),
            sent_length: sent.map_or(0, |packet| packet.length),
            marked: sent.is_some_and(|packet| packet.marked),
            dropped,
        }
    }
}

/// RFC 8289 5.3.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constants {
    pub(crate) target: i64,
    pub(crate) interval: i64,
    pub(crate) maxpacket: u64,
    pub(crate) ecn: bool,
}

/// RFC 8289 5.2, 5.5, 5.6, with a mark in place of a drop if the sender supports ECN.
#[derive(Debug, Default)]
pub(crate) struct CodelQueue {
    packets: VecDeque<Sample>,
    bytes: u64,
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl CodelQueue {
    pub(crate) fn push(&mut self, packet: Sample) {
        self.bytes += u64::from(packet.length);
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Sample> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.length);
        Some(packet)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn packets(&self) -> usize {
        self.packets.len()
    }

    fn control_law(constants: &Constants, t: i64, count: u32) -> i64 {
        t + (constants.interval as f64 / f64::from(count).sqrt()) as i64
    }

    /// `others` is added to this queue's backlog.
    fn dodequeue(
        &mut self,
        constants: &Constants,
        now: i64,
        others: u64,
    ) -> (Option<Sample>, bool) {
        let Some(packet) = self.pop() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        let sojourn_time = now - packet.tstamp;
        if sojourn_time < constants.target || self.bytes + others <= constants.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + constants.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    pub(crate) fn dequeue(&mut self, constants: &Constants, now: i64, others: u64) -> Outcome {
        let mut outcome = Outcome::default();
        let may_mark = |packet: Option<Sample>| constants.ecn && packet.is_some_and(|p| p.capable);
        let handle = |packet: Option<Sample>| packet.map(|packet| packet.handle);
        let (mut packet, mut ok_to_drop) = self.dodequeue(constants, now, others);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if may_mark(packet) {
                    outcome.marked = true;
                    self.drop_next = Self::control_law(constants, self.drop_next, self.count);
                    break;
                }
                outcome.dropped.extend(handle(packet));
                (packet, ok_to_drop) = self.dodequeue(constants, now, others);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(constants, self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            if may_mark(packet) {
                outcome.marked = true;
            } else {
                outcome.dropped.extend(handle(packet));
                (packet, _) = self.dodequeue(constants, now, others);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * constants.interval {
                self.count = delta;
            }
            self.drop_next = Self::control_law(constants, now, self.count);
            self.lastcount = self.count;
        }
        outcome.sent = handle(packet);
        outcome.sent_length = packet.map_or(0, |packet| packet.length);
        outcome
    }
}

/// RFC 8290 4.1 and 4.2.
pub(crate) struct FqCodelQueue {
    pub(crate) constants: Constants,
    pub(crate) limit: usize,
    pub(crate) quantum: i64,
    /// Whether CoDel's backlog check includes the other queues.
    pub(crate) floor_is_all: bool,
    pub(crate) queues: Vec<(CodelQueue, i64)>,
    pub(crate) new: VecDeque<usize>,
    pub(crate) old: VecDeque<usize>,
}

impl FqCodelQueue {
    /// Returns what was dropped.
    pub(crate) fn enqueue(&mut self, queue: usize, packet: Sample) -> Vec<u32> {
        self.queues[queue].0.push(packet);
        if !self.new.contains(&queue) && !self.old.contains(&queue) {
            self.new.push_back(queue);
            self.queues[queue].1 = self.quantum;
        }
        let mut dropped = Vec::new();
        if self.packets() > self.limit {
            let most = self.queues.iter().map(|(queue, _)| queue.bytes()).max();
            let fattest = self
                .queues
                .iter_mut()
                .map(|(queue, _)| queue)
                .find(|queue| Some(queue.bytes()) == most)
                .expect("one is the longest");
            for _ in 0..(fattest.packets() / 2).clamp(1, 64) {
                dropped.extend(fattest.pop().map(|packet| packet.handle));
            }
        }
        dropped
    }

    pub(crate) fn packets(&self) -> usize {
        self.queues.iter().map(|(queue, _)| queue.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.queues.iter().map(|(queue, _)| queue.bytes()).sum()
    }

    pub(crate) fn dequeue(&mut self, now: i64) -> Outcome {
        let mut dropped = Vec::new();
        loop {
            let all = self.bytes();
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let Some(&index) = list.front() else {
                return Outcome {
                    dropped,
                    ..Outcome::default()
                };
            };
            let (queue, credits) = &mut self.queues[index];
            if *credits <= 0 {
                *credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let others = if self.floor_is_all {
                all - queue.bytes()
            } else {
                0
            };
            let mut outcome = queue.dequeue(&self.constants, now, others);
            dropped.append(&mut outcome.dropped);
            if outcome.sent.is_some() {
                *credits -= i64::from(outcome.sent_length);
                outcome.dropped = dropped;
                return outcome;
            }
            list.pop_front();
            if from_new {
                self.old.push_back(index);
            }
        }
    }
}
