//! IPv4 address pools: who holds which address, and which is given out next.
//!
//! An address is held once, whether it was taken from a pool or claimed as a fixed one (Framed-IP-Address, RFC 2865,
//! section 5.8), inside a pool's ranges or outside of all. A pool gives out the address that rested longest. Where a
//! pool or a user asks for it, an address is remembered for the user who had it last: that user gets it back, and
//! another gets it only when nothing else is free.
//!
//! ```text
//! let mut pools = Pools::new(specs, own, seed)?;
//! let address = pools.take(&Request { pool: Some("home"), holder, user, sticky })?;
//! pools.release(address, holder);
//! ```
//!
//! Taking, claiming and releasing take the same time in a pool of ten addresses and of a million; an address costs 9
//! octets, and some 13 more in a pool that remembers.
//!
//! Left out: IPv6 prefixes (RFC 4818, RFC 6911). A subscriber's interface identifier is settled on its own link
//! (RFC 5072, section 4.1) and is unique there alone, so it has no pool; delegated prefixes would be a second kind of
//! pool beside `Pool`, with networks in place of addresses.

mod list;
mod pool;
mod range;
mod spec;
#[cfg(test)]
mod tests;

use core::hash::BuildHasher;
use core::net::Ipv4Addr;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

pub use pool::PoolView;
pub use range::Range;
pub(crate) use range::is_host;
pub use spec::{ADDRESSES_MAX, POOLS_MAX, Spec, SpecFault};

use pool::Pool;
use spec::Span;

/// Addresses outside of all pools that may be claimed at one time.
pub const OUTSIDE_MAX: usize = 1 << 20;

/// Who holds an address: a number that its owner chose, such as a session's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(pub u64);

/// What somebody wants of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pool's name; none: the first.
    pub pool: Option<&'a str>,
    /// Who is to hold the address.
    pub holder: Holder,
    /// The user to remember it for, where that is asked for.
    pub user: &'a [u8],
    /// The user's own wish to be remembered; a pool may ask for it for all.
    pub sticky: bool,
}

/// Why there is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No pool has the name.
    #[error("no pool has this name")]
    UnknownPool,
    /// All addresses of the pool are held; or [`OUTSIDE_MAX`] are, of those outside of all pools.
    #[error("all addresses are held")]
    Full,
    /// Somebody holds this address.
    #[error("the address is held by {}", by.0)]
    Held {
        /// Who.
        by: Holder,
    },
    /// The address is the edge's own, or none that a host can have.
    #[error("the address is the edge's own, or no host's")]
    Reserved,
}

/// What happened with addresses outside of all pools, and with requests for pools that are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideView {
    /// Fixed addresses outside of all pools that are held.
    pub held: usize,
    /// Of these, how many were of a range that was taken out of its pool since.
    pub draining: usize,
    /// Requests for a pool that is not there.
    pub unknown_pool: u64,
    /// Claims refused because somebody held the address.
    pub duplicates: u64,
    /// Claims refused because the address is the edge's own or no host's.
    pub reserved: u64,
    /// Claims refused because [`OUTSIDE_MAX`] were held.
    pub full: u64,
}

/// A fixed address outside of all pools.
#[derive(Clone, Copy, Debug)]
struct Outside {
    holder: Holder,
    is_draining: bool,
}

/// All pools of an edge, and the addresses that are held outside of them.
pub struct Pools {
    pools: Vec<Pool>,
    /// Which addresses are whose, by address.
    spans: Vec<Span>,
    own: Vec<Ipv4Addr>,
    outside: HashMap<u32, Outside, FixedState>,
    counts: OutsideView,
    hasher: FixedState,
}

impl Pools {
    /// Pools as they are specified, all free. `own` are the edge's own addresses, which nobody gets; `seed` keeps the
    /// places of remembered users in memory from being guessed.
    ///
    /// # Errors
    /// Everything that is wrong with the specifications.
    pub fn new(specs: Vec<Spec>, own: Vec<Ipv4Addr>, seed: u64) -> Result<Self, Vec<SpecFault>> {
        let hasher = FixedState::with_seed(seed);
        let mut pools = Self {
            pools: Vec::new(),
            spans: Vec::new(),
            own: Vec::new(),
            outside: HashMap::with_hasher(hasher.clone()),
            counts: OutsideView::default(),
            hasher,
        };
        pools.reload(specs, own)?;
        Ok(pools)
    }

