//! The state of sources that failed: sockets, devices and other descriptors of the event loop.
//!
//! In each turn, a source reports an [`Outcome`]. [`Health`] keeps the sources that rest or are
//! lost, with the reason, a counter and the time of the next attempt. It does no I/O; `mend` acts
//! on the state.
//!
//! Start with [`Outcome`].

use std::io;

use base::{Duration, Instant};
use hashbrown::HashMap;
use reactor::Token;

use super::source::Source;

/// Delay of the second attempt; each further one waits twice as long.
const RETRY: Duration = Duration::from_millis(100);
/// Largest delay between attempts.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Largest delay while a resource is short.
const REST_MAX: Duration = Duration::from_secs(1);
/// A source that worked for this long is tried at once when it fails again.
const FORGIVEN: Duration = Duration::from_secs(60);
/// Minimum interval between log lines about one source that keeps failing in the same way.
const QUIET: Duration = Duration::from_secs(10);
/// Sources remembered after they work again.
const REMEMBERED: usize = 256;

/// What became of a source in a turn.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The source works. The reactor reports it again when it is ready.
    Again,
    /// A resource is short, such as memory or descriptors. The source rests for a moment.
    Rest(io::Error),
    /// The source failed and has to be opened again.
    Lost(io::Error),
}

impl From<io::Error> for Outcome {
    /// Errors that pass by themselves (`EINTR`, an aborted connection), shortages, and all others.
    fn from(error: io::Error) -> Self {
        use rustix::io::Errno;
        let is = |list: &[Errno]| {
            let code = error.raw_os_error();
            list.iter().any(|errno| code == Some(errno.raw_os_error()))
        };
        if is(&[Errno::AGAIN, Errno::INTR, Errno::CONNABORTED]) {
            Outcome::Again
        } else if is(&[Errno::NOMEM, Errno::NOBUFS, Errno::MFILE, Errno::NFILE]) {
            Outcome::Rest(error)
        } else {
            Outcome::Lost(error)
        }
    }
}

impl<T> From<io::Result<T>> for Outcome {
    fn from(result: io::Result<T>) -> Self {
        result.map_or_else(Outcome::from, |_| Outcome::Again)
    }
}

/// The state of a source that has failed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It works again.
    Works,
    /// It is not read until a shortage may be over.
    Resting,
    /// It is closed until it can be opened again.
    Lost,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Works => "works",
            State::Resting => "resting",
            State::Lost => "lost",
        }
    }
}

/// A source that has failed.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) reason: String,
    /// Number of failures so far.
    pub(super) faults: u64,
    /// When it entered this state.
    pub(super) since: Instant,
    next: Instant,
    /// The descriptor of a source that rests.
    token: Option<Token>,
    delay: Duration,
    logged: Option<Instant>,
}

/// All sources that have failed.
#[derive(Debug, Default)]
pub(super) struct Health {
    troubles: HashMap<u64, Trouble>,
    faults: u64,
    due: Option<Instant>,
}

impl Health {
    /// Number of failures of all sources since the start.
    pub(super) fn faults(&self) -> u64 {
        self.faults
    }

    /// The sources that have failed, in the order of their kinds and numbers.
    pub(super) fn troubles(&self) -> Vec<&Trouble> {
        let mut all: Vec<_> = self.troubles.iter().collect();
        all.sort_unstable_by_key(|(source, _)| **source);
        all.into_iter().map(|(_, trouble)| trouble).collect()
    }

    /// When the next attempt is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A source whose attempt is due, and its state.
    pub(super) fn next_due(&self, now: Instant) -> Option<(Source, State, Option<Token>)> {
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        let due = |trouble: &Trouble| trouble.state != State::Works && trouble.next <= now;
        let mut all = self.troubles.iter();
        let (source, trouble) = all.find(|(_, trouble)| due(trouble))?;
        Some((Source::from_bits(*source), trouble.state, trouble.token))
    }

    /// Whether a source is lost or rests.
    pub(super) fn is_down(&self, source: Source) -> bool {
        let trouble = self.troubles.get(&source.to_bits());
        trouble.is_some_and(|trouble| trouble.state != State::Works)
    }

    /// Records that a source rests.
    pub(super) fn rests(
        &mut self,
        (source, token): (Source, Token),
        name: impl FnOnce() -> String,
        error: &io::Error,
        now: Instant,
    ) {
        let trouble = self.fault(source, State::Resting, name, error, now);
        trouble.token = Some(token);
        // A shortage does not end at once, and costs little to look at.
        trouble.next = trouble.next.max(now + RETRY).min(now + REST_MAX);
        if trouble.may_log(now) {
            let (source, again_s) = (&trouble.name, trouble.next.since(now).as_secs_f64());
            tracing::warn!(%source, %error, again_s, "a source rests: a resource is short");
        }
        self.look();
    }

    /// Records that a source is lost.
    pub(super) fn lost(
        &mut self,
        source: Source,
        name: impl FnOnce() -> String,
        error: &io::Error,
        now: Instant,
    ) {
        let trouble = self.fault(source, State::Lost, name, error, now);
        trouble.token = None;
        if trouble.may_log(now) {
            let source = &trouble.name;
            tracing::warn!(%source, %error, "a source is lost; opening it again");
        }
        self.look();
    }

    /// Records that an attempt to open a source failed.
    pub(super) fn still_lost(&mut self, source: Source, error: &io::Error, now: Instant) {
        if let Some(trouble) = self.troubles.get_mut(&source.to_bits()) {
            trouble.reason = error.to_string();
            trouble.next = now + trouble.delay;
            trouble.delay = longer(trouble.delay);
            let (name, again_s) = (&trouble.name, trouble.next.since(now).as_secs_f64());
            tracing::warn!(source = %name, %error, again_s, "a source cannot be opened again");
        }
        self.look();
    }

