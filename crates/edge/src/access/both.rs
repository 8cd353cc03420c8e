//! Two access protocols under one edge.
//!
//! Keys, routes and reasons are [`Either`] those of the first protocol or those of the second. Each call goes to the
//! endpoint that its key or route belongs to, by one branch.

use core::fmt;

use aaa::TunnelTo;
use aaa::accounting::TerminateCause;
use base::{Duration, Instant, Machine};
use wire::pppoe::Vlans;

use super::{
    Access, Call, Encapsulation, Header, LinkCause, Numbers, Peer, Reason, SessionChange,
    SessionInfo,
};

/// A value of the first protocol or of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Either<A, B> {
    /// Of the first.
    First(A),
    /// Of the second.
    Second(B),
}

use Either::{First, Second};

impl<A, B> Either<A, B> {
    /// The value if it is the first protocol's.
    pub fn first(self) -> Option<A> {
        match self {
            First(one) => Some(one),
            Second(_) => None,
        }
    }

    /// The value if it is the second protocol's.
    pub fn second(self) -> Option<B> {
        match self {
            First(_) => None,
            Second(other) => Some(other),
        }
    }

    /// A reference to either value.
    pub const fn as_ref(&self) -> Either<&A, &B> {
        match self {
            First(one) => First(one),
            Second(other) => Second(other),
        }
    }
}

impl<A: fmt::Display, B: fmt::Display> fmt::Display for Either<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            First(one) => one.fmt(f),
            Second(other) => other.fmt(f),
        }
    }
}

impl<A: core::error::Error, B: core::error::Error> core::error::Error for Either<A, B> {}

impl<A: AsRef<[u8]>, B: AsRef<[u8]>> AsRef<[u8]> for Either<A, B> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            First(one) => one.as_ref(),
            Second(other) => other.as_ref(),
        }
    }
}

impl<A: Reason, B: Reason> Reason for Either<A, B> {
    fn terminate_cause(&self) -> TerminateCause {
        match self {
            First(one) => one.terminate_cause(),
            Second(other) => other.terminate_cause(),
        }
    }

    fn is_silence(&self) -> bool {
        match self {
            First(one) => one.is_silence(),
            Second(other) => other.is_silence(),
        }
    }
}

/// The endpoints of two protocols.
#[derive(Debug)]
pub struct Both<A, B> {
    /// The first protocol's.
    pub first: A,
    /// The second protocol's.
    pub second: B,
    /// Whether the second is polled first. They take turns, so that a busy one does not delay the other.
    turn: bool,
}

impl<A, B> Both<A, B> {
    /// Combines two endpoints.
    pub const fn new(first: A, second: B) -> Self {
        Self {
            first,
            second,
            turn: false,
        }
    }
}

impl<A: Machine, B: Machine> Machine for Both<A, B> {
    type Input<'a> = Either<A::Input<'a>, B::Input<'a>>;
    type Transmit = Either<A::Transmit, B::Transmit>;
    type Event = Either<A::Event, B::Event>;
    type Discard = Either<A::Discard, B::Discard>;

