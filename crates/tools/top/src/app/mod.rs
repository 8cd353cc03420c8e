//! The state of the screen. Keys and replies go in with the time; what to ask for next, and what the terminal must do,
//! come out.
//!
//! [`App::due`] says what to ask for, [`App::take`] takes the replies, [`App::key`] a key. Nothing here reads a clock:
//! times are those since the start of the program.

mod event_loop;
mod filter;
mod keys;
mod one;
mod peers;
mod queues;
mod subscribers;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use self::event_loop::EventLoop;
pub(crate) use self::keys::{Effect, HELP};
pub(crate) use self::one::One;
pub(crate) use self::peers::{PeerOrder, Peers};
pub(crate) use self::queues::{Queues, Rates as QueueRates};
pub(crate) use self::subscribers::{Order, Subscribers};

use crate::pace::Pace;
use crate::rows::{Answer, LIST_MAX, Outcome, Report, Want};
use crate::view::View;

/// The longest pause between two readings that slow replies cause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The time between two listings for which the daemon looks through more subscribers than it sends.
const SEARCH: Duration = Duration::from_secs(5);

/// A reply that has not arrived after this time is reported on the screen.
const SLOW: Duration = Duration::from_secs(2);

/// The intervals that + and - step through, in milliseconds.
const INTERVALS_MS: [u64; 9] = [
    200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000,
];

/// What the command line and the environment say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) view: View,
    pub(crate) filter: String,
    pub(crate) interval: Duration,
    pub(crate) is_coloured: bool,
    pub(crate) is_ascii: bool,
}

/// How the last round of requests went.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    /// There was none yet.
    Waiting,
    /// The replies arrived.
    Up,
    /// The connection is gone.
    Gone(String),
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) settings: Settings,
    pub(crate) view: View,
    pub(crate) is_help: bool,
    pub(crate) is_paused: bool,
    /// Keys go into the filter.
    pub(crate) is_typing: bool,
    /// Of the daemon, or in the view of queues of the shaper.
    pub(crate) link: Link,
    /// Why the last request of this view was refused.
    pub(crate) refusal: Option<String>,
    pub(crate) pace: Pace,
    pub(crate) subscribers: Subscribers,
    /// The subscriber that was opened.
    pub(crate) one: Option<One>,
    pub(crate) event_loop: EventLoop,
    pub(crate) peers: Peers,
    pub(crate) queues: Queues,
    /// When the requests without replies were sent.
    asked: Option<Duration>,
    /// When to ask next.
    next: Duration,
    /// When to ask for the list of subscribers next.
    next_list: Duration,
    /// The time of the last key, reply or tick.
    now: Duration,
    has_history: bool,
    is_fresh: bool,
}

