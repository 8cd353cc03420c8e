//! The NAT itself: its tables and what a caller does with it.
//!
//! | file | what it does |
//! |---|---|
//! | `translate` | packets in both directions, and hairpinning |
//! | `quick` | the short way of most packets |
//! | `flow` | what a packet's header says to a NAT |
//! | `mappings` | mappings: made, refreshed, timed out |
//! | `blocks` | port blocks: allocated, freed |
//! | `connections` | TCP connections and remote addresses |
//! | `errors` | ICMP errors |
//! | `pieces` | fragments |
//! | `ftp` | addresses in commands of active FTP |
//! | `forwards` | port forwarding |
//! | `homes` | which of several NATs has a port |
//! | `settings` | changes of settings while the NAT works |
//! | `early` | loads of records before they are needed |

mod blocks;
mod connections;
mod early;
mod errors;
pub(crate) mod flow;
pub(crate) mod forwards;
mod ftp;
pub(crate) mod homes;
mod mappings;
pub(crate) mod pieces;
mod quick;
mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod translate;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use base::Instant;

use crate::config::{Config, ConfigError};
use crate::discard::Counters;
use crate::event::{Block, Event};
use crate::mapping::Mapping;
use crate::pages::Reserve;
use crate::pool::{NONE, Pool, Protocol};
use crate::sessions::Sessions;
use crate::subscribers::{Subscriber, SubscriberId, SubscriberView, Subscribers};
use crate::table::{Table, hash};
use crate::wheel::Wheel;

/// A tick is 2^30 ns, 1.07 s: its number is a shift of the time.
const TICK_SHIFT: u32 = 30;
/// Timers of one kind that one call of [`Nat::handle_timeout`] handles.
const TIMERS_AT_ONCE: usize = 4096;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Translated: forward it to its new destination, or from its new source.
    Translated,
    /// From inside, to the external endpoint of another mapping: both ends are translated, and the destination is inside
    /// (RFC 4787 REQ-9). One of several NATs ([`crate::Share`]) translates the source alone: the packet has to reach the NAT of
    /// its destination as one from outside.
    Hairpin,
    /// Not translated, because its destination is exempt (RFC 6888 REQ-6).
    Untouched,
    /// A fragment that waits for its datagram's first one. The NAT has a copy; [`Nat::poll_released`] returns it.
    Held,
}

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From a subscriber.
    Out,
    /// To an external address.
    In,
}

/// Time-outs in ticks, rounded so that none is short.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    udp: u32,
    icmp: u32,
    established: u32,
    opening: u32,
    closing: u32,
    hold: u32,
}

impl Ticks {
    fn of(config: &Config) -> Self {
        let ticks = |span: base::Duration| {
            // One more, because the last packet may have come at the end of its tick.
            (span.as_nanos().div_ceil(1 << TICK_SHIFT)) as u32 + 1
        };
        let times = &config.timeouts;
        Self {
            udp: ticks(times.udp),
            icmp: ticks(times.icmp),
            established: ticks(times.tcp_established),
            opening: ticks(times.tcp_opening),
            closing: ticks(times.tcp_closing),
            hold: match config.hold.as_nanos() {
                0 => 0,
                _ => ticks(config.hold),
            },
        }
    }
}

/// A NAT44. See the [crate] for its use.
#[derive(Debug)]
pub struct Nat {
    config: Config,
    ticks: Ticks,
    pool: Pool,
    mappings: Vec<Mapping>,
    free: u32,
    by_inside: Table,
    timers: Wheel,
    sessions: Sessions,
    subscribers: Subscribers,
    pieces: pieces::Pieces,
    forwards: forwards::Forwards,
    controls: ftp::Controls,
    held_ports: u32,
    is_pool_told: bool,
    random: u64,
    /// Whether [`quick`] may translate packets.
    is_plain: bool,
    ahead: early::Ahead,
    identifications: Box<[u16; 256]>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Nat {
    /// A NAT without subscribers.
    ///
    /// # Errors
    /// Settings that contradict each other or an RFC.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let limits = config.limits;
        let [one, two, three] = config.seed;
        let mappings_max = limits.mappings_max as usize;
        Ok(Self {
            ticks: Ticks::of(&config),
            pool: Pool::new(&config),
            mappings: Vec::with_capacity(mappings_max),
            free: NONE,
            by_inside: Table::new(mappings_max),
            timers: Wheel::new(mappings_max),
            sessions: Sessions::new(limits.sessions_max, [one, two]),
            subscribers: Subscribers::new(limits.subscribers_max),
            pieces: pieces::Pieces::new(&limits),
            forwards: forwards::Forwards::default(),
            controls: ftp::Controls::default(),
            held_ports: 0,
            is_pool_told: false,
            random: three | 1,
            is_plain: quick::is_plain(&config),
            ahead: early::Ahead::new(),
            identifications: Box::new([three as u16; 256]),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        })
    }

