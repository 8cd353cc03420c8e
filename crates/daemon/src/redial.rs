//! The PPPoE session in which we are the client (`[client] pppoe`): dials when its interface is there, and again after
//! the session ended, each time later.

use base::{Duration, Instant};
use pppoe::{Dial, EndReason, SessionKey, Vlans};

/// Delay of the first attempt after a session that was up, and of the second one otherwise; each further one waits
/// twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(60);

/// The client's line: none, or one that is up, is being dialled or waits. `lines` dials.
#[derive(Default)]
pub(super) struct Redial {
    pub(super) line: Option<Line>,
}

/// Where and what to dial, and how far that is.
pub(super) struct Line {
    pub(super) interface: String,
    pub(super) vlans: Vlans,
    pub(super) dial: Dial,
    pub(super) session: Option<SessionKey>,
    /// When to dial next, if no session exists.
    due: Instant,
    delay: Duration,
    attempts: u64,
}

impl Redial {
    /// A line at an interface, to be dialled at once.
    pub(super) fn new(interface: String, vlans: Vlans, dial: Dial) -> Self {
        let line = Line {
            interface,
            vlans,
            dial,
            session: None,
            due: Instant::ZERO,
            delay: FIRST,
            attempts: 0,
        };
        Self { line: Some(line) }
    }

    /// When to dial.
    pub(super) fn due(&self) -> Option<Instant> {
        let line = self.line.as_ref()?;
        line.session.is_none().then_some(line.due)
    }

    /// The interface is there: dials soon if nothing is under way.
    pub(super) fn hurry(&mut self, now: Instant) {
        if let Some(line) = &mut self.line {
            line.due = line.due.min(now);
        }
    }

    /// The session's PPP link is up: the next end is not one of a failed attempt.
    pub(super) fn up(&mut self, session: SessionKey) {
        if let Some(line) = &mut self.line
            && line.session == Some(session)
        {
            tracing::info!(interface = %line.interface, attempts = line.attempts, "pppoe client connected");
            line.delay = FIRST;
            line.attempts = 0;
        }
    }

    /// A session ended.
    pub(super) fn down(&mut self, session: SessionKey, reason: &EndReason, now: Instant) {
        if let Some(line) = &mut self.line
            && line.session == Some(session)
        {
            line.session = None;
            line.wait(reason, now);
        }
    }
}

impl Line {
    /// Waits for the next attempt.
    pub(super) fn wait(&mut self, reason: &impl std::fmt::Display, now: Instant) {
        let again_s = self.delay.as_secs_f64();
        // A line that stays down is logged at each power of two.
        self.attempts += 1;
        if self.attempts.is_power_of_two() {
            tracing::warn!(interface = %self.interface, %reason, again_s, "pppoe client disconnected");
        }
        self.due = now + self.delay;
        self.delay = (self.delay + self.delay).min(LONGEST);
    }
}