impl App {
    /// The screen before the first reply.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            view: settings.view,
            is_help: false,
            is_paused: false,
            is_typing: false,
            link: Link::Waiting,
            refusal: None,
            pace: Pace::default(),
            subscribers: Subscribers::new(&settings.filter),
            one: None,
            event_loop: EventLoop::default(),
            peers: Peers::new(&settings.filter),
            queues: Queues::default(),
            asked: None,
            next: Duration::ZERO,
            next_list: Duration::ZERO,
            now: Duration::ZERO,
            has_history: false,
            is_fresh: true,
            settings,
        }
    }

    /// What to ask for now; `None` if it is not the time. Call [`take`](Self::take) with the replies.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Vec<Want>> {
        self.now = now;
        let is_due = now >= self.next && (!self.is_paused || self.is_fresh);
        if self.asked.is_some() || !is_due {
            return None;
        }
        self.asked = Some(now);
        self.is_fresh = false;
        Some(self.wants())
    }

    /// The time until [`due`](Self::due) is to be called; `None`: a key or a reply comes first.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        let is_waiting = self.asked.is_some() || (self.is_paused && !self.is_fresh);
        (!is_waiting).then(|| self.next.saturating_sub(now))
    }

    /// What the view shows, and nothing else.
    fn wants(&mut self) -> Vec<Want> {
        let mut wants = vec![Want::Now];
        match self.view {
            View::Overview => {}
            View::Subscribers => match &self.one {
                Some(one) => wants.push(Want::Subscriber(one.who.clone())),
                None if self.now >= self.next_list => wants.push(self.list()),
                None => {}
            },
            View::Loop => wants.push(Want::Loop),
            View::Peers => wants.push(Want::Peers),
            View::Queues => wants = vec![Want::Queues],
        }
        let has_curves = matches!(self.view, View::Overview | View::Loop);
        if has_curves && !self.has_history {
            wants.push(Want::History);
        }
        wants
    }

    /// The list of subscribers. A daemon with more subscribers than a list holds looks through all of them to find the
    /// first ones, so it is asked for these less often.
    fn list(&mut self) -> Want {
        let total = self.total();
        let listing = self.subscribers.listing(total);
        self.next_list = if listing.sort.is_some() {
            self.now + SEARCH
        } else {
            Duration::ZERO
        };
        Want::Subscribers(listing)
    }

    /// Takes the outcomes of the last requests.
    pub(crate) fn take(&mut self, report: Report, now: Duration) {
        self.now = now;
        let asked = self.asked.take().unwrap_or(now);
        // A daemon whose replies take long is asked less often, so that at most a tenth of its time goes into them.
        let pause = (9 * now.saturating_sub(asked)).min(PAUSE_MAX);
        if !self.is_fresh {
            self.next = (asked + self.settings.interval).max(now + pause);
        }
        let is_shown = report.view == self.view;
        if is_shown {
            self.refusal = None;
            self.link = Link::Up;
        }
        for (want, outcome) in report.outcomes {
            match outcome {
                Outcome::Answer(answer) => self.answer(answer, asked),
                // The past is a courtesy: an emulation has none.
                Outcome::Refused(_) if want == Want::History => self.has_history = true,
                Outcome::Refused(reason) if is_shown => self.refusal = Some(reason),
                Outcome::Gone(reason) if is_shown => {
                    self.link = Link::Gone(reason);
                    self.has_history = false;
                }
                Outcome::Refused(_) | Outcome::Gone(_) => {}
            }
        }
    }

    fn answer(&mut self, answer: Answer, at: Duration) {
        match answer {
            Answer::Now(now) => self.pace.push(*now),
            Answer::History(rows) => {
                self.has_history = true;
                if self.settings.interval == Duration::from_secs(1) {
                    self.pace.seed(&rows);
                }
            }
            Answer::Subscribers(listing, rows) => self.subscribers.take(listing, rows, at),
            Answer::Subscriber(key, row, ended) => {
                if let Some(one) = &mut self.one
                    && one.who.key == key
                {
                    one.take(row, ended, at);
                }
            }
            Answer::Loop(rows) => self.event_loop.take(rows, at),
            Answer::Peers(rows) => self.peers.take(rows, at),
            Answer::Queues(run) => self.queues.take(*run),
        }
    }

    /// Subscribers of the daemon.
    pub(crate) fn total(&self) -> u64 {
        let now = self.pace.last();
        now.map_or(0, |now| now.subscribers.by_state.values().sum())
    }

    /// Whether the list of subscribers holds only some of those that match.
    pub(crate) fn is_cut(&self) -> bool {
        self.subscribers.received() >= LIST_MAX as usize
    }

    /// For how long the replies are overdue.
    pub(crate) fn overdue(&self) -> Option<Duration> {
        let waits = self.now.saturating_sub(self.asked?);
        (waits >= SLOW).then_some(waits)
    }

    /// Asks as soon as possible: what the screen shows has changed.
    fn refresh(&mut self) {
        self.is_fresh = true;
        self.next = Duration::ZERO;
        self.next_list = Duration::ZERO;
    }

    /// Selects the next longer (or shorter) interval.
    fn step_interval(&mut self, is_longer: bool) {
        let now = self.settings.interval.as_millis() as u64;
        let mut steps = INTERVALS_MS.into_iter();
        let next = if is_longer {
            steps.find(|&step| step > now)
        } else {
            steps.rfind(|&step| step < now)
        };
        if let Some(next) = next {
            self.settings.interval = Duration::from_millis(next);
            self.refresh();
        }
    }
}
