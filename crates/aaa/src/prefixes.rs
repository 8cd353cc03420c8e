//! IPv6 prefix pools: which session holds which prefix, and which prefix is leased next.
//!
//! A pool divides its ranges into prefixes of one length: `/56` for delegation (RFC 8415, section 6.3), `/64` for a
//! link, or `/128` for single addresses. A prefix has at most one holder, whether it was leased from a pool or claimed
//! as a fixed one (Framed-IPv6-Prefix of RFC 3162, Delegated-IPv6-Prefix of RFC 4818). If a pool is sticky, a prefix
//! is remembered for its last user, as the address pools do ([`crate::pools`]).
//!
//! Leasing, claiming and releasing take constant time. A pool starts without memory: a prefix costs about 70 bytes once
//! it was leased, and a pool remembers at most [`TOUCHED_MAX`] prefixes, whatever its size. Hence a `/32` may be a pool
//! of `/64`. A pool leases in this order: the user's last prefix, the prefix of no user that was released longest ago, a
//! prefix that was never leased, the remembered prefix that was released longest ago.
//!
//! Left out: claims that cover several prefixes of a pool, or part of one. Operators exclude those.
//!
//! Start reading at [`PrefixPools::take`].

mod pool;
mod spec;
#[cfg(test)]
mod tests;

use core::hash::BuildHasher;
use core::net::IpAddr;
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::pools::{Fault, Holder, OUTSIDE_MAX, Request};
use crate::profile::Prefix;

use pool::Pool;
pub use pool::{PrefixPoolView, TOUCHED_MAX};
pub use spec::{PREFIX_POOLS_MAX, PrefixFault, PrefixSpec};

/// State and counters of prefixes outside all pools, and of requests for unknown pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixesOutside {
    /// Prefixes held outside all pools.
    pub held: usize,
    /// Requests for an unknown pool.
    pub unknown_pool: u64,
    /// Claims refused because the prefix was held.
    pub duplicates: u64,
    /// Claims refused because [`OUTSIDE_MAX`] were held.
    pub full: u64,
}

/// The most replaced prefix pools whose remembered prefixes are still being moved.
pub const PREFIX_POOLS_LEAVING_MAX: usize = 4 * PREFIX_POOLS_MAX;

/// Prefix pools that are ready to replace those of an edge. Any thread can make them.
#[derive(Debug)]
pub struct NewPrefixPools {
    /// `None` for a pool that is expected to be there already.
    pools: Vec<(PrefixSpec, Option<Pool>)>,
}

impl NewPrefixPools {
    /// Prepares the specified pools, except those that are there already.
    ///
    /// # Errors
    /// All faults in the specifications.
    pub fn new(
        specs: Vec<PrefixSpec>,
        is_there: impl Fn(&PrefixSpec) -> bool,
    ) -> Result<Self, Vec<PrefixFault>> {
        spec::check(&specs)?;
        let made = specs.into_iter().map(|spec| {
            let pool = (!is_there(&spec)).then(|| Pool::new(spec.clone()));
            (spec, pool)
        });
        Ok(Self {
            pools: made.collect(),
        })
    }
}

/// All prefix pools of an edge, and the prefixes held outside them.
pub struct PrefixPools {
    pools: Vec<Pool>,
    /// Replaced pools whose remembered prefixes are still being moved, oldest first.
    leaving: VecDeque<Pool>,
    /// Replaced pools whose prefixes were moved.
    gone: Vec<Pool>,
    outside: HashMap<Prefix, Holder, FixedState>,
    counts: PrefixesOutside,
    hasher: FixedState,
}

