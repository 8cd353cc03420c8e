//! The way to the table of routes, and what RFC 4724 adds to it.

use base::{Duration, Instant};
use wire::bgp::{Families, Family, Update};

use super::Speaker;
use crate::fsm::State;
use crate::peer::{Origin, Stale};
use crate::table::ConnId;
use crate::timers::Timer;

impl Speaker {
    /// A session is Established: its routes may come and go.
    pub(super) fn open_routes(&mut self, index: u32, id: ConnId, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.ended = Families::NONE;
        let agreed = self.conns.get(id).and_then(|conn| conn.agreed.as_deref());
        let graceful = agreed.and_then(|agreed| agreed.graceful);
        peer.graceful = graceful.filter(|graceful| !graceful.families.is_empty());
        let Some(stale) = peer.stale.as_deref_mut() else {
            return;
        };
        // What the peer did not preserve goes now, the rest at its End-of-RIB, or when it has waited long enough.
        let preserved = graceful.map_or(Families::NONE, |graceful| graceful.forwarding);
        stale.until = stale.at_most;
        let at = stale.until;
        let lost = stale
            .families
            .iter()
            .filter(|family| !preserved.contains(*family));
        for family in lost.collect::<Vec<_>>() {
            self.end_stale(index, family, now);
        }
        self.timers.arm(at, Timer::Stale(index));
    }

    /// A session is over: its routes go, or stay as stale ones.
    pub(super) fn close_routes(&mut self, index: u32, retain: bool, now: Instant) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        peer.stale = None;
        let graceful = peer.graceful.take().filter(|_| retain);
        let kept = peer.settings.graceful_restart;
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

    /// A peer's stale routes of one family go.
    fn end_stale(&mut self, index: u32, family: Family, now: Instant) {
        let _ = now;
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        if let Some(stale) = peer.stale.as_deref_mut() {
            stale.families = stale.families.without(family);
            if stale.families.is_empty() {
                peer.stale = None;
            }
        }
    }

    /// A peer's stale routes have waited long enough.
    pub(super) fn stale_expires(&mut self, index: u32, now: Instant) {
        self.drop_stale(index, now);
        let is_left = self.peers.get(index).is_some_and(|peer| {
            matches!(peer.origin, Origin::Dynamic(_)) && peer.main.is_none() && peer.held.is_none()
        });
        if is_left {
            self.forget(index);
        }
    }

    /// Takes the routes of an UPDATE.
    pub(super) fn take_update(
        &mut self,
        _id: ConnId,
        index: u32,
        update: &Update<'_>,
        now: Instant,
    ) {
        if let Some(family) = update.end_of_rib() {
            if let Some(peer) = self.peers.get_mut(index) {
                peer.ended = peer.ended.with(family);
            }
            self.end_stale(index, family, now);
            self.check_deferral(now);
        }
    }

    /// A peer that is gone for good leaves no stale routes.
    pub(super) fn drop_stale(&mut self, index: u32, now: Instant) {
        for family in Family::ALL {
            self.end_stale(index, family, now);
        }
    }

    /// The peer asks for all routes of a family.
    pub(super) fn refresh_routes(&mut self, _index: u32, _family: Family, _now: Instant) {}

    /// Marks connections ready for which the table has something.
    #[inline]
    pub(super) fn take_ready_routes(&mut self) {}

    /// Appends messages with routes to `out`, as long as they have fewer than `limit` octets. Says whether there are
    /// more.
    pub(super) fn fill_routes(
        &mut self,
        _index: u32,
        _out: &mut Vec<u8>,
        _limit: usize,
        _now: Instant,
    ) -> bool {
        false
    }

    /// Does a slice of what takes long, about `budget` routes of it. Says whether there is more to do now.
    pub fn work(&mut self, _budget: usize, now: Instant) -> bool {
        self.latest = now;
        false
    }

    pub(super) fn routes_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    /// Begins to wait for the peers' End-of-RIB, if we have restarted.
    pub(super) fn begin_deferral(&mut self, now: Instant) {
        if let Some(wait) = self.restarted.take() {
            let until = now + wait;
            self.deferral = Some(until);
            self.timers.arm(until, Timer::Deferral);
        }
    }

    /// Ends the wait when every peer that we are to wait for has said End-of-RIB of all its families: not those that
    /// have restarted themselves, nor those that do not know of graceful restarts (RFC 4724, section 4.1).
    fn check_deferral(&mut self, now: Instant) {
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
            self.end_deferral(now);
        }
    }

    /// What we announce waits no more.
    pub(super) fn end_deferral(&mut self, _now: Instant) {
        self.deferral = None;
    }
}
