//! The smallest possible access protocol: one wire, one session.
//!
//! It resembles PPPoE where that differs from L2TP: no tunnel, no IP below, a length in the header, PPP frames
//! without address and control. A message is `[code, 0, length, length]` and, with code 0, a frame of that
//! length.

use core::convert::Infallible;
use core::fmt;
use std::collections::VecDeque;

use aaa::accounting::TerminateCause;
use base::{Duration, Instant, Machine};
use edge::access::{Encapsulation, Peer, Reason, SessionChange, SessionInfo};
use edge::{Access, Numbers};

const DATA: u8 = 0;
const OPEN: u8 = 1;
const CUT: u8 = 2;
const HEADER: usize = 4;

/// The one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session;

/// The number of a socket: a route without addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Socket(pub(crate) u8);

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire {}", self.0)
    }
}

/// Why the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The link ended on this side.
    Link,
    /// The other side cut the wire.
    Cut,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "the link ended",
            Self::Cut => "the wire was cut",
        })
    }
}

impl Reason for Why {
    fn terminate_cause(&self) -> TerminateCause {
        match self {
            Self::Link => TerminateCause::NasRequest,
            Self::Cut => TerminateCause::LostCarrier,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Up,
    Down(Why),
}

/// One end of the wire.
pub(crate) struct Wire {
    socket: Socket,
    is_network: bool,
    is_open: bool,
    ends_at: Option<Instant>,
    messages: VecDeque<u8>,
    events: VecDeque<Event>,
}

impl Wire {
    pub(crate) fn new(socket: Socket, is_network: bool) -> Self {
        Self {
            socket,
            is_network,
            is_open: false,
            ends_at: None,
            messages: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Opens the session.
    pub(crate) fn open(&mut self) -> Session {
        self.is_open = true;
        self.messages.push_back(OPEN);
        self.events.push_back(Event::Up);
        Session
    }

    /// Cuts the wire.
    pub(crate) fn cut(&mut self, why: Why) {
        if core::mem::take(&mut self.is_open) {
            self.ends_at = None;
            self.messages.push_back(CUT);
            self.events.push_back(Event::Down(why));
        }
    }
}

impl Machine for Wire {
    type Input<'a> = u8;
    type Transmit = Socket;
    type Event = Event;
    type Discard = Infallible;

    fn handle(&mut self, code: u8, _: Instant) -> Result<(), Infallible> {
        let was_open = self.is_open;
        self.is_open = code != CUT && (was_open || code == OPEN);
        match (was_open, self.is_open) {
            (false, true) => self.events.push_back(Event::Up),
            (true, false) => self.events.push_back(Event::Down(Why::Cut)),
            (false, false) | (true, true) => {}
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.ends_at.is_some_and(|at| at <= now) {
            self.cut(Why::Link);
        }
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Vec<u8>) -> Option<Socket> {
        let code = self.messages.pop_front()?;
        out.extend_from_slice(&[code, 0, 0, 0]);
        Some(self.socket)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.ends_at.map(|at| (at, "end"))
    }
}

impl Access for Wire {
    type Route = Socket;
    type Session = Session;
    type Place = Socket;
    type Reason = Why;
    type Tunnel = Infallible;
    type Encapsulation = Plug;

    fn index(_: Session) -> usize {
        0
    }

    fn session_change(event: &Event) -> Option<SessionChange<Session, Why>> {
        Some(match event {
            Event::Up => SessionChange::Up(Session),
            Event::Down(why) => SessionChange::Down(Session, *why),
        })
    }

    fn session(&self, _: Session) -> Option<SessionInfo<Socket>> {
        self.is_open.then_some(SessionInfo {
            place: self.socket,
            is_ppp: true,
            is_network: self.is_network,
            ether_max: None,
        })
    }

    fn numbers(&self, _: Session) -> Option<Box<Numbers>> {
        Some(Box::new(Numbers {
            calling: self.socket.to_string().into_bytes().into(),
            called: Box::default(),
            line: Box::default(),
        }))
    }

    fn proxy(&self, _: Session) -> Option<ppp::Proxy<'_>> {
        None
    }

    fn peer(&self, _: Socket) -> Option<Peer<'_>> {
        Some(Peer {
            name: b"the other end",
            own_name: b"this end",
            addresses: None,
        })
    }

    fn receive<'a>(
        &mut self,
        _: &Socket,
        bytes: &'a [u8],
        now: Instant,
    ) -> Option<(Session, &'a [u8])> {
        if let Some(frame) = frame(bytes) {
            return self.is_open.then_some((Session, frame));
        }
        let Ok(()) = self.handle(*bytes.first()?, now);
        None
    }

    fn handle_timeouts(&mut self, now: Instant, _: usize) -> usize {
        Machine::handle_timeout(self, now);
        1
    }

    fn heard(&mut self, _: Session, _: Instant) {}

    fn header(&mut self, _: Session) -> Option<([u8; HEADER], Socket)> {
        self.is_open.then_some(([DATA, 0, 0, 0], self.socket))
    }

    fn encapsulation(&self, _: Session) -> Option<(Plug, [u8; HEADER])> {
        let plug = Plug(self.socket);
        self.is_open.then_some((plug, [DATA, 0, 0, 0]))
    }

    fn is_fixed(&self, _: Session) -> bool {
        true
    }

    fn packet_max(&self, _: Session, path_mtu: u16) -> u16 {
        path_mtu - HEADER as u16 - 2
    }

    fn end(&mut self, _: Session, wait: Duration, now: Instant) {
        match wait {
            Duration::ZERO => self.cut(Why::Link),
            wait => self.ends_at = Some(now + wait),
        }
    }

    fn shut_down(&mut self, _: Instant) {
        self.cut(Why::Link);
    }

    fn is_quiet(&self) -> bool {
        self.messages.is_empty()
    }
}

/// What forwarding needs to know of the session.
#[derive(Clone, Debug)]
pub(crate) struct Plug(Socket);

impl Encapsulation for Plug {
    type Route = Socket;
    type Session = Session;
    type Id = ();
    type Header = [u8; HEADER];

    fn session(&self) -> Session {
        Session
    }

    fn id(&self) {}

    fn hash((): ()) -> u64 {
        0
    }

    fn route(&self) -> Socket {
        self.0
    }

    fn has_address(_: &Socket) -> bool {
        false
    }

    fn is_from(&self, route: &Socket) -> bool {
        self.0 == *route
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn locate<'a, 's, T>(
        _: &Socket,
        bytes: &'a [u8],
        find: impl FnOnce(()) -> Option<(T, &'s Self)>,
    ) -> Option<(T, &'a [u8])> {
        let frame = frame(bytes)?;
        find(()).map(|(found, _)| (found, frame))
    }

    fn complete(_: &Socket, out: &mut [u8], begun: usize) {
        let length = (out.len() - begun - HEADER) as u16;
        out[begun + 2..begun + HEADER].copy_from_slice(&length.to_be_bytes());
    }
}

/// The frame of a data message, without bytes appended by the wire.
fn frame(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [DATA, 0, high, low, rest @ ..] => {
            rest.get(..usize::from(u16::from_be_bytes([*high, *low])))
        }
        _ => None,
    }
}
