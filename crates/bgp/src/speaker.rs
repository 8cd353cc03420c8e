//! A router's state machines and tables behind one type. Input from connections goes in, and messages to send come out.
//!
//! The files of `speaker/`: `machine` runs the table of [`fsm`] and carries out its actions; `receive`
//! splits the streams into messages; `send` fills them; `clock` fires timers; `routes` connects sessions and the rib;
//! `operate` has the operator's verbs; `hold` keeps dynamic peers back; `past` has what stays of those that are gone;
//! `views` builds what operators look at.
//!
//! Implements parts of RFC 4271, sections 3 and 8.1.4.

mod clock;
mod hold;
mod machine;
mod operate;
mod past;
mod receive;
mod routes;
mod send;
mod touch;
mod views;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::VecDeque;

use base::{Duration, Instant};
use wire::bgp::Prefix;

use crate::config::{DynamicConfig, Limits, PeerConfig, SpeakerConfig};
use crate::discard::{Discard, Discards};
use crate::end::CloseReason;
use crate::event::{Event, RecentEvent, RecentEvents, What};
use crate::fsm::{self, State};
use crate::margin::HoldMargin;
use crate::peer::{Origin, Peer, PeerId, Peers};
use crate::random::Random;
use crate::rib::{Rib, RibConfig};
use crate::ring::Ring;
use crate::session::Conn;
use crate::table::{ConnId, Conns, Flags};
use crate::timers::Timers;

pub use views::{Memory, NeighborView, SummaryView};

/// Events for which memory is kept while there are none.
const EVENTS_KEPT: usize = 32;

/// A router that speaks BGP-4: its peers, their connections, its routes.
///
/// A driver passes in what happened, calls [`work`](Self::work), and then drains the speaker:
/// [`poll_ready`](Self::poll_ready) with [`fill`](Self::fill), then [`poll_event`](Self::poll_event), then
/// [`poll_timeout`](Self::poll_timeout).
pub struct Speaker {
    asn: u32,
    router_id: Ipv4Addr,
    cluster_id: Option<Ipv4Addr>,
    limits: Limits,
    random: Random,
    peers: Peers,
    networks: Vec<Network>,
    /// How many dynamic peers are held back, apart from those that are counted in their network.
    held: u32,
    /// Dynamic peers that are gone, oldest first.
    past: VecDeque<Peer>,
    conns: Conns,
    rib: Rib,
    /// Whether the rib may have something to do.
    has_work: bool,
    rings: Vec<Ring>,
    timers: Timers,
    ready: VecDeque<ConnId>,
    events: VecDeque<Event>,
    recent_events: RecentEvents,
    discards: Discards,
    /// Connections whose hold timer expired before the driver had read all input.
    suspects: Vec<ConnId>,
    /// When the driver last had read all input.
    drained: Instant,
    /// The latest time that a caller passed.
    latest: Instant,
    /// Set until the start of a speaker that has restarted: how long our announcements may wait for the peers'
    /// End-of-RIB (RFC 4724, section 4.1).
    restarted: Option<Duration>,
    /// Until when our announcements wait.
    deferral: Option<Instant>,
    established: u32,
    margin: HoldMargin,
    /// UPDATEs received and sent, of all peers so far.
    updates: (u64, u64),
}

/// A network of dynamic peers.
struct Network {
    config: DynamicConfig,
    /// How many peers it has, except those that are held back.
    peers: u32,
}

impl Speaker {
    /// A router that does nothing before it is [started](Self::start). `seed` is for jitter and phases.
    ///
    /// The configuration is not checked here: the caller calls [`SpeakerConfig::check`]. If several peers have one
    /// address, the first is used.
    #[must_use]
    pub fn new(config: SpeakerConfig, seed: [u8; 32]) -> Self {
        let mut random = Random::new(seed);
        let mut rib = Rib::new(RibConfig {
            asn: config.asn,
            router_id: config.router_id.to_bits(),
            cluster_id: config.cluster_id.map(Ipv4Addr::to_bits),
            prefers_oldest: config.prefers_oldest,
            seed: random.next(),
        });
        if !config.roas.is_empty() {
            rib.set_policies([], config.roas);
        }
        let mut speaker = Self {
            asn: config.asn,
            router_id: config.router_id,
            cluster_id: config.cluster_id,
            limits: config.limits,
            peers: Peers::new(random.next()),
            random,
            networks: Vec::new(),
            held: 0,
            past: VecDeque::new(),
            conns: Conns::default(),
            rib,
            has_work: false,
            rings: Vec::new(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            events: VecDeque::new(),
            recent_events: RecentEvents::default(),
            discards: Discards::default(),
            suspects: Vec::new(),
            drained: Instant::ZERO,
            latest: Instant::ZERO,
            restarted: config.restarted,
            deferral: None,
            established: 0,
            margin: HoldMargin::default(),
            updates: (0, 0),
        };
        speaker.set_networks(config.dynamic);
        speaker.peers.reserve(config.peers.len());
        speaker.conns.reserve(config.peers.len());
        for peer in config.peers {
            speaker.insert_peer(peer, Instant::ZERO);
        }
        speaker
    }

    /// Starts every peer that is enabled.
    pub fn start(&mut self, now: Instant) {
        self.begin_deferral(now);
        let peers: Vec<u32> = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.settings.enabled && !peer.is_started)
            .map(|(index, _)| index)
            .collect();
        for index in peers {
            if self.peers.get(index).is_some_and(|peer| peer.is_held) {
                self.release(index, now);
            } else {
                self.begin(index, now);
            }
        }
    }

