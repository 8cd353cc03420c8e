//! Queues of shaped subscribers: their packets wait here as IP packets, in buffers that are used again.
//!
//! A shared link and everything under it is on one path, because only one core can know what a link has sent. Which path
//! that is, the edge decides (`edge::homes`). Other paths hand packets of its subscribers over (`handover`). A subscriber
//! without a shape has no part in this.

use base::Instant;
use hashbrown::HashMap;
use hqos::{Admission, Counts, Direction, Fault, Options, Plan, Shape, SubId, Tree, View};
use qos::Packet;
use wire::flow::Keys;

use super::entry::{Entry, Lane};
use super::inward::Found;
use super::moves::Held;
use super::{Headers, Inside, Nobody, Outside, Path};
use crate::access::Encapsulation;
use crate::config::Config;
use crate::counters::Discard;

/// Packets that one call of [`Path::drain`] sends.
const DRAIN_MAX: usize = 512;
/// Datagrams whose queues [`Path::touch`] loads at once.
const TOUCH_MAX: usize = 64;
/// With fewer shaped subscribers, their queues are in the cache.
const TOUCH_MIN: usize = 8_000;
/// The same of switched sessions, whose two halves are larger.
const TOUCH_CROSSINGS_MIN: usize = 500;
/// Unused buffers that are kept when no packet is queued.
const SPARE_MAX: usize = 1_024;
/// Capacity in bytes of a buffer that is kept; it holds an Ethernet frame's packet.
const BUFFER: usize = 2_048;

/// The limits of one path's queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    packets_max: u32,
    octets_max: u64,
    subscribers_max: u32,
}

impl Limits {
    /// An equal share of what the configuration allows all paths.
    pub(crate) fn new(config: &Config) -> Self {
        let paths = config.paths.max(1);
        Self {
            packets_max: config.queue_packets_max.div_ceil(paths.into()),
            octets_max: config.queue_octets_max.div_ceil(paths.into()),
            subscribers_max: config.subscribers_max,
        }
    }
}

/// The trees of both directions, and the bytes of their packets.
pub(crate) struct Queues {
    down: Tree,
    up: Tree,
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    /// The subscribers with queues here, by place.
    seats: Vec<Option<Seat>>,
    /// Subscribers whose packets wait for earlier ones, which are on another path.
    pub(super) held: HashMap<u32, Held>,
    /// What queues counted on other paths before.
    pub(super) before: HashMap<u32, [Counts; 2]>,
    /// Subscribers whose packets were discarded, one for each packet.
    lost: Vec<(u32, Direction)>,
}

/// A subscriber with queues here.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub(super) id: SubId,
    pub(super) generation: u32,
    pub(super) stay: u32,
}

/// A queued packet.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) octets: Vec<u8>,
    place: u32,
    pub(super) version: u8,
}

impl Queues {
    pub(super) fn new(plan: &Plan, limits: Limits, seed: u64, now: Instant) -> Result<Self, Fault> {
        let options = |direction| Options {
            direction,
            packets_max: limits.packets_max,
            octets_max: limits.octets_max,
            subscribers_max: limits.subscribers_max,
            seed,
        };
        Ok(Self {
            down: Tree::new(plan, &options(Direction::Down), now)?,
            up: Tree::new(plan, &options(Direction::Up), now)?,
            buffers: Vec::new(),
            free: Vec::new(),
            seats: Vec::new(),
            held: HashMap::new(),
            before: HashMap::new(),
            lost: Vec::new(),
        })
    }

    /// Changes templates and shared links.
    pub(super) fn set_plan(&mut self, plan: &Plan, now: Instant) -> Result<(), Fault> {
        self.down.set_plan(plan, now)?;
        self.up.set_plan(plan, now)
    }

    #[inline]
    pub(super) fn seat(&self, place: u32) -> Option<Seat> {
        *self.seats.get(place as usize)?
    }

    /// Adds a subscriber. `None` if there is no room.
    pub(super) fn add(
        &mut self,
        shape: &Shape,
        place: u32,
        (generation, stay): (u32, u32),
        now: Instant,
    ) -> Option<()> {
        let down = self.down.add(shape, place, now)?;
        let up = self.up.add(shape, place, now);
        debug_assert_eq!(Some(down), up, "both trees have the same subscribers");
        let index = place as usize;
        if self.seats.len() <= index {
            self.seats.resize(index + 1, None);
        }
        self.seats[index] = Some(Seat {
            id: down,
            generation,
            stay,
        });
        Some(())
    }

