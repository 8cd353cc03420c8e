//! L2TP as an edge's access protocol (RFC 2661, RFC 3931). No other file of the crate depends on L2TP.

use core::fmt;

use aaa::TunnelTo;
use aaa::accounting::TerminateCause;
use base::{Datagram, Duration, Instant, Machine as _, Redacted, Route};
use l2tp::{
    CallDetails, Cookie, DataHeader, DataIds, Endpoint, Event, Identity, OpenTunnel, PppCause,
    Pseudowire, SessionEnd, SessionKey, TunnelKey,
};
use ppp::{Authentication, Claim, Proof, Proxy, ProxyProof};
use wire::l2tp::disconnect::code;
use wire::l2tp::{DATA_HEADER_MAX, DataV2, DataV3, Packet, Sublayer, Version};
use wire::pppoe::{LineInfo, line};

use super::{
    Access, Call, Encapsulation, HEADER_MAX, LinkCause, Numbers, Peer, Reason, SessionChange,
    SessionInfo,
};

/// The default access protocol of an edge.
pub type L2tp = Endpoint;

const _: () = assert!(DATA_HEADER_MAX <= HEADER_MAX);

/// Proxy Authen Types (RFC 2661, section 4.4.5).
const PROXY_CHAP: u16 = 2;
const PROXY_PAP: u16 = 3;
const PROXY_NONE: u16 = 4;

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its tunnel.
    pub tunnel: TunnelKey,
    /// The tunnel's id on our side.
    pub tunnel_id: u32,
    /// The session's id on our side.
    pub session_id: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l2tp {}/{}", self.tunnel_id, self.session_id)
    }
}

impl Access for Endpoint {
    type Route = Route;
    type Session = SessionKey;
    type Place = Place;
    type Reason = SessionEnd;
    type Encapsulation = Way;
    type Tunnel = TunnelKey;

    fn index(session: SessionKey) -> usize {
        session.index() as usize
    }

    fn session_change(event: &Event) -> Option<SessionChange<SessionKey, SessionEnd>> {
        match event {
            Event::SessionUp { session, .. } => Some(SessionChange::Up(*session)),
            Event::SessionDown {
                session, reason, ..
            } => Some(SessionChange::Down(*session, reason.clone())),
            _ => None,
        }
    }

    fn session(&self, session: SessionKey) -> Option<SessionInfo<Place>> {
        let view = self.session(session)?;
        Some(SessionInfo {
            place: Place {
                tunnel: view.tunnel,
                tunnel_id: view.tunnel_id,
                session_id: view.id,
            },
            is_ppp: view.pseudowire == Pseudowire::Ppp.number(),
            is_network: !view.role.is_lac(),
            ether_max: None,
        })
    }

    fn numbers(&self, session: SessionKey) -> Option<Box<Numbers>> {
        numbers(self.session(session)?.details?)
    }

