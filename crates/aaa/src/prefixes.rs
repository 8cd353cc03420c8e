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

/// All prefix pools of an edge, and the prefixes held outside them.
pub struct PrefixPools {
    pools: Vec<Pool>,
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
        let Some(pool) = named(&mut self.pools, request.pool) else {
            self.counts.unknown_pool += 1;
            return Err(Fault::UnknownPool);
        };
        let tag = tag.filter(|_| request.sticky || pool.is_sticky());
        pool.take(request.holder, tag, wish).ok_or(Fault::Full)
    }

    /// The prefix that [`PrefixPools::take`] would lease now. Reserves and counts nothing.
    #[must_use]
    pub fn look(&self, request: &Request<'_>, wish: Option<Prefix>) -> Option<Prefix> {
        let tag = self.tag(request);
        let mut pools = self.pools.iter();
        let pool = match request.pool {
            Some(name) => pools.find(|pool| pool.name() == name),
            None => pools.next(),
        }?;
        pool.look(tag.filter(|_| request.sticky || pool.is_sticky()), wish)
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

    /// Replaces the pools. Held prefixes stay held; those whose range was removed stay held outside all pools. An
    /// unchanged pool keeps its state. A changed pool keeps the users of its prefixes.
    ///
    /// # Errors
    /// All faults in the specifications; nothing changes.
    pub fn reload(&mut self, specs: Vec<PrefixSpec>) -> Result<(), Vec<PrefixFault>> {
        spec::check(&specs)?;
        let mut old: Vec<Option<Pool>> = self.pools.drain(..).map(Some).collect();
        for spec in specs {
            let same = old
                .iter_mut()
                .find(|pool| pool.as_ref().is_some_and(|pool| *pool.spec() == spec));
            let pool = match same.and_then(Option::take) {
                Some(same) => same,
                None => Pool::new(spec),
            };
            self.pools.push(pool);
        }
        for old in old.into_iter().flatten() {
            self.move_from(&old);
        }
        let outside: Vec<_> = self.outside.iter().map(|(one, by)| (*one, *by)).collect();
        for (prefix, holder) in outside {
            if let Some(pool) = self.pools.iter_mut().find(|pool| pool.has(prefix)) {
                self.outside.remove(&prefix);
                // A held prefix is in one place only, so the new pool has it free.
                let _ = pool.claim(prefix, holder);
            }
        }
        Ok(())
    }

    /// Moves the prefixes of a removed or changed pool to where they belong now.
    fn move_from(&mut self, old: &Pool) {
        if let Some(new) = self.pools.iter_mut().find(|new| new.name() == old.name()) {
            new.keep_counts(old);
        }
        for (prefix, holder, tag) in old.touched() {
            match self.pools.iter_mut().find(|pool| pool.has(prefix)) {
                Some(pool) => {
                    let tag = tag.filter(|_| pool.name() == old.name());
                    pool.keep(prefix, holder, tag);
                }
                None => {
                    if let Some(holder) = holder {
                        self.outside.insert(prefix, holder);
                    }
                }
            }
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

/// The pool with this name, or the first one.
fn named<'p>(pools: &'p mut [Pool], name: Option<&str>) -> Option<&'p mut Pool> {
    let mut pools = pools.iter_mut();
    match name {
        Some(name) => pools.find(|pool| pool.name() == name),
        None => pools.next(),
    }
}

/// The bits of an IPv6 prefix; `None` for IPv4.
fn bits(prefix: Prefix) -> Option<u128> {
    match prefix.address() {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address.to_bits()),
    }
}
