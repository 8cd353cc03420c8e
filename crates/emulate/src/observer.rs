//! Records a run: UPDATEs sent by each router, the time of the last best-route change, and which
//! routers have accepted a hijacked or leaked route.
//!
//! Activity is attributed to the event whose step was taken last. The shares of routers over time
//! are kept for a bounded number of addresses, each with a bounded number of points. Two points are
//! at least a millionth of the run apart.

use std::net::IpAddr;

use base::{Duration, Instant};
use wire::bgp::Prefix;

use crate::event::{Action, Event};
use crate::outcomes::{Belief, Outcome, Outcomes, Route};
use crate::topology::Topology;

/// Limit of watched addresses; the first ones that events mention are watched.
const WATCHES_MAX: usize = 32;
/// Number of equal spans into which a run is divided to count its UPDATEs.
const SPANS: u64 = 2_000;
/// Longest path length counted separately.
const PATH_MAX: usize = 31;

/// What is recorded about one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) label: String,
    pub(crate) kind: &'static str,
    /// When its first and its last step were taken; none if it has not started.
    pub(crate) steps: Option<(Instant, Instant)>,
    pub(crate) last_change: Option<Instant>,
    pub(crate) last_update: Option<Instant>,
    pub(crate) updates: u64,
    pub(crate) changes: u64,
}

/// What a router was last seen to believe of a watched address.
#[derive(Clone, Copy, Default)]
struct Held {
    belief: Belief,
    /// Number of autonomous systems on its path.
    length: u8,
    /// [`Route::digest`] of its route.
    digest: u64,
}

/// What a router is seen to believe of a watched address.
#[derive(Default)]
pub(crate) struct Sight {
    pub(crate) belief: Belief,
    /// Number of autonomous systems on its path.
    pub(crate) length: usize,
    pub(crate) route: Option<Route>,
}

/// Number of routers with each belief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) owner: u32,
    pub(crate) other: u32,
}

/// An address that is watched.
pub(crate) struct Watch {
    pub(crate) address: IpAddr,
    /// Announced prefixes that contain the address, the longest first.
    pub(crate) prefixes: Vec<Prefix>,
    pub(crate) owner_asn: u32,
    /// The hijackers, each with whether it forges the origin.
    pub(crate) hijackers: Vec<(u32, bool)>,
    /// The routers that leak.
    pub(crate) leakers: Vec<u32>,
    beliefs: Vec<Held>,
    tally: Tally,
    pub(crate) series: Vec<(Instant, Tally)>,
}

/// Counters of one router.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doings {
    pub(crate) updates_sent: u32,
    pub(crate) updates_received: u32,
    pub(crate) changes: u32,
}

/// All observations of a run.
pub(crate) struct Observer {
    pub(crate) records: Vec<Record>,
    current: usize,
    pub(crate) watches: Vec<Watch>,
    pub(crate) outcomes: Outcomes,
    pub(crate) routers: Vec<Doings>,
    /// UPDATEs sent and best routes changed in each span.
    pub(crate) activity: Vec<(u32, u32)>,
    pub(crate) span: Duration,
    /// Least time between two points of a series.
    grain: Duration,
    pub(crate) updates: u64,
    pub(crate) last_update: Instant,
}

impl Observer {
    /// Starts observing a run of `events` over `topology`. The first record covers the start-up,
    /// while sessions come up.
    pub(crate) fn new(topology: &Topology, events: &[Event], run: Duration) -> Self {
        let mut observer = Self {
            records: Vec::new(),
            current: 0,
            watches: Vec::new(),
            outcomes: Outcomes::default(),
            routers: vec![Doings::default(); topology.routers.len()],
            activity: Vec::new(),
            span: Duration::from_nanos((run.as_nanos() / SPANS).max(1_000_000)),
            grain: Duration::from_nanos(run.as_nanos() / 1_000_000),
            updates: 0,
            last_update: Instant::ZERO,
        };
        observer.records.push(Record {
            label: "sessions come up".to_owned(),
            kind: "start",
            steps: Some((Instant::ZERO, Instant::ZERO)),
            ..Record::default()
        });
        for event in events {
            observer.watch(topology, event);
        }
        observer
    }

    /// Adds a record and returns its number.
    pub(crate) fn record(&mut self, label: String, kind: &'static str) -> u32 {
        self.records.push(Record {
            label,
            kind,
            ..Record::default()
        });
        self.records.len() as u32 - 1
    }

