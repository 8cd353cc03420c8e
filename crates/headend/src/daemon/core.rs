//! What the loop and everything it serves share: the reactor, the endpoint, the
//! sockets, and what its time is booked on.

use base::Instant;
use l2tp::Endpoint;
use reactor::{HandlerId, Reactor};

use super::sockets::Sockets;

/// What the loop's time is booked on.
pub(super) struct Accounts {
    pub(super) read: HandlerId,
    pub(super) input: HandlerId,
    pub(super) timers: HandlerId,
    pub(super) control: HandlerId,
    pub(super) output: HandlerId,
    pub(super) write: HandlerId,
    pub(super) events: HandlerId,
}

impl Accounts {
    pub(super) fn open(reactor: &mut Reactor) -> Self {
        Self {
            read: reactor.handler("udp read"),
            input: reactor.handler("l2tp input"),
            timers: reactor.handler("l2tp timers"),
            control: reactor.handler("control"),
            output: reactor.handler("l2tp output"),
            write: reactor.handler("udp write"),
            events: reactor.handler("events"),
        }
    }
}

/// What control clients act on.
pub(super) struct Core {
    pub(super) reactor: Reactor,
    pub(super) endpoint: Endpoint,
    pub(super) sockets: Sockets,
    /// The turn's time.
    pub(super) now: Instant,
    pub(super) started: Instant,
    /// When the end waits no longer; set once a signal asked for the end.
    pub(super) stop_at: Option<Instant>,
    pub(super) timers: base::timer::TimerKind,
}
