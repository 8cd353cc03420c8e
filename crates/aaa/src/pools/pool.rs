//! One pool: the state of each of its addresses, and its free lists.

use core::net::Ipv4Addr;

use hashbrown::HashTable;

use super::list::{Cell, List};
use super::spec::{Span, Spec, span_of};
use super::{Fault, Holder};

/// States that are looked at together.
const CHUNK: usize = 256;

/// The state of an address. Those that are held come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not leased by this pool; may be claimed.
    LeftOut,
    /// Free.
    Free,
    /// Free, and remembered for its last user.
    Remembered,
    /// Held.
    Held,
    /// Held, and not leased again after its release.
    HeldLeftOut,
}

/// A pool for `show pools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView<'a> {
    /// The pool's name.
    pub name: &'a str,
    /// Whether it remembers each user's last address.
    pub sticky: bool,
    /// Addresses in its ranges.
    pub size: u32,
    /// Held addresses, including claimed ones.
    pub used: u32,
    /// Leasable addresses, including remembered ones.
    pub free: u32,
    /// Free addresses remembered for a user.
    pub remembered: u32,
    /// Excluded addresses that are not claimed.
    pub left_out: u32,
    /// Leases so far.
    pub taken: u64,
    /// Leases in which a user got its last address again.
    pub came_back: u64,
    /// Requests refused because all addresses were held.
    pub full: u64,
}

/// Counters since the pool was first created, across all reloads.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    taken: u64,
    came_back: u64,
    full: u64,
}

#[derive(Debug)]
pub(super) struct Pool {
    spec: Spec,
    spans: Vec<Span>,
    /// The edge's own addresses within its ranges.
    own: Vec<Ipv4Addr>,
    states: Vec<State>,
    cells: Vec<Cell>,
    /// A tag for the user each address is remembered for, or 0; empty until the first is remembered.
    tags: Vec<u64>,
    /// Addresses by tag, each tag once.
    users: HashTable<u32>,
    free: List,
    remembered: List,
    used: u32,
    counts: Counts,
}