    /// Records that a source works again.
    pub(super) fn works(&mut self, source: Source, now: Instant) {
        if let Some(trouble) = self.troubles.get_mut(&source.to_bits()) {
            let (name, down_s) = (&trouble.name, now.since(trouble.since).as_secs_f64());
            if trouble.state == State::Lost {
                tracing::info!(source = %name, down_s, "a source works again");
            }
            (trouble.state, trouble.since, trouble.token) = (State::Works, now, None);
        }
        self.look();
    }

    /// The cause of a loss seems to be gone: the next attempt is due at `at` or before.
    pub(super) fn hurry(&mut self, source: Source, at: Instant) {
        if let Some(trouble) = self.troubles.get_mut(&source.to_bits())
            && trouble.state == State::Lost
        {
            trouble.next = trouble.next.min(at);
        }
        self.look();
    }

    /// Forgets a source that no longer exists.
    pub(super) fn forget(&mut self, source: Source) {
        self.troubles.remove(&source.to_bits());
        self.look();
    }

    fn fault(
        &mut self,
        source: Source,
        state: State,
        name: impl FnOnce() -> String,
        error: &io::Error,
        now: Instant,
    ) -> &mut Trouble {
        self.faults += 1;
        if self.troubles.len() >= REMEMBERED {
            self.troubles
                .retain(|_, trouble| trouble.state != State::Works);
        }
        let new = || Trouble {
            name: name(),
            state: State::Works,
            reason: String::new(),
            faults: 0,
            since: Instant::ZERO,
            next: now,
            token: None,
            delay: RETRY,
            logged: None,
        };
        let trouble = self.troubles.entry(source.to_bits()).or_insert_with(new);
        let forgiven = trouble.faults == 0 || now.since(trouble.since) >= FORGIVEN;
        if forgiven && trouble.state == State::Works {
            (trouble.next, trouble.delay) = (now, RETRY);
        } else {
            trouble.next = now + trouble.delay;
            trouble.delay = longer(trouble.delay);
        }
        trouble.faults += 1;
        trouble.reason = error.to_string();
        (trouble.state, trouble.since) = (state, now);
        trouble
    }

    fn look(&mut self) {
        let down = self.troubles.values();
        let down = down.filter(|trouble| trouble.state != State::Works);
        self.due = down.map(|trouble| trouble.next).min();
    }
}

impl Trouble {
    /// When it is tried again, unless it works.
    pub(super) fn next_try(&self) -> Option<Instant> {
        (self.state != State::Works).then_some(self.next)
    }

    /// Whether a line about this failure may be logged now; the counter counts the others.
    fn may_log(&mut self, now: Instant) -> bool {
        let may = self
            .logged
            .is_none_or(|logged| now.since(logged) >= QUIET || self.faults == 1);
        if may {
            self.logged = Some(now);
        }
        may
    }
}

fn longer(delay: Duration) -> Duration {
    (delay + delay).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn shortages_rest_and_what_passes_by_itself_is_no_fault() {
        for (code, expected) in [(4, "Again"), (11, "Again"), (103, "Again")] {
            assert_eq!(format!("{:?}", Outcome::from(error(code))), expected);
        }
        for code in [12, 23, 24, 105] {
            assert!(matches!(Outcome::from(error(code)), Outcome::Rest(_)));
        }
        for code in [5, 9, 22, 77, 95] {
            assert!(matches!(Outcome::from(error(code)), Outcome::Lost(_)));
        }
    }

    #[test]
    fn the_first_attempt_is_at_once_and_each_further_one_waits_twice_as_long() {
        let mut health = Health::default();
        let start = Instant::ZERO + Duration::from_secs(1_000);
        let source = Source::Disconnect;
        health.lost(source, || "disconnect".into(), &error(5), start);
        assert_eq!(health.due(), Some(start));
        let mut now = start;
        let mut delays = Vec::new();
        for _ in 0..10 {
            health.still_lost(source, &error(98), now);
            let due = health.due().unwrap();
            delays.push(due.since(now).as_millis());
            now = due;
        }
        let expected = [
            100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000,
        ];
        assert_eq!(delays, expected);
        health.works(source, now);
        assert_eq!((health.due(), health.is_down(source)), (None, false));
        // It fails again at once: the delay goes on from where it was.
        health.lost(source, String::new, &error(5), now);
        assert_eq!(health.due(), Some(now + RETRY_MAX));
        health.works(source, now);
        let later = now + FORGIVEN;
        health.lost(source, String::new, &error(5), later);
        assert_eq!(health.due(), Some(later));
        assert_eq!((health.faults(), health.troubles()[0].faults), (3, 3));
    }

    /// An interface that flaps is served again each time as soon as it is up.
    #[test]
    fn an_attempt_that_is_hurried_is_due_at_once_and_the_next_one_waits_as_long_as_before() {
        let mut health = Health::default();
        let now = Instant::ZERO + Duration::from_secs(1_000);
        let source = Source::Port(0);
        health.hurry(source, now);
        assert_eq!(health.due(), None, "it is not lost");
        health.lost(source, String::new, &error(100), now);
        for _ in 0..10 {
            health.still_lost(source, &error(100), now);
        }
        assert_eq!(health.due(), Some(now + RETRY_MAX));
        health.hurry(source, now);
        assert_eq!(health.due(), Some(now));
        health.still_lost(source, &error(100), now);
        assert_eq!(health.due(), Some(now + RETRY_MAX));
        health.works(source, now);
        health.hurry(source, now);
        assert_eq!(health.due(), None);
    }
}