    fn handle(&mut self, input: Self::Input<'_>, now: Instant) -> Result<(), Self::Discard> {
        match input {
            First(input) => self.first.handle(input, now).map_err(First),
            Second(input) => self.second.handle(input, now).map_err(Second),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.first.handle_timeout(now);
        self.second.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Self::Transmit> {
        self.turn = !self.turn;
        if self.turn {
            let second = self.second.poll_transmit(now, out).map(Second);
            return second.or_else(|| self.first.poll_transmit(now, out).map(First));
        }
        let first = self.first.poll_transmit(now, out).map(First);
        first.or_else(|| self.second.poll_transmit(now, out).map(Second))
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.turn = !self.turn;
        if self.turn {
            let second = self.second.poll_event().map(Second);
            return second.or_else(|| self.first.poll_event().map(First));
        }
        let first = self.first.poll_event().map(First);
        first.or_else(|| self.second.poll_event().map(Second))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let both = [self.first.poll_timeout(), self.second.poll_timeout()];
        both.into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// The first protocol is the one with tunnels: a session of the second is handed over to its peers.
impl<A: Access, B: Access> Access for Both<A, B> {
    type Route = Either<A::Route, B::Route>;
    type Session = Either<A::Session, B::Session>;
    type Place = Either<A::Place, B::Place>;
    type Reason = Either<A::Reason, B::Reason>;
    type Encapsulation = Either<A::Encapsulation, B::Encapsulation>;
    type Tunnel = A::Tunnel;

    /// The indexes of the two protocols take turns.
    fn index(session: Self::Session) -> usize {
        match session {
            First(session) => A::index(session) * 2,
            Second(session) => B::index(session) * 2 + 1,
        }
    }

    fn session_change(event: &Self::Event) -> Option<SessionChange<Self::Session, Self::Reason>> {
        Some(match event {
            First(event) => A::session_change(event)?.map(First, First),
            Second(event) => B::session_change(event)?.map(Second, Second),
        })
    }

    fn session(&self, session: Self::Session) -> Option<SessionInfo<Self::Place>> {
        Some(match session {
            First(session) => self.first.session(session)?.map(First),
            Second(session) => self.second.session(session)?.map(Second),
        })
    }

    fn numbers(&self, session: Self::Session) -> Option<Box<Numbers>> {
        match session {
            First(session) => self.first.numbers(session),
            Second(session) => self.second.numbers(session),
        }
    }

    fn proxy(&self, session: Self::Session) -> Option<ppp::Proxy<'_>> {
        match session {
            First(session) => self.first.proxy(session),
            Second(session) => self.second.proxy(session),
        }
    }

    fn peer(&self, place: Self::Place) -> Option<Peer<'_>> {
        match place {
            First(place) => self.first.peer(place),
            Second(place) => self.second.peer(place),
        }
    }

    fn receive<'a>(
        &mut self,
        route: &Self::Route,
        bytes: &'a [u8],
        now: Instant,
    ) -> Option<(Self::Session, &'a [u8])> {
        match route {
            First(route) => {
                let (session, frame) = self.first.receive(route, bytes, now)?;
                Some((First(session), frame))
            }
            Second(route) => {
                let (session, frame) = self.second.receive(route, bytes, now)?;
                Some((Second(session), frame))
            }
        }
    }

    /// Both get half of what may fire, so that neither waits for the other.
    fn handle_timeouts(&mut self, now: Instant, most: usize) -> usize {
        let half = most.div_ceil(2);
        let fired = self.first.handle_timeouts(now, half);
        fired + self.second.handle_timeouts(now, half)
    }

    fn heard(&mut self, session: Self::Session, now: Instant) {
        match session {
            First(session) => self.first.heard(session, now),
            Second(session) => self.second.heard(session, now),
        }
    }

    fn header(&mut self, session: Self::Session) -> Option<(Header<Self>, Self::Route)> {
        match session {
            First(session) => {
                let (header, route) = self.first.header(session)?;
                Some((First(header), First(route)))
            }
            Second(session) => {
                let (header, route) = self.second.header(session)?;
                Some((Second(header), Second(route)))
            }
        }
    }

    fn encapsulation(&self, session: Self::Session) -> Option<(Self::Encapsulation, Header<Self>)> {
        match session {
            First(session) => {
                let (way, header) = self.first.encapsulation(session)?;
                Some((First(way), First(header)))
            }
            Second(session) => {
                let (way, header) = self.second.encapsulation(session)?;
                Some((Second(way), Second(header)))
            }
        }
    }

    fn is_fixed(&self, session: Self::Session) -> bool {
        match session {
            First(session) => self.first.is_fixed(session),
            Second(session) => self.second.is_fixed(session),
        }
    }

    fn packet_max(&self, session: Self::Session, path_mtu: u16) -> u16 {
        match session {
            First(session) => self.first.packet_max(session, path_mtu),
            Second(session) => self.second.packet_max(session, path_mtu),
        }
    }

    fn end(&mut self, session: Self::Session, wait: Duration, now: Instant) {
        match session {
            First(session) => self.first.end(session, wait, now),
            Second(session) => self.second.end(session, wait, now),
        }
    }

    fn shut_down(&mut self, now: Instant) {
        self.first.shut_down(now);
        self.second.shut_down(now);
    }

    fn is_quiet(&self) -> bool {
        self.first.is_quiet() && self.second.is_quiet()
    }

    /// The protocols share no codes: a reason of the other one is passed on as none.
    fn hang_up(&mut self, session: Self::Session, other: Option<&Self::Reason>, now: Instant) {
        let (first, second) = match other.map(Either::as_ref) {
            Some(First(reason)) => (Some(reason), None),
            Some(Second(reason)) => (None, Some(reason)),
            None => (None, None),
        };
        match session {
            First(session) => self.first.hang_up(session, first, now),
            Second(session) => self.second.hang_up(session, second, now),
        }
    }

    fn set_cause(&mut self, session: Self::Session, cause: LinkCause) {
        match session {
            First(session) => self.first.set_cause(session, cause),
            Second(session) => self.second.set_cause(session, cause),
        }
    }

    fn may_report_speed(&self, session: Self::Session) -> bool {
        match session {
            First(session) => self.first.may_report_speed(session),
            Second(session) => self.second.may_report_speed(session),
        }
    }

    fn report_speed(&mut self, session: Self::Session, bps: [Option<u64>; 2]) -> bool {
        match session {
            First(session) => self.first.report_speed(session, bps),
            Second(session) => self.second.report_speed(session, bps),
        }
    }

    fn speed_change(event: &Self::Event) -> Option<(Self::Session, [u64; 2])> {
        match event {
            First(event) => A::speed_change(event).map(|(key, bps)| (First(key), bps)),
            Second(event) => B::speed_change(event).map(|(key, bps)| (Second(key), bps)),
        }
    }

    fn initial_request(&self, session: Self::Session) -> &[u8] {
        match session {
            First(session) => self.first.initial_request(session),
            Second(session) => self.second.initial_request(session),
        }
    }

    fn port(&self, place: Self::Place) -> Option<(u16, Vlans)> {
        match place {
            First(place) => self.first.port(place),
            Second(place) => self.second.port(place),
        }
    }

    fn open_tunnel(
        &mut self,
        to: &TunnelTo,
        route: base::Route,
        now: Instant,
    ) -> Result<A::Tunnel, String> {
        self.first.open_tunnel(to, route, now)
    }

    fn tunnel_state(&self, tunnel: A::Tunnel) -> Option<bool> {
        self.first.tunnel_state(tunnel)
    }

    fn abandon_tunnel(&mut self, tunnel: A::Tunnel, now: Instant) {
        self.first.abandon_tunnel(tunnel, now);
    }

    fn place_call(
        &mut self,
        tunnel: A::Tunnel,
        from: Option<Self::Session>,
        call: &Call<'_>,
        now: Instant,
    ) -> Result<Self::Session, String> {
        let session = self
            .first
            .place_call(tunnel, from.and_then(Either::first), call, now)?;
        Ok(First(session))
    }
}

impl<A: Encapsulation, B: Encapsulation> Encapsulation for Either<A, B> {
    type Route = Either<A::Route, B::Route>;
    type Session = Either<A::Session, B::Session>;
    type Id = Either<A::Id, B::Id>;
    type Header = Either<A::Header, B::Header>;