    /// Takes an address of a pool: the user's last, or the one that rested longest.
    ///
    /// # Errors
    /// [`Fault::UnknownPool`] and [`Fault::Full`], which are counted.
    pub fn take(&mut self, request: &Request<'_>) -> Result<Ipv4Addr, Fault> {
        let found = match request.pool {
            Some(name) => self.pools.iter_mut().find(|pool| pool.name() == name),
            None => self.pools.first_mut(),
        };
        let Some(pool) = found else {
            self.counts.unknown_pool += 1;
            return Err(Fault::UnknownPool);
        };
        let is_sticky = request.sticky || pool.is_sticky();
        let tag = is_sticky.then(|| self.hasher.hash_one(request.user).max(1));
        let taken = pool.take(request.holder, tag);
        taken.map(Ipv4Addr::from_bits).ok_or(Fault::Full)
    }

    /// Claims this very address, in a pool's range or outside of all. An address that a pool leaves out may be claimed.
    ///
    /// # Errors
    /// [`Fault::Held`] with who holds it, [`Fault::Reserved`], [`Fault::Full`]; each is counted.
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

    /// Gives a holder the address that it wishes for in place of the one that it holds, if it is of the same pool, free,
    /// given out by that pool, and remembered for nobody; `false`: it is not, and nothing changes.
    pub fn exchange(&mut self, held: Ipv4Addr, wish: Ipv4Addr, holder: Holder) -> bool {
        let [held, wish] = [held, wish].map(Ipv4Addr::to_bits);
        let span = spec::span_of(&self.spans, held);
        span.is_some_and(|span| self.pools[span.pool].exchange(held, wish, holder))
    }

    /// Gives an address back; `false` if the holder does not hold it, and nothing changes.
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

    /// Who holds an address.
    #[must_use]
    pub fn holder(&self, address: Ipv4Addr) -> Option<Holder> {
        let bits = address.to_bits();
        match spec::span_of(&self.spans, bits) {
            Some(span) => self.pools[span.pool].holder(bits),
            None => self.outside.get(&bits).map(|outside| outside.holder),
        }
    }

    /// Changes the pools. What is held stays held: an address whose range is gone drains. A pool that did not change
    /// costs nothing; of the others' addresses, those that were free keep their order behind those that are new.
    ///
    /// # Errors
    /// Everything that is wrong with the specifications; all stays as it was.
    pub fn reload(&mut self, specs: Vec<Spec>, own: Vec<Ipv4Addr>) -> Result<(), Vec<SpecFault>> {
        let spans = spec::check(&specs)?;
        let made = self.made(specs, &own, &spans)?;
        let mut old: Vec<Option<Pool>> = self.pools.drain(..).map(Some).collect();
        for made in made {
            self.pools.push(match made {
                Made::New(pool) => *pool,
                Made::Old(number) => old[number].take().expect("names are given once"),
            });
        }
        self.spans = spans;
        self.own = own;
        for pool in old.into_iter().flatten() {
            let same = self.pools.iter_mut().find(|new| new.name() == pool.name());
            if let Some(new) = same {
                new.keep_counts(&pool);
            }
            self.move_from(&pool);
        }
        self.claim_what_was_outside();
        Ok(())
    }

    /// The pools in their order.
    pub fn views(&self) -> impl Iterator<Item = PoolView<'_>> {
        self.pools.iter().map(Pool::view)
    }

    /// What is outside of the pools.
    #[must_use]
    pub fn outside(&self) -> OutsideView {
        OutsideView {
            held: self.outside.len(),
            ..self.counts
        }
    }

    /// The pools that are asked for; one that is there as it is asked for is not made anew.
    fn made(
        &self,
        specs: Vec<Spec>,
        own: &[Ipv4Addr],
        spans: &[Span],
    ) -> Result<Vec<Made>, Vec<SpecFault>> {
        let mut faults = Vec::new();
        let mut all = Vec::with_capacity(specs.len());
        for (number, spec) in specs.into_iter().enumerate() {
            if let Some(old) = self.pools.iter().position(|pool| pool.is_as(&spec, own)) {
                all.push(Made::Old(old));
                continue;
            }
            let spans = spans.iter().filter(|span| span.pool == number);
            let pool = Pool::new(spec, spans.copied().collect(), own);
            if !pool.gives_any() {
                faults.push(spec::gives_none(number));
            }
            all.push(Made::New(Box::new(pool)));
        }
        if faults.is_empty() {
            Ok(all)
        } else {
            Err(faults)
        }
    }

    /// Moves what was in a pool that is no more as it was to where its addresses belong now.
    fn move_from(&mut self, old: &Pool) {
        for (bits, tag) in old.resting() {
            if let Some(span) = spec::span_of(&self.spans, bits) {
                let pool = &mut self.pools[span.pool];
                let tag = tag.filter(|_| pool.name() == old.name());
                pool.rest(bits, tag);
            }
        }
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

    /// Gives the pools what is held of their ranges, which may be new.
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

/// A pool of a reload: made anew, or the one that is there, by its number.
enum Made {
    New(Box<Pool>),
    Old(usize),
}
