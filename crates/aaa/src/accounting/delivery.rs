//! Decides which waiting accounting record is sent when. Start reading at [`Delivery::push`] and
//! [`Delivery::poll_send`].
//!
//! The records are on disk, and their owner hands in some of them, oldest first. Records of one session are
//! sent one after the other, so that no server sees a Stop before its Start. Records of different sessions are
//! sent in parallel, up to the window. While no server accepts any record, one is tried at intervals. A record
//! that fails repeatedly while others are accepted is given up, so that it does not block its session and, in
//! the end, all others.
//!
//! Implements parts of RFC 2866, section 2.

use std::collections::VecDeque;

use base::slab::Key;
use base::timer::{TimerStore, Wheel};
use base::{Duration, Instant, Slab};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use wire::radius::Attributes;
use wire::radius::attribute::ACCT_SESSION_ID;

/// The limits of a delivery.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryConfig {
    /// The most records outstanding at servers.
    pub window: usize,
    /// The most records held, outstanding or waiting.
    pub held_max: usize,
    /// Wait after a record's first failure; it doubles with each further failure.
    pub retry_min: Duration,
    /// The longest wait after a failure.
    pub retry_max: Duration,
    /// A record is given up after that many failures while servers accepted others.
    pub refusals_max: u8,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        Self {
            window: 512,
            held_max: 4_096,
            retry_min: Duration::from_secs(2),
            retry_max: Duration::from_secs(120),
            refusals_max: 5,
        }
    }
}

/// The outcome of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// A server has stored it, so its owner need not keep it.
    Delivered {
        /// The owner's token.
        token: u64,
    },
    /// No server accepts it, and it will not be retried.
    GivenUp {
        /// The owner's token.
        token: u64,
    },
}

/// A record to be sent now.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The owner's token.
    pub token: u64,
    /// Its encoded attributes.
    pub record: &'a [u8],
}

/// What a delivery holds, and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeliveryTotals {
    /// Records held.
    pub held: usize,
    /// Held records that are outstanding at servers.
    pub in_flight: usize,
    /// Records that servers accepted.
    pub delivered: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Records given up because no server accepted them.
    pub given_up: u64,
    /// Records not held because the delivery was full.
    pub refused: u64,
}

/// The delivery is full; the owner keeps the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many records are held")]
pub struct NoRoom;

/// Records being delivered, each held until a server has stored it.
pub struct Delivery {
    config: DeliveryConfig,
    held: Slab<Held>,
    by_token: HashMap<u64, Key, FixedState>,
    /// The last held record of each session.
    last: HashMap<Box<[u8]>, Key, FixedState>,
    /// Records that may be sent.
    ready: VecDeque<Key>,
    timers: Wheel,
    events: VecDeque<DeliveryEvent>,
    /// Wait before the next attempt while no server accepts any record.
    pause: Option<Duration>,
    paused_until: Instant,
    totals: DeliveryTotals,
}

struct Held {
    token: u64,
    record: Box<[u8]>,
    session: Box<[u8]>,
    /// The next record of the same session.
    next: Option<Key>,
    in_flight: bool,
    /// The wait after its last failure.
    waited: Duration,
    /// Failures while servers accepted others.
    refusals: u8,
    /// The delivered count when it was sent.
    delivered_before: u64,
}

impl Delivery {
    /// Creates a delivery that holds no records.
    #[must_use]
    pub fn new(config: DeliveryConfig) -> Self {
        Self {
            config,
            held: Slab::new(),
            by_token: HashMap::default(),
            last: HashMap::default(),
            ready: VecDeque::new(),
            timers: Wheel::new(Duration::from_millis(100)),
            events: VecDeque::new(),
            pause: None,
            paused_until: Instant::ZERO,
            totals: DeliveryTotals::default(),
        }
    }

    /// How many more records can be held. The owner hands in that many, oldest first.
    #[must_use]
    pub fn want_more(&self) -> usize {
        self.config.held_max.saturating_sub(self.held.len())
    }

    /// Queues a record behind those of its session. A record whose token is already held is ignored.
    ///
    /// # Errors
    /// The delivery is full; the owner keeps the record and hands it in again later.
    pub fn push(&mut self, token: u64, record: &[u8]) -> Result<(), NoRoom> {
        if self.by_token.contains_key(&token) {
            return Ok(());
        }
        if self.want_more() == 0 {
            self.totals.refused += 1;
            return Err(NoRoom);
        }
        let session = session_of(record);
        let key = self.held.insert(Held {
            token,
            record: record.into(),
            session: session.into(),
            next: None,
            in_flight: false,
            waited: Duration::ZERO,
            refusals: 0,
            delivered_before: 0,
        });
        self.by_token.insert(token, key);
        let before = self.last.insert(session.into(), key);
        match before.and_then(|before| self.held.get_mut(before)) {
            Some(before) => before.next = Some(key),
            None => self.ready.push_back(key),
        }
        Ok(())
    }