impl Pool {
    pub(super) fn new(spec: Spec, spans: Vec<Span>, own: &[Ipv4Addr]) -> Self {
        let own = own_of(&spec, own);
        let size = spans
            .iter()
            .map(|span| (span.last - span.first) as usize + 1)
            .sum();
        let mut states = vec![State::Free; size];
        let mut leave_out = |first: u32, last: u32| {
            for span in &spans {
                let (first, last) = (first.max(span.first), last.min(span.last));
                if first <= last {
                    let from = (span.base + (first - span.first)) as usize;
                    let behind = from + (last - first) as usize + 1;
                    states[from..behind].fill(State::LeftOut);
                }
            }
        };
        for range in &spec.excluded {
            let (first, last) = range.bits();
            leave_out(first, last);
        }
        for address in &own {
            leave_out(address.to_bits(), address.to_bits());
        }
        if spec.skip_ends {
            let addresses = spans.iter().flat_map(|span| span.first..=span.last);
            for (state, bits) in states.iter_mut().zip(addresses) {
                if matches!(bits & 0xff, 0 | 0xff) {
                    *state = State::LeftOut;
                }
            }
        }
        let mut cells = vec![Cell::NONE; states.len()];
        let mut free = List::EMPTY;
        for (place, state) in (0..).zip(&states) {
            if *state == State::Free {
                free.push(&mut cells, place);
            }
        }
        Self {
            spec,
            spans,
            own,
            states,
            cells,
            tags: Vec::new(),
            users: HashTable::new(),
            free,
            remembered: List::EMPTY,
            used: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn is_sticky(&self) -> bool {
        self.spec.sticky
    }

    /// Whether it matches this specification.
    pub(super) fn is_as(&self, spec: &Spec, own: &[Ipv4Addr]) -> bool {
        self.spec == *spec && self.own == own_of(spec, own)
    }

    /// Whether it has any leasable address.
    pub(super) fn gives_any(&self) -> bool {
        self.free.len > 0
    }

    /// Leases an address to the holder; `None`, counted, if all are held.
    pub(super) fn take(&mut self, holder: Holder, tag: Option<u64>) -> Option<u32> {
        let last = tag.and_then(|tag| self.place_of_user(tag));
        let back = last.filter(|&place| self.states[place as usize] == State::Remembered);
        let found = back
            .or_else(|| self.free.first())
            .or_else(|| self.remembered.first());
        let Some(place) = found else {
            self.counts.full += 1;
            return None;
        };
        self.counts.taken += 1;
        self.counts.came_back += u64::from(last == Some(place));
        self.hold(place, holder);
        if last != Some(place) {
            self.forget(place);
        }
        if let Some(tag) = tag {
            self.remember(place, tag);
        }
        Some(self.address(place))
    }

    /// Claims this address for the holder.
    pub(super) fn claim(&mut self, bits: u32, holder: Holder) -> Result<(), Fault> {
        let place = self
            .place(bits)
            .expect("who claims asked whose the address is");
        if let Some(by) = self.holder(bits) {
            return Err(Fault::Held { by });
        }
        self.hold(place, holder);
        self.forget(place);
        Ok(())
    }

    /// Exchanges an address of the holder for another one, if that is free and not remembered.
    pub(super) fn exchange(&mut self, bits: u32, wish: u32, holder: Holder) -> bool {
        let place = self.place(wish);
        let Some(place) = place.filter(|&place| self.states[place as usize] == State::Free) else {
            return false;
        };
        let tag = self.place(bits).and_then(|before| self.tag(before));
        if !self.release(bits, holder) {
            return false;
        }
        self.hold(place, holder);
        if let Some(tag) = tag {
            self.remember(place, tag);
        }
        true
    }

    /// Releases an address, if the holder holds it.
    pub(super) fn release(&mut self, bits: u32, holder: Holder) -> bool {
        if self.holder(bits) != Some(holder) {
            return false;
        }
        let place = self.place(bits).expect("it has a holder");
        self.used -= 1;
        self.states[place as usize] = match self.states[place as usize] {
            State::HeldLeftOut => {
                self.cells[place as usize] = Cell::NONE;
                State::LeftOut
            }
            _ if self.tag(place).is_some() => {
                self.remembered.push(&mut self.cells, place);
                State::Remembered
            }
            _ => {
                self.free.push(&mut self.cells, place);
                State::Free
            }
        };
        true
    }

    pub(super) fn holder(&self, bits: u32) -> Option<Holder> {
        let place = self.place(bits)? as usize;
        matches!(self.states[place], State::Held | State::HeldLeftOut)
            .then(|| Holder(self.cells[place].holder()))
    }

    /// Takes the free address that was released longest ago out of this pool, with the user's tag; remembered ones
    /// come last.
    pub(super) fn pop_free(&mut self) -> Option<(u32, Option<u64>)> {
        let place = self.free.first().or_else(|| self.remembered.first())?;
        Some(self.take_out(place))
    }

    /// Takes the free address that is remembered for this user out of this pool.
    pub(super) fn pop_of_user(&mut self, tag: u64) -> Option<u32> {
        let place = self.place_of_user(tag)?;
        let is_free = self.states[place as usize] == State::Remembered;
        is_free.then(|| self.take_out(place).0)
    }

    fn take_out(&mut self, place: u32) -> (u32, Option<u64>) {
        let list = match self.states[place as usize] {
            State::Remembered => &mut self.remembered,
            _ => &mut self.free,
        };
        list.remove(&mut self.cells, place);
        self.states[place as usize] = State::LeftOut;
        (self.address(place), self.tag(place))
    }

    /// Its held addresses, with their holders and the users' tags.
    pub(super) fn held(&self) -> impl Iterator<Item = (u32, Holder, Option<u64>)> {
        // Large pools are mostly free: a look at many states at once passes over those.
        let is_held = |state: &State| *state as u8 >= State::Held as u8;
        let chunks = (0_u32..).zip(self.states.chunks(CHUNK));
        let chunks = chunks
            .filter(move |(_, chunk)| chunk.iter().fold(false, |any, one| any | is_held(one)));
        let places = chunks.flat_map(move |(number, chunk)| {
            let places = (number * CHUNK as u32..).zip(chunk);
            places.filter(move |(_, state)| is_held(state))
        });
        places.take(self.used as usize).map(|(place, _)| {
            let holder = Holder(self.cells[place as usize].holder());
            (self.address(place), holder, self.tag(place))
        })
    }

    /// Appends a free address to the list, remembered for the same user as before.
    pub(super) fn rest(&mut self, bits: u32, tag: Option<u64>) {
        let place = self.place(bits).expect("the address is in this pool");
        if self.states[place as usize] != State::Free {
            return;
        }
        self.free.remove(&mut self.cells, place);
        if let Some(tag) = tag {
            self.remember(place, tag);
        }
        if self.tag(place).is_some() {
            self.states[place as usize] = State::Remembered;
            self.remembered.push(&mut self.cells, place);
        } else {
            self.free.push(&mut self.cells, place);
        }
    }

    /// Marks an address as held that was held before a reload.
    pub(super) fn keep(&mut self, bits: u32, holder: Holder, tag: Option<u64>) {
        let place = self.place(bits).expect("the address is in this pool");
        self.hold(place, holder);
        let comes_back = self.states[place as usize] == State::Held;
        if let Some(tag) = tag.filter(|_| comes_back) {
            self.remember(place, tag);
        }
    }

    pub(super) fn keep_counts(&mut self, old: &Self) {
        self.counts = old.counts;
    }

    pub(super) fn view(&self) -> PoolView<'_> {
        let size = self.states.len() as u32;
        let free = self.free.len + self.remembered.len;
        PoolView {
            name: self.name(),
            sticky: self.is_sticky(),
            size,
            used: self.used,
            free,
            remembered: self.remembered.len,
            left_out: size - free - self.used,
            taken: self.counts.taken,
            came_back: self.counts.came_back,
            full: self.counts.full,
        }
    }

    /// Marks an address as held and removes it from its list.
    fn hold(&mut self, place: u32, holder: Holder) {
        let index = place as usize;
        self.states[index] = match self.states[index] {
            State::Free => {
                self.free.remove(&mut self.cells, place);
                State::Held
            }
            State::Remembered => {
                self.remembered.remove(&mut self.cells, place);
                State::Held
            }
            State::LeftOut => State::HeldLeftOut,
            State::Held | State::HeldLeftOut => unreachable!("callers see that it is not held"),
        };
        self.cells[index] = Cell::of_holder(holder.0);
        self.used += 1;
    }

    /// Remembers a held or unlisted address for a user and forgets the user's earlier free address. If the user
    /// holds another remembered address, that one stays.
    fn remember(&mut self, place: u32, tag: u64) {
        if let Some(before) = self.place_of_user(tag) {
            if before == place || self.states[before as usize] != State::Remembered {
                return;
            }
            self.remembered.remove(&mut self.cells, before);
            self.forget(before);
            self.states[before as usize] = State::Free;
            self.free.push(&mut self.cells, before);
        }
        if self.tags.is_empty() {
            self.tags = vec![0; self.states.len()];
        }
        self.tags[place as usize] = tag;
        let tags = &self.tags;
        self.users
            .insert_unique(tag, place, |&place| tags[place as usize]);
    }

    /// Forgets the user of an address.
    fn forget(&mut self, place: u32) {
        let Some(tag) = self.tag(place) else { return };
        if let Ok(entry) = self.users.find_entry(tag, |&other| other == place) {
            entry.remove();
        }
        self.tags[place as usize] = 0;
    }

    fn tag(&self, place: u32) -> Option<u64> {
        let tag = self.tags.get(place as usize).copied();
        tag.filter(|&tag| tag != 0)
    }

    fn place_of_user(&self, tag: u64) -> Option<u32> {
        let is_its = |&place: &u32| self.tags[place as usize] == tag;
        self.users.find(tag, is_its).copied()
    }

    fn place(&self, bits: u32) -> Option<u32> {
        let span = span_of(&self.spans, bits)?;
        Some(span.base + (bits - span.first))
    }

    fn address(&self, place: u32) -> u32 {
        let behind = self.spans.partition_point(|span| span.base <= place);
        let span = self.spans[behind - 1];
        span.first + (place - span.base)
    }
}

/// The edge's own addresses within a pool's ranges.
fn own_of(spec: &Spec, own: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
    let is_ours = |address: &Ipv4Addr| spec.ranges.iter().any(|range| range.contains(*address));
    own.iter().copied().filter(is_ours).collect()
}
