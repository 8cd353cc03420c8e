//! The edge: its tables, and the order in which its parts handle an event.
//!
//! | file | what it does |
//! |---|---|
//! | `frames` | datagrams from peers, packets from the inside |
//! | `links` | sessions become subscribers; events of their PPP links; every way to end |
//! | `admit` | admission: name, address, filter, routes |
//! | `account` | accounting entries |
//! | `parting` | the last entry of a subscriber, with the packets of all cores |
//! | `families` | IPv6 prefixes of subscribers, and Router Advertisements |
//! | `on_link` | IPv6 packets to us on a subscriber's link |
//! | `uplinks` | IPv6 on links where we are the client |
//! | `networks` | networks behind subscribers |
//! | `paths` | changes and counters of the paths |
//! | `shapes` | queues of subscribers |
//! | `homes` | which path has which queues |
//! | `queues` | rates, templates and links of subscribers |
//! | `policy` | changes of connected subscribers |
//! | `reconfigure` | a new configuration |
//! | `dial` | links in which we are the client |
//! | `switching` | sessions that are handed over to an LNS |
//! | `tap` | captures |
//! | `translation` | the NAT |
//! | `views` | rows for `show` |

mod account;
mod admit;
mod dial;
mod families;
mod frames;
mod homes;
mod links;
mod networks;
mod on_link;
mod parting;
mod paths;
mod policy;
mod queues;
mod reconfigure;
mod shapes;
mod switching;
mod tap;
mod translation;
mod uplinks;
mod views;

use std::collections::VecDeque;
use std::sync::Arc;

use aaa::{Pools, PrefixPools};
use base::slab::Key;
use base::timer::{TimerStore, Wheel};
use base::{Instant, Slab};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use ppp::Outbox;

use crate::access::{Access, L2tp, SessionChange};
use crate::config::Config;
use crate::counters::Counters;
use crate::end::End;
use crate::event::{Event, Question};
use crate::history::History;
use crate::key::SubscriberKey;
use crate::outgoing::Outgoing;
use crate::path::{Change, Path};
use crate::queue::LinkUse;
use crate::random::Random;
use crate::subscriber::{ByVersion, Phase, Phases, Subscriber};
use crate::switch::Index;

pub use account::{Account, Entry};
pub use dial::Dial;
use homes::{Homes, Move};
use networks::Waiting;
use parting::Parting;
pub use paths::{FilterChange, FiltersMut};
pub use policy::ChangeRefusal;
use reconfigure::Retiming;
use shapes::Shaped;
use switching::Switches;
pub use switching::{Far, NoRoute, SwitchedView, Wanted};
use tap::Tap;
pub use tap::{TAPPED_MAX, TAPS_MAX};
pub use translation::NatSubscribers;
use translation::Translation;
pub use views::{Counts, Limits, SubscriberView};

/// Events of the endpoint that are handled together, each in a few microseconds.
const HEEDED_AT_ONCE: usize = 64;

/// No subscriber.
const NIL: u32 = u32::MAX;

/// An endpoint whose sessions end here, as connected subscribers.
///
/// Its owner passes it datagrams, packets and time. After every change the owner drains it: transmits, then events and
/// questions, then the timeout. One drain may follow a whole batch.
pub struct Edge<A: Access = L2tp> {
    pub(crate) config: Config,
    pub(crate) endpoint: A,
    pub(crate) subscribers: Slab<Subscriber<A>>,
    pub(crate) phases: Phases,
    pub(crate) versions: ByVersion,
    /// Subscribers by the index of their session.
    pub(crate) by_session: Vec<u32>,
    /// Admitted subscribers by name.
    pub(crate) by_name: HashTable<u32>,
    /// All subscribers by the number of their account.
    pub(crate) by_account: HashTable<u32>,
    /// The data path of this core.
    pub(crate) path: Path<A::Encapsulation>,
    /// Changes that other paths do not have yet.
    pub(crate) changes: VecDeque<Change<A::Encapsulation>>,
    /// Number of changes for other paths so far.
    pub(crate) changed: u64,
    /// Subscribers that ended and may still have packets on other paths.
    pub(crate) parting: VecDeque<Parting<A>>,
    /// Our calls that become links once they are up.
    pub(crate) dials: HashMap<A::Session, Dial>,
    pub(crate) hasher: FixedState,
    pub(crate) random: Random,
    pub(crate) timers: Wheel,
    pub(crate) outbox: Outbox,
    pub(crate) outgoing: Outgoing<A::Route>,
    pub(crate) events: VecDeque<Event<A>>,
    pub(crate) questions: VecDeque<Question>,
    /// Entries for `poll_account`.
    pub(crate) accounts: VecDeque<Account<A::Place>>,
    pub(crate) pools: Pools,
    pub(crate) prefixes: PrefixPools,
    /// Whether it was reported that a part of IPv6 could not be leased, since one was.
    pub(crate) told_unavailable: [bool; 3],
    pub(crate) history: History<A::Place, A::Reason>,
    pub(crate) counters: Counters,
    /// The number of the latest account; the first is 1.
    pub(crate) last_account: u64,
    /// Subscribers that wait for networks of others.
    pub(crate) waiting: Waiting,
    /// Number of changes that all other paths have applied.
    pub(crate) applied: u64,
    /// The NAT, if there is one.
    pub(crate) nat: Option<Box<Translation>>,
    /// The shaped subscribers, by index.
    pub(crate) shaped: HashMap<u32, Shaped>,
    /// Which path has which queues.
    pub(crate) homes: Homes,
    /// Queues that are on their way to another path, oldest step first.
    pub(crate) moves: VecDeque<Move>,
    /// Stays of queues on paths so far, modulo 2^32.
    pub(crate) stays: u32,
    /// The secret of all queues.
    pub(crate) queue_seed: u64,
    /// Subscribers on each shared link, by its name.
    pub(crate) on_links: HashMap<Arc<str>, LinkUse>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) last_tap: u32,
    pub(crate) shutting_down: bool,
    /// Since when events of the endpoint wait for [`Edge::heed`].
    pub(crate) unheeded: Option<Instant>,
    /// The subscribers that a new configuration has yet to reach.
    pub(crate) retiming: Option<Retiming>,
    /// Sessions that are handed over.
    pub(crate) switches: Switches<A>,
}

