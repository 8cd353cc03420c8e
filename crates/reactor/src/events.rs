//! The reactor: the watched descriptors, the ready ones, and counters of both.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use base::{Duration, Instant};

use crate::clock;
use crate::descriptors::{DescriptorInfo, Descriptors, StoreKind};
use crate::limits::{DESCRIPTOR_RESERVE, DescriptorGuard};
use crate::poller::{self, BUDGET, Poller, PollerKind};
use crate::pulse::Pulse;
use crate::slices::{Overrun, Slice, Watch};
use crate::stats::{HandlerId, HandlerStats, Handlers, Lateness, WaitStats};
use crate::token::{Interest, Readiness, Token};

/// A ready descriptor, at the moment of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The descriptor.
    pub token: Token,
    /// The owner's name.
    pub owner: &'static str,
    /// The owner's own number for it.
    pub user: u64,
    /// The events it is ready for.
    pub readiness: Readiness,
}

/// Why a descriptor was not added.
#[derive(Debug)]
pub enum AddError {
    /// Too few descriptors would be left for the rest of the process. Watched descriptors are not affected.
    NearDescriptorLimit {
        /// Descriptors open.
        open: u64,
        /// The limit on open descriptors.
        limit: u64,
    },
    /// The kernel refused it.
    Io(io::Error),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::NearDescriptorLimit { open, limit } => write!(
                f,
                "{open} of at most {limit} descriptors are open and {DESCRIPTOR_RESERVE} are \
                 kept in reserve: no new ones until some close or the limit (ulimit -n) is raised"
            ),
            AddError::Io(error) => write!(f, "the kernel does not watch this descriptor: {error}"),
        }
    }
}

impl std::error::Error for AddError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AddError::NearDescriptorLimit { .. } => None,
            AddError::Io(error) => Some(error),
        }
    }
}

impl From<AddError> for io::Error {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Io(error) => error,
            full => io::Error::new(io::ErrorKind::QuotaExceeded, full),
        }
    }
}

/// The core of the event loop. It belongs to the thread that made it.
///
/// [`Reactor::next_ready`] delivers events. At delivery it checks that the descriptor is still the one that the event
/// is about. A descriptor that was removed, or closed and its number reused, gets no event, not even within the same
/// batch.
pub struct Reactor {
    poller: Box<dyn Poller>,
    kind: PollerKind,
    watched: Descriptors,
    guard: DescriptorGuard,
    generation: u32,
    batch: Vec<(Token, Readiness)>,
    delivered: usize,
    handlers: Handlers,
    waits: WaitStats,
    lateness: Lateness,
    started: Instant,
    /// The last reading of the clock, where the next lap starts.
    reading: Instant,
    round: Round,
    watch: Watch,
    pulse: Arc<Pulse>,
}

/// How far waits have reported the ready descriptors, if there are more than one wait can report.
#[derive(Debug)]
struct Round {
    /// The time of the wait that started the round.
    began: Instant,
    /// Descriptors reported since then.
    told: usize,
    /// When the last complete round started.
    complete: Instant,
}

impl Round {
    /// Adds a wait that reported `count` of at most `watched` descriptors. Descriptors take turns, so a round is
    /// complete when as many were reported as are watched.
    fn add(&mut self, count: usize, watched: usize, now: Instant) {
        if self.told == 0 {
            self.began = now;
        }
        self.told += count;
        if count < BUDGET {
            self.began = now;
        } else if self.told < watched {
            return;
        }
        self.complete = self.began;
        self.told = 0;
    }
}

/// How long a handler may take before it is recorded, unless [`Reactor::set_overrun`] was called.
const OVERRUN: Duration = Duration::from_millis(20);

/// Largest lateness of a wake-up that still counts as on time.
const LATE_MAX: Duration = Duration::from_millis(50);

/// The time at which nothing was ready, if a wait from `before` to `now` found nothing. A wait ended by a signal did
/// not check again: after a stop, the process finds new events with its next wait.
fn empty_at(before: Instant, deadline: Option<Instant>, now: Instant) -> Instant {
    match deadline.map(|deadline| deadline.max(before)) {
        Some(over) if now >= over && now.since(over) <= LATE_MAX => now,
        Some(over) if now >= over => over,
        Some(_) | None => before,
    }
}

