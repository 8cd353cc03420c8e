//! Which of the records that wait is sent when.
//!
//! The records are on disk, and their owner hands some of them in, oldest first. A session's records go out one after
//! the other, so that no server sees a Stop before its Start; those of different sessions go side by side, as many as
//! the window has room for. While no server takes any, one is tried now and then. A record that fails again and again
//! while others are taken is one that no server wants, and is given up, so that it does not stand in its session's
//! way, and in the end in everyone's.
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
    /// Records at servers at a time.
    pub window: usize,
    /// Records held, at servers or waiting.
    pub held_max: usize,
    /// A record that failed waits for so long, after each further failure for twice as long.
    pub retry_min: Duration,
    /// It never waits for longer than this.
    pub retry_max: Duration,
    /// A record is given up that failed so many times while servers took others.
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

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// A server has it: it need not be kept any longer.
    Delivered {
        /// The owner's.
        token: u64,
    },
    /// No server wants it, and it will not be tried again.
    GivenUp {
        /// The owner's.
        token: u64,
    },
}

/// A record to be sent now.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The owner's.
    pub token: u64,
    /// Its octets.
    pub record: &'a [u8],
}

/// What is held, and what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeliveryTotals {
    /// Records held.
    pub held: usize,
    /// Of these, at servers.
    pub in_flight: usize,
    /// Records that servers took.
    pub delivered: u64,
    /// Times that one was not taken.
    pub failures: u64,
    /// Records that no server wanted.
    pub given_up: u64,
    /// Records that were not held, for want of room.
    pub refused: u64,
}

/// There is no room for a further record; the owner keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many records are held")]
pub struct NoRoom;

/// Records on their way, each until a server has it.
pub struct Delivery {
    config: DeliveryConfig,
    held: Slab<Held>,
    by_token: HashMap<u64, Key, FixedState>,
    /// The last record of each session that has one here.
    last: HashMap<Box<[u8]>, Key, FixedState>,
    /// Records that may be sent.
    ready: VecDeque<Key>,
    timers: Wheel,
    events: VecDeque<DeliveryEvent>,
    /// How long to wait before the next one is tried while no server takes any.
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
    /// How long it waited after its last failure.
    waited: Duration,
    /// Times that it failed while servers took others.
    refusals: u8,
    /// What had been delivered when it was sent.
    delivered_before: u64,
}

impl Delivery {
    /// Nothing on its way.
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

    /// How many more records can be held. The owner hands that many in, oldest first.
    #[must_use]
    pub fn want_more(&self) -> usize {
        self.config.held_max.saturating_sub(self.held.len())
    }

    /// Takes a record in, behind those of its session. One whose token is held already is not taken twice.
    ///
    /// # Errors
    /// There is no room; the owner keeps the record and hands it in again.
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

    /// The next record to be sent now; its owner passes it on to a client, with the same token. What the client says
    /// of it, or that it does not take it, goes to [`Delivery::recorded`] or [`Delivery::failed`].
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

    /// A server has a record.
    pub fn recorded(&mut self, token: u64) {
        if let Some(key) = self.land(token) {
            self.pause = None;
            self.totals.delivered += 1;
            self.forget(key);
            self.events.push_back(DeliveryEvent::Delivered { token });
        }
    }

    /// No server took a record, this time.
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
            // Nothing at all came through: it need not be this record.
            if now >= self.paused_until || self.pause.is_none() {
                let pause = longer(self.pause.unwrap_or_default());
                self.pause = Some(pause);
                self.paused_until = now + pause;
                // A timer of no record, for its owner to wake up.
                self.timers.insert(self.paused_until, u32::MAX);
            }
            // Behind the others: if it is this record after all, the next one tried shows it.
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

    /// The next that became of a record.
    pub fn poll_event(&mut self) -> Option<DeliveryEvent> {
        self.events.pop_front()
    }

    /// When there may be something to send without anything else happening.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_deadline()
    }

    /// Records that waited long enough may be sent again.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(expired) = self.timers.pop_due(now) {
            // A record stays where it is while it waits, so that its place is its name.
            if let Some(key) = self.held.key_at(expired.token) {
                self.ready.push_back(key);
            }
        }
    }

    /// What is held, and what is counted.
    #[must_use]
    pub fn totals(&self) -> DeliveryTotals {
        DeliveryTotals {
            held: self.held.len(),
            ..self.totals
        }
    }

    /// A record came back from the client; `None` if it was not there.
    fn land(&mut self, token: u64) -> Option<Key> {
        let &key = self.by_token.get(&token)?;
        let held = self.held.get_mut(key)?;
        if !core::mem::replace(&mut held.in_flight, false) {
            return None;
        }
        self.totals.in_flight -= 1;
        Some(key)
    }

    /// A record is done with; the next of its session may go.
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

/// What a record's session is known by; of octets that are no record, nothing.
fn session_of(record: &[u8]) -> &[u8] {
    let mut attributes = Attributes::parse(record).into_iter().flatten();
    let session = attributes.find(|attribute| attribute.kind == ACCT_SESSION_ID);
    session.map_or(&[], |attribute| attribute.value)
}
