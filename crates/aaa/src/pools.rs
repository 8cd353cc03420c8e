//! IPv4 address pools: which session holds which address, and which address is leased next.
//!
//! An address has at most one holder, whether it was leased from a pool or claimed as a fixed one
//! (Framed-IP-Address, RFC 2865, section 5.8), inside a pool's ranges or outside all of them. A pool leases the
//! address that was released longest ago. If a pool or a user is sticky, an address is remembered for its last
//! user. That user gets it again, and another user gets it only when no other address is free.
//!
//! ```text
//! let mut pools = Pools::new(specs, own, seed)?;
//! let address = pools.take(&Request { pool: Some("home"), holder, user, sticky })?;
//! pools.release(address, holder);
//! ```
//!
//! Leasing, claiming and releasing take constant time in pools of ten or of a million addresses. An address
//! costs 9 bytes of memory, and about 13 more in a sticky pool.
//!
//! Left out: IPv6 prefixes (RFC 4818, RFC 6911). A subscriber's interface identifier is negotiated on its own
//! link (RFC 5072, section 4.1) and unique only there, so it has no pool. Delegated prefixes would be a second
//! kind of pool beside `Pool`, with networks in place of addresses.
//!
//! Start reading at [`Pools::take`].

mod list;
mod pool;
mod range;
mod spec;
#[cfg(test)]
mod tests;

use core::hash::BuildHasher;
use core::net::Ipv4Addr;
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

pub use pool::PoolView;
pub use range::Range;
pub(crate) use range::is_host;
pub use spec::{ADDRESSES_MAX, POOLS_MAX, Spec, SpecFault};

use pool::Pool;
use spec::Span;

/// The most addresses outside all pools that may be claimed at once.
pub const OUTSIDE_MAX: usize = 1 << 20;

/// The holder of an address: a number that the owner chose, such as a session's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(pub u64);

/// A request for a pool address.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pool's name; `None` for the first pool.
    pub pool: Option<&'a str>,
    /// The future holder of the address.
    pub holder: Holder,
    /// The user for whom the address is remembered, if sticky.
    pub user: &'a [u8],
    /// Whether the user is sticky; a pool may be sticky for all users.
    pub sticky: bool,
}

/// Why no address was leased or claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No pool has that name.
    #[error("no pool has this name")]
    UnknownPool,
    /// All addresses of the pool are held; or, outside all pools, [`OUTSIDE_MAX`] addresses are.
    #[error("all addresses are held")]
    Full,
    /// Another holder has the address.
    #[error("the address is held by {}", by.0)]
    Held {
        /// The current holder.
        by: Holder,
    },
    /// The address is the edge's own, or not valid for a host.
    #[error("the address is the edge's own, or no host's")]
    Reserved,
}

/// State and counters of addresses outside all pools, and of requests for unknown pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideView {
    /// Fixed addresses held outside all pools.
    pub held: usize,
    /// Of these, how many belonged to a range that has since been removed from its pool.
    pub draining: usize,
    /// Requests for an unknown pool.
    pub unknown_pool: u64,
    /// Claims refused because the address was held.
    pub duplicates: u64,
    /// Claims refused because the address is the edge's own or not valid for a host.
    pub reserved: u64,
    /// Claims refused because [`OUTSIDE_MAX`] were held.
    pub full: u64,
}

/// The most replaced pools whose free addresses are still being moved.
pub const LEAVING_MAX: usize = 4 * POOLS_MAX;

/// A fixed address outside all pools.
#[derive(Clone, Copy, Debug)]
struct Outside {
    holder: Holder,
    is_draining: bool,
}

/// Pools that are ready to replace those of an edge. Any thread can make them.
#[derive(Debug)]
pub struct NewPools {
    own: Vec<Ipv4Addr>,
    spans: Vec<Span>,
    /// `None` for a pool that is expected to be there already.
    pools: Vec<(Spec, Option<Pool>)>,
}