    fn proxy(&self, session: SessionKey) -> Option<Proxy<'_>> {
        proxied(self.session(session)?.details?.proxy.as_deref()?)
    }

    fn peer(&self, place: Place) -> Option<Peer<'_>> {
        let view = self.tunnel(place.tunnel)?;
        Some(Peer {
            name: view.host_name.as_bytes(),
            own_name: self.config().host_name.as_bytes(),
            addresses: view.route.local.map(|own| (view.route.peer.ip(), own)),
        })
    }

    fn receive<'a>(
        &mut self,
        route: &Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Option<(SessionKey, &'a [u8])> {
        match self.receive_data(route, bytes, now) {
            Ok(Some(received)) => Some((received.session, &bytes[received.start..received.end])),
            Ok(None) => {
                let route = *route;
                // The endpoint counts what it ignores.
                let _ = self.handle(Datagram { route, bytes }, now);
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

    fn header(&mut self, session: SessionKey) -> Option<(DataHeader, Route)> {
        let header = self.data_header(session)?;
        Some((header, header.route))
    }

    fn encapsulation(&self, session: SessionKey) -> Option<(Way, DataHeader)> {
        let way = self.data_way(session)?;
        let own = Way {
            session,
            ids: way.ids,
            route: way.header.route,
            cookie: way.cookie,
            sublayer: way.sublayer,
            is_numbered: way.is_numbered,
        };
        Some((own, way.header))
    }

    fn is_fixed(&self, session: SessionKey) -> bool {
        !self.is_numbered(session)
    }

    /// Before a packet are the headers of IP, UDP and L2TP, then PPP's address, control and protocol.
    fn packet_max(&self, session: SessionKey, path_mtu: u16) -> u16 {
        let overhead = self.data_overhead(session).unwrap_or(0);
        path_mtu.saturating_sub(overhead as u16 + 4)
    }

    fn end(&mut self, session: SessionKey, wait: Duration, now: Instant) {
        if wait == Duration::ZERO {
            self.end_payload(session, now);
        } else {
            self.end_payload_after(session, wait, now);
        }
    }

    fn shut_down(&mut self, now: Instant) {
        self.shut_down(now);
    }

    fn is_quiet(&self) -> bool {
        self.is_quiet()
    }

    fn hang_up(&mut self, session: SessionKey, other: Option<&SessionEnd>, now: Instant) {
        let reason = match other {
            Some(SessionEnd::Peer(notice)) => SessionEnd::Relayed(notice.clone()),
            Some(SessionEnd::Administrative) => SessionEnd::Administrative,
            _ => SessionEnd::Carrier,
        };
        Self::hang_up(self, session, reason, now);
    }

    fn set_cause(&mut self, session: SessionKey, cause: LinkCause) {
        let LinkCause {
            code,
            protocol,
            direction,
        } = cause;
        let cause = PppCause {
            code,
            protocol,
            direction,
            message: Box::default(),
        };
        self.set_ppp_cause(session, cause);
    }

    fn may_report_speed(&self, session: SessionKey) -> bool {
        self.may_update_speed(session)
    }

    fn report_speed(&mut self, session: SessionKey, [down, up]: [Option<u64>; 2]) -> bool {
        self.update_speed(session, down, up)
    }

    fn speed_change(event: &Event) -> Option<(SessionKey, [u64; 2])> {
        match event {
            Event::SpeedChanged {
                session,
                tx_bps,
                rx_bps,
            } => Some((*session, [*tx_bps, *rx_bps])),
            _ => None,
        }
    }

    fn initial_request(&self, session: SessionKey) -> &[u8] {
        let details = self.session(session).and_then(|view| view.details);
        let proxy = details.and_then(|details| details.proxy.as_deref());
        proxy.map_or(&[], |proxy| &proxy.initial_received_confreq)
    }

    fn open_tunnel(
        &mut self,
        to: &TunnelTo,
        route: Route,
        now: Instant,
    ) -> Result<TunnelKey, String> {
        let version = match self.config().versions.v2 {
            true => Version::V2,
            false => Version::V3,
        };
        let identity = Identity {
            secret: to.secret.as_ref(),
            host_name: to.client_name.as_deref(),
            peer_name: to.server_name.as_deref(),
        };
        let opened = self.open_tunnel_as(OpenTunnel { route, version }, identity, now);
        opened.map_err(|error| error.to_string())
    }

    fn tunnel_state(&self, tunnel: TunnelKey) -> Option<bool> {
        let view = self.tunnel(tunnel).filter(|view| !view.closing)?;
        Some(view.up.is_some())
    }

    fn abandon_tunnel(&mut self, tunnel: TunnelKey, now: Instant) {
        self.close_tunnel(tunnel, now);
    }

    fn place_call(
        &mut self,
        tunnel: TunnelKey,
        from: Option<SessionKey>,
        call: &Call<'_>,
        now: Instant,
    ) -> Result<SessionKey, String> {
        let from = from.and_then(|from| self.session(from)?.details);
        let details = from.cloned().unwrap_or_default();
        call_to(self, tunnel, details, call, now)
    }
}

/// Makes a call with the details of an earlier one, or of none.
fn call_to(
    endpoint: &mut Endpoint,
    tunnel: TunnelKey,
    mut details: CallDetails,
    call: &Call<'_>,
    now: Instant,
) -> Result<SessionKey, String> {
    details.serial = 0;
    // We report new speeds of the line, if there are any.
    details.speed_updates = true;
    details.circuit_status = 0;
    details.remote_end_id = Box::default();
    if let Some(numbers) = call.numbers {
        details.calling_number = numbers.calling.clone();
        details.called_number = numbers.called.clone();
        details.line = LineInfo::parse(&numbers.line);
    }
    if let Some(known) = &details.line {
        // From the LAC to the caller, and back.
        for (speed, number) in [
            (&mut details.tx_speed_bps, line::ACTUAL_RATE_DOWN),
            (&mut details.rx_speed_bps, line::ACTUAL_RATE_UP),
        ] {
            if *speed == 0 {
                *speed = known.word(number).unwrap_or(0).into();
            }
        }
    }
    if !call.private_group.is_empty() {
        details.private_group = call.private_group.into();
    }
    if let Some([initial, sent, received]) = call.lcp {
        let proxy = details.proxy.get_or_insert_default();
        proxy.initial_received_confreq = initial.into();
        proxy.last_sent_confreq = sent.into();
        proxy.last_received_confreq = received.into();
    }
    if let Some(claim) = call.claim {
        claimed(details.proxy.get_or_insert_default(), claim);
    }
    let call = l2tp::Call {
        details,
        ..l2tp::Call::default()
    };
    let opened = endpoint.open_session(tunnel, call, now);
    opened.map_err(|error| error.to_string())
}

/// Writes a subscriber's name and proof into the Proxy Authen AVPs (RFC 2661, section 4.4.5), which know PAP and CHAP.
fn claimed(proxy: &mut l2tp::Proxy, claim: &Claim) {
    let (kind, id, challenge, response): (_, _, &[u8], &[u8]) = match &claim.proof {
        Proof::None => (PROXY_NONE, None, &[], &[]),
        Proof::Pap {
            identifier,
            password,
        } => (PROXY_PAP, Some(*identifier), &[], password.reveal()),
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => (PROXY_CHAP, Some(*identifier), challenge, response),
        // There is no value for these: the LNS authenticates the subscriber anew.
        Proof::MsChapV2 { .. } | Proof::Eap { .. } => return,
    };
    proxy.authen_type = Some(kind);
    proxy.authen_id = id.map(u16::from);
    proxy.authen_name = Redacted::new(claim.name.clone());
    proxy.authen_challenge = challenge.into();
    proxy.authen_response = Redacted::new(response.into());
}

impl Reason for SessionEnd {
    fn terminate_cause(&self) -> TerminateCause {
        match self {
            Self::Administrative => TerminateCause::AdminReset,
            Self::Peer(notice) => match notice.cause.as_deref().map(|cause| cause.code) {
                Some(code::ADMINISTRATIVE) => TerminateCause::AdminReset,
                Some(code::LCP_TIMEOUT | code::NO_LCP | code::ECHO_TIMEOUT) => {
                    TerminateCause::LostCarrier
                }
                Some(
                    code::AUTHENTICATION_TIMEOUT
                    | code::NO_AUTHENTICATION_PROTOCOL
                    | code::AUTHENTICATION_FAILED,
                ) => TerminateCause::UserError,
                _ => TerminateCause::UserRequest,
            },
            Self::TunnelEnded => TerminateCause::LostCarrier,
            _ => TerminateCause::LostService,
        }
    }

    fn is_silence(&self) -> bool {
        matches!(self, Self::TunnelEnded | Self::SetupTimeout)
    }
}

/// What forwarding needs to know of a session.
#[derive(Clone, Debug)]
pub struct Way {
    session: SessionKey,
    ids: DataIds,
    route: Route,
    cookie: Cookie,
    sublayer: bool,
    is_numbered: bool,
}

impl Way {
    /// The frame of an L2TPv3 message, if the message has this session's cookie and no sequence number.
    #[inline]
    fn frame_v3<'a>(&self, data: &DataV3<'a>) -> Option<&'a [u8]> {
        let cookie = self.cookie.as_bytes();
        let (received, frame) = data.cookie(cookie.len())?;
        if received != cookie {
            return None;
        }
        if !self.sublayer {
            return Some(frame);
        }
        let (sublayer, frame) = Sublayer::parse(frame)?;
        sublayer.sequence.is_none().then_some(frame)
    }
}

