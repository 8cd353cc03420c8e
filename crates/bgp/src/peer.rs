//! Peers: their identity, the timers of a peer without a connection, and their counters.

use core::hash::BuildHasher;
use core::net::IpAddr;
use std::sync::Arc;

use base::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use wire::bgp::Families;

use crate::config::{PeerConfig, PeerSettings, RemoteAsn};
use crate::end::CloseReason;
use crate::fsm::State;
use crate::negotiate::Graceful;
use crate::table::ConnId;

/// Identifies a peer: a dense index. The index of a removed peer is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// The most octets of a malformed UPDATE that are stored for operators.
pub const MALFORMED_OCTETS_MAX: usize = 4_096;

/// Where a peer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration.
    Configured,
    /// A network of dynamic peers: its index in the speaker.
    Dynamic(u32),
}

/// Counters of a peer, over all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// OPENs received.
    pub opens_in: u32,
    /// OPENs sent.
    pub opens_out: u32,
    /// NOTIFICATIONs received.
    pub notifications_in: u32,
    /// NOTIFICATIONs sent.
    pub notifications_out: u32,
    /// ROUTE-REFRESHes received.
    pub refreshes_in: u32,
    /// ROUTE-REFRESHes sent.
    pub refreshes_out: u32,
    /// UPDATEs received.
    pub updates_in: u64,
    /// UPDATEs sent.
    pub updates_out: u64,
    /// KEEPALIVEs received.
    pub keepalives_in: u64,
    /// KEEPALIVEs sent.
    pub keepalives_out: u64,
    /// UPDATEs that were malformed (RFC 7606).
    pub malformed: u64,
    /// Routes that were looped (RFC 4271, section 9.1.2; RFC 4456, section 8).
    pub loops: u64,
    /// Routes that were leaked (RFC 9234).
    pub leaks: u64,
    /// Routes that were refused because their prefix has as many as it can.
    pub refused: u64,
    /// Sessions that were Established.
    pub ups: u32,
    /// Connections that were closed because they lost a collision (RFC 4271, section 6.8).
    pub collisions: u32,
}

/// The last malformed UPDATE of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// When it was received.
    pub at: Instant,
    /// What was wrong with it, and how it was treated (RFC 7606).
    pub why: Box<str>,
    /// The message without its header: the first [`MALFORMED_OCTETS_MAX`] octets.
    pub octets: Box<[u8]>,
}

/// Stale routes of a peer whose session has ended (RFC 4724, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    /// When they are removed.
    pub(crate) until: Instant,
    /// The latest value of `until`.
    pub(crate) at_most: Instant,
    pub(crate) families: Families,
}

/// What a peer without a connection waits for in Idle, Connect or Active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Nothing,
    /// The ConnectRetryTimer.
    Retry(Instant),
    /// The IdleHoldTimer.
    IdleHold(Instant),
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: Option<Box<str>>,
    pub(crate) remote: IpAddr,
    pub(crate) port: u16,
    pub(crate) local: Option<IpAddr>,
    pub(crate) remote_asn: RemoteAsn,
    pub(crate) settings: Arc<PeerSettings>,
    pub(crate) origin: Origin,
    /// The state while there is no connection: Idle or Active.
    pub(crate) state: State,
    /// Whether the operator has it running.
    pub(crate) is_started: bool,
    /// How often IdleHoldTime has doubled.
    pub(crate) doublings: u8,
    /// How long the next wait in Idle is, if that was decided when the session ended.
    pub(crate) held: Option<Duration>,
    /// Whether a dynamic peer stays in the table after its session, so that its connections are refused.
    pub(crate) is_held: bool,
    /// Whether it is counted as a held peer instead of as one of its network.
    pub(crate) is_held_apart: bool,
    /// The connection of its state machine.
    pub(crate) main: Option<ConnId>,
    /// A second connection, until the collision is resolved.
    pub(crate) second: Option<ConnId>,
    pub(crate) waits: Waits,
    /// ConnectRetryCounter.
    pub(crate) retry_counter: u32,
    /// When it became Established, or stopped being Established.
    pub(crate) since: Instant,
    pub(crate) counts: Counts,
    pub(crate) stale: Option<Box<Stale>>,
    pub(crate) last_end: Option<Box<CloseReason>>,
    pub(crate) malformed: Option<Box<Malformed>>,
    /// Its graceful restart capability in this session.
    pub(crate) graceful: Option<Graceful>,
    /// Families whose End-of-RIB was received in this session.
    pub(crate) ended: Families,
    /// Families that it is sending again: their start was marked and their end was not (RFC 7313).
    pub(crate) refreshing: Families,
}