    /// A peer connected to `local`. Returns the connection's identifier.
    ///
    /// # Errors
    /// The caller has to close the connection without a message: the peer is not known, is in Idle, or has two
    /// connections.
    pub fn accept(
        &mut self,
        remote: SocketAddr,
        local: SocketAddr,
        now: Instant,
    ) -> Result<ConnId, Discard> {
        self.latest = now;
        let address = remote.ip().to_canonical();
        let result = self.admit(address, now).and_then(|peer| {
            let state = self.make_room(peer, now)?;
            Ok((peer, state))
        });
        let (index, state) = match result {
            Ok(admitted) => admitted,
            Err(reason) => {
                self.happened(address, What::Refused(reason), now);
                return Err(self.discards.count(reason));
            }
        };
        self.note_late();
        let mut conn = Conn::new(index, state, false, remote.port());
        conn.is_up = true;
        conn.local = Some(local);
        let id = self.conns.insert(conn, now);
        let peer = self.peers.get_mut(index).expect("admitted above");
        if peer.main.is_none() {
            peer.main = Some(id);
        } else {
            peer.second = Some(id);
        }
        self.run(
            index,
            Some(id),
            fsm::Event::TcpConnectionConfirmed,
            CloseReason::Closed,
            now,
        );
        Ok(id)
    }

    /// The peer with an address, or a new dynamic peer.
    fn admit(&mut self, address: IpAddr, now: Instant) -> Result<u32, Discard> {
        if let Some(index) = self.peers.find(address) {
            return Ok(index);
        }
        let fits = |network: &Network| network.config.prefix.contains_address(address);
        // The networks are sorted by length, so the first match is the longest.
        let at = self
            .networks
            .iter()
            .position(fits)
            .ok_or(Discard::UnknownPeer)?;
        let in_all: u64 = self
            .networks
            .iter()
            .map(|network| u64::from(network.peers))
            .sum();
        let network = &mut self.networks[at];
        if network.peers >= network.config.peers_max
            || in_all >= u64::from(self.limits.dynamic_peers_max)
        {
            return Err(Discard::DynamicLimit);
        }
        network.peers += 1;
        let settings = network.config.settings.clone();
        let config = PeerConfig::new(address, network.config.remote_asn, settings);
        let mut peer = Peer::new(config, Origin::Dynamic(at as u32), now);
        self.recall(&mut peer);
        let index = self.peers.insert(peer);
        self.begin(index, now);
        Ok(index)
    }

    /// The initial state of the state machine for one more connection of a peer.
    fn make_room(&mut self, index: u32, now: Instant) -> Result<State, Discard> {
        let peer = self.peers.get(index).ok_or(Discard::UnknownPeer)?;
        if let Some(main) = peer.main {
            if peer.second.is_some() {
                return Err(Discard::TooManyConnections);
            }
            // If the peer is Established and restarts gracefully, its session ends here. Otherwise the second
            // connection is tracked.
            if self
                .conns
                .get(main)
                .is_some_and(|conn| conn.state >= State::OpenSent)
            {
                let why = CloseReason::PeerRestarted;
                self.run(
                    index,
                    Some(main),
                    fsm::Event::TcpConnectionConfirmed,
                    why,
                    now,
                );
            }
        }
        let peer = self.peers.get(index).ok_or(Discard::UnknownPeer)?;
        match (peer.main, peer.state) {
            (Some(_), _) => Ok(State::Active),
            (None, State::Idle) => Err(Discard::PeerIdle),
            (None, state) => Ok(state),
        }
    }

