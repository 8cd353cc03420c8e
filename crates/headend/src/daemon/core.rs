//! What the loop and everything it serves share: the reactor, the endpoint, the
//! sockets, and the names of what is watched and booked.

use base::Instant;
use l2tp::Endpoint;
use reactor::{HandlerId, Reactor};

use super::sockets::Sockets;

/// What a watched descriptor is, in the 64 bits that the reactor keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Signals,
    Listener,
    /// A UDP socket by its number.
    Udp(u32),
    /// A control client by its place.
    Client(u32),
}

impl Source {
    pub(super) fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Source::Signals => (0, 0),
            Source::Listener => (1, 0),
            Source::Udp(number) => (2, number),
            Source::Client(number) => (3, number),
        };
        kind << 32 | u64::from(number)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let number = bits as u32;
        match bits >> 32 {
            0 => Source::Signals,
            1 => Source::Listener,
            2 => Source::Udp(number),
            _ => Source::Client(number),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_the_reactor() {
        for source in [
            Source::Signals,
            Source::Listener,
            Source::Udp(u32::MAX),
            Source::Client(7),
        ] {
            assert_eq!(Source::from_bits(source.to_bits()), source);
        }
    }
}