impl Reactor {
    /// A reactor that watches nothing.
    ///
    /// # Errors
    /// The kernel's error; `Unsupported` if it lacks io_uring.
    pub fn new(poller: PollerKind, store: StoreKind) -> io::Result<Self> {
        let now = clock::now();
        Ok(Self {
            poller: poller::open(poller)?,
            kind: poller,
            watched: Descriptors::new(store),
            guard: DescriptorGuard::new(),
            generation: 0,
            batch: Vec::new(),
            delivered: 0,
            handlers: Handlers::default(),
            waits: WaitStats::default(),
            lateness: Lateness::default(),
            started: now,
            reading: now,
            round: Round {
                began: now,
                told: 0,
                complete: now,
            },
            watch: Watch::new(OVERRUN, now),
            pulse: Arc::default(),
        })
    }

    /// Sets how long a handler may take before it is recorded as an [`Overrun`].
    pub fn set_overrun(&mut self, limit: Duration) {
        self.watch.limit = limit;
    }

    /// Watches a descriptor. Remove it before you close it. Each event carries `owner` and `user`.
    ///
    /// A leftover entry with the same number is replaced and gets no more events.
    ///
    /// # Errors
    /// [`AddError::NearDescriptorLimit`] if fewer than
    /// [`DESCRIPTOR_RESERVE`] descriptors would be left.
    pub fn add(
        &mut self,
        fd: impl AsFd,
        owner: &'static str,
        user: u64,
        interest: Interest,
    ) -> Result<Token, AddError> {
        if let Err((open, limit)) = self.guard.check(fd.as_fd().as_raw_fd()) {
            self.waits.refused += 1;
            return Err(AddError::NearDescriptorLimit { open, limit });
        }
        self.add_from_reserve(fd, owner, user, interest)
    }

    /// As [`Reactor::add`], but uses the reserve: for descriptors that the operator needs to see and end such a
    /// shortage, like the control socket.
    ///
    /// # Errors
    /// [`AddError::Io`] only.
    pub fn add_from_reserve(
        &mut self,
        fd: impl AsFd,
        owner: &'static str,
        user: u64,
        interest: Interest,
    ) -> Result<Token, AddError> {
        let fd = fd.as_fd().as_raw_fd();
        if let Some(old) = self.watched.remove(fd) {
            self.waits.closed_unremoved += 1;
            self.poller.deregister(old.token);
        }
        self.generation = self.generation.wrapping_add(1);
        let token = Token {
            fd,
            generation: self.generation,
        };
        self.poller
            .register(token, interest)
            .map_err(AddError::Io)?;
        self.watched.insert(DescriptorInfo {
            token,
            owner,
            user,
            interest,
            wakeups: 0,
        });
        Ok(token)
    }

    /// Changes the events that a descriptor is watched for. Makes no system call if nothing changes, or with a
    /// poll(2) poller.
    ///
    /// # Errors
    /// `NotFound` if it is not watched; else the kernel's error.
    pub fn set_interest(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        let entry = self
            .watched
            .get_mut(token.fd)
            .filter(|entry| entry.token == token);
        let Some(entry) = entry else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if entry.interest == interest {
            return Ok(());
        }
        self.poller.modify(token, interest)?;
        entry.interest = interest;
        Ok(())
    }

    /// Stops watching a descriptor. Returns its counters; `None` if it was not watched.
    pub fn remove(&mut self, token: Token) -> Option<DescriptorInfo> {
        if !self.is_current(token) {
            return None;
        }
        let entry = self.watched.remove(token.fd);
        self.poller.deregister(token);
        entry
    }

    /// Whether the token names a watched descriptor.
    pub fn is_current(&self, token: Token) -> bool {
        self.watched
            .get(token.fd)
            .is_some_and(|entry| entry.token == token)
    }

    /// Reports that the descriptor was read until it would block. This is optional: it saves io_uring a check of the
    /// descriptor, and costs nothing with other pollers.
    pub fn drained(&mut self, token: Token) {
        self.poller.drained(token);
    }

