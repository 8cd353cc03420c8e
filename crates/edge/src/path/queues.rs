//! Queues of shaped subscribers: their packets wait here as IP packets, in buffers that are used again.
//!
//! Only the edge's own path has queues, because only one core can know what a link has sent. Other paths leave the
//! packets of shaped subscribers to the edge. A subscriber without a shape has no part in this.

use base::Instant;
use hqos::{Admission, Direction, Fault, Options, Plan, Shape, SubId, Tree, View};
use qos::Packet;
use wire::flow::Keys;

use super::{Headers, Inside, Nobody, Outside, Path};
use crate::access::Encapsulation;
use crate::config::Config;
use crate::counters::Discard;

/// Packets that one call of [`Path::drain`] sends.
const DRAIN_MAX: usize = 512;
/// Unused buffers that are kept when no packet is queued.
const SPARE_MAX: usize = 1_024;
/// Capacity in bytes of a buffer that is kept; it holds an Ethernet frame's packet.
const BUFFER: usize = 2_048;

/// The trees of both directions, and the bytes of their packets.
pub(crate) struct Queues {
    down: Tree,
    up: Tree,
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    /// Places of subscribers whose packets were discarded, one for each packet.
    lost: Vec<u32>,
}

/// A queued packet.
#[derive(Default)]
struct Buffer {
    octets: Vec<u8>,
    place: u32,
    version: u8,
}

impl Queues {
    pub(crate) fn new(
        plan: &Plan,
        config: &Config,
        seed: u64,
        now: Instant,
    ) -> Result<Self, Fault> {
        let options = |direction| Options {
            direction,
            packets_max: config.queue_packets_max,
            octets_max: config.queue_octets_max,
            subscribers_max: config.subscribers_max,
            seed,
        };
        Ok(Self {
            down: Tree::new(plan, &options(Direction::Down), now)?,
            up: Tree::new(plan, &options(Direction::Up), now)?,
            buffers: Vec::new(),
            free: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// Changes templates and shared links.
    pub(crate) fn set_plan(&mut self, plan: &Plan, now: Instant) -> Result<(), Fault> {
        self.down.set_plan(plan, now)?;
        self.up.set_plan(plan, now)
    }

    /// Adds a subscriber. `None` if there is no room.
    pub(crate) fn add(&mut self, shape: &Shape, place: u32, now: Instant) -> Option<SubId> {
        let down = self.down.add(shape, place, now)?;
        let up = self.up.add(shape, place, now);
        debug_assert_eq!(Some(down), up, "both trees have the same subscribers");
        Some(down)
    }

    /// Changes a subscriber's shape.
    pub(crate) fn change(&mut self, id: SubId, shape: &Shape, now: Instant) {
        self.down.change(id, shape, now);
        self.up.change(id, shape, now);
    }

    /// Removes a subscriber and its packets.
    pub(crate) fn remove(&mut self, id: SubId) {
        self.down.remove(id);
        self.up.remove(id);
        self.collect();
        self.lost.clear();
    }

    /// A subscriber's queues down and up.
    pub(crate) fn view(&self, id: SubId, hosts_max: usize) -> Option<[View; 2]> {
        Some([self.down.view(id, hosts_max)?, self.up.view(id, hosts_max)?])
    }

    /// When to drain.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let all = [self.down.next_deadline(), self.up.next_deadline()];
        all.into_iter().flatten().min()
    }

    #[inline]
    fn tree(&mut self, direction: Direction) -> &mut Tree {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    #[inline]
    fn admit(&mut self, to: To, octets: usize, now: Instant) -> Admission {
        self.tree(to.direction).admit(to.id, octets as u32, now)
    }

    /// Queues a packet that [`Queues::admit`] did not let pass.
    fn push(&mut self, to: To, now: Instant, packet: impl FnOnce(&mut Vec<u8>)) {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Buffer::default());
            self.buffers.len() as u32 - 1
        });
        let buffer = &mut self.buffers[handle as usize];
        (buffer.place, buffer.version) = (to.place, to.version);
        packet(&mut buffer.octets);
        let packet = Packet {
            handle,
            length: buffer.octets.len() as u32,
            keys: Keys::read(&buffer.octets),
            ..Packet::default()
        };
        self.tree(to.direction).push(to.id, packet, now);
        self.collect();
    }