    /// Watches the addresses that `event` concerns.
    pub(crate) fn watch(&mut self, topology: &Topology, event: &Event) {
        let asn = |router: u32| topology.routers[router as usize].asn;
        match &event.action {
            Action::Announce { router, prefix } | Action::Withdraw { router, prefix } => {
                self.watch_prefix(topology, *prefix, asn(*router));
            }
            Action::Hijack {
                router,
                victim,
                prefix,
                forged_origin,
                ..
            } => {
                self.watch_prefix(topology, *prefix, asn(*victim));
                let own = Topology::own_prefix(*victim);
                let around = self
                    .watches
                    .iter_mut()
                    .filter(|w| prefix.contains_address(w.address));
                for watch in around {
                    if !watch.hijackers.contains(&(asn(*router), *forged_origin)) {
                        watch.hijackers.push((asn(*router), *forged_origin));
                    }
                    if own.contains_address(watch.address) {
                        watch.around(own);
                    }
                }
            }
            Action::Flap { who, .. } => {
                if let [(router, prefix)] = who.as_slice() {
                    self.watch_prefix(topology, *prefix, asn(*router));
                }
            }
            Action::Leak { router, .. } => {
                for watch in &mut self.watches {
                    if !watch.leakers.contains(&asn(*router)) {
                        watch.leakers.push(asn(*router));
                    }
                }
            }
            Action::Reset { .. }
            | Action::LinkFailure { .. }
            | Action::RouterFailure { .. }
            | Action::Replay { .. }
            | Action::Malformed { .. } => {}
        }
    }

    fn watch_prefix(&mut self, topology: &Topology, prefix: Prefix, owner_asn: u32) {
        let mut known = false;
        for watch in &mut self.watches {
            if prefix.contains_address(watch.address) {
                watch.around(prefix);
                known = true;
            }
        }
        if known || self.watches.len() == WATCHES_MAX {
            return;
        }
        // Earlier prefixes that contain the new address belong to its watch too.
        let address = prefix.address();
        let mut prefixes: Vec<Prefix> = self
            .watches
            .iter()
            .flat_map(|w| w.prefixes.clone())
            .collect();
        prefixes.retain(|other| other.contains_address(address));
        let mut watch = Watch {
            address,
            prefixes,
            owner_asn,
            hijackers: Vec::new(),
            leakers: Vec::new(),
            beliefs: vec![Held::default(); topology.routers.len()],
            tally: Tally::default(),
            series: Vec::new(),
        };
        watch.around(prefix);
        self.watches.push(watch);
    }

    /// Whether `prefix` contains a watched address.
    pub(crate) fn is_watched(&self, prefix: Prefix) -> bool {
        self.watches
            .iter()
            .any(|watch| watch.prefixes.contains(&prefix))
    }

    /// Notes that a step is taken for the event with this record.
    pub(crate) fn begin(&mut self, record: u32, now: Instant) {
        self.current = record as usize;
        let steps = &mut self.records[self.current].steps;
        *steps = Some((steps.map_or(now, |(first, _)| first), now));
    }

    /// `router` sent `updates` UPDATEs.
    pub(crate) fn sent(&mut self, router: u32, updates: u32, now: Instant) {
        if updates == 0 {
            return;
        }
        self.routers[router as usize].updates_sent += updates;
        self.updates += u64::from(updates);
        self.last_update = now;
        let record = &mut self.records[self.current];
        record.updates += u64::from(updates);
        record.last_update = Some(now);
        self.span_of(now).0 += updates;
    }

    /// `router` received `updates` UPDATEs.
    pub(crate) fn received(&mut self, router: u32, updates: u32) {
        self.routers[router as usize].updates_received += updates;
    }

    /// `changes` best routes of `router` changed.
    pub(crate) fn changed(&mut self, router: u32, changes: u32, now: Instant) {
        if changes == 0 {
            return;
        }
        self.routers[router as usize].changes += changes;
        let record = &mut self.records[self.current];
        record.changes += u64::from(changes);
        record.last_change = Some(now);
        self.span_of(now).1 += changes;
    }

    /// Records the route of `router` to the watched address number `watch`.
    pub(crate) fn believes(&mut self, watch: usize, router: u32, sight: Sight, now: Instant) {
        let grain = self.grain;
        let held = Held {
            belief: sight.belief,
            length: sight.length.min(PATH_MAX) as u8,
            digest: Route::digest(sight.route.as_ref()),
        };
        let before = std::mem::replace(&mut self.watches[watch].beliefs[router as usize], held);
        // A router without a route stays without one until it has one.
        let is_new = before.belief == Belief::Nothing;
        if before.belief != held.belief || (!is_new && before.digest != held.digest) {
            self.outcomes.push(Outcome {
                watch,
                router,
                at: now,
                belief: sight.belief,
                route: sight.route,
            });
        }
        if before.belief == held.belief {
            return;
        }
        let watch = &mut self.watches[watch];
        for (belief, step) in [(before.belief, u32::MAX), (held.belief, 1)] {
            match belief {
                Belief::Nothing => {}
                Belief::Owner => watch.tally.owner = watch.tally.owner.wrapping_add(step),
                Belief::Other => watch.tally.other = watch.tally.other.wrapping_add(step),
            }
        }
        match watch.series.last_mut() {
            Some((at, tally)) if now - *at <= grain => *tally = watch.tally,
            Some(_) | None => watch.series.push((now, watch.tally)),
        }
    }

