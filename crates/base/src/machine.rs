//! The trait of every protocol machine, so that `sim` and `reactor` can drive any of them.

use core::net::{IpAddr, SocketAddr};

use crate::Instant;

/// A protocol endpoint without I/O: bytes and time go in, bytes and events come
/// out.
///
/// Callers drain after every mutation: transmits, then events, then the timeout.
pub trait Machine {
    /// What arrives, for example a [`Datagram`].
    type Input<'a>;
    /// The destination of a message that `poll_transmit` wrote.
    type Transmit;
    /// What the machine reports to its owner.
    type Event;
    /// Why an input was ignored.
    type Discard: core::error::Error;

    /// Takes one input.
    ///
    /// # Errors
    /// The input was ignored and counted: no state changed.
    fn handle(&mut self, input: Self::Input<'_>, now: Instant) -> Result<(), Self::Discard>;

    /// Fires the timers that are due. Idempotent: early or repeated calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Appends one message to `out`; `None` means drained.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Self::Transmit>;

    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Earliest deadline and the RFC's name for its timer.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;
}

/// The two ends of a datagram and the socket it belongs to.
///
/// On input, `peer` is the sender and `local` the destination. On output, `peer` is the destination and `local` the
/// source, if known: a reply leaves from the address that the request was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The other end.
    pub peer: SocketAddr,
    /// Our address, if known. The port is the socket's.
    pub local: Option<IpAddr>,
    /// The machine's socket: a number that the driver assigned.
    pub socket: u32,
}

impl Route {
    /// The route to a peer from the machine's one socket, which is not bound to an address.
    #[must_use]
    pub const fn to(peer: SocketAddr) -> Self {
        Self {
            peer,
            local: None,
            socket: 0,
        }
    }
}

/// A datagram as a machine receives it.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its source and destination.
    pub route: Route,
    /// The UDP payload.
    pub bytes: &'a [u8],
}