    /// The next record to send now; the owner passes it to a client with the same token. It then reports the
    /// client's result, or its refusal, to [`Delivery::recorded`] or [`Delivery::failed`].
    pub fn poll_send(&mut self, now: Instant) -> Option<Outgoing<'_>> {
        let window = match self.pause {
            None => self.config.window,
            Some(_) => 1,
        };
        if self.totals.in_flight >= window || self.pause.is_some() && now < self.paused_until {
            return None;
        }
        let key = loop {
            let key = self.ready.pop_front()?;
            if self.held.get(key).is_some() {
                break key;
            }
        };
        let delivered = self.totals.delivered;
        let held = self.held.get_mut(key)?;
        held.in_flight = true;
        held.delivered_before = delivered;
        self.totals.in_flight += 1;
        Some(Outgoing {
            token: held.token,
            record: &held.record,
        })
    }

    /// Reports that a server has stored a record.
    pub fn recorded(&mut self, token: u64) {
        if let Some(key) = self.land(token) {
            self.pause = None;
            self.totals.delivered += 1;
            self.forget(key);
            self.events.push_back(DeliveryEvent::Delivered { token });
        }
    }

    /// Reports that no server accepted a record this time.
    pub fn failed(&mut self, token: u64, now: Instant) {
        let Some(key) = self.land(token) else {
            return;
        };
        self.totals.failures += 1;
        let (delivered, config) = (self.totals.delivered, self.config);
        let Some(held) = self.held.get_mut(key) else {
            return;
        };
        let longer = |last: Duration| {
            let next = last.saturating_mul(2).max(config.retry_min);
            next.min(config.retry_max)
        };
        if held.delivered_before == delivered {
            // No record has been accepted since, so this record need not be the cause.
            if now >= self.paused_until || self.pause.is_none() {
                let pause = longer(self.pause.unwrap_or_default());
                self.pause = Some(pause);
                self.paused_until = now + pause;
                // A timer that belongs to no record; it only wakes the owner.
                self.timers.insert(self.paused_until, u32::MAX);
            }
            // It goes behind the others: if this record is the cause after all, the next one tried will
            // succeed.
            self.ready.push_back(key);
            return;
        }
        held.refusals += 1;
        if held.refusals >= config.refusals_max {
            self.totals.given_up += 1;
            self.forget(key);
            self.events.push_back(DeliveryEvent::GivenUp { token });
            return;
        }
        held.waited = longer(held.waited);
        self.timers.insert(now + held.waited, key.index);
    }

    /// The next outcome of a record.
    pub fn poll_event(&mut self) -> Option<DeliveryEvent> {
        self.events.pop_front()
    }

    /// When the owner should next call [`Delivery::handle_timeout`], if nothing else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_deadline()
    }

    /// Makes records whose wait has passed ready to be sent again.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(expired) = self.timers.pop_due(now) {
            // A waiting record keeps its slot, so the slot index identifies it.
            if let Some(key) = self.held.key_at(expired.token) {
                self.ready.push_back(key);
            }
        }
    }

    /// What is held, and the counters.
    #[must_use]
    pub fn totals(&self) -> DeliveryTotals {
        DeliveryTotals {
            held: self.held.len(),
            ..self.totals
        }
    }

    /// Takes a record back from the client; `None` if it was not outstanding.
    fn land(&mut self, token: u64) -> Option<Key> {
        let &key = self.by_token.get(&token)?;
        let held = self.held.get_mut(key)?;
        if !core::mem::replace(&mut held.in_flight, false) {
            return None;
        }
        self.totals.in_flight -= 1;
        Some(key)
    }

    /// Removes a finished record; the next of its session becomes ready.
    fn forget(&mut self, key: Key) {
        let Some(held) = self.held.remove(key) else {
            return;
        };
        self.by_token.remove(&held.token);
        match held.next {
            Some(next) => self.ready.push_back(next),
            None => {
                self.last.remove(&held.session);
            }
        }
    }
}

/// The record's Acct-Session-Id; empty if the bytes are not a record.
fn session_of(record: &[u8]) -> &[u8] {
    let mut attributes = Attributes::parse(record).into_iter().flatten();
    let session = attributes.find(|attribute| attribute.kind == ACCT_SESSION_ID);
    session.map_or(&[], |attribute| attribute.value)
}
