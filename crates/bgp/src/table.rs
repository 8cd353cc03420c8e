//! Connections by a dense index. What every message touches is in 32 bytes; the rest is stored apart.

use base::{Duration, Instant};

use crate::margin::HoldMargin;
use crate::session::Conn;

/// Identifies a connection. The identifier of a closed connection is recognised, until its slot was reused 2^32 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    index: u32,
    generation: u32,
}

impl ConnId {
    /// Its slot: a small, dense number that is reused.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How often the slot was reused.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    #[cfg(test)]
    pub(crate) const fn for_tests(index: u32) -> Self {
        Self {
            index,
            generation: 0,
        }
    }
}

/// A set of flags of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// The connection is Established.
    pub(crate) const ESTABLISHED: Self = Self(1);
    /// An incomplete message waits for its rest.
    pub(crate) const PARTIAL: Self = Self(1 << 1);
    /// The connection is in the ready queue.
    pub(crate) const READY: Self = Self(1 << 2);
    /// The stream accepts no data.
    pub(crate) const BLOCKED: Self = Self(1 << 3);
    /// A KEEPALIVE is to be sent.
    pub(crate) const KEEPALIVE: Self = Self(1 << 4);
    /// Messages of the session itself are to be sent.
    pub(crate) const CONTROL: Self = Self(1 << 5);
    /// The rib has something to send.
    pub(crate) const ROUTES: Self = Self(1 << 6);
    /// An exact hold timer is armed.
    pub(crate) const HOLD_ARMED: Self = Self(1 << 7);
    /// Everything that may be to send.
    pub(crate) const OUTPUT: Self = Self(Self::KEEPALIVE.0 | Self::CONTROL.0 | Self::ROUTES.0);
    /// Messages that are sent before routes to any peer.
    pub(crate) const URGENT: Self = Self(Self::KEEPALIVE.0 | Self::CONTROL.0);
    /// The connection must not be put into the ready queue.
    pub(crate) const READY_OR_BLOCKED: Self = Self(Self::READY.0 | Self::BLOCKED.0);
    /// The connection has something to send, or cannot send.
    pub(crate) const OCCUPIED: Self = Self(Self::OUTPUT.0 | Self::READY_OR_BLOCKED.0);
    /// The flags of a connection that has only a KEEPALIVE to send.
    pub(crate) const FAST: Self = Self(Self::ESTABLISHED.0 | Self::PARTIAL.0);

    #[inline]
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[inline]
    pub(crate) const fn any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    #[inline]
    pub(crate) const fn among(self, flags: Self) -> Self {
        Self(self.0 & flags.0)
    }

    #[inline]
    pub(crate) const fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    #[inline]
    pub(crate) const fn clear(&mut self, flag: Self) {
        self.0 &= !flag.0;
    }
}

/// What sending or receiving a KEEPALIVE touches. It is aligned, so that it never lies in two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Hot {
    /// When the last message was received.
    pub(crate) heard: Instant,
    generation: u32,
    /// The ring's tick of the last message that was sent.
    pub(crate) sent_tick: u32,
    pub(crate) keepalives_in: u32,
    pub(crate) keepalives_out: u32,
    /// The negotiated hold time in seconds; 0 means none.
    pub(crate) hold_s: u16,
    /// Its ring, from OpenConfirm on, if it has a hold time.
    pub(crate) ring: u16,
    pub(crate) flags: Flags,
}

const _: () = assert!(size_of::<Hot>() <= 32);

impl Hot {
    /// Whether a KEEPALIVE on the connection has no effect but to be noted.
    #[inline]
    pub(crate) const fn is_fast(&self, id: ConnId) -> bool {
        self.generation == id.generation && self.flags.among(Flags::FAST).0 == Flags::ESTABLISHED.0
    }

    /// Notes a message that was received at `at`. Returns how much of the hold time was left, in a session that has one.
    #[inline]
    pub(crate) fn hear(&mut self, at: Instant) -> Option<Duration> {
        let left = (self.hold_s != 0).then(|| self.hold_deadline() - at);
        self.heard = self.heard.max(at);
        left
    }

    /// When the hold timer expires, in a session that has one.
    pub(crate) fn hold_deadline(&self) -> Instant {
        self.hold_after(self.heard)
    }

    /// When the hold timer expires if the last message was received at `heard`.
    pub(crate) fn hold_after(&self, heard: Instant) -> Instant {
        heard + Duration::from_secs(u64::from(self.hold_s))
    }
}

/// A KEEPALIVE that was received, but is not in its hot record yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) conn: ConnId,
    pub(crate) at: Instant,
}

/// The most KEEPALIVEs that wait to be noted.
pub(crate) const LATE_MAX: usize = 1_024;

/// Every connection of a speaker.
#[derive(Default)]
pub(crate) struct Conns {
    /// KEEPALIVEs in the order of arrival.
    late: Vec<Late>,
    hot: Vec<Hot>,
    cold: Vec<Option<Conn>>,
    free: Vec<u32>,
}

