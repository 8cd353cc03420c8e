//! What an edge needs of the protocol that brings PPP frames to it: L2TP (the file `l2tp`), PPPoE (`pppoe`), or both
//! (`both`).
//!
//! # What the protocols share, and where they differ
//!
//! | | L2TP (RFC 2661, RFC 3931) | PPPoE (RFC 2516) |
//! |---|---|---|
//! | a session's key | place in the endpoint's slab | session id, 16 bits |
//! | ids in a message | tunnel and session id, or a session id and a cookie | interface, peer's MAC, session id |
//! | a route | UDP addresses and a socket | interface, both MACs, VLAN tags |
//! | before a PPP frame | 6 to 20 bytes, no length; a sequence number where the peer asks for one | Ethernet's 14 bytes and PPPoE's 6, which hold the length |
//! | PPP's head | FF 03 and the protocol, unless compressed | the protocol alone |
//! | beside the frame in the path MTU | IP, UDP and L2TP | 6 bytes (Ethernet's are not counted) |
//! | a session ends by | CDN, StopCCN | PADT |
//! | the peer's name | the LAC's Host Name | none: its MAC address |
//! | where the call came from | Calling and Called Number | line tags of the DSLAM (TR-101) |
//! | negotiated before the edge | Proxy LCP and authentication AVPs | nothing |
//!
//! # Decision
//!
//! Two traits, and generic parameters rather than trait objects. smoltcp splits a device into `phy::Device`, which one
//! owner drives, and tokens, which a packet uses; quinn-proto splits an `Endpoint` from its connections. Likewise here:
//! [`Access`] is the endpoint, a [`Machine`] that the edge alone drives. An [`Encapsulation`] is a plain value for
//! each session: what a packet needs to find its session and to get its header. Paths on other cores have copies of it
//! and never see the endpoint. The compiler makes one data path for each protocol, so a packet costs no dynamic call.
//!
//! Headers come in two kinds. A fixed one is stored with the session and copied before each packet. One that changes
//! with each frame (sequence numbers) is asked of the endpoint by the edge; other paths leave such packets to it.
//! A length in the header is written once the packet follows it ([`Encapsulation::complete`]).
//!
//! One edge has one `Access`, because its subscribers share pools, names and routes. [`Both`] is an `Access` of two
//! endpoints, whose keys and routes are [`Either`] protocol's. The daemon's edge has [`Served`].

mod both;
mod l2tp;
mod pppoe;

use core::fmt::{Debug, Display};
use core::hash::Hash;
use core::net::IpAddr;

use aaa::TunnelTo;
use aaa::accounting::TerminateCause;
use base::{Duration, Instant, Machine};
use wire::pppoe::Vlans;

pub use self::both::{Both, Either};
pub use self::l2tp::{L2tp, Place as L2tpPlace, Way as L2tpWay};
pub use self::pppoe::{Place as PppoePlace, Pppoe, Way as PppoeWay};

/// The access protocols that the daemon serves.
pub type Served = Both<L2tp, Pppoe>;

/// An endpoint of the protocol that brings PPP frames, driven by one [`crate::Edge`].
///
/// Each method takes a session's key; for a session that no longer exists it returns `None` or does nothing.
pub trait Access: Machine<Transmit = Self::Route, Event: Debug> {
    /// The source or destination of a datagram.
    type Route: Copy + Eq + Debug + Send;
    /// Names a session; a stale key is recognised.
    type Session: Copy + Eq + Hash + Debug + Send;
    /// Where a session is: its ids, for display and accounting, also after the session has ended.
    type Place: Copy + Eq + Debug + Display;
    /// Why a session ended.
    type Reason: Reason;
    /// What forwarding needs to know of a session.
    type Encapsulation: Encapsulation<Route = Self::Route, Session = Self::Session>;
    /// Names a tunnel in which we hand sessions over to an LNS.
    type Tunnel: Copy + Eq + Debug;

    /// A session's index in a table: indexes are small, and are reused.
    fn index(session: Self::Session) -> usize;

    /// The session that an event starts or ends, if any.
    fn session_change(event: &Self::Event) -> Option<SessionChange<Self::Session, Self::Reason>>;

    /// Information about a session.
    fn session(&self, session: Self::Session) -> Option<SessionInfo<Self::Place>>;

    /// The call's numbers, or another identification of its line.
    fn numbers(&self, session: Self::Session) -> Option<Box<Numbers>>;

    /// What the peer negotiated in our name before it handed the call over.
    fn proxy(&self, session: Self::Session) -> Option<ppp::Proxy<'_>>;

    /// The peer that a session is with.
    fn peer(&self, place: Self::Place) -> Option<Peer<'_>>;

