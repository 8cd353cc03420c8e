//! The states of a session, both roles. RFC 2516 has no table; its sections 5 and 8 are this one.

use crate::session::Phase;

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A PADO that fits arrived.
    Offer,
    /// The PADS with a session id arrived.
    Confirm,
    /// A PADS with an error arrived.
    Refusal,
    /// A PADT arrived.
    Padt,
    /// A PPP frame arrived.
    Data,
    /// The timer is due.
    Timeout,
    /// The last retransmission was not answered either.
    Exhausted,
    /// The owner ends it, and the PADT is due at once.
    End,
    /// The owner ends it, and the PADT waits.
    EndLater,
    /// Its port is gone.
    PortLost,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the event does not concern this state.
    Ignore,
    /// The phase changes.
    To(Phase),
    /// The last packet is sent again.
    Retransmit,
    /// The record goes, without a packet.
    Remove,
    /// The record goes, and a PADT is sent.
    Terminate,
}

/// The whole table.
pub(super) const fn step(phase: Phase, event: Event) -> Step {
    use Event::{Confirm, Data, End, EndLater, Exhausted, Offer, Padt, PortLost, Refusal, Timeout};
    use Phase::{Ending, Established, HalfOpen, Requesting, Soliciting};
    use Step::{Ignore, Remove, Retransmit, Terminate, To};
    match (phase, event) {
        (Soliciting, Offer) => To(Requesting),
        (Soliciting, Timeout) => Retransmit,
        (Soliciting, Exhausted | End | EndLater | PortLost) => Remove,
        (Soliciting, Confirm | Refusal | Padt | Data) => Ignore,
        (Requesting, Confirm) => To(Established),
        (Requesting, Refusal | End | EndLater | PortLost) => Remove,
        (Requesting, Timeout) => Retransmit,
        // "After a specified number of retries, the Host SHOULD then resend a PADI packet" (section 8).
        (Requesting, Exhausted) => To(Soliciting),
        (Requesting, Offer | Padt | Data) => Ignore,
        (HalfOpen, Data) => To(Established),
        (HalfOpen | Ending, Timeout) => Terminate,
        (HalfOpen | Established, EndLater) => To(Ending),
        (HalfOpen | Established | Ending, End) => Terminate,
        (HalfOpen | Established | Ending, Padt | PortLost) => Remove,
        (HalfOpen | Established | Ending, Offer | Confirm | Refusal | Exhausted) => Ignore,
        (Established, Data | Timeout) | (Ending, Data | EndLater) => Ignore,
    }
}