impl<A: Access> Edge<A> {
    /// An edge around an endpoint. `seed` is 32 random octets; equal seeds and inputs give equal outputs.
    #[must_use]
    pub fn new(config: Config, endpoint: A, pools: Pools, seed: [u8; 32]) -> Self {
        let mut random = Random::new(seed);
        let hasher = FixedState::with_seed(random.u64());
        let queue_seed = random.u64();
        let mut path = Path::new(&config);
        path.seed = queue_seed.rotate_left(32);
        let prefix_seed = random.u64();
        Self {
            endpoint,
            subscribers: Slab::new(),
            phases: Phases::default(),
            versions: ByVersion::default(),
            by_session: Vec::new(),
            by_name: HashTable::new(),
            by_account: HashTable::new(),
            path,
            changes: VecDeque::new(),
            changed: 0,
            parting: VecDeque::new(),
            dials: HashMap::new(),
            hasher,
            timers: Wheel::new(config.tick),
            outbox: Outbox::new(),
            outgoing: Outgoing::default(),
            events: VecDeque::new(),
            questions: VecDeque::new(),
            accounts: VecDeque::new(),
            pools,
            prefixes: PrefixPools::new(prefix_seed),
            told_unavailable: [false; 3],
            history: History::new(config.history_max),
            counters: Counters::default(),
            last_account: 0,
            waiting: Waiting::default(),
            applied: 0,
            shaped: HashMap::new(),
            homes: Homes::new(config.paths),
            moves: VecDeque::new(),
            stays: 0,
            queue_seed,
            on_links: HashMap::new(),
            nat: None,
            taps: Vec::new(),
            last_tap: 0,
            shutting_down: false,
            unheeded: None,
            retiming: None,
            switches: Switches::new(Index::new(&config.switching)),
            random,
            config,
        }
    }

    /// The endpoint below.
    #[must_use]
    pub fn endpoint(&self) -> &A {
        &self.endpoint
    }

    /// The endpoint below, for commands. The next [`Edge::poll_transmit`] handles the events that they cause.
    pub fn endpoint_mut(&mut self) -> &mut A {
        &mut self.endpoint
    }

    /// Handles the next events of the endpoint: some at a time, because the end of a tunnel with thousands of sessions
    /// has as many. [`Edge::poll_timeout`] is due as long as there are more.
    pub fn heed(&mut self, now: Instant) {
        for _ in 0..HEEDED_AT_ONCE {
            let Some(event) = self.endpoint.poll_event() else {
                self.unheeded = None;
                return;
            };
            match A::session_change(&event) {
                Some(SessionChange::Up(session)) => self.session_up(session, now),
                Some(SessionChange::Down(session, reason)) => {
                    self.session_down(session, &reason, now);
                }
                None => {}
            }
            if let Some((session, bps)) = A::speed_change(&event) {
                self.pass_speed(session, bps);
            }
            self.events.push_back(Event::Access(event));
        }
        self.unheeded.get_or_insert(now);
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeouts(now, usize::MAX);
        while self.unheeded.is_some() {
            self.heed(now);
        }
    }

    /// Fires at most `most` timers of tunnels and as many of subscribers, so that the caller can do other work before
    /// the next ones. Returns whether more are due.
    pub fn handle_timeouts(&mut self, now: Instant, most: usize) -> bool {
        let due = self.endpoint.poll_timeout();
        if due.is_some_and(|(at, _)| at <= now) {
            self.endpoint.handle_timeouts(now, most);
        }
        self.heed(now);
        if let Some(nat) = &mut self.path.nat {
            nat.handle_timeout(now);
        }
        let mut fired = 0;
        while fired < most
            && let Some(expired) = self.timers.pop_due(now)
        {
            fired += 1;
            if let Some(subscriber) = self.subscribers.at_mut(expired.token) {
                subscriber.timer = None;
                self.subscriber_due(expired.token, now);
            }
        }
        self.retime(now);
        self.poll_timeout().is_some_and(|(at, _)| at <= now)
    }