impl NewPools {
    /// Prepares the specified pools, except those that are there already. `own` are the edge's own addresses.
    ///
    /// # Errors
    /// All faults in the specifications.
    pub fn new(
        specs: Vec<Spec>,
        own: Vec<Ipv4Addr>,
        is_there: impl Fn(&Spec) -> bool,
    ) -> Result<Self, Vec<SpecFault>> {
        let spans = spec::check(&specs)?;
        let mut faults = Vec::new();
        let mut pools = Vec::with_capacity(specs.len());
        for (number, spec) in specs.into_iter().enumerate() {
            let made = if is_there(&spec) {
                None
            } else {
                let pool = Pool::new(spec.clone(), spans_of(&spans, number), &own);
                if !pool.gives_any() {
                    faults.push(spec::gives_none(number));
                }
                Some(pool)
            };
            pools.push((spec, made));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self { own, spans, pools })
    }
}

fn spans_of(spans: &[Span], number: usize) -> Vec<Span> {
    let spans = spans.iter().filter(|span| span.pool == number);
    spans.copied().collect()
}

/// All pools of an edge, and the addresses held outside them.
pub struct Pools {
    pools: Vec<Pool>,
    /// Which ranges belong to which pool, by address.
    spans: Vec<Span>,
    own: Vec<Ipv4Addr>,
    outside: HashMap<u32, Outside, FixedState>,
    /// Replaced pools whose free addresses are still being moved, oldest first.
    leaving: VecDeque<Pool>,
    /// Replaced pools whose addresses were moved.
    gone: Vec<Pool>,
    counts: OutsideView,
    hasher: FixedState,
}

impl Pools {
    /// Creates the specified pools with all addresses free. `own` are the edge's own addresses, which are never
    /// leased; `seed` keys the hash of remembered users, so that an attacker cannot choose colliding names.
    ///
    /// # Errors
    /// All faults in the specifications.
    pub fn new(specs: Vec<Spec>, own: Vec<Ipv4Addr>, seed: u64) -> Result<Self, Vec<SpecFault>> {
        let hasher = FixedState::with_seed(seed);
        let mut pools = Self {
            pools: Vec::new(),
            spans: Vec::new(),
            own: Vec::new(),
            outside: HashMap::with_hasher(hasher.clone()),
            leaving: VecDeque::new(),
            gone: Vec::new(),
            counts: OutsideView::default(),
            hasher,
        };
        pools.reload(specs, own)?;
        Ok(pools)
    }

    /// Leases an address from a pool: the user's last one, or the one released longest ago.
    ///
    /// # Errors
    /// [`Fault::UnknownPool`] and [`Fault::Full`], both counted.
    pub fn take(&mut self, request: &Request<'_>) -> Result<Ipv4Addr, Fault> {
        let mut pools = self.pools.iter_mut().enumerate();
        let found = match request.pool {
            Some(name) => pools.find(|(_, pool)| pool.name() == name),
            None => pools.next(),
        };
        let Some((number, pool)) = found else {
            self.counts.unknown_pool += 1;
            return Err(Fault::UnknownPool);
        };
        let is_sticky = request.sticky || pool.is_sticky();
        let tag = is_sticky.then(|| self.hasher.hash_one(request.user).max(1));
        if let Some(tag) = tag {
            self.bring(number, tag);
        }
        let taken = self.pools[number].take(request.holder, tag);
        taken.map(Ipv4Addr::from_bits).ok_or(Fault::Full)
    }