impl Peer {
    pub(crate) fn new(config: PeerConfig, origin: Origin, now: Instant) -> Self {
        Self {
            name: config.name,
            remote: config.remote,
            port: config.port,
            local: config.local,
            remote_asn: config.remote_asn,
            is_started: false,
            settings: config.settings,
            origin,
            state: State::Idle,
            doublings: 0,
            held: None,
            is_held: false,
            is_held_apart: false,
            main: None,
            second: None,
            waits: Waits::Nothing,
            retry_counter: 0,
            since: now,
            counts: Counts::default(),
            stale: None,
            last_end: None,
            malformed: None,
            graceful: None,
            ended: Families::NONE,
            refreshing: Families::NONE,
        }
    }

    /// Whether we wait for it to connect: we do not know where a dynamic peer listens.
    pub(crate) fn is_passive(&self) -> bool {
        self.settings.passive || matches!(self.origin, Origin::Dynamic(_))
    }

    /// Whether its session may continue with another configuration.
    pub(crate) fn goes_on_under(&self, config: &PeerConfig) -> bool {
        self.port == config.port
            && self.local == config.local
            && self.remote_asn == config.remote_asn
            && self.is_alike(&config.settings)
    }

    /// Whether its session may continue with other settings.
    pub(crate) fn is_alike(&self, settings: &Arc<PeerSettings>) -> bool {
        Arc::ptr_eq(&self.settings, settings) || self.settings.goes_on_under(settings)
    }
}

/// Peers by index and by address.
pub(crate) struct Peers {
    places: Vec<Option<Peer>>,
    free: Vec<u32>,
    by_address: HashTable<u32>,
    hasher: FixedState,
}

impl Peers {
    /// No peers. The seed keeps outsiders from choosing addresses that collide.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_address: HashTable::new(),
            hasher: FixedState::with_seed(seed),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// The most peers that there were at one time.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Reserves room for more peers.
    pub(crate) fn reserve(&mut self, peers: usize) {
        self.places.reserve_exact(peers);
    }

    pub(crate) fn insert(&mut self, peer: Peer) -> u32 {
        let hash = self.hasher.hash_one(peer.remote);
        let index = self.free.pop().unwrap_or_else(|| {
            crate::table::reserve_some(&mut self.places);
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("memory ends before 2^32 peers")
        });
        self.places[index as usize] = Some(peer);
        let (places, hasher) = (&self.places, &self.hasher);
        self.by_address.insert_unique(hash, index, |&other| {
            let peer = places[other as usize].as_ref();
            hasher.hash_one(peer.expect("the table names peers only").remote)
        });
        index
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Peer> {
        let peer = self.places.get_mut(index as usize)?.take()?;
        let hash = self.hasher.hash_one(peer.remote);
        if let Ok(entry) = self.by_address.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        self.free.push(index);
        Some(peer)
    }

    pub(crate) fn find(&self, remote: IpAddr) -> Option<u32> {
        let is_it = |&index: &u32| self.get(index).is_some_and(|peer| peer.remote == remote);
        self.by_address
            .find(self.hasher.hash_one(remote), is_it)
            .copied()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Peer> {
        self.places.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Peer> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    /// Every peer, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Peer)> {
        (0..)
            .zip(&self.places)
            .filter_map(|(index, peer)| Some((index, peer.as_ref()?)))
    }

    /// The first peer at that index or after it.
    pub(crate) fn next_from(&self, index: u32) -> Option<(u32, &Peer)> {
        (index..)
            .zip(self.places.get(index as usize..)?)
            .find_map(|(index, peer)| Some((index, peer.as_ref()?)))
    }

    /// Memory in bytes, without what a peer has in boxes.
    pub(crate) fn memory(&self) -> usize {
        self.places.capacity() * size_of::<Option<Peer>>()
            + self.free.capacity() * size_of::<u32>()
            + self.by_address.allocation_size()
    }
}