impl Encapsulation for Way {
    type Route = Route;
    type Session = SessionKey;
    type Id = DataIds;
    type Header = DataHeader;

    fn session(&self) -> SessionKey {
        self.session
    }

    #[inline]
    fn id(&self) -> DataIds {
        self.ids
    }

    fn spread(ids: DataIds) -> Option<u32> {
        Some(match ids {
            DataIds::V2(_, session) => session.into(),
            DataIds::V3(session) => session,
        })
    }

    /// We draw ids at random, so they need little mixing.
    #[inline]
    fn hash(ids: DataIds) -> u64 {
        let ids = match ids {
            DataIds::V2(tunnel, session) => 1 << 32 | u64::from(tunnel) << 16 | u64::from(session),
            DataIds::V3(session) => u64::from(session),
        };
        let mixed = u128::from(ids) * 0x9e37_79b9_7f4a_7c15;
        (mixed >> 64) as u64 ^ (mixed as u64).rotate_left(32)
    }

    #[inline]
    fn route(&self) -> Route {
        self.route
    }

    #[inline]
    fn has_address(_: &Route) -> bool {
        true
    }

    /// An L2TPv2 session belongs to its tunnel's peer address and port. An L2TPv3 session is identified by its
    /// id and cookie, from any port.
    #[inline]
    fn is_from(&self, route: &Route) -> bool {
        match self.ids {
            DataIds::V2(..) => self.route.peer == route.peer,
            DataIds::V3(_) => self.route.peer.ip() == route.peer.ip(),
        }
    }

