//! Tracks which sessions should be up and which are up, so that a run counts as quiet only when nothing is left to
//! happen.
//!
//! A session should be up while its link is up and both of its routers run. A session is unsettled while it should be
//! up and is down. It is also unsettled while it is up over a failed link because its hold timer has not expired yet. A
//! router outside the emulation counts as running. Start reading at [`World::is_settled`].

use std::net::IpAddr;

use bgp::{ConnId, PeerId, Speaker};

use super::World;
use crate::topology::Topology;

/// The state of all sessions.
pub(super) struct Sessions {
    /// Which routers are switched on, here and elsewhere.
    runs: Vec<bool>,
    /// For each link, whether the ends at its routers `a` and `b` are up.
    is_up: Vec<[bool; 2]>,
    /// Number of ends here that are up and should not be, or the other way round.
    unsettled: u64,
}

impl Sessions {
    /// No router runs, so no session should be up.
    pub(super) fn new(topology: &Topology) -> Self {
        Self {
            runs: vec![false; topology.routers.len()],
            is_up: vec![[false; 2]; topology.links.len()],
            unsettled: 0,
        }
    }
}

impl World {
    /// Whether nothing is left to happen: every session that should be up is up and no other, no message but
    /// KEEPALIVEs is in flight, and no router holds routes back until its MinRouteAdvertisementIntervalTimer expires.
    pub(crate) fn is_settled(&self) -> bool {
        let holds_back = |speaker: &Speaker| speaker.rib().poll_timeout().is_some();
        let mut speakers = self.nodes.iter().filter_map(|node| node.speaker.as_deref());
        self.sessions.unsettled == 0 && !self.post.has_octets() && !speakers.any(holds_back)
    }

    /// A router is switched on or off, here or elsewhere. Its sessions end with it.
    pub(super) fn set_runs(&mut self, router: u32, runs: bool) {
        let links: Vec<u32> = self.lines.near(router).iter().map(|near| near.1).collect();
        let before = self.unsettled_ends(&links);
        self.sessions.runs[router as usize] = runs;
        for link in &links {
            let side = self.side(*link, router);
            self.sessions.is_up[*link as usize][side] = false;
        }
        self.sessions.unsettled += self.unsettled_ends(&links);
        self.sessions.unsettled -= before;
    }

    /// A link is repaired or fails; returns whether it was up.
    pub(super) fn set_line(&mut self, link: u32, up: bool) -> bool {
        let before = self.unsettled_ends(&[link]);
        let was_up = std::mem::replace(&mut self.lines.is_up[link as usize], up);
        self.sessions.unsettled += self.unsettled_ends(&[link]);
        self.sessions.unsettled -= before;
        was_up
    }

    /// The session of a router over a link has come up or gone down.
    pub(super) fn set_session(&mut self, router: u32, link: Option<u32>, up: bool) {
        let Some(link) = link else { return };
        let before = self.unsettled_ends(&[link]);
        let side = self.side(link, router);
        self.sessions.is_up[link as usize][side] = up;
        self.sessions.unsettled += self.unsettled_ends(&[link]);
        self.sessions.unsettled -= before;
    }

    /// The link to a peer with this address.
    pub(super) fn link_to(&self, router: u32, remote: IpAddr) -> Option<u32> {
        let IpAddr::V4(remote) = remote else {
            return None;
        };
        let peer = self.by_address.get(&remote).copied()?;
        self.lines.between(router, peer)
    }

    /// The link of a session, by its connection in memory or by its peer's address.
    pub(super) fn link_of(
        &self,
        router: u32,
        speaker: &Speaker,
        (peer, conn): (PeerId, ConnId),
    ) -> Option<u32> {
        match self.end(router, conn) {
            Some(end) => Some(end.link),
            None => self.link_to(router, speaker.neighbor(peer, self.now)?.remote),
        }
    }

    /// Number of unsettled ends of the links.
    fn unsettled_ends(&self, links: &[u32]) -> u64 {
        let of_link = |&link: &u32| {
            let ends = self.scenario.topology.links[link as usize];
            let runs = |router: u32| self.sessions.runs[router as usize];
            let should = self.lines.is_up[link as usize] && runs(ends.a) && runs(ends.b);
            let is_up = self.sessions.is_up[link as usize];
            let is_unsettled = |&(router, up): &(u32, bool)| self.runs_here(router) && up != should;
            let both = [(ends.a, is_up[0]), (ends.b, is_up[1])];
            both.iter().filter(|end| is_unsettled(end)).count() as u64
        };
        links.iter().map(of_link).sum()
    }

    /// Whether this part of the emulation runs the router whenever the router is on.
    pub(super) fn runs_here(&self, router: u32) -> bool {
        let owned = self.owned.as_ref();
        let is_outside = self.scenario.topology.routers[router as usize]
            .settings
            .outside;
        !is_outside && owned.is_none_or(|owned| owned[router as usize])
    }

    /// Which end of a link is at a router.
    fn side(&self, link: u32, router: u32) -> usize {
        usize::from(self.scenario.topology.links[link as usize].a != router)
    }
}