    /// Adds what another part of the same run observed.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (own, its) in self.records.iter_mut().zip(other.records) {
            own.steps = match (own.steps, its.steps) {
                (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                (own, its) => own.or(its),
            };
            own.last_change = own.last_change.max(its.last_change);
            own.last_update = own.last_update.max(its.last_update);
            own.updates += its.updates;
            own.changes += its.changes;
        }
        for (own, its) in self.routers.iter_mut().zip(other.routers) {
            own.updates_sent += its.updates_sent;
            own.updates_received += its.updates_received;
            own.changes += its.changes;
        }
        if self.activity.len() < other.activity.len() {
            self.activity.resize(other.activity.len(), (0, 0));
        }
        for (own, its) in self.activity.iter_mut().zip(other.activity) {
            own.0 += its.0;
            own.1 += its.1;
        }
        self.updates += other.updates;
        self.last_update = self.last_update.max(other.last_update);
        self.outcomes.absorb(other.outcomes);
        for (own, its) in self.watches.iter_mut().zip(other.watches) {
            own.absorb(its);
        }
    }

    /// Time since the last UPDATE.
    pub(crate) fn quiet_for(&self, now: Instant) -> Duration {
        now - self.last_update
    }

    fn span_of(&mut self, now: Instant) -> &mut (u32, u32) {
        let index = (now.as_nanos() / self.span.as_nanos()) as usize;
        if index >= self.activity.len() {
            self.activity.resize(index + 1, (0, 0));
        }
        &mut self.activity[index]
    }
}

impl Watch {
    /// Adds the beliefs of other routers, at each time.
    fn absorb(&mut self, other: Self) {
        for (own, its) in self.beliefs.iter_mut().zip(other.beliefs) {
            if its.belief != Belief::Nothing {
                *own = its;
            }
        }
        self.tally.owner += other.tally.owner;
        self.tally.other += other.tally.other;
        let mine = std::mem::take(&mut self.series);
        let (mut here, mut there) = (mine.iter().peekable(), other.series.iter().peekable());
        let (mut left, mut right) = (Tally::default(), Tally::default());
        loop {
            let at = match (here.peek(), there.peek()) {
                (None, None) => return,
                (Some(one), None) | (None, Some(one)) => one.0,
                (Some(one), Some(two)) => one.0.min(two.0),
            };
            if let Some(next) = here.next_if(|next| next.0 == at) {
                left = next.1;
            }
            if let Some(next) = there.next_if(|next| next.0 == at) {
                right = next.1;
            }
            let sum = Tally {
                owner: left.owner + right.owner,
                other: left.other + right.other,
            };
            self.series.push((at, sum));
        }
    }

    /// Notes that `prefix`, which contains the address, is announced.
    fn around(&mut self, prefix: Prefix) {
        if !self.prefixes.contains(&prefix) {
            self.prefixes.push(prefix);
            self.prefixes
                .sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        }
    }

    /// Where a best route leads whose path has these autonomous systems, the nearest first. `local`
    /// means that the router `asn` originates the route itself.
    pub(crate) fn judge(
        &self,
        asn: u32,
        local: bool,
        path: impl Iterator<Item = u32>,
    ) -> (Belief, usize) {
        let mut length = 0;
        let mut last_two = [0, asn];
        let mut leaked = false;
        for hop in path {
            length += 1;
            last_two = [last_two[1], hop];
            leaked |= self.leakers.contains(&hop);
        }
        let hijacked = |&(hijacker, forged): &(u32, bool)| {
            let at_end = last_two[1] == hijacker && hijacker != self.owner_asn;
            let before_end = forged && last_two[0] == hijacker;
            at_end || before_end || (local && asn == hijacker)
        };
        let belief = if leaked || self.hijackers.iter().any(hijacked) {
            Belief::Other
        } else {
            Belief::Owner
        };
        (belief, length)
    }

    /// Number of routers with each path length, from 0 to 31; the last includes longer paths.
    pub(crate) fn path_lengths(&self) -> Vec<u32> {
        let mut counts = vec![0; PATH_MAX + 1];
        for held in &self.beliefs {
            if held.belief != Belief::Nothing {
                counts[usize::from(held.length)] += 1;
            }
        }
        while counts.last() == Some(&0) {
            counts.pop();
        }
        counts
    }
}