    /// When [`Edge::handle_timeout`] is due, and for which timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let timer = self.timers.next_deadline().map(|at| (at, "subscriber"));
        let unheeded = self.unheeded.map(|at| (at, "session change"));
        let retiming = self.retiming.as_ref();
        let retiming = retiming.map(|retiming| (retiming.since, "new configuration"));
        let nat = self.path.nat.as_ref().and_then(|nat| nat.poll_timeout());
        let all = [unheeded, retiming, self.endpoint.poll_timeout(), timer, nat];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Appends one datagram to `out`; `None` means drained.
    ///
    /// The endpoint's own messages come before frames, so that a session is connected before its frames leave.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<A::Route> {
        self.heed(now);
        self.endpoint
            .poll_transmit(now, out)
            .or_else(|| self.outgoing.pop(out))
            .or_else(|| self.path.poll_transmit(out))
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event<A>> {
        self.events.pop_front()
    }

    /// The next question whether a subscriber may connect, oldest first. Answer with [`Edge::admit`] or
    /// [`Edge::refuse`].
    pub fn poll_question(&mut self) -> Option<Question> {
        self.questions.pop_front()
    }

    /// Shuts down in order: every peer gets a message.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        self.endpoint.shut_down(now);
        // A protocol may end its sessions some at a time.
        self.endpoint.handle_timeouts(now, 2 * HEEDED_AT_ONCE);
        self.heed(now);
        // Last entries wait for other paths no longer.
        self.applied(u64::MAX, now);
    }

    /// Whether nothing is left to send or to be acknowledged.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.unheeded.is_none()
            && self.endpoint.is_quiet()
            && self.outgoing.is_empty()
            && self.path.outgoing.is_empty()
    }

    /// The index of a session's subscriber.
    pub(crate) fn subscriber_of(&self, session: A::Session) -> Option<u32> {
        let index = *self.by_session.get(A::index(session))?;
        self.subscribers
            .at(index)
            .filter(|subscriber| subscriber.session == session)
            .map(|_| index)
    }

    pub(crate) fn bind_session(&mut self, session: A::Session, index: u32) {
        let place = A::index(session);
        if self.by_session.len() <= place {
            self.by_session.resize(place + 1, NIL);
        }
        self.by_session[place] = index;
    }

    pub(crate) fn at(&self, index: u32) -> &Subscriber<A> {
        self.subscribers
            .at(index)
            .expect("an index inside the edge names a subscriber")
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Subscriber<A> {
        self.subscribers
            .at_mut(index)
            .expect("an index inside the edge names a subscriber")
    }

    /// A subscriber, with the counts that a change of its phase changes.
    pub(crate) fn at_mut_with_phases(&mut self, index: u32) -> (&mut Subscriber<A>, &mut Phases) {
        let one = self.subscribers.at_mut(index);
        let one = one.expect("an index inside the edge names a subscriber");
        (one, &mut self.phases)
    }

    pub(crate) fn set_phase(&mut self, index: u32, phase: Phase) {
        let (subscriber, phases) = self.at_mut_with_phases(index);
        subscriber.set_phase(phase, phases);
    }

    /// Starts the end of a subscriber.
    pub(crate) fn tell_to_go(&mut self, index: u32, reason: End<A::Reason>) {
        let (subscriber, phases) = self.at_mut_with_phases(index);
        subscriber.tell_to_go(reason, phases);
    }

    /// Arms a subscriber's one timer for the earliest of its deadlines.
    pub(crate) fn settle_timer(&mut self, index: u32) {
        let Self {
            subscribers,
            timers,
            ..
        } = self;
        let Some(subscriber) = subscribers.at_mut(index) else {
            return;
        };
        let due = subscriber.deadline();
        match subscriber.timer {
            // A timer that fires too early is armed again then, which is cheaper than moving it each time.
            Some((_, at)) if at <= due => return,
            Some((timer, _)) => {
                timers.cancel(timer);
            }
            None => {}
        }
        subscriber.timer = (due != Instant::FAR_FUTURE).then(|| (timers.insert(due, index), due));
    }

    pub(crate) fn remove_subscriber(&mut self, key: Key) -> Option<Subscriber<A>> {
        let mut subscriber = self.subscribers.remove(key)?;
        self.forget_shape(key.index);
        self.forget_translator(key.index);
        subscriber.leave(&mut self.phases, &mut self.versions);
        self.forget_account(key.index, subscriber.account);
        self.queue_gone(subscriber.queue.as_deref());
        if !self.taps.is_empty() {
            self.tap_gone(SubscriberKey(key));
        }
        if let Some((timer, _)) = subscriber.timer {
            self.timers.cancel(timer);
        }
        if let Some(place) = self.by_session.get_mut(A::index(subscriber.session))
            && *place == key.index
        {
            *place = NIL;
        }
        Some(subscriber)
    }
}