    fn session(&self) -> Self::Session {
        match self {
            First(way) => First(way.session()),
            Second(way) => Second(way.session()),
        }
    }

    #[inline]
    fn id(&self) -> Self::Id {
        match self {
            First(way) => First(way.id()),
            Second(way) => Second(way.id()),
        }
    }

    #[inline]
    fn hash(id: Self::Id) -> u64 {
        match id {
            First(id) => A::hash(id),
            Second(id) => B::hash(id),
        }
    }

    fn spread(id: Self::Id) -> Option<u32> {
        match id {
            First(id) => A::spread(id),
            Second(id) => B::spread(id),
        }
    }

    #[inline]
    fn route(&self) -> Self::Route {
        match self {
            First(way) => First(way.route()),
            Second(way) => Second(way.route()),
        }
    }

    #[inline]
    fn has_address(route: &Self::Route) -> bool {
        match route {
            First(route) => A::has_address(route),
            Second(route) => B::has_address(route),
        }
    }

    #[inline]
    fn is_from(&self, route: &Self::Route) -> bool {
        match (self, route) {
            (First(way), First(route)) => way.is_from(route),
            (Second(way), Second(route)) => way.is_from(route),
            (First(_), Second(_)) | (Second(_), First(_)) => false,
        }
    }

    #[inline]
    fn is_fixed(&self) -> bool {
        match self {
            First(way) => way.is_fixed(),
            Second(way) => way.is_fixed(),
        }
    }

    #[inline]
    fn locate<'a, 's, T>(
        route: &Self::Route,
        bytes: &'a [u8],
        find: impl FnOnce(Self::Id) -> Option<(T, &'s Self)>,
    ) -> Option<(T, &'a [u8])> {
        match route {
            First(route) => A::locate(route, bytes, |id| {
                let (found, way) = find(First(id))?;
                Some((found, way.as_ref().first()?))
            }),
            Second(route) => B::locate(route, bytes, |id| {
                let (found, way) = find(Second(id))?;
                Some((found, way.as_ref().second()?))
            }),
        }
    }

    #[inline]
    fn complete(route: &Self::Route, out: &mut [u8], begun: usize) {
        match route {
            First(route) => A::complete(route, out, begun),
            Second(route) => B::complete(route, out, begun),
        }
    }
}