    /// Handles a datagram. Returns the PPP frame that it carries, with its session, which is established.
    /// `None`: the datagram was a control message, which may cause events, or was ignored and counted.
    fn receive<'a>(
        &mut self,
        route: &Self::Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Option<(Self::Session, &'a [u8])>;

    /// Fires at most `most` of the timers that are due. Returns how many fired.
    fn handle_timeouts(&mut self, now: Instant, most: usize) -> usize;

    /// Reports that a path received a packet of this session, so its peer is alive. Each path reports this at
    /// most once a second.
    fn heard(&mut self, session: Self::Session, now: Instant);

    /// The header of the next frame of an established session, and the frame's destination. Takes a sequence
    /// number if the peer requests those.
    fn header(&mut self, session: Self::Session) -> Option<(Header<Self>, Self::Route)>;

    /// What forwarding needs to know of an established session, with the header before its frames if that is
    /// fixed.
    fn encapsulation(&self, session: Self::Session) -> Option<(Self::Encapsulation, Header<Self>)>;

    /// Whether all frames of a session have the same header. This may change while the session is established.
    fn is_fixed(&self, session: Self::Session) -> bool;

    /// The largest packet that fits into one frame of a session, in bytes. `path_mtu` is the path MTU of protocols
    /// that run over IP; others know the link's.
    fn packet_max(&self, session: Self::Session, path_mtu: u16) -> u16;

    /// Ends a session because its link ended. The peer is notified after this wait; zero: at once.
    fn end(&mut self, session: Self::Session, wait: Duration, now: Instant);

    /// Ends everything in order and notifies every peer.
    fn shut_down(&mut self, now: Instant);

    /// Whether no peer has a notification outstanding.
    fn is_quiet(&self) -> bool;

    /// Ends a session whose other half ended: at once, with the other half's reason as far as the protocol has a code
    /// for it.
    fn hang_up(&mut self, session: Self::Session, other: Option<&Self::Reason>, now: Instant) {
        let _ = other;
        self.end(session, Duration::ZERO, now);
    }

    /// Sets what the peer of a session will read about the end of PPP in it, if the protocol has a field for that.
    fn set_cause(&mut self, session: Self::Session, cause: LinkCause) {
        let _ = (session, cause);
    }

    /// Whether the peer of a session that we handed over accepts new speeds of its line.
    fn may_report_speed(&self, session: Self::Session) -> bool {
        let _ = session;
        false
    }

    /// Reports the speeds of a line, down and up, in bit/s, to the peer of a session that we handed over. `None` keeps a
    /// speed. `false` if it does not accept them.
    fn report_speed(&mut self, session: Self::Session, bps: [Option<u64>; 2]) -> bool {
        let _ = (session, bps);
        false
    }

    /// The session whose line has other speeds, and these, down and up, in bit/s.
    fn speed_change(event: &Self::Event) -> Option<(Self::Session, [u64; 2])> {
        let _ = event;
        None
    }

    /// The first request of LCP that the peer reports, if it negotiated in our name.
    fn initial_request(&self, session: Self::Session) -> &[u8] {
        let _ = session;
        &[]
    }

    /// The number of the Ethernet interface of a session, and its VLAN tags.
    fn port(&self, place: Self::Place) -> Option<(u16, Vlans)> {
        let _ = place;
        None
    }

    /// Opens a tunnel to an LNS.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn open_tunnel(
        &mut self,
        to: &TunnelTo,
        route: base::Route,
        now: Instant,
    ) -> Result<Self::Tunnel, String> {
        let _ = (to, route, now);
        Err("this access protocol has no tunnels".to_owned())
    }

    /// Whether calls can be made in a tunnel, and whether it is established.
    fn tunnel_state(&self, tunnel: Self::Tunnel) -> Option<bool> {
        let _ = tunnel;
        None
    }

    /// Ends a tunnel that did not come up.
    fn abandon_tunnel(&mut self, tunnel: Self::Tunnel, now: Instant) {
        let _ = (tunnel, now);
    }

    /// Hands a session over in a tunnel: makes a call, with what this protocol knows of the session `from`.
    ///
    /// # Errors
    /// Why the call cannot be made.
    fn place_call(
        &mut self,
        tunnel: Self::Tunnel,
        from: Option<Self::Session>,
        call: &Call<'_>,
        now: Instant,
    ) -> Result<Self::Session, String> {
        let _ = (tunnel, from, call, now);
        Err("this access protocol has no tunnels".to_owned())
    }
}

/// Why PPP in a session ended, as RFC 3145 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCause {
    /// Disconnect Code.
    pub code: u16,
    /// Control Protocol Number; 0 for global errors.
    pub protocol: u16,
    /// 0: global, 1: at the peer, 2: here.
    pub direction: u8,
}

/// What an LNS receives about a session that is handed over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// Numbers and line of the caller.
    pub numbers: Option<&'a Numbers>,
    /// Private Group ID.
    pub private_group: &'a [u8],
    /// The options of LCP's requests: the first received, the last sent, the last received.
    pub lcp: Option<[&'a [u8]; 3]>,
    /// The subscriber's name and its proof.
    pub claim: Option<&'a ppp::Claim>,
}

/// Limit on the bytes of a header before a PPP frame, for all protocols.
pub const HEADER_MAX: usize = 20;

/// The header of a frame that an access composed.
pub(crate) type Header<A> = <<A as Access>::Encapsulation as Encapsulation>::Header;

