//! One prefix pool: the prefixes that were leased or claimed, and its lists of free ones.

use core::net::Ipv6Addr;

use hashbrown::HashMap;

use super::bits;
use super::spec::PrefixSpec;
use crate::pools::{Fault, Holder};
use crate::profile::Prefix;

/// The most prefixes of a pool that it remembers: those held, and those that were leased once.
pub const TOUCHED_MAX: usize = 1 << 20;

/// No entry.
const NIL: u32 = u32::MAX;

/// A prefix pool for `show pools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixPoolView<'a> {
    /// The pool's name.
    pub name: &'a str,
    /// Whether it remembers each user's last prefix.
    pub sticky: bool,
    /// The length of its prefixes.
    pub length: u8,
    /// Prefixes in its ranges, excluded ones included.
    pub size: u64,
    /// Held prefixes, including claimed ones.
    pub used: u32,
    /// Free prefixes remembered for a user.
    pub remembered: u32,
    /// Leases so far.
    pub taken: u64,
    /// Leases in which a user got its last prefix again.
    pub came_back: u64,
    /// Requests refused because all prefixes were held.
    pub full: u64,
}

/// The state of a prefix that was leased or claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An unused slot.
    Empty,
    /// Free, and no user's.
    Free,
    /// Free, and remembered for its last user.
    Remembered,
    Held(Holder),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The prefix's number in the pool.
    unit: u64,
    state: State,
    /// A tag for its user, or 0.
    tag: u64,
    before: u32,
    behind: u32,
}

/// A list of free entries, the one released longest ago first.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: NIL,
        last: NIL,
        len: 0,
    };

    fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    fn push(&mut self, entries: &mut [Entry], at: u32) {
        entries[at as usize].before = self.last;
        entries[at as usize].behind = NIL;
        match self.last {
            NIL => self.first = at,
            last => entries[last as usize].behind = at,
        }
        self.last = at;
        self.len += 1;
    }

    fn remove(&mut self, entries: &mut [Entry], at: u32) {
        let Entry { before, behind, .. } = entries[at as usize];
        match before {
            NIL => self.first = behind,
            before => entries[before as usize].behind = behind,
        }
        match behind {
            NIL => self.last = before,
            behind => entries[behind as usize].before = before,
        }
        self.len -= 1;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    taken: u64,
    came_back: u64,
    full: u64,
}

/// Which prefix a request gets.
#[derive(Clone, Copy)]
enum Choice {
    Entry(u32),
    Fresh(u64),
}

#[derive(Debug)]
pub(super) struct Pool {
    spec: PrefixSpec,
    /// The first number of each range, and that behind the last.
    bases: Vec<u64>,
    /// Numbers below this were leased, or passed over.
    fresh: u64,
    entries: Vec<Entry>,
    /// Entries by number.
    units: HashMap<u64, u32>,
    /// Entries by their user's tag, each tag once.
    users: HashMap<u64, u32>,
    free: List,
    remembered: List,
    empty: Vec<u32>,
    used: u32,
    counts: Counts,
}