    #[inline]
    fn is_fixed(&self) -> bool {
        !self.is_numbered
    }

    #[inline]
    fn locate<'a, 's, T>(
        _: &Route,
        bytes: &'a [u8],
        find: impl FnOnce(DataIds) -> Option<(T, &'s Self)>,
    ) -> Option<(T, &'a [u8])> {
        if is_control(bytes) {
            return None;
        }
        match wire::l2tp::parse(bytes) {
            Ok(Packet::DataV2(DataV2 {
                tunnel,
                session,
                sequence: None,
                payload,
                ..
            })) => {
                let (found, _) = find(DataIds::V2(tunnel, session))?;
                Some((found, payload))
            }
            Ok(Packet::DataV3(data)) => {
                let (found, way) = find(DataIds::V3(data.session))?;
                Some((found, way.frame_v3(&data)?))
            }
            Ok(Packet::DataV2(_) | Packet::Control(_)) | Err(_) => None,
        }
    }
}

/// Whether a datagram is a control message, or too short for any message (RFC 2661, section 3.1: T).
#[inline]
fn is_control(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|octet| octet & 0x80 != 0)
}

/// The calling and called numbers, if there are any.
fn numbers(details: &CallDetails) -> Option<Box<Numbers>> {
    let numbers = Numbers {
        calling: details.calling_number.clone(),
        called: details.called_number.clone(),
        line: (details.line.as_ref()).map_or_else(Box::default, |line| line.as_bytes().into()),
    };
    (numbers != Numbers::default()).then(|| Box::new(numbers))
}

/// The proxy AVPs in the form that a link takes; `None` unless they have both sides of LCP.
fn proxied(avps: &l2tp::Proxy) -> Option<Proxy<'_>> {
    if avps.last_sent_confreq.is_empty() && avps.last_received_confreq.is_empty() {
        return None;
    }
    let by = match avps.authen_type {
        Some(PROXY_CHAP) => Some(Authentication::ChapMd5),
        Some(PROXY_PAP) => Some(Authentication::Pap),
        _ => None,
    };
    let proof = by.map(|by| ProxyProof {
        by,
        name: avps.authen_name.reveal(),
        // The AVP stores it in "the low order octet" (RFC 2661, section 4.4.5).
        identifier: avps.authen_id.unwrap_or(0) as u8,
        challenge: &avps.authen_challenge,
        response: Redacted::new(avps.authen_response.reveal()),
    });
    Some(Proxy {
        sent: &avps.last_sent_confreq,
        received: &avps.last_received_confreq,
        proof,
    })
}