    /// The next packet that may leave, and its buffer's number for [`Queues::give_back`].
    fn pop(&mut self, direction: Direction, now: Instant) -> Option<(u32, Buffer)> {
        let sent = self.tree(direction).pop(now);
        self.collect();
        let sent = sent?;
        let mut buffer = core::mem::take(&mut self.buffers[sent.handle as usize]);
        if sent.marked {
            wire::ecn::mark(&mut buffer.octets);
        }
        Some((sent.handle, buffer))
    }

    fn give_back(&mut self, handle: u32, mut buffer: Buffer) {
        buffer.octets.clear();
        if buffer.octets.capacity() <= BUFFER {
            self.buffers[handle as usize] = buffer;
        }
        self.free.push(handle);
    }

    /// Frees the buffers of discarded packets.
    fn collect(&mut self) {
        for (handle, _) in self.down.discarded().chain(self.up.discarded()) {
            let buffer = &mut self.buffers[handle as usize];
            buffer.octets.clear();
            if buffer.octets.capacity() > BUFFER {
                buffer.octets = Vec::new();
            }
            self.lost.push(buffer.place);
            self.free.push(handle);
        }
    }

    /// Frees memory that a burst took.
    fn shrink(&mut self) {
        if self.buffers.len() > SPARE_MAX && self.free.len() == self.buffers.len() {
            self.buffers.truncate(SPARE_MAX);
            self.buffers.shrink_to_fit();
            self.free = (0..SPARE_MAX as u32).collect();
        }
    }
}

/// The queue that a packet is for.
#[derive(Clone, Copy)]
pub(super) struct To {
    pub(super) id: SubId,
    pub(super) direction: Direction,
    pub(super) place: u32,
    pub(super) version: u8,
}

impl<E: Encapsulation> Path<E> {
    /// Whether a packet of a shaped subscriber may pass now. If not, it is queued or dropped.
    pub(super) fn passes(
        &mut self,
        to: To,
        octets: usize,
        now: Instant,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let Some(queues) = &mut self.queues else {
            return true;
        };
        match queues.admit(to, octets, now) {
            Admission::Pass => return true,
            Admission::Queue => {
                queues.push(to, now, packet);
                if !queues.lost.is_empty() {
                    self.count_lost();
                }
            }
            Admission::Drop => self.drop_of(to.place, Discard::Queue),
        }
        false
    }

    #[cold]
    fn count_lost(&mut self) {
        let Some(queues) = &mut self.queues else {
            return;
        };
        for place in core::mem::take(&mut queues.lost) {
            self.drop_of(place, Discard::Queue);
        }
    }

    /// Sends the queued packets that may leave, a few hundred at most. Returns whether more may leave now.
    pub(crate) fn drain_by(
        &mut self,
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) -> bool {
        let Some(mut queues) = self.queues.take() else {
            return false;
        };
        for _ in 0..DRAIN_MAX {
            let down = queues.pop(Direction::Down, now);
            let up = queues.pop(Direction::Up, now);
            if down.is_none() && up.is_none() {
                break;
            }
            if let Some((handle, buffer)) = down {
                let Buffer {
                    octets,
                    place,
                    version,
                } = &buffer;
                let headers = headers.as_deref_mut();
                let sent = self.send_now(*place, *version, headers, outside, |out| {
                    out.extend_from_slice(octets);
                });
                if let Err(why) = sent {
                    self.drop_of(*place, why);
                }
                queues.give_back(handle, buffer);
            }
            if let Some((handle, buffer)) = up {
                if let Err(why) = self.pass_inside(buffer.place, &buffer.octets, inside) {
                    self.drop_of(buffer.place, why);
                }
                queues.give_back(handle, buffer);
            }
        }
        let is_due = queues.next_deadline().is_some_and(|at| at <= now);
        queues.shrink();
        let has_lost = !queues.lost.is_empty();
        self.queues = Some(queues);
        if has_lost {
            self.count_lost();
        }
        is_due
    }

    /// Sends the queued packets that may leave, a few hundred at most. Returns whether more may leave now.
    pub fn drain(
        &mut self,
        now: Instant,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) -> bool {
        self.drain_by(now, None::<&mut Nobody>, outside, inside)
    }

    /// When to call [`Path::drain`] next; [`Instant::ZERO`] means now. `None` if no packet is queued.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queues.as_ref()?.next_deadline()
    }
}