impl Pool {
    pub(super) fn new(spec: PrefixSpec) -> Self {
        let mut bases = vec![0_u64];
        for range in &spec.ranges {
            let last = bases[bases.len() - 1];
            bases.push(last + (1 << (spec.length - range.length())));
        }
        let mut pool = Self {
            spec,
            bases,
            fresh: 0,
            entries: Vec::new(),
            units: HashMap::new(),
            users: HashMap::new(),
            free: List::EMPTY,
            remembered: List::EMPTY,
            empty: Vec::new(),
            used: 0,
            counts: Counts::default(),
        };
        pool.fresh = pool.leasable(0);
        pool
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn spec(&self) -> &PrefixSpec {
        &self.spec
    }

    pub(super) fn is_sticky(&self) -> bool {
        self.spec.sticky
    }

    /// Whether a prefix is one of this pool's.
    pub(super) fn has(&self, prefix: Prefix) -> bool {
        self.unit(prefix).is_some()
    }

    pub(super) fn take(
        &mut self,
        holder: Holder,
        tag: Option<u64>,
        wish: Option<Prefix>,
    ) -> Option<Prefix> {
        let Some(choice) = self.choose(tag, wish) else {
            self.counts.full += 1;
            return None;
        };
        let at = match choice {
            Choice::Entry(at) => at,
            Choice::Fresh(unit) => {
                let at = self.touch(unit);
                self.fresh = self.leasable(self.fresh);
                at
            }
        };
        self.counts.taken += 1;
        let before = self.entries[at as usize].tag;
        self.counts.came_back += u64::from(before != 0 && Some(before) == tag);
        if before != 0 && Some(before) != tag {
            self.forget(at);
        }
        self.hold(at, holder);
        if let Some(tag) = tag {
            self.remember(at, tag);
        }
        Some(self.prefix(self.entries[at as usize].unit))
    }

    pub(super) fn look(&self, tag: Option<u64>, wish: Option<Prefix>) -> Option<Prefix> {
        let unit = match self.choose(tag, wish)? {
            Choice::Entry(at) => self.entries[at as usize].unit,
            Choice::Fresh(unit) => unit,
        };
        Some(self.prefix(unit))
    }

    /// Which prefix a request gets.
    fn choose(&self, tag: Option<u64>, wish: Option<Prefix>) -> Option<Choice> {
        let last = tag.and_then(|tag| self.users.get(&tag)).copied();
        if let Some(at) = last
            && self.entries[at as usize].state == State::Remembered
        {
            return Some(Choice::Entry(at));
        }
        let has_room = self.entries.len() - self.empty.len() < TOUCHED_MAX;
        let fresh = (self.fresh < self.size() && has_room).then_some(Choice::Fresh(self.fresh));
        if let Some(unit) = wish.and_then(|wish| self.unit(wish)) {
            match self.units.get(&unit).copied() {
                Some(at) if self.entries[at as usize].state == State::Free => {
                    return Some(Choice::Entry(at));
                }
                // Never leased since the start: its user may have it from before.
                None if unit >= self.fresh && has_room && self.excluded_until(unit).is_none() => {
                    return Some(Choice::Fresh(unit));
                }
                Some(_) | None => {}
            }
        }
        let free = self.free.first().map(Choice::Entry);
        let old = || self.remembered.first().map(Choice::Entry);
        free.or(fresh).or_else(old)
    }

    pub(super) fn claim(&mut self, prefix: Prefix, holder: Holder) -> Result<(), Fault> {
        let unit = self
            .unit(prefix)
            .expect("the caller asked whether it has it");
        if let Some(by) = self.holder(prefix) {
            return Err(Fault::Held { by });
        }
        let at = match self.units.get(&unit).copied() {
            Some(at) => at,
            None if self.entries.len() - self.empty.len() >= TOUCHED_MAX => {
                return Err(Fault::Full);
            }
            None => self.touch(unit),
        };
        self.forget(at);
        self.hold(at, holder);
        self.fresh = self.leasable(self.fresh);
        Ok(())
    }

    pub(super) fn release(&mut self, prefix: Prefix, holder: Holder) -> bool {
        let at = self.unit(prefix).and_then(|unit| self.units.get(&unit));
        let Some(&at) = at else { return false };
        if self.entries[at as usize].state != State::Held(holder) {
            return false;
        }
        self.used -= 1;
        self.rest(at);
        true
    }

    /// Puts an unlisted entry into the list of free ones that it belongs to.
    fn rest(&mut self, at: u32) {
        let Entry { unit, tag, .. } = self.entries[at as usize];
        if tag != 0 {
            self.entries[at as usize].state = State::Remembered;
            self.remembered.push(&mut self.entries, at);
        } else if unit >= self.fresh || self.excluded_until(unit).is_some() {
            // It was claimed, and never leased.
            self.units.remove(&unit);
            self.entries[at as usize].state = State::Empty;
            self.empty.push(at);
            self.fresh = self.leasable(self.fresh);
        } else {
            self.entries[at as usize].state = State::Free;
            self.free.push(&mut self.entries, at);
        }
    }

    pub(super) fn holder(&self, prefix: Prefix) -> Option<Holder> {
        let at = *self.units.get(&self.unit(prefix)?)?;
        match self.entries[at as usize].state {
            State::Held(holder) => Some(holder),
            State::Empty | State::Free | State::Remembered => None,
        }
    }

    /// The held prefixes, with holders and tags.
    pub(super) fn held(&self) -> impl Iterator<Item = (Prefix, Holder, Option<u64>)> {
        self.entries.iter().filter_map(|entry| match entry.state {
            State::Held(holder) => {
                let tag = (entry.tag != 0).then_some(entry.tag);
                Some((self.prefix(entry.unit), holder, tag))
            }
            State::Empty | State::Free | State::Remembered => None,
        })
    }

    /// Forgets the remembered prefix that was released longest ago, and returns it with its user's tag.
    pub(super) fn pop_remembered(&mut self) -> Option<(Prefix, u64)> {
        let at = self.remembered.first()?;
        let Entry { unit, tag, .. } = self.entries[at as usize];
        self.forget(at);
        Some((self.prefix(unit), tag))
    }

    /// The free prefix that is remembered for a user.
    pub(super) fn of_user(&self, tag: u64) -> Option<Prefix> {
        let entry = &self.entries[*self.users.get(&tag)? as usize];
        (entry.state == State::Remembered).then(|| self.prefix(entry.unit))
    }

    /// Forgets the free prefix that is remembered for a user, and returns it.
    pub(super) fn pop_of_user(&mut self, tag: u64) -> Option<Prefix> {
        let prefix = self.of_user(tag)?;
        let at = *self.users.get(&tag)?;
        self.forget(at);
        Some(prefix)
    }

    /// Whether [`Pool::keep`] can remember a prefix for a user.
    pub(super) fn can_keep(&self, prefix: Prefix, tag: u64) -> bool {
        let is_known = self.users.contains_key(&tag);
        let unit = self.unit(prefix).filter(|_| !is_known);
        unit.is_some_and(|unit| {
            let has_room = self.entries.len() - self.empty.len() < TOUCHED_MAX;
            has_room && !self.units.contains_key(&unit) && self.excluded_until(unit).is_none()
        })
    }

    /// Takes over a prefix that was held or remembered before a reload.
    pub(super) fn keep(&mut self, prefix: Prefix, holder: Option<Holder>, tag: Option<u64>) {
        let unit = self
            .unit(prefix)
            .expect("the caller asked whether it has it");
        let is_excluded = self.excluded_until(unit).is_some();
        let has_room = self.entries.len() - self.empty.len() < TOUCHED_MAX;
        // Of two prefixes of a user, the one that the new pool has is the later one.
        let is_later = |tag: &u64| holder.is_none() && self.users.contains_key(tag);
        let tag = tag.filter(|tag| !is_excluded && !is_later(tag));
        if self.units.contains_key(&unit) || !has_room || (holder.is_none() && tag.is_none()) {
            return;
        }
        let at = self.touch(unit);
        if let Some(tag) = tag {
            self.remember(at, tag);
        }
        match holder {
            Some(holder) => self.hold(at, holder),
            None => self.rest(at),
        }
        self.fresh = self.leasable(self.fresh);
    }

    pub(super) fn keep_counts(&mut self, old: &Self) {
        self.counts = old.counts;
    }

    pub(super) fn view(&self) -> PrefixPoolView<'_> {
        PrefixPoolView {
            name: self.name(),
            sticky: self.is_sticky(),
            length: self.spec.length,
            size: self.size(),
            used: self.used,
            remembered: self.remembered.len,
            taken: self.counts.taken,
            came_back: self.counts.came_back,
            full: self.counts.full,
        }
    }

