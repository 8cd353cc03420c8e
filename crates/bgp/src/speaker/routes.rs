//! The speaker's side of the rib, and graceful restart (RFC 4724).

use base::{Duration, Instant};
use wire::bgp::{Families, FamilyId, Prefix, Update};

use super::Speaker;
use crate::end::CloseReason;
use crate::fsm::{self, State};
use crate::negotiate::Graceful;
use crate::peer::{Origin, PeerId, Stale};
use crate::rib::{BestChange, LocalRoute, Received, Rib};
use crate::table::{ConnId, Flags};
use crate::timers::Timer;

impl Speaker {
    /// Opens the rib for a session that is Established.
    pub(super) fn open_routes(&mut self, index: u32, id: ConnId) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.ended = Families::NONE;
        peer.refreshing = Families::NONE;
        let Some(conn) = self.conns.get(id) else {
            return;
        };
        let Some(agreed) = conn.agreed.as_deref() else {
            return;
        };
        let local = conn.local.map(|local| local.ip());
        let traits = agreed.traits(&peer.settings, peer.remote, local);
        self.rib.open_peer(PeerId(index), traits);
        self.has_work = true;
        let graceful = agreed.graceful;
        peer.graceful = graceful.filter(|graceful| !graceful.families.is_empty());
        self.take_stale_back(index, graceful);
        // The speaker may have waited for this peer, and it may be the last one.
        self.check_deferral();
    }

    /// Decides which stale routes of a peer stay when it is back.
    fn take_stale_back(&mut self, index: u32, graceful: Option<Graceful>) {
        let Some(stale) = self
            .peers
            .get_mut(index)
            .and_then(|peer| peer.stale.as_deref_mut())
        else {
            return;
        };
        // Routes that the peer did not preserve are removed now. The others are removed at its End-of-RIB, or after the
        // restart time.
        let preserved = graceful.map_or(Families::NONE, |graceful| graceful.forwarding);
        stale.until = stale.at_most;
        let at = stale.until;
        let lost = stale
            .families
            .iter()
            .filter(|family| !preserved.contains(*family));
        for family in lost.collect::<Vec<_>>() {
            self.end_stale(index, family);
        }
        self.timers.arm(at, Timer::Stale(index));
    }

    /// Removes a peer's routes when its session ends, or keeps them as stale routes.
    pub(super) fn close_routes(&mut self, index: u32, retain: bool, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.stale = None;
        let graceful = peer.graceful.take().filter(|_| retain);
        let kept = peer.settings.graceful_restart;
        let keep = graceful.map_or(Families::NONE, |graceful| graceful.families);
        self.rib.close_peer(PeerId(index), keep);
        self.has_work = true;
        let (Some(graceful), Some(kept)) = (graceful, kept) else {
            return;
        };
        let at_most = now + kept.stale_max;
        let until = now + Duration::from_secs(u64::from(graceful.time_s));
        let until = until.min(at_most);
        peer.stale = Some(Box::new(Stale {
            until,
            at_most,
            families: graceful.families,
        }));
        self.timers.arm(until, Timer::Stale(index));
    }

    /// Removes a peer's stale routes of one family.
    fn end_stale(&mut self, index: u32, family: FamilyId) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        // Routes that a refresh made old are not stale in this sense: they wait for the end of the refresh.
        let is_stale = |stale: &Stale| stale.families.contains(family);
        if peer.stale.as_deref().is_some_and(is_stale) {
            self.rib.sweep_stale(PeerId(index), family);
            self.has_work = true;
        }
        if let Some(stale) = peer.stale.as_deref_mut() {
            stale.families = stale.families.without(family);
            if stale.families.is_empty() {
                peer.stale = None;
            }
        }
    }

    /// Removes a peer's stale routes because their time is over.
    pub(super) fn stale_expires(&mut self, index: u32) {
        self.drop_stale(index);
        let is_left = self.peers.get(index).is_some_and(|peer| {
            matches!(peer.origin, Origin::Dynamic(_)) && peer.main.is_none() && !peer.is_held
        });
        if is_left {
            self.forget(index);
        }
    }

    /// Takes the routes of an UPDATE.
    pub(super) fn take_update(&mut self, index: u32, update: &Update<'_>, now: Instant) {
        self.has_work = true;
        if let Some(family) = update.end_of_rib() {
            if let Some(peer) = self.peers.get_mut(index) {
                peer.ended = peer.ended.with(family);
            }
            self.end_stale(index, family);
            return self.check_deferral();
        }
        let received = self.rib.receive(PeerId(index), update);
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let Received {
            loops,
            leaks,
            refused,
            ..
        } = received;
        peer.counts.loops += u64::from(loops);
        peer.counts.leaks += u64::from(leaks);
        peer.counts.refused += u64::from(refused);
        if received.is_over_limit {
            self.over_limit(index, now);
        }
    }

    /// Ends the session of a peer that announced more prefixes than its limit (RFC 4271, section 6.7). The peer stays
    /// in Idle for the time of the limit, or until an operator starts it.
    fn over_limit(&mut self, index: u32, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let Some(limit) = peer.settings.prefix_limit else {
            return;
        };
        peer.held = limit.restart_after;
        if limit.restart_after.is_none() {
            peer.is_started = false;
        }
        let (main, second) = (peer.main, peer.second);
        self.hold(index);
        let of = |family: FamilyId| {
            let counts = self.rib.peer_counts(PeerId(index), family);
            counts.received.saturating_sub(counts.stale)
        };
        let family = FamilyId::ALL.into_iter().max_by_key(|family| of(*family));
        let why = CloseReason::PrefixLimit {
            family: family.unwrap_or(FamilyId::IN_FIELDS),
            prefixes_max: limit.prefixes_max,
        };
        // A second connection would take the place of the first one at once.
        if second.is_some() {
            self.run(index, second, fsm::Event::AutomaticStop, why.clone(), now);
        }
        self.run(index, main, fsm::Event::AutomaticStop, why, now);
    }

    /// Removes the stale routes of a peer that will not be back.
    pub(super) fn drop_stale(&mut self, index: u32) {
        for family in FamilyId::ALL {
            self.end_stale(index, family);
        }
    }

    /// The peer asks for all our routes of a family.
    pub(super) fn refresh_routes(&mut self, index: u32, family: FamilyId) {
        self.rib.refresh(PeerId(index), family);
        self.has_work = true;
    }

    /// The peer starts to send all its routes of a family again (RFC 7313, section 4). With graceful restart that is
    /// ignored before its End-of-RIB, so that its stale routes and the old ones of a refresh stay apart.
    pub(super) fn refresh_begins(&mut self, index: u32, family: FamilyId) {
        let has_ended = self.session_of(PeerId(index)).is_some_and(|(_, agreed)| {
            let peer = self.peers.get(index);
            agreed.graceful.is_none() || peer.is_some_and(|peer| peer.ended.contains(family))
        });
        let Some(peer) = self.peers.get_mut(index).filter(|_| has_ended) else {
            return;
        };
        peer.refreshing = peer.refreshing.with(family);
        self.rib.mark_stale(PeerId(index), family);
    }

    /// The peer has sent all of them: routes that it did not send again are removed.
    pub(super) fn refresh_ends(&mut self, index: u32, family: FamilyId) {
        let is_open = |peer: &&mut crate::peer::Peer| peer.refreshing.contains(family);
        let Some(peer) = self.peers.get_mut(index).filter(is_open) else {
            return;
        };
        peer.refreshing = peer.refreshing.without(family);
        self.rib.sweep_stale(PeerId(index), family);
        self.has_work = true;
    }

    /// Marks connections ready for which the rib has something to send.
    #[inline]
    pub(super) fn take_ready_routes(&mut self) {
        while let Some(PeerId(index)) = self.rib.poll_ready() {
            if let Some(main) = self.peers.get(index).and_then(|peer| peer.main) {
                self.want(main, Flags::ROUTES);
            }
        }
    }

    /// Appends messages with routes to `out`, about `room` octets. Returns whether there is more.
    pub(super) fn fill_routes(
        &mut self,
        index: u32,
        out: &mut Vec<u8>,
        room: usize,
        now: Instant,
    ) -> bool {
        let limit = out.len() + room;
        self.rib.fill(PeerId(index), out, limit, now)
    }

    /// Does a slice of long-running work, about `budget` routes of it. A driver calls this last in each turn. Returns
    /// whether there is more to do now.
    pub fn work(&mut self, budget: usize, now: Instant) -> bool {
        if !self.has_work {
            return false;
        }
        self.latest = now;
        self.has_work = self.rib.work(budget, now);
        self.has_work
    }

    /// As [`work`](Self::work), but leaves the places of withdrawn prefixes to [`reclaim`](Self::reclaim). A driver that
    /// reads sockets calls this, so that reclaiming does not hold reading up.
    pub fn work_apart(&mut self, budget: usize, now: Instant) -> bool {
        if !self.has_work {
            return false;
        }
        self.latest = now;
        self.has_work = self.rib.work_apart(budget, now);
        self.has_work
    }

    /// Frees up to `budget` places of withdrawn prefixes. Returns whether more can be freed now.
    pub fn reclaim(&mut self, budget: usize, now: Instant) -> bool {
        self.rib.reclaim(budget, now)
    }

    /// How many places of withdrawn prefixes wait for [`reclaim`](Self::reclaim).
    #[must_use]
    pub fn reclaimable(&self) -> usize {
        self.rib.reclaimable()
    }

    /// Adds a route of our own, or replaces its attributes.
    pub fn originate(&mut self, prefix: Prefix, route: &LocalRoute) {
        self.rib.originate(prefix, route);
        self.has_work = true;
    }

    /// Removes a route of our own. Returns whether there was one.
    pub fn retract(&mut self, prefix: Prefix) -> bool {
        self.has_work = true;
        self.rib.retract(prefix)
    }

    /// The rib, to look at.
    #[must_use]
    pub const fn rib(&self) -> &Rib {
        &self.rib
    }

    /// From now on [`poll_change`](Self::poll_change) returns changes of best routes; first come all best routes that
    /// there are.
    pub fn watch_changes(&mut self) {
        self.rib.watch_changes();
    }

    /// The next change of a best route, after [`watch_changes`](Self::watch_changes). There is none while we wait after
    /// a restart (RFC 4724, section 4.1).
    pub fn poll_change(&mut self) -> Option<BestChange> {
        if self.deferral.is_some() {
            return None;
        }
        self.rib.poll_change()
    }

    /// Starts to wait for the peers' End-of-RIB if we have restarted.
    pub(super) fn begin_deferral(&mut self, now: Instant) {
        if let Some(wait) = self.restarted.take() {
            let until = now + wait;
            self.deferral = Some(until);
            self.timers.arm(until, Timer::Deferral);
            self.rib.set_deferred(true);
        }
    }

    /// Ends the wait when every peer that we wait for has sent End-of-RIB for all its families. We do not wait for
    /// peers that have restarted themselves, nor for those without graceful restart (RFC 4724, section 4.1).
    pub(super) fn check_deferral(&mut self) {
        if self.deferral.is_none() {
            return;
        }
        let is_waited_for = |peer: &crate::peer::Peer| {
            if !peer.is_started || matches!(peer.origin, Origin::Dynamic(_)) {
                return false;
            }
            let main = peer.main.and_then(|main| self.conns.get(main));
            let Some(conn) = main.filter(|conn| conn.state == State::Established) else {
                return true;
            };
            let Some(agreed) = conn.agreed.as_deref() else {
                return true;
            };
            let tells = agreed.graceful.is_some_and(|graceful| !graceful.restarted);
            tells && peer.ended.and(agreed.families) != agreed.families
        };
        if !self.peers.iter().any(|(_, peer)| is_waited_for(peer)) {
            self.end_deferral();
        }
    }

    /// Ends the wait: our routes are sent from now on.
    pub(super) fn end_deferral(&mut self) {
        self.deferral = None;
        self.rib.set_deferred(false);
        self.has_work = true;
    }
}