impl Conns {
    pub(crate) fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// Reserves room for more connections.
    pub(crate) fn reserve(&mut self, conns: usize) {
        self.hot.reserve_exact(conns);
        self.cold.reserve_exact(conns);
    }

    pub(crate) fn insert(&mut self, conn: Conn, now: Instant) -> ConnId {
        if let Some(index) = self.free.pop() {
            let hot = &mut self.hot[index as usize];
            let generation = hot.generation;
            *hot = fresh(generation, now);
            self.cold[index as usize] = Some(conn);
            return ConnId { index, generation };
        }
        let index = u32::try_from(self.hot.len()).expect("memory ends before 2^32 connections");
        reserve_some(&mut self.hot);
        reserve_some(&mut self.cold);
        self.hot.push(fresh(0, now));
        self.cold.push(Some(conn));
        ConnId {
            index,
            generation: 0,
        }
    }

    /// Removes a connection, and returns it with its last hot record.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<(Conn, Hot)> {
        let hot = self.hot.get_mut(id.index as usize)?;
        if hot.generation != id.generation {
            return None;
        }
        let conn = self.cold[id.index as usize].take()?;
        let last = *hot;
        hot.generation = hot.generation.wrapping_add(1);
        hot.flags = Flags::NONE;
        self.free.push(id.index);
        Some((conn, last))
    }

    /// Reads where the next late KEEPALIVE is stored for the effect on the cache; the value has no meaning.
    #[inline]
    pub(crate) fn touch(&self) -> u32 {
        self.late.len() as u32
    }

    /// Stores a KEEPALIVE, to be noted later. Returns how many are stored.
    #[inline]
    pub(crate) fn hear_late(&mut self, conn: ConnId, at: Instant) -> usize {
        if self.late.len() == self.late.capacity() {
            reserve_some(&mut self.late);
        }
        self.late.push(Late { conn, at });
        self.late.len()
    }

    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Notes the stored KEEPALIVEs. Those that need more than that are appended to `odd`.
    pub(crate) fn note_late(&mut self, odd: &mut Vec<Late>, margin: &mut HoldMargin) {
        for late in self.late.drain(..) {
            match self.hot.get_mut(late.conn.index as usize) {
                Some(hot) if hot.is_fast(late.conn) => {
                    if let Some(left) = hot.hear(late.at) {
                        margin.note(left, late.at);
                    }
                    hot.keepalives_in = hot.keepalives_in.wrapping_add(1);
                }
                Some(_) | None => odd.push(late),
            }
        }
    }

    /// When the last message was received, and how many KEEPALIVEs were, with those that are not noted yet.
    pub(crate) fn heard(&self, id: ConnId) -> Option<(Instant, u32)> {
        let hot = self.hot(id)?;
        let late = self.late.iter().filter(|late| late.conn == id);
        let start = (hot.heard, hot.keepalives_in);
        Some(late.fold(start, |(heard, count), late| {
            (heard.max(late.at), count.wrapping_add(1))
        }))
    }

    #[inline]
    pub(crate) fn hot(&self, id: ConnId) -> Option<&Hot> {
        let hot = self.hot.get(id.index as usize)?;
        (hot.generation == id.generation).then_some(hot)
    }

    #[inline]
    pub(crate) fn hot_mut(&mut self, id: ConnId) -> Option<&mut Hot> {
        let hot = self.hot.get_mut(id.index as usize)?;
        (hot.generation == id.generation).then_some(hot)
    }

    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn> {
        self.hot(id)?;
        self.cold[id.index as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.hot(id)?;
        self.cold[id.index as usize].as_mut()
    }

    /// Both halves of a connection.
    pub(crate) fn both_mut(&mut self, id: ConnId) -> Option<(&mut Conn, &mut Hot)> {
        let hot = self.hot.get_mut(id.index as usize)?;
        if hot.generation != id.generation {
            return None;
        }
        Some((self.cold[id.index as usize].as_mut()?, hot))
    }

    /// Memory in bytes, without what a connection has in boxes.
    pub(crate) fn memory(&self) -> usize {
        self.late.capacity() * size_of::<Late>()
            + self.hot.capacity() * size_of::<Hot>()
            + self.cold.capacity() * size_of::<Option<Conn>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

fn fresh(generation: u32, now: Instant) -> Hot {
    Hot {
        heard: now,
        generation,
        sent_tick: 0,
        keepalives_in: 0,
        keepalives_out: 0,
        hold_s: 0,
        ring: 0,
        flags: Flags::NONE,
    }
}

/// Grows by a quarter when there is no room for one more. With thousands of speakers in one process, tables that double
/// would mostly be half empty.
pub(crate) fn reserve_some<T>(vec: &mut Vec<T>) {
    if vec.len() == vec.capacity() {
        vec.reserve_exact((vec.len() / 4).max(2));
    }
}