    /// Claims a specific address, in a pool's range or outside all pools. An address that a pool excludes may
    /// be claimed.
    ///
    /// # Errors
    /// [`Fault::Held`] with the current holder, [`Fault::Reserved`], [`Fault::Full`]; each is counted.
    pub fn claim(&mut self, address: Ipv4Addr, holder: Holder) -> Result<(), Fault> {
        if self.own.contains(&address) || !is_host(address) {
            self.counts.reserved += 1;
            return Err(Fault::Reserved);
        }
        let claimed = match spec::span_of(&self.spans, address.to_bits()) {
            Some(span) => self.pools[span.pool].claim(address.to_bits(), holder),
            None => self.claim_outside(address.to_bits(), holder),
        };
        if let Err(Fault::Held { .. }) = claimed {
            self.counts.duplicates += 1;
        }
        claimed
    }

    /// Exchanges a held address for the one that the holder wishes, if that is in the same pool, free,
    /// leasable, and not remembered for any user. Returns `false` and changes nothing otherwise.
    pub fn exchange(&mut self, held: Ipv4Addr, wish: Ipv4Addr, holder: Holder) -> bool {
        let [held, wish] = [held, wish].map(Ipv4Addr::to_bits);
        let span = spec::span_of(&self.spans, held);
        span.is_some_and(|span| self.pools[span.pool].exchange(held, wish, holder))
    }

    /// Releases an address; returns `false` and changes nothing if the holder does not hold it.
    pub fn release(&mut self, address: Ipv4Addr, holder: Holder) -> bool {
        let bits = address.to_bits();
        if let Some(span) = spec::span_of(&self.spans, bits) {
            return self.pools[span.pool].release(bits, holder);
        }
        let Entry::Occupied(entry) = self.outside.entry(bits) else {
            return false;
        };
        let is_its = entry.get().holder == holder;
        if is_its {
            self.counts.draining -= usize::from(entry.remove().is_draining);
        }
        is_its
    }

    /// The holder of an address.
    #[must_use]
    pub fn holder(&self, address: Ipv4Addr) -> Option<Holder> {
        let bits = address.to_bits();
        match spec::span_of(&self.spans, bits) {
            Some(span) => self.pools[span.pool].holder(bits),
            None => self.outside.get(&bits).map(|outside| outside.holder),
        }
    }

    /// Replaces the pools. Held addresses stay held; those whose range was removed drain. An unchanged pool
    /// costs nothing. In a changed pool, addresses that were free before keep their order, after the new ones.
    ///
    /// # Errors
    /// All faults in the specifications; nothing changes.
    pub fn reload(&mut self, specs: Vec<Spec>, own: Vec<Ipv4Addr>) -> Result<(), Vec<SpecFault>> {
        let pools = &self.pools;
        let is_there = |spec: &Spec| pools.iter().any(|pool| pool.is_as(spec, &own));
        let new = NewPools::new(specs, own.clone(), is_there)?;
        self.replace(new);
        while self.work(usize::MAX) {}
        self.gone.clear();
        Ok(())
    }

    /// Replaces the pools by those that were prepared elsewhere, as [`Pools::reload`] does. Takes time for held
    /// addresses of changed pools only: [`Pools::work`] moves the free ones.
    ///
    /// Until then, a changed pool leases free addresses in the order of their numbers, and not the one released longest
    /// ago. A user whose address is remembered gets it. If more than [`LEAVING_MAX`] replaced pools wait for that, the
    /// oldest one's order and users are forgotten.
    pub fn replace(&mut self, new: NewPools) {
        let NewPools { own, spans, pools } = new;
        let mut old: Vec<Option<Pool>> = self.pools.drain(..).map(Some).collect();
        for (number, (spec, made)) in pools.into_iter().enumerate() {
            let is_it = |pool: &Pool| pool.is_as(&spec, &own);
            let same = old.iter_mut().find(|old| old.as_ref().is_some_and(is_it));
            self.pools.push(match (same.and_then(Option::take), made) {
                (Some(same), _) => same,
                (None, Some(made)) => made,
                // It was expected to be there.
                (None, None) => Pool::new(spec, spans_of(&spans, number), &own),
            });
        }
        self.spans = spans;
        self.own = own;
        for pool in old.into_iter().flatten() {
            let same = self.pools.iter_mut().find(|new| new.name() == pool.name());
            if let Some(new) = same {
                new.keep_counts(&pool);
            }
            self.move_held(&pool);
            self.leaving.push_back(pool);
            if self.leaving.len() > LEAVING_MAX {
                self.gone.extend(self.leaving.pop_front());
            }
        }
        self.claim_what_was_outside();
    }