impl PrefixPools {
    /// No pools. `seed` keys the hash of remembered users.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            pools: Vec::new(),
            leaving: VecDeque::new(),
            gone: Vec::new(),
            outside: HashMap::with_hasher(hasher.clone()),
            counts: PrefixesOutside::default(),
            hasher,
        }
    }

    /// Leases a prefix from a pool: `wish` if the pool may lease that to this user now, else the user's last one, else
    /// another.
    ///
    /// # Errors
    /// [`Fault::UnknownPool`] and [`Fault::Full`], both counted.
    pub fn take(&mut self, request: &Request<'_>, wish: Option<Prefix>) -> Result<Prefix, Fault> {
        let tag = self.tag(request);
        let Some(number) = self.number(request.pool) else {
            self.counts.unknown_pool += 1;
            return Err(Fault::UnknownPool);
        };
        let tag = tag.filter(|_| request.sticky || self.pools[number].is_sticky());
        if let Some(tag) = tag {
            self.bring(number, tag);
        }
        let pool = &mut self.pools[number];
        pool.take(request.holder, tag, wish).ok_or(Fault::Full)
    }

    /// The prefix that [`PrefixPools::take`] would lease now. Reserves and counts nothing.
    #[must_use]
    pub fn look(&self, request: &Request<'_>, wish: Option<Prefix>) -> Option<Prefix> {
        let tag = self.tag(request);
        let pool = &self.pools[self.number(request.pool)?];
        let tag = tag.filter(|_| request.sticky || pool.is_sticky());
        // As `bring` and then `Pool::take` do.
        let before = self.leaving.iter().rev();
        let before = before.filter(|one| one.name() == pool.name());
        let mut brought = before.filter_map(|one| Some((one.of_user(tag?)?, tag?)));
        let brought = brought.find(|(prefix, tag)| pool.can_keep(*prefix, *tag));
        match brought {
            Some((prefix, _)) => Some(prefix),
            None => pool.look(tag, wish),
        }
    }

    /// Claims a specific prefix, in a pool or outside all pools. A prefix that a pool excludes may be claimed.
    ///
    /// # Errors
    /// [`Fault::Held`] with the current holder, and [`Fault::Full`]; each is counted.
    pub fn claim(&mut self, prefix: Prefix, holder: Holder) -> Result<(), Fault> {
        let claimed = match self.pools.iter_mut().find(|pool| pool.has(prefix)) {
            Some(pool) => pool.claim(prefix, holder),
            None => self.claim_outside(prefix, holder),
        };
        match claimed {
            Err(Fault::Held { .. }) => self.counts.duplicates += 1,
            Err(Fault::Full) => self.counts.full += 1,
            Ok(()) | Err(Fault::UnknownPool | Fault::Reserved) => {}
        }
        claimed
    }

    fn claim_outside(&mut self, prefix: Prefix, holder: Holder) -> Result<(), Fault> {
        let held = self.outside.len();
        match self.outside.entry(prefix) {
            Entry::Occupied(other) => Err(Fault::Held { by: *other.get() }),
            Entry::Vacant(_) if held >= OUTSIDE_MAX => Err(Fault::Full),
            Entry::Vacant(place) => {
                place.insert(holder);
                Ok(())
            }
        }
    }

    /// Releases a prefix; returns `false` and changes nothing if the holder does not hold it.
    pub fn release(&mut self, prefix: Prefix, holder: Holder) -> bool {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.has(prefix)) {
            return pool.release(prefix, holder);
        }
        match self.outside.entry(prefix) {
            Entry::Occupied(entry) if *entry.get() == holder => {
                entry.remove();
                true
            }
            Entry::Occupied(_) | Entry::Vacant(_) => false,
        }
    }

    /// The holder of a prefix.
    #[must_use]
    pub fn holder(&self, prefix: Prefix) -> Option<Holder> {
        match self.pools.iter().find(|pool| pool.has(prefix)) {
            Some(pool) => pool.holder(prefix),
            None => self.outside.get(&prefix).copied(),
        }
    }

    /// Whether a prefix is one of the named pool's, held or free.
    #[must_use]
    pub fn has(&self, pool: &str, prefix: Prefix) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|one| one.name() == pool && one.has(prefix))
    }

    /// Replaces the pools. Held prefixes stay held; those whose range was removed stay held outside all pools. An
    /// unchanged pool keeps its state. A changed pool keeps the users of its prefixes.
    ///
    /// # Errors
    /// All faults in the specifications; nothing changes.
    pub fn reload(&mut self, specs: Vec<PrefixSpec>) -> Result<(), Vec<PrefixFault>> {
        let pools = &self.pools;
        let is_there = |spec: &PrefixSpec| pools.iter().any(|pool| pool.spec() == spec);
        let new = NewPrefixPools::new(specs, is_there)?;
        self.replace(new);
        while self.work(usize::MAX) {}
        self.gone.clear();
        Ok(())
    }

    /// Replaces the pools by those that were prepared elsewhere, as [`PrefixPools::reload`] does. Takes time for held
    /// prefixes of changed pools only: [`PrefixPools::work`] moves those that are remembered for users.
    ///
    /// Until then, a changed pool may lease a remembered prefix to another user, and each user gets its own if that is
    /// free. If more than [`PREFIX_POOLS_LEAVING_MAX`] replaced pools wait for that, the oldest one's users are forgotten.
    pub fn replace(&mut self, new: NewPrefixPools) {
        let mut old: Vec<Option<Pool>> = self.pools.drain(..).map(Some).collect();
        for (spec, made) in new.pools {
            let is_it = |pool: &Option<Pool>| pool.as_ref().is_some_and(|one| *one.spec() == spec);
            let same = old.iter_mut().find(|pool| is_it(pool));
            self.pools.push(match (same.and_then(Option::take), made) {
                (Some(same), _) => same,
                (None, Some(made)) => made,
                // It was expected to be there.
                (None, None) => Pool::new(spec),
            });
        }
        for pool in old.into_iter().flatten() {
            if let Some(new) = self.pools.iter_mut().find(|new| new.name() == pool.name()) {
                new.keep_counts(&pool);
            }
            for (prefix, holder, tag) in pool.held() {
                if !self.keep(&pool, prefix, Some(holder), tag) {
                    self.outside.insert(prefix, holder);
                }
            }
            self.leaving.push_back(pool);
            if self.leaving.len() > PREFIX_POOLS_LEAVING_MAX {
                self.gone.extend(self.leaving.pop_front());
            }
        }
        let outside: Vec<_> = self.outside.iter().map(|(one, by)| (*one, *by)).collect();
        for (prefix, holder) in outside {
            if let Some(pool) = self.pools.iter_mut().find(|pool| pool.has(prefix)) {
                self.outside.remove(&prefix);
                // A held prefix is in one place only, so the new pool has it free.
                let _ = pool.claim(prefix, holder);
            }
        }
    }

    /// Moves up to `count` remembered prefixes of replaced pools to where they belong now. Returns whether more are left.
    pub fn work(&mut self, count: usize) -> bool {
        for _ in 0..count {
            let Some(mut old) = self.leaving.pop_front() else {
                return false;
            };
            let Some((prefix, tag)) = old.pop_remembered() else {
                self.gone.push(old);
                continue;
            };
            self.keep(&old, prefix, None, Some(tag));
            self.leaving.push_front(old);
        }
        self.has_work()
    }

    /// Whether remembered prefixes of replaced pools are left to be moved.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Replaced pools whose prefixes were moved, if there are any. Freeing their memory takes a while.
    pub fn take_gone(&mut self) -> Option<Box<dyn Send>> {
        if self.gone.is_empty() {
            return None;
        }
        Some(Box::new(core::mem::take(&mut self.gone)))
    }

    /// Moves a prefix of a replaced pool to the pool that has it now; `false` if none has.
    fn keep(
        &mut self,
        old: &Pool,
        prefix: Prefix,
        holder: Option<Holder>,
        tag: Option<u64>,
    ) -> bool {
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.has(prefix)) else {
            return false;
        };
        let tag = tag.filter(|_| pool.name() == old.name());
        pool.keep(prefix, holder, tag);
        true
    }

    /// Moves the prefixes that replaced pools remember for a user to the pool of the same name.
    fn bring(&mut self, number: usize, tag: u64) {
        let pool = &mut self.pools[number];
        // The newest one first.
        for before in self.leaving.iter_mut().rev() {
            if before.name() != pool.name() {
                continue;
            }
            let prefix = before.pop_of_user(tag);
            if let Some(prefix) = prefix.filter(|prefix| pool.can_keep(*prefix, tag)) {
                pool.keep(prefix, None, Some(tag));
            }
        }
    }

    /// The place of the pool with this name, or of the first one.
    fn number(&self, name: Option<&str>) -> Option<usize> {
        let mut pools = self.pools.iter();
        match name {
            Some(name) => pools.position(|pool| pool.name() == name),
            None => (!self.pools.is_empty()).then_some(0),
        }
    }

    /// The pools, in order.
    pub fn views(&self) -> impl Iterator<Item = PrefixPoolView<'_>> {
        self.pools.iter().map(Pool::view)
    }

    /// State and counters of prefixes outside the pools.
    #[must_use]
    pub fn outside(&self) -> PrefixesOutside {
        PrefixesOutside {
            held: self.outside.len(),
            ..self.counts
        }
    }

    fn tag(&self, request: &Request<'_>) -> Option<u64> {
        (!request.user.is_empty()).then(|| self.hasher.hash_one(request.user).max(1))
    }
}

/// The bits of an IPv6 prefix; `None` for IPv4.
fn bits(prefix: Prefix) -> Option<u128> {
    match prefix.address() {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address.to_bits()),
    }
}