    /// An unlisted entry for a prefix that has none.
    fn touch(&mut self, unit: u64) -> u32 {
        let entry = Entry {
            unit,
            state: State::Empty,
            tag: 0,
            before: NIL,
            behind: NIL,
        };
        let at = match self.empty.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.units.insert(unit, at);
        at
    }

    fn hold(&mut self, at: u32, holder: Holder) {
        match self.entries[at as usize].state {
            State::Free => self.free.remove(&mut self.entries, at),
            State::Remembered => self.remembered.remove(&mut self.entries, at),
            State::Empty => {}
            State::Held(_) => unreachable!("callers see that it is not held"),
        }
        self.entries[at as usize].state = State::Held(holder);
        self.used += 1;
    }

    /// Remembers an entry for a user, and forgets the user's earlier free one. If the user holds another, that stays.
    fn remember(&mut self, at: u32, tag: u64) {
        if let Some(&before) = self.users.get(&tag) {
            if before == at || self.entries[before as usize].state != State::Remembered {
                return;
            }
            self.forget(before);
        }
        self.entries[at as usize].tag = tag;
        self.users.insert(tag, at);
    }

    /// Forgets the user of an entry. A remembered one is free then.
    fn forget(&mut self, at: u32) {
        let tag = core::mem::take(&mut self.entries[at as usize].tag);
        if tag != 0 && self.users.get(&tag) == Some(&at) {
            self.users.remove(&tag);
        }
        if self.entries[at as usize].state == State::Remembered {
            self.remembered.remove(&mut self.entries, at);
            self.entries[at as usize].state = State::Free;
            self.free.push(&mut self.entries, at);
        }
    }

