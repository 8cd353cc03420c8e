//! Views for operators: plain values, built when they are asked for.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};

use super::Speaker;
use crate::config::RemoteAsn;
use crate::discard::Discards;
use crate::end::CloseReason;
use crate::event::RecentEvent;
use crate::fsm::State;
use crate::negotiate::Agreed;
use crate::peer::{Counts, Malformed, Origin, Peer, PeerId, Waits};
use crate::table::ConnId;
use crate::timers::Timer;

/// An overview of the speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryView {
    /// Our autonomous system.
    pub asn: u32,
    /// Our BGP Identifier.
    pub router_id: Ipv4Addr,
    /// Peers, including dynamic peers.
    pub peers: usize,
    /// Dynamic peers, including those that are held back.
    pub dynamic: usize,
    /// Dynamic peers that are held back: stopped, or over their limit of prefixes.
    pub held: u32,
    /// Sessions that are Established.
    pub established: u32,
    /// Connections that are open or being opened.
    pub connections: usize,
    /// Input that was ignored, counted.
    pub discards: Discards,
    /// Recent events that were dropped for later ones.
    pub recent_events_dropped: u64,
    /// Whether announcements wait for the peers' End-of-RIB after a restart.
    pub deferring: bool,
    /// UPDATEs received from all peers, those that are gone included.
    pub updates_in: u64,
    /// UPDATEs sent to them.
    pub updates_out: u64,
}

/// Memory in bytes, by part.
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
    /// Its identifier in the speaker.
    pub id: PeerId,
    /// Its name for operators, if it has one.
    pub name: Option<Box<str>>,
    /// Its address.
    pub remote: IpAddr,
    /// Both ends of its connection, if it has one.
    pub connection: Option<(SocketAddr, SocketAddr)>,
    /// Whether we opened that connection.
    pub outgoing: bool,
    /// Whether it was configured or is a dynamic peer.
    pub origin: Origin,
    /// The autonomous systems that it may have.
    pub expected_asn: RemoteAsn,
    /// The state of its state machine.
    pub state: State,
    /// Whether the operator has it running.
    pub is_started: bool,
    /// When it became Established, or stopped being Established; `None` if it never was.
    pub since: Option<Instant>,
    /// What the OPEN messages negotiated.
    pub agreed: Option<Agreed>,
    /// The hold time that we offer, in seconds.
    pub hold_time_s: u16,
    /// When the peer's last message was received, in a session with a hold time.
    pub heard: Option<Instant>,
    /// How much of the hold time is left, in a session with a hold time.
    pub hold_left: Option<Duration>,
    /// When the next attempt starts: the ConnectRetryTimer or the IdleHoldTimer.
    pub next_try: Option<Instant>,
    /// ConnectRetryCounter.
    pub retry_counter: u32,
    /// Message and error counts.
    pub counts: Counts,
    /// Why its last connection ended.
    pub last_end: Option<CloseReason>,
    /// Its last malformed UPDATE.
    pub malformed: Option<Malformed>,
    /// When its stale routes are removed (RFC 4724), if there are any.
    pub stale_until: Option<Instant>,
    /// Whether its stream accepts no data.
    pub is_blocked: bool,
}

impl Speaker {
    /// An overview of the speaker.
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
                .sum::<usize>()
                + self.held as usize,
            held: self.held,
            established: self.established,
            connections: self.conns.len(),
            discards: self.discards,
            recent_events_dropped: self.recent_events.dropped,
            deferring: self.deferral.is_some(),
            updates_in: self.updates.0,
            updates_out: self.updates.1,
        }
    }

    /// The least time that was left on a hold timer when a message of its peer was received, in the last complete second
    /// with messages; or, if it is less, the least that is left now on a timer whose peer has been silent for most of its
    /// hold time. `None` without sessions that have a hold time. Visits the timers that are kept exactly, not every peer.
    pub fn hold_margin(&mut self, now: Instant) -> Option<Duration> {
        if self.established == 0 {
            return None;
        }
        self.note_late();
        let armed = self.timers.iter().filter_map(|(at, timer)| match timer {
            Timer::Hold(id) => Some((at, id)),
            _ => None,
        });
        let silent = armed.filter_map(|(at, id)| {
            let is_established = self.conns.get(id)?.state == State::Established;
            let hot = self.conns.hot(id)?;
            // A message since the timer was armed has moved the deadline.
            (is_established && hot.hold_s != 0 && hot.hold_deadline() == at).then(|| at - now)
        });
        let is_established = |id: &ConnId| {
            let conn = self.conns.get(*id);
            conn.is_some_and(|conn| conn.state == State::Established)
        };
        let expired = self.suspects.iter().any(is_established);
        let expired = expired.then_some(Duration::ZERO);
        let complete = self.margin.of_complete(now);
        silent.chain(expired).chain(complete).min()
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

    /// The first peer at `from` or after it. To list all peers in steps while they change, ask again from the index
    /// after the last one.
    #[must_use]
    pub fn next_neighbor(&self, from: PeerId, now: Instant) -> Option<NeighborView> {
        let (index, peer) = self.peers.next_from(from.0)?;
        Some(self.view(PeerId(index), peer, now))
    }

    /// The address of the first peer at `from` or after it.
    #[must_use]
    pub fn next_address(&self, from: PeerId) -> Option<(PeerId, IpAddr)> {
        let (index, peer) = self.peers.next_from(from.0)?;
        Some((PeerId(index), peer.remote))
    }

    pub(super) fn view(&self, id: PeerId, peer: &Peer, now: Instant) -> NeighborView {
        let main = peer
            .main
            .and_then(|main| Some((self.conns.get(main)?, self.conns.hot(main)?)));
        let mut counts = peer.counts;
        let heard = peer.main.and_then(|main| self.conns.heard(main));
        if let Some(((_, hot), (_, keepalives_in))) = main.zip(heard) {
            counts.keepalives_in += u64::from(keepalives_in);
            counts.keepalives_out += u64::from(hot.keepalives_out);
        }
        let timed = main.filter(|(_, hot)| hot.hold_s != 0).zip(heard);
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
            since: (peer.counts.ups > 0).then_some(peer.since),
            agreed: main.and_then(|(conn, _)| conn.agreed.as_deref().cloned()),
            hold_time_s: peer.settings.hold_time_s,
            heard: timed.map(|(_, (heard, _))| heard),
            hold_left: timed.map(|((_, hot), (heard, _))| hot.hold_after(heard) - now),
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

    /// What a peer is sent of a family, some slots of the table at a time, as
    /// [`Rib::walk_sent`](crate::Rib::walk_sent).
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

    /// Recent events, oldest first.
    pub fn recent_events(&self) -> impl DoubleEndedIterator<Item = &RecentEvent> {
        self.recent_events.iter()
    }

    /// Memory of peers and connections in bytes, without what is boxed for a handshake or a fault.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            connections: self.conns.memory(),
            peers: self.peers.memory(),
        }
    }
}