    /// Has this function called for each large range of memory that the NAT has reserved or will reserve, by its start and
    /// length in bytes, before the NAT first uses it. Packets of many mappings are faster on large pages of memory, which only
    /// the caller can ask the system for.
    pub fn on_reserve(&mut self, reserve: Reserve) {
        let mappings = self.mappings.capacity() * size_of::<Mapping>();
        reserve(self.mappings.as_ptr().cast(), mappings);
        self.by_inside.on_reserve(reserve);
        self.timers.on_reserve(reserve);
        self.pool.pages.on_reserve(reserve);
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether an address is one of this NAT's external ones. Packets to it are for [`Nat::inbound`].
    #[inline]
    #[must_use]
    pub fn owns(&self, address: Ipv4Addr) -> bool {
        self.pool.index_of(address.to_bits()).is_some()
    }

    /// Adds a subscriber, by the caller's name for it and its inside address. It has no port until it sends a packet.
    ///
    /// `None` if there are [`crate::Limits::subscribers_max`].
    pub fn join(&mut self, tag: u64, inside: Ipv4Addr) -> Option<SubscriberId> {
        let inside = inside.to_bits();
        let mut subscriber = Subscriber::new(tag, inside);
        let share = self.share(inside);
        if let Some((address, _)) = share {
            subscriber.address = address;
        } else if let Some(address) = self.forwards.anchor(inside) {
            subscriber.address = address;
        }
        let id = self.subscribers.insert(subscriber)?;
        if let Some((_, block)) = share
            && self.pool.block(block).owner == NONE
        {
            self.pool.block_mut(block).owner = id.index;
            if let Some(subscriber) = self.subscribers.get_mut(id) {
                subscriber.block = block;
            }
        }
        Some(id)
    }

    /// Ends a subscriber's mappings, port forwardings that it asked for, and frees its blocks.
    pub fn leave(&mut self, id: SubscriberId, now: Instant) {
        let Some(subscriber) = self.subscribers.get(id) else {
            return;
        };
        let mut block = subscriber.block;
        while block != NONE {
            let next = self.pool.block(block).next;
            while let Some(mapping) = self.pool.any_mapping(block) {
                self.drop_mapping(mapping, now);
            }
            // A block on demand was freed with its last mapping.
            if self.pool.block(block).owner == id.index {
                self.pool.block_mut(block).owner = NONE;
                self.pool.block_mut(block).next = NONE;
            }
            block = next;
        }
        self.subscribers.remove(id);
    }

    /// Ends mappings that are idle for longer than their time-out, and port forwardings that lapsed. Call it when
    /// [`Nat::poll_timeout`] says so; calls at any other time do no harm. One call does a bounded part of the work.
    pub fn handle_timeout(&mut self, now: Instant) {
        let tick = tick(now);
        for _ in 0..TIMERS_AT_ONCE {
            let Some(mapping) = self.timers.pop(tick) else {
                break;
            };
            self.settle(mapping, now);
        }
        for _ in 0..TIMERS_AT_ONCE {
            let Some(session) = self.sessions.timers.pop(tick) else {
                break;
            };
            self.settle_session(session, tick);
        }
        self.pool.warm(tick);
        self.lapse(now);
        self.counters.fragments_lost += self.pieces.expire(tick);
        self.expire_ftp(tick);
    }

    /// When to call [`Nat::handle_timeout`], and for which timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let at = |tick: u32| Instant::from_nanos(u64::from(tick) << TICK_SHIFT);
        let all = [
            (self.timers.next().map(at), "mapping"),
            (self.sessions.timers.next().map(at), "connection"),
            (self.pool.next_warm().map(at), "hold"),
            (self.forwards.next_lapse(), "forward"),
            (self.pieces.next_expiry().map(at), "fragment"),
        ];
        let due = all.into_iter().filter_map(|(at, name)| Some((at?, name)));
        due.min_by_key(|&(at, _)| at)
    }