    fn size(&self) -> u64 {
        self.bases[self.bases.len() - 1]
    }

    /// The first number from `unit` on that may be leased and is in no entry.
    fn leasable(&self, mut unit: u64) -> u64 {
        while unit < self.size() {
            if let Some(behind) = self.excluded_until(unit) {
                unit = behind;
            } else if self.units.contains_key(&unit) {
                unit += 1;
            } else {
                break;
            }
        }
        unit
    }

    /// If a prefix is excluded, the number behind the excluded ones that follow it.
    fn excluded_until(&self, unit: u64) -> Option<u64> {
        let prefix = self.prefix(unit);
        let first = bits(prefix)?;
        let shift = 128 - u32::from(self.spec.length);
        let last = first
            | u128::MAX
                .checked_shr(u32::from(self.spec.length))
                .unwrap_or(0);
        let range = self.bases.partition_point(|base| *base <= unit) - 1;
        let mut behind = None;
        for other in &self.spec.excluded {
            let from = bits(*other)?;
            let to = from
                | u128::MAX
                    .checked_shr(u32::from(other.length()))
                    .unwrap_or(0);
            if from <= last && first <= to {
                // All prefixes up to `to` touch this network.
                let more = ((to - first).checked_shr(shift).unwrap_or(0)) as u64 + 1;
                behind = behind.max(Some((unit.saturating_add(more)).min(self.bases[range + 1])));
            }
        }
        behind
    }

    fn unit(&self, prefix: Prefix) -> Option<u64> {
        if prefix.length() != self.spec.length {
            return None;
        }
        let of = bits(prefix)?;
        let mut ranges = self.spec.ranges.iter().zip(&self.bases);
        let (range, base) = ranges.find(|(range, _)| range.contains(prefix.address()))?;
        let shift = 128 - u32::from(self.spec.length);
        Some(base + ((of - bits(*range)?).checked_shr(shift).unwrap_or(0)) as u64)
    }

    fn prefix(&self, unit: u64) -> Prefix {
        let range = self.bases.partition_point(|base| *base <= unit) - 1;
        let range = range.min(self.spec.ranges.len() - 1);
        let first = bits(self.spec.ranges[range]).expect("the specification was checked");
        let number = u128::from(unit - self.bases[range]);
        let shift = 128 - u32::from(self.spec.length);
        let address = first | number.checked_shl(shift).unwrap_or(0);
        let prefix = Prefix::new(Ipv6Addr::from_bits(address).into(), self.spec.length);
        prefix.expect("no bit is behind its length")
    }
}