    /// Sleeps for `span` whatever becomes ready, so that more becomes ready; the time counts as waited. A signal may
    /// end it early.
    pub fn pause(&mut self, span: Duration) {
        let before = clock::now();
        self.pulse.waits();
        clock::sleep(span);
        let now = clock::now();
        self.pulse.starts(now);
        self.waits.waited = self.waits.waited + now.since(before);
    }

    /// Waits until a descriptor is ready or `deadline` has come, and returns the time, read once after that: the
    /// turn's `now`. It never ends early, unless a signal handler ran. [`Reactor::next_ready`] returns the ready
    /// descriptors; the next wait reports again those that were not taken.
    ///
    /// # Errors
    /// The kernel's error; the reactor is unusable then.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Instant> {
        self.batch.clear();
        self.delivered = 0;
        let before = clock::now();
        let timeout = deadline.map(|deadline| deadline.since(before));
        self.pulse.waits();
        let waited = self.poller.wait(&self.watched, timeout, &mut self.batch);
        let now = clock::now();
        self.pulse.starts(now);
        waited?;
        self.reading = now;
        self.waits.waits += 1;
        self.waits.empty += u64::from(self.batch.is_empty());
        self.waits.watched += self.watched.len() as u64;
        self.waits.ready += self.batch.len() as u64;
        self.waits.waited = self.waits.waited + now.since(before);
        let looked_at = if self.batch.is_empty() {
            empty_at(before, deadline, now)
        } else {
            now
        };
        self.round
            .add(self.batch.len(), self.watched.len(), looked_at);
        let Self {
            watch,
            batch,
            watched,
            ..
        } = self;
        let owner = |(token, _): &(Token, Readiness)| Some(watched.get(token.fd)?.owner);
        watch.begin(now, batch.iter().filter_map(owner));
        Ok(now)
    }

    /// Opens another poller of the same kind, and watches the same descriptors with it. To be called after a wait that
    /// failed.
    ///
    /// # Errors
    /// The kernel's error; the present poller stays then.
    pub fn reopen(&mut self) -> io::Result<()> {
        let mut poller = poller::open(self.kind)?;
        let mut watched = Vec::with_capacity(self.watched.len());
        self.watched
            .for_each(|info| watched.push((info.token, info.interest)));
        for (token, interest) in watched {
            poller.register(token, interest)?;
        }
        self.poller = poller;
        Ok(())
    }

    /// After the last [`next_ready`](Self::next_ready) of a wait: every descriptor that was ready at the returned
    /// time has been delivered. That is the time of the wait, unless more descriptors are ready than one wait can
    /// report.
    #[must_use]
    pub const fn complete_until(&self) -> Instant {
        self.round.complete
    }

    /// The next descriptor that the last wait found ready and that is still watched for it. You may remove this and
    /// other descriptors before the next call.
    pub fn next_ready(&mut self) -> Option<Ready> {
        while let Some(&(token, found)) = self.batch.get(self.delivered) {
            self.delivered += 1;
            let entry = self
                .watched
                .get_mut(token.fd)
                .filter(|entry| entry.token == token);
            let Some(entry) = entry else {
                self.waits.stale += 1;
                continue;
            };
            if found.invalid() {
                self.waits.closed_unremoved += 1;
                self.remove(token);
                continue;
            }
            let readiness = found.within(entry.interest);
            if readiness.is_empty() {
                self.waits.stale += 1;
                continue;
            }
            entry.wakeups += 1;
            return Some(Ready {
                token,
                owner: entry.owner,
                user: entry.user,
                readiness,
            });
        }
        None
    }

    /// Whether the last wait reported as many descriptors as one wait can: there may be more.
    pub fn was_full(&self) -> bool {
        self.batch.len() >= BUDGET
    }

    /// Opens the counters of a handler; the same name returns the same counters. There are 32: later names share one
    /// called "other".
    pub fn handler(&mut self, name: &'static str) -> HandlerId {
        let (before, id) = (self.handlers.all().len(), self.handlers.open(name));
        for new in &self.handlers.all()[before..] {
            self.pulse.name(new.name);
        }
        id
    }

    /// Says that `handler` starts, for a thread that watches the loop. `work` is the owner's number for what it works
    /// on, 0 for none. The next lap ends it.
    pub fn enter(&mut self, handler: HandlerId, work: u64) {
        self.pulse.enter(handler.0, work);
    }

    /// Says that the present handler carries out a request for the owner of `work`.
    pub fn carry_out(&mut self, work: u64, request: &'static str) {
        self.pulse.carry_out(work, request);
    }

    /// The present state of this loop, for a thread that watches it.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Books one call and the time since the last lap or wait on `handler`. Reads the clock once and returns it.
    pub fn lap(&mut self, handler: HandlerId) -> Instant {
        self.lap_many(handler, 1)
    }

    /// As [`Reactor::lap`], for a handler that did `calls` calls at once.
    pub fn lap_many(&mut self, handler: HandlerId, calls: u64) -> Instant {
        let now = clock::now();
        let took = now.since(self.reading);
        self.handlers.book(handler, calls, took);
        self.reading = now;
        self.pulse.lap(handler.0, now);
        if took > self.watch.limit {
            let name = self.handlers.name(handler);
            self.watch.overran(name, calls, (took, now));
        }
        now
    }

    /// A slice of the loop's time that starts with the last lap or wait.
    #[must_use]
    pub fn slice(&self, span: Duration) -> Slice {
        Slice::until(self.reading + span)
    }

    /// The handlers that took too long most recently, oldest first.
    pub fn overruns(&self) -> impl DoubleEndedIterator<Item = &Overrun> {
        self.watch.recent()
    }

    /// How many calls of handlers took too long.
    pub fn overrun_count(&self) -> u64 {
        self.watch.count()
    }

    /// Books one call with a time measured elsewhere.
    pub fn book(&mut self, handler: HandlerId, took: Duration) {
        self.handlers.book(handler, 1, took);
    }

    /// Records how late the timer of that name fired.
    pub fn record_lateness(&mut self, timer: &'static str, late: Duration) {
        self.lateness.record(late);
        self.watch.late(timer, late);
    }

    /// The poller in use.
    pub fn poller(&self) -> PollerKind {
        self.kind
    }

    /// The descriptor store in use.
    pub fn store(&self) -> StoreKind {
        self.watched.kind()
    }

    /// How many descriptors are watched.
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// Counters of waits, up to the last reading of the clock.
    pub fn wait_stats(&self) -> WaitStats {
        WaitStats {
            uptime: self.reading.since(self.started),
            ..self.waits
        }
    }

    /// Counters of each handler, in the order of opening.
    pub fn handler_stats(&self) -> &[HandlerStats] {
        self.handlers.all()
    }

    /// Statistics of how late timers fired.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Appends up to `limit` watched descriptors in ascending order of their numbers, from number `from` on. Returns
    /// the number to continue from; `None` at the end. Descriptors may be added and removed between two calls.
    pub fn descriptors(
        &self,
        from: i32,
        limit: usize,
        out: &mut Vec<DescriptorInfo>,
    ) -> Option<i32> {
        self.watched.page(from, limit, out)
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor")
            .field("poller", &self.kind)
            .field("store", &self.watched.kind())
            .field("watched", &self.watched.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_wait_cannot_tell_is_complete_when_all_have_had_their_turn() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let mut round = Round {
            began: at(0),
            told: 0,
            complete: at(0),
        };
        let mut complete_after = |count, s| {
            round.add(count, 2_500, at(s));
            round.complete
        };
        assert_eq!(complete_after(3, 1), at(1));
        assert_eq!(complete_after(BUDGET, 2), at(1));
        assert_eq!(complete_after(BUDGET, 3), at(1));
        assert_eq!(complete_after(BUDGET, 4), at(2), "3,072 of 2,500");
        assert_eq!(complete_after(BUDGET, 5), at(2));
        assert_eq!(complete_after(10, 6), at(6));
        assert_eq!(complete_after(0, 7), at(7));
    }

    #[test]
    fn a_wait_that_was_stopped_has_not_looked_at_what_came_meanwhile() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(empty_at(at(0), Some(at(100)), at(101)), at(101));
        assert_eq!(empty_at(at(0), Some(at(100)), at(2_500)), at(100));
        assert_eq!(empty_at(at(0), Some(at(100)), at(60)), at(0));
        assert_eq!(empty_at(at(50), Some(at(10)), at(51)), at(51));
        assert_eq!(empty_at(at(0), None, at(60)), at(0));
    }
}