    /// Changes a subscriber's shape.
    pub(super) fn change(&mut self, id: SubId, shape: &Shape, now: Instant) {
        self.down.change(id, shape, now);
        self.up.change(id, shape, now);
    }

    /// Removes a subscriber and its packets.
    pub(super) fn remove(&mut self, place: u32) {
        self.held.remove(&place);
        self.take_out(place, |_, _| {});
        self.before.remove(&place);
    }

    /// Removes a subscriber, and passes on its packets. Those of a flow stay in order.
    pub(super) fn take_out(&mut self, place: u32, mut packet: impl FnMut(Direction, &Buffer)) {
        let seat = self.seats.get_mut(place as usize).and_then(Option::take);
        let Some(Seat { id, .. }) = seat else { return };
        self.down.remove(id);
        self.up.remove(id);
        let Self {
            down,
            up,
            buffers,
            free,
            ..
        } = self;
        let down = down
            .discarded()
            .map(|(handle, _)| (handle, Direction::Down));
        let up = up.discarded().map(|(handle, _)| (handle, Direction::Up));
        for (handle, direction) in down.chain(up) {
            let buffer = &mut buffers[handle as usize];
            packet(direction, buffer);
            buffer.clear();
            free.push(handle);
        }
    }

    /// A subscriber's queues down and up.
    pub(crate) fn view(&self, place: u32, hosts_max: usize) -> Option<[View; 2]> {
        let id = self.seat(place)?.id;
        let flow = |handle: u32| *Keys::read(&self.buffers[handle as usize].octets).innermost();
        let mut views = [
            self.down
                .view(id, hosts_max, |handle| flow(handle).destination)?,
            self.up.view(id, hosts_max, |handle| flow(handle).source)?,
        ];
        for (view, before) in views
            .iter_mut()
            .zip(self.before.get(&place).into_iter().flatten())
        {
            let counts = &mut view.counts;
            counts.passed += before.passed;
            counts.queued += before.queued;
            counts.octets += before.octets;
            counts.dropped += before.dropped;
            counts.marked += before.marked;
        }
        Some(views)
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
    fn admit(&mut self, id: SubId, to: To, octets: usize, now: Instant) -> Admission {
        self.tree(to.direction).admit(id, octets as u32, now)
    }

    /// Queues a packet that [`Queues::admit`] did not let pass.
    pub(super) fn push(
        &mut self,
        id: SubId,
        to: To,
        now: Instant,
        packet: impl FnOnce(&mut Vec<u8>),
    ) {
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
        self.tree(to.direction).push(id, packet, now);
        self.collect();
    }

    /// The next packet that may leave, and its buffer's number for [`Queues::give_back`].
    fn pop(&mut self, direction: Direction, now: Instant) -> Option<(u32, Buffer, bool)> {
        let sent = self.tree(direction).pop(now);
        self.collect();
        let sent = sent?;
        let mut buffer = core::mem::take(&mut self.buffers[sent.handle as usize]);
        if sent.marked {
            wire::ecn::mark(&mut buffer.octets);
        }
        Some((sent.handle, buffer, sent.marked))
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
        let down = self
            .down
            .discarded()
            .map(|(handle, _)| (handle, Direction::Down));
        let up = self
            .up
            .discarded()
            .map(|(handle, _)| (handle, Direction::Up));
        for (handle, direction) in down.chain(up) {
            let buffer = &mut self.buffers[handle as usize];
            buffer.clear();
            self.lost.push((buffer.place, direction));
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

impl Buffer {
    fn clear(&mut self) {
        self.octets.clear();
        if self.octets.capacity() > BUFFER {
            self.octets = Vec::new();
        }
    }
}

/// The queue that a packet is for.
#[derive(Clone, Copy)]
pub(super) struct To {
    pub(super) lane: Lane,
    pub(super) direction: Direction,
    pub(super) place: u32,
    pub(super) version: u8,
}

impl<E: Encapsulation> Path<E> {
    /// Whether a packet of a shaped subscriber may pass now. If not, it is queued, handed over or dropped.
    pub(super) fn passes(
        &mut self,
        to: To,
        octets: usize,
        now: Instant,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let id = match to.lane {
            Lane::Here(id) => id,
            Lane::There(path) => {
                self.hand_to(path, to, packet);
                return false;
            }
        };
        let Some(queues) = &mut self.queues else {
            return true;
        };
        if !queues.held.is_empty() && queues.held.contains_key(&to.place) {
            self.hold(to, packet);
            return false;
        }
        match queues.admit(id, to, octets, now) {
            Admission::Pass => return true,
            Admission::Queue => {
                queues.push(id, to, now, packet);
                self.count_lost();
            }
            Admission::Drop => self.drop_queued(to.place, to.direction),
        }
        false
    }

    /// Counts the packets that queues have dropped.
    #[inline]
    pub(super) fn count_lost(&mut self) {
        if let Some(queues) = &mut self.queues
            && !queues.lost.is_empty()
        {
            for (place, direction) in core::mem::take(&mut queues.lost) {
                self.drop_queued(place, direction);
            }
        }
    }

    #[inline]
    fn count_mark(&self, place: u32, direction: Direction, is_marked: bool) {
        if is_marked && let Some(entry) = self.entry(place) {
            entry.meter(self.number).mark(direction);
        }
    }

    #[cold]
    pub(super) fn drop_queued(&mut self, place: u32, direction: Direction) {
        self.drop_of(place, Discard::Queue);
        if let Some(entry) = self.entry(place) {
            entry.meter(self.number).drop_queued(direction);
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
            if let Some((handle, buffer, is_marked)) = down {
                self.count_mark(buffer.place, Direction::Down, is_marked);
                let Buffer {
                    octets,
                    place,
                    version,
                } = &buffer;
                let headers = headers.as_deref_mut();
                let sent = self.leave(*place, *version, headers, outside, |out| {
                    out.extend_from_slice(octets);
                });
                if let Err(why) = sent {
                    self.drop_of(*place, why);
                }
                queues.give_back(handle, buffer);
            }
            if let Some((handle, buffer, is_marked)) = up {
                self.count_mark(buffer.place, Direction::Up, is_marked);
                if let Err(why) = self.pass_inside(buffer.place, &buffer.octets, inside) {
                    self.drop_of(buffer.place, why);
                }
                queues.give_back(handle, buffer);
            }
        }
        let is_due = queues.next_deadline().is_some_and(|at| at <= now);
        queues.shrink();
        self.queues = Some(queues);
        self.count_lost();
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

    /// Loads the queues and the address mappings of the subscribers that sent these datagrams, and the halves of switched
    /// sessions, into the cache, up to 64 at once. Call it with received datagrams before [`Path::receive`]. With few shaped
    /// subscribers, mappings or switched sessions it does nothing for these.
    pub fn touch<'a, I: Iterator<Item = (E::Route, &'a [u8])>>(
        &mut self,
        datagrams: impl Fn() -> I,
    ) {
        if self.nat.as_ref().is_some_and(|nat| nat.is_large()) {
            self.touch_nat(datagrams());
        }
        let queues = self.queues.as_ref();
        let queues = queues.filter(|queues| queues.up.subscribers() >= TOUCH_MIN);
        if queues.is_none() && self.crossings.len() < TOUCH_CROSSINGS_MIN {
            return;
        }
        let (mut ids, mut places) = ([None; TOUCH_MAX], [None; TOUCH_MAX]);
        for (at, (route, bytes)) in datagrams().take(TOUCH_MAX).enumerate() {
            match E::locate(&route, bytes, |id| self.find_either(id, &route)) {
                Some((Found::Leg(place), _)) => places[at] = Some(place),
                Some((Found::Entry(place), _)) if queues.is_some() => {
                    if let Some(Lane::Here(queue)) = self.entry(place).and_then(Entry::lane) {
                        ids[at] = Some(queue);
                    }
                }
                Some((Found::Entry(_), _)) | None => {}
            }
        }
        if let Some(queues) = queues {
            queues.up.touch(ids.iter().flatten().copied());
        }
        self.crossings
            .touch(places.iter().flatten().copied(), self.number);
    }

    /// When to call [`Path::drain`] next; [`Instant::ZERO`] means now. `None` if no packet is queued.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queues.as_ref()?.next_deadline()
    }
}