    /// The connection of an [`Event::Connect`] is up; `local` is our end.
    pub fn connected(&mut self, conn: ConnId, local: SocketAddr, now: Instant) {
        self.latest = now;
        let Some(found) = self.conns.get_mut(conn).filter(|conn| !conn.is_up) else {
            self.discards.count(Discard::UnknownConnection);
            return;
        };
        found.is_up = true;
        found.local = Some(local);
        let index = found.peer;
        self.run(
            index,
            Some(conn),
            fsm::Event::TcpCrAcked,
            CloseReason::Closed,
            now,
        );
    }

    /// The connection of an [`Event::Connect`] failed. Its identifier is not known any more.
    pub fn connect_failed(&mut self, conn: ConnId, now: Instant) {
        self.fails(conn, CloseReason::ConnectFailed, now);
    }

    /// The stream ended or broke. Its identifier is not known any more.
    pub fn closed(&mut self, conn: ConnId, now: Instant) {
        self.fails(conn, CloseReason::Closed, now);
    }

    fn fails(&mut self, conn: ConnId, why: CloseReason, now: Instant) {
        self.latest = now;
        let Some(found) = self.conns.get(conn) else {
            self.discards.count(Discard::UnknownConnection);
            return;
        };
        let index = found.peer;
        self.run(index, Some(conn), fsm::Event::TcpConnectionFails, why, now);
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() && self.events.capacity() > EVENTS_KEPT {
            // Many events at once are rare: they occur when all peers start.
            self.events = VecDeque::new();
        }
        event
    }

    /// Puts a connection into the ready queue, once, unless its stream accepts no data.
    fn make_ready(&mut self, conn: ConnId) {
        if let Some(hot) = self.conns.hot_mut(conn)
            && !hot.flags.any(Flags::READY_OR_BLOCKED)
        {
            hot.flags.set(Flags::READY);
            self.ready.push_back(conn);
        }
    }

    fn happened(&mut self, remote: IpAddr, what: What, at: Instant) {
        let recent = RecentEvent { at, remote, what };
        let most = self.limits.recent_events_max;
        let most = most.unwrap_or_else(|| RecentEvents::room_for(self.peers.places()));
        self.recent_events.push(recent, most);
    }

    /// The state of a peer: that of its main connection, if it has one.
    fn state_of(&self, peer: &Peer) -> State {
        peer.main
            .and_then(|main| self.conns.get(main))
            .map_or(peer.state, |conn| conn.state)
    }

    fn set_networks(&mut self, mut configs: Vec<DynamicConfig>) {
        configs.sort_by_key(|config| core::cmp::Reverse(config.prefix.len()));
        self.networks = configs
            .into_iter()
            .map(|config| Network { config, peers: 0 })
            .collect();
    }

    /// The peer with an address.
    #[must_use]
    pub fn peer(&self, remote: IpAddr) -> Option<PeerId> {
        self.peers.find(remote).map(PeerId)
    }

    /// The peer with a name.
    #[must_use]
    pub fn peer_named(&self, name: &str) -> Option<PeerId> {
        self.peers
            .iter()
            .find(|(_, peer)| peer.name.as_deref() == Some(name))
            .map(|(index, _)| PeerId(index))
    }

    /// The peer of a connection.
    #[must_use]
    pub fn peer_of(&self, conn: ConnId) -> Option<PeerId> {
        self.conns.get(conn).map(|conn| PeerId(conn.peer))
    }

    /// The keys of TCP signatures (RFC 2385) of networks and configured peers. A listener needs them before a peer
    /// connects.
    pub fn signatures(&self) -> impl Iterator<Item = (Prefix, &[u8])> {
        let networks = self
            .networks
            .iter()
            .map(|network| (network.config.prefix, &network.config.settings));
        let hosts = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.origin == Origin::Configured)
            .map(|(_, peer)| (Prefix::of(peer.remote, 128), &peer.settings));
        networks.chain(hosts).filter_map(|(prefix, settings)| {
            let key = settings.transport.md5.as_ref()?;
            Some((prefix, key.reveal().as_slice()))
        })
    }

    /// The TCP options of a connection that was [accepted](Self::accept).
    #[must_use]
    pub fn transport(&self, conn: ConnId) -> Option<&crate::config::Transport> {
        let peer = self.peers.get(self.conns.get(conn)?.peer)?;
        Some(&peer.settings.transport)
    }
}