    /// Whether [`Nat::poll_event`] has an event.
    #[inline]
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event for the log. Take events often: see [`crate::Limits::events_max`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counters and levels.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            sessions: self.sessions.len(),
            subscribers: self.subscribers.len(),
            ftp_controls: self.controls.len(),
            ..self.counters
        }
    }

    /// How many mappings there are.
    #[inline]
    #[must_use]
    pub fn mappings(&self) -> u32 {
        self.counters.mappings
    }

    /// Blocks on demand: free, waiting after use, and all.
    #[must_use]
    pub fn blocks(&self) -> (u32, u32, u32) {
        self.pool.levels()
    }

    /// A subscriber's mappings, its blocks on demand and its external address.
    #[must_use]
    pub fn usage(&self, id: SubscriberId) -> Option<(u32, u16, Option<Ipv4Addr>)> {
        let subscriber = self.subscribers.get(id)?;
        let address = subscriber.address;
        let external = (address != NONE).then(|| self.pool.external(address).into());
        Some((subscriber.mappings, subscriber.blocks, external))
    }

    /// The subscriber at or after a place, and the place after it.
    #[must_use]
    pub fn next_subscriber(&self, cursor: u32) -> Option<(u32, SubscriberView)> {
        let (next, subscriber) = self.subscribers.next(cursor)?;
        let address = subscriber.address;
        let view = SubscriberView {
            tag: subscriber.tag,
            inside: subscriber.inside.into(),
            external: (address != NONE).then(|| self.pool.external(address).into()),
            blocks: subscriber.blocks,
            mappings: subscriber.mappings,
        };
        Some((next, view))
    }

    /// The block of an external port, if a subscriber has it. [`Nat::deterministic_inside`] knows the owners of shares, also
    /// those that are not here.
    #[must_use]
    pub fn owner_of(&self, external: Ipv4Addr, port: u16) -> Option<Block> {
        let address = self.pool.index_of(external.to_bits())?;
        let (block, _) = self.pool.locate(address, port)?;
        let subscriber = self.subscribers.at(self.pool.block(block).owner)?;
        Some(self.block(block, subscriber))
    }

    /// The inside endpoint of an external one, if there is a mapping.
    #[must_use]
    pub fn inside_of(
        &self,
        protocol: Protocol,
        external: Ipv4Addr,
        port: u16,
    ) -> Option<(Ipv4Addr, u16)> {
        let address = self.pool.index_of(external.to_bits())?;
        let mapping = self.pool.mapping(address, port, protocol)?;
        let mapping = self.mappings[mapping as usize];
        Some((mapping.inside.into(), mapping.inside_port))
    }

    /// The external endpoint of an inside one, if there is a mapping.
    #[must_use]
    pub fn external_of(
        &self,
        protocol: Protocol,
        inside: Ipv4Addr,
        port: u16,
    ) -> Option<(Ipv4Addr, u16)> {
        let mapping = self.find(inside.to_bits(), port, protocol)?;
        let mapping = self.mappings[mapping as usize];
        Some((mapping.external.into(), mapping.external_port))
    }

    /// Bytes that a mapping takes when all are in use, without its block's share: record, timer, table.
    #[must_use]
    pub fn bytes_per_mapping(&self) -> usize {
        let table = self.by_inside.bytes() / self.config.limits.mappings_max as usize;
        size_of::<Mapping>() + Wheel::BYTES + table
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    #[inline]
    fn hash(&self, inside: u32, port: u16, protocol: Protocol) -> u32 {
        let [one, two, _] = self.config.seed;
        let low = u64::from(port) << 8 | protocol as u64;
        hash([one, two], u64::from(inside), low)
    }

    #[inline]
    fn find(&self, inside: u32, port: u16, protocol: Protocol) -> Option<u32> {
        let hash = self.hash(inside, port, protocol);
        self.by_inside.find(hash, |at| {
            self.mappings[at as usize].is_of(inside, port, protocol)
        })
    }

    /// The next random number (xorshift64*).
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A block as events describe it.
    fn block(&self, block: u32, subscriber: &Subscriber) -> Block {
        let (first, count) = self.pool.ports_of(block);
        Block {
            tag: subscriber.tag,
            inside: subscriber.inside.into(),
            external: self.pool.external(self.pool.address_of(block)).into(),
            first,
            last: (u32::from(first) + count - 1) as u16,
        }
    }
}

#[inline]
fn tick(now: Instant) -> u32 {
    (now.as_nanos() >> TICK_SHIFT) as u32
}
