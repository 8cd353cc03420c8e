//! PPPoE as an edge's access protocol (RFC 2516). No other file of the crate depends on PPPoE.
//!
//! Datagrams start at the PPPoE header: Ethernet's header belongs to the route.

use core::convert::Infallible;
use core::fmt;

use aaa::accounting::TerminateCause;
use base::{Duration, Instant, Machine as _};
use pppoe::{EndReason, Endpoint, Event, Frame, Role, Route, SessionKey};
use wire::pppoe::{Code, HEADER_LEN, Vlans};

use super::{Access, Encapsulation, HEADER_MAX, Numbers, Peer, Reason, SessionChange, SessionInfo};

/// PPPoE, access concentrator and host.
pub type Pppoe = Endpoint;

const _: () = assert!(HEADER_LEN <= HEADER_MAX);

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// SESSION_ID.
    pub session_id: u16,
    /// The host: interface, VLANs and MAC address.
    pub route: Route,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pppoe {} {}", self.session_id, self.route)
    }
}

impl Access for Endpoint {
    type Route = Route;
    type Session = SessionKey;
    type Place = Place;
    type Reason = EndReason;
    type Encapsulation = Way;
    type Tunnel = Infallible;

    fn index(session: SessionKey) -> usize {
        session.index() as usize
    }

    fn session_change(event: &Event) -> Option<SessionChange<SessionKey, EndReason>> {
        Some(match event {
            Event::SessionUp { session } => SessionChange::Up(*session),
            Event::SessionDown {
                session, reason, ..
            } => SessionChange::Down(*session, reason.clone()),
        })
    }

    fn session(&self, session: SessionKey) -> Option<SessionInfo<Place>> {
        let view = self.session(session)?;
        Some(SessionInfo {
            place: Place {
                session_id: view.id,
                route: view.route,
            },
            is_ppp: true,
            is_network: view.role == Role::Server,
            ether_max: Some(view.max_payload),
        })
    }

    /// The host's MAC address is the calling number, the service the called one.
    fn numbers(&self, session: SessionKey) -> Option<Box<Numbers>> {
        let view = self.session(session)?;
        Some(Box::new(Numbers {
            calling: view.route.peer.to_string().into_bytes().into(),
            called: view.service_name.into(),
            line: view
                .line
                .map_or_else(Box::default, |line| line.as_bytes().into()),
        }))
    }

    fn proxy(&self, _: SessionKey) -> Option<ppp::Proxy<'_>> {
        None
    }

    fn peer(&self, _: Place) -> Option<Peer<'_>> {
        None
    }

    fn receive<'a>(
        &mut self,
        route: &Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Option<(SessionKey, &'a [u8])> {
        match self.receive_data(route, bytes, now) {
            Ok(Some(found)) => Some(found),
            Ok(None) => {
                let frame = Frame {
                    route: *route,
                    // The owner passes no other packet that was sent to all.
                    is_broadcast: bytes.get(1) == Some(&Code::PADI.0),
                    bytes,
                };
                // The endpoint counts what it ignores.
                let _ = self.handle(frame, now);
                None
            }
            Err(_) => None,
        }
    }

    fn handle_timeouts(&mut self, now: Instant, most: usize) -> usize {
        Self::handle_timeouts(self, now, most)
    }

    fn heard(&mut self, session: SessionKey, now: Instant) {
        self.heard(session, now);
    }

    fn header(&mut self, session: SessionKey) -> Option<([u8; HEADER_LEN], Route)> {
        Self::header(self, session)
    }

    fn encapsulation(&self, session: SessionKey) -> Option<(Way, [u8; HEADER_LEN])> {
        let (header, route) = Self::header(self, session)?;
        let id = self.session(session)?.id;
        let way = Way { session, id, route };
        Some((way, header))
    }

    fn is_fixed(&self, _: SessionKey) -> bool {
        true
    }

    /// The PPP payload that both ends allow (RFC 4638); the path MTU of tunnels is of no concern.
    fn packet_max(&self, session: SessionKey, _: u16) -> u16 {
        self.session(session).map_or(0, |view| view.max_payload)
    }

    fn end(&mut self, session: SessionKey, wait: Duration, now: Instant) {
        self.end(session, wait, now);
    }

    fn shut_down(&mut self, now: Instant) {
        self.shut_down(now);
    }

    fn is_quiet(&self) -> bool {
        self.is_quiet()
    }

    fn port(&self, place: Place) -> Option<(u16, Vlans)> {
        Some((place.route.port, place.route.vlans))
    }
}

impl Reason for EndReason {
    fn terminate_cause(&self) -> TerminateCause {
        match self {
            Self::Administrative | Self::ShutDown => TerminateCause::AdminReset,
            Self::Peer(_) | Self::Payload => TerminateCause::UserRequest,
            Self::PortLost | Self::VlanLost => TerminateCause::LostCarrier,
            Self::Replaced | Self::SetupTimeout => TerminateCause::LostService,
            Self::NoPado | Self::NoPads | Self::Refused(_) => TerminateCause::ServiceUnavailable,
        }
    }
}

/// What forwarding needs to know of a session.
#[derive(Clone, Debug)]
pub struct Way {
    session: SessionKey,
    id: u16,
    route: Route,
}

impl Encapsulation for Way {
    type Route = Route;
    type Session = SessionKey;
    type Id = u16;
    type Header = [u8; HEADER_LEN];

    fn session(&self) -> SessionKey {
        self.session
    }

    #[inline]
    fn id(&self) -> u16 {
        self.id
    }

    fn spread(id: u16) -> Option<u32> {
        Some(id.into())
    }

    #[inline]
    fn hash(id: u16) -> u64 {
        let mixed = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed.rotate_left(32)
    }

    #[inline]
    fn route(&self) -> Route {
        self.route
    }

    #[inline]
    fn has_address(_: &Route) -> bool {
        false
    }

    #[inline]
    fn is_from(&self, route: &Route) -> bool {
        self.route == *route
    }

    #[inline]
    fn is_fixed(&self) -> bool {
        true
    }

    #[inline]
    fn locate<'a, 's, T>(
        _: &Route,
        bytes: &'a [u8],
        find: impl FnOnce(u16) -> Option<(T, &'s Self)>,
    ) -> Option<(T, &'a [u8])> {
        let packet = wire::pppoe::parse(bytes).ok()?;
        if packet.code != Code::DATA {
            return None;
        }
        let (found, _) = find(packet.session)?;
        Some((found, packet.payload))
    }

    #[inline]
    fn complete(_: &Route, out: &mut [u8], begun: usize) {
        wire::pppoe::complete(out, begun);
    }
}
