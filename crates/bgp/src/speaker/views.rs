//! What there is to show: plain values, made when asked for.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};

use super::Speaker;
use crate::config::RemoteAsn;
use crate::discard::Discards;
use crate::end::CloseReason;
use crate::event::Happening;
use crate::fsm::State;
use crate::negotiate::Agreed;
use crate::peer::{Counts, Malformed, Origin, Peer, PeerId, Waits};

/// A speaker at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryView {
    /// Our autonomous system.
    pub asn: u32,
    /// Our BGP Identifier.
    pub router_id: Ipv4Addr,
    /// Peers, dynamic ones among them.
    pub peers: usize,
    /// Dynamic ones.
    pub dynamic: usize,
    /// Sessions that are Established.
    pub established: u32,
    /// Connections, being made or up.
    pub connections: usize,
    /// What was ignored.
    pub discards: Discards,
    /// Happenings that gave way to later ones.
    pub happenings_dropped: u64,
    /// Whether announcements wait for the peers' End-of-RIB after a restart.
    pub deferring: bool,
}

/// Octets of memory, by what has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Connections.
    pub connections: usize,
    /// Peers.
    pub peers: usize,
}

/// One peer.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighborView {
    /// Its name in the speaker.
    pub id: PeerId,
    /// What operators call it, if they do.
    pub name: Option<Box<str>>,
    /// Its address.
    pub remote: IpAddr,
    /// Both ends of its connection, once there is one.
    pub connection: Option<(SocketAddr, SocketAddr)>,
    /// Whether we made that connection.
    pub outgoing: bool,
    /// Why it is there.
    pub origin: Origin,
    /// Which autonomous systems it may have.
    pub expected_asn: RemoteAsn,
    /// The state of its machine.
    pub state: State,
    /// Whether an operator lets it run.
    pub is_started: bool,
    /// Since when it is Established, or is not.
    pub since: Instant,
    /// What both OPENs came to, once they did.
    pub agreed: Option<Agreed>,
    /// The hold time that we offer, in seconds.
    pub hold_time_s: u16,
    /// When the peer was last heard, in a session with a hold time.
    pub heard: Option<Instant>,
    /// How much of the hold time is left, in a session that has one.
    pub hold_left: Option<Duration>,
    /// When it is tried again: the ConnectRetryTimer or the IdleHoldTimer.
    pub next_try: Option<Instant>,
    /// ConnectRetryCounter.
    pub retry_counter: u32,
    /// What was counted.
    pub counts: Counts,
    /// Why its last connection ended.
    pub last_end: Option<CloseReason>,
    /// Its last malformed UPDATE.
    pub malformed: Option<Malformed>,
    /// When its stale routes go (RFC 4724), while there are any.
    pub stale_until: Option<Instant>,
    /// Whether its stream takes nothing.
    pub is_blocked: bool,
}

impl Speaker {
    /// The speaker at a glance.
    #[must_use]
    pub fn summary(&self) -> SummaryView {
        SummaryView {
            asn: self.asn,
            router_id: self.router_id,
            peers: self.peers.len(),
            dynamic: self
                .networks
                .iter()
                .map(|network| network.peers as usize)
                .sum(),
            established: self.established,
            connections: self.conns.len(),
            discards: self.discards,
            happenings_dropped: self.happenings.dropped,
            deferring: self.deferral.is_some(),
        }
    }

    /// Sessions that are Established.
    #[must_use]
    pub const fn established(&self) -> u32 {
        self.established
    }

    /// One peer.
    #[must_use]
    pub fn neighbor(&self, peer: PeerId, now: Instant) -> Option<NeighborView> {
        Some(self.view(peer, self.peers.get(peer.0)?, now))
    }

    /// The first peer at `from` or after it. To list all bit by bit while they change, ask again from one past the
    /// answer's place.
    #[must_use]
    pub fn next_neighbor(&self, from: PeerId, now: Instant) -> Option<NeighborView> {
        let (index, peer) = self.peers.next_from(from.0)?;
        Some(self.view(PeerId(index), peer, now))
    }

    fn view(&self, id: PeerId, peer: &Peer, now: Instant) -> NeighborView {
        let main = peer
            .main
            .and_then(|main| Some((self.conns.get(main)?, self.conns.hot(main)?)));
        let mut counts = peer.counts;
        if let Some((_, hot)) = main {
            counts.keepalives_in += u64::from(hot.keepalives_in);
            counts.keepalives_out += u64::from(hot.keepalives_out);
        }
        let timed = main.filter(|(_, hot)| hot.hold_s != 0);
        NeighborView {
            id,
            name: peer.name.clone(),
            remote: peer.remote,
            connection: main.and_then(|(conn, _)| {
                Some((conn.local?, SocketAddr::new(peer.remote, conn.remote_port)))
            }),
            outgoing: main.is_some_and(|(conn, _)| conn.outgoing),
            origin: peer.origin,
            expected_asn: peer.remote_asn,
            state: self.state_of(peer),
            is_started: peer.is_started,
            since: peer.since,
            agreed: main.and_then(|(conn, _)| conn.agreed.as_deref().cloned()),
            hold_time_s: peer.settings.hold_time_s,
            heard: timed.map(|(_, hot)| hot.heard),
            hold_left: timed.map(|(_, hot)| hot.hold_deadline() - now),
            next_try: match peer.waits {
                Waits::Nothing => None,
                Waits::Retry(at) | Waits::IdleHold(at) => Some(at),
            },
            retry_counter: peer.retry_counter,
            counts,
            last_end: peer.last_end.as_deref().cloned(),
            malformed: peer.malformed.as_deref().cloned(),
            stale_until: peer.stale.as_ref().map(|stale| stale.until),
            is_blocked: main.is_some_and(|(_, hot)| hot.flags.has(crate::table::Flags::BLOCKED)),
        }
    }

    /// What a peer is told of a family, some places of the table at a time: as [`Rib::walk_sent`](crate::Rib::walk_sent).
    pub fn walk_sent(
        &mut self,
        peer: PeerId,
        family: wire::bgp::FamilyId,
        cursor: crate::rib::Cursor,
        steps: u32,
        see: impl FnMut(wire::bgp::Nlri, &[u8], wire::bgp::NextHop),
    ) -> Option<crate::rib::Cursor> {
        self.rib.walk_sent(peer, family, cursor, steps, see)
    }

    /// Recent happenings, oldest first.
    pub fn happenings(&self) -> impl DoubleEndedIterator<Item = &Happening> {
        self.happenings.iter()
    }

    /// Octets of memory of the sessions' part, without what is boxed for a handshake or a fault.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            connections: self.conns.memory(),
            peers: self.peers.memory(),
        }
    }
}