/// How packets of one session are recognised, and the header before them.
///
/// Values are copied to other cores, so they hold no reference and no allocation that is worth sharing.
pub trait Encapsulation: Clone + Debug + Send + 'static {
    /// The source or destination of a datagram.
    type Route: Copy + Eq + Debug + Send;
    /// Names a session.
    type Session: Copy + Eq + Hash + Debug + Send;
    /// The ids in data messages that identify their session. Two peers may use the same.
    type Id: Copy + Eq;
    /// A header of this protocol, of at most [`HEADER_MAX`] bytes.
    type Header: AsRef<[u8]>;

    /// The session.
    fn session(&self) -> Self::Session;

    /// The ids in its data messages to us.
    fn id(&self) -> Self::Id;

    /// The key of an id in a hash table. Equal ids have equal keys.
    fn hash(id: Self::Id) -> u64;

    /// A number by which the data messages of sessions can be spread over cores, if this protocol has one.
    fn spread(id: Self::Id) -> Option<u32> {
        let _ = id;
        None
    }

    /// The destination of its datagrams.
    fn route(&self) -> Self::Route;

    /// Whether PPP frames on this route begin with address and control bytes (FF 03) unless the peers agree to leave
    /// them out.
    fn has_address(route: &Self::Route) -> bool;

    /// Whether a data message with this session's id may belong to this session, judged by its route.
    fn is_from(&self, route: &Self::Route) -> bool;

    /// Whether all frames have the same header. The edge handles the others, through [`Access::header`].
    fn is_fixed(&self) -> bool;

    /// Parses a data message, calls `find` to find its session, and returns its result with the PPP frame.
    /// `None`: the datagram is for [`Access::receive`], as are messages with a sequence number.
    fn locate<'a, 's, T>(
        route: &Self::Route,
        bytes: &'a [u8],
        find: impl FnOnce(Self::Id) -> Option<(T, &'s Self)>,
    ) -> Option<(T, &'a [u8])>;

    /// Writes the length-dependent fields of the last datagram in `out`, given the offset of its start.
    #[inline]
    fn complete(route: &Self::Route, out: &mut [u8], begun: usize) {
        let _ = (route, out, begun);
    }
}

/// A session's start or end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange<S, R> {
    /// It is established: frames may flow.
    Up(S),
    /// It ended.
    Down(S, R),
}

impl<S, R> SessionChange<S, R> {
    /// Converts the session and the reason.
    pub(crate) fn map<T, Q>(
        self,
        session: impl Fn(S) -> T,
        reason: impl Fn(R) -> Q,
    ) -> SessionChange<T, Q> {
        match self {
            Self::Up(key) => SessionChange::Up(session(key)),
            Self::Down(key, why) => SessionChange::Down(session(key), reason(why)),
        }
    }
}

/// What an edge needs to know of a session when a subscriber starts in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo<P> {
    /// Where it is.
    pub place: P,
    /// Whether it carries PPP frames.
    pub is_ppp: bool,
    /// Whether our side is the network's: an LNS, or an access concentrator of PPPoE.
    pub is_network: bool,
    /// The largest packet in a frame, in bytes, if the protocol is PPPoE, which has rules of its own for LCP.
    pub ether_max: Option<u16>,
}

impl<P> SessionInfo<P> {
    /// Converts the place.
    pub(crate) fn map<Q>(self, place: impl Fn(P) -> Q) -> SessionInfo<Q> {
        SessionInfo {
            place: place(self.place),
            is_ppp: self.is_ppp,
            is_network: self.is_network,
            ether_max: self.ether_max,
        }
    }
}

/// Why a session ended.
pub trait Reason: Clone + Debug + Display + PartialEq + Eq {
    /// The Acct-Terminate-Cause for the subscriber's accounting (RFC 2866, section 5.10).
    fn terminate_cause(&self) -> TerminateCause;

    /// Whether the peer did not answer, so that it should be avoided for a while.
    fn is_silence(&self) -> bool {
        false
    }
}

/// The numbers of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The caller (Calling-Station-Id).
    pub calling: Box<[u8]>,
    /// The called number (Called-Station-Id).
    pub called: Box<[u8]>,
    /// Values of the line from the access node: sub-options of RFC 4679, each a number, a length and a value.
    pub line: Box<[u8]>,
}

/// The peer that a session is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer<'a> {
    /// Its name for itself.
    pub name: &'a [u8],
    /// Our name to it.
    pub own_name: &'a [u8],
    /// Its IP address and ours, if the protocol runs over IP and both are known.
    pub addresses: Option<(IpAddr, IpAddr)>,
}

impl Served {
    /// Tunnels and their sessions.
    #[must_use]
    pub const fn l2tp(&self) -> &L2tp {
        &self.first
    }

    /// The same, for commands.
    pub const fn l2tp_mut(&mut self) -> &mut L2tp {
        &mut self.first
    }

    /// Sessions on Ethernet interfaces.
    #[must_use]
    pub const fn pppoe(&self) -> &Pppoe {
        &self.second
    }

    /// The same, for commands.
    pub const fn pppoe_mut(&mut self) -> &mut Pppoe {
        &mut self.second
    }
}