    /// Moves up to `count` free addresses of replaced pools to where they belong now. Returns whether more are left.
    pub fn work(&mut self, count: usize) -> bool {
        for _ in 0..count {
            let Some(old) = self.leaving.front_mut() else {
                return false;
            };
            let Some((bits, tag)) = old.pop_free() else {
                self.gone.extend(self.leaving.pop_front());
                continue;
            };
            if let Some(span) = spec::span_of(&self.spans, bits) {
                let pool = &mut self.pools[span.pool];
                let tag = tag.filter(|_| pool.name() == old.name());
                pool.rest(bits, tag);
            }
        }
        self.has_work()
    }

    /// Whether free addresses of replaced pools are left to be moved.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Replaced pools whose addresses were moved, if there are any. Freeing their memory takes a while.
    pub fn take_gone(&mut self) -> Option<Box<dyn Send>> {
        if self.gone.is_empty() {
            return None;
        }
        Some(Box::new(core::mem::take(&mut self.gone)))
    }

    /// The pools, in order.
    pub fn views(&self) -> impl Iterator<Item = PoolView<'_>> {
        self.pools.iter().map(Pool::view)
    }

    /// State and counters of addresses outside the pools.
    #[must_use]
    pub fn outside(&self) -> OutsideView {
        OutsideView {
            held: self.outside.len(),
            ..self.counts
        }
    }

    /// Moves the free address that replaced pools remember for a user to the pool of the same name.
    fn bring(&mut self, number: usize, tag: u64) {
        let pool = &mut self.pools[number];
        for before in &mut self.leaving {
            if before.name() != pool.name() {
                continue;
            }
            let Some(bits) = before.pop_of_user(tag) else {
                continue;
            };
            let span = spec::span_of(&self.spans, bits);
            if span.is_some_and(|span| span.pool == number) {
                pool.rest(bits, Some(tag));
            }
        }
    }

    /// Moves the held addresses of a removed or changed pool to where they belong now.
    fn move_held(&mut self, old: &Pool) {
        for (bits, holder, tag) in old.held() {
            if let Some(span) = spec::span_of(&self.spans, bits) {
                let pool = &mut self.pools[span.pool];
                let tag = tag.filter(|_| pool.name() == old.name());
                pool.keep(bits, holder, tag);
            } else {
                self.counts.draining += 1;
                let outside = Outside {
                    holder,
                    is_draining: true,
                };
                self.outside.insert(bits, outside);
            }
        }
    }

    /// Assigns held outside addresses to pools whose ranges now include them.
    fn claim_what_was_outside(&mut self) {
        let (spans, pools, counts) = (&self.spans, &mut self.pools, &mut self.counts);
        self.outside.retain(|&bits, outside| {
            let Some(span) = spec::span_of(spans, bits) else {
                return true;
            };
            pools[span.pool].keep(bits, outside.holder, None);
            counts.draining -= usize::from(outside.is_draining);
            false
        });
    }

    fn claim_outside(&mut self, bits: u32, holder: Holder) -> Result<(), Fault> {
        let count = self.outside.len();
        match self.outside.entry(bits) {
            Entry::Occupied(entry) => Err(Fault::Held {
                by: entry.get().holder,
            }),
            Entry::Vacant(_) if count >= OUTSIDE_MAX => {
                self.counts.full += 1;
                Err(Fault::Full)
            }
            Entry::Vacant(entry) => {
                entry.insert(Outside {
                    holder,
                    is_draining: false,
                });
                Ok(())
            }
        }
    }
}
