//! The automaton's table (RFC 1661, section 4.1), for LCP and every network control protocol.
//!
//! Neither the passive option (p) nor the restart option (r) is used: an Open where the table has `r` changes nothing.

/// A state of the automaton (RFC 1661, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The lower layer is down, and the owner has not opened the layer.
    Initial,
    /// The owner has opened the layer, but the lower layer is down.
    Starting,
    /// The lower layer is up, and the owner has not opened the layer.
    Closed,
    /// Waits for a Configure-Request, after the peer terminated the layer or did not answer.
    Stopped,
    /// A Terminate-Request was sent on the way to Closed.
    Closing,
    /// A Terminate-Request was sent on the way to Stopped.
    Stopping,
    /// A Configure-Request was sent.
    ReqSent,
    /// The peer acknowledged our Configure-Request. Its own was not acknowledged yet.
    AckRcvd,
    /// We acknowledged the peer's Configure-Request. Ours was not acknowledged yet.
    AckSent,
    /// Both Configure-Requests are acknowledged.
    Opened,
}

impl State {
    /// The RFC's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::Starting => "Starting",
            Self::Closed => "Closed",
            Self::Stopped => "Stopped",
            Self::Closing => "Closing",
            Self::Stopping => "Stopping",
            Self::ReqSent => "Req-Sent",
            Self::AckRcvd => "Ack-Rcvd",
            Self::AckSent => "Ack-Sent",
            Self::Opened => "Opened",
        }
    }

    /// Whether the Restart timer runs in this state, that is, whether the table has TO events for it.
    pub(crate) const fn is_timed(self) -> bool {
        match self {
            Self::Closing | Self::Stopping | Self::ReqSent | Self::AckRcvd | Self::AckSent => true,
            Self::Initial | Self::Starting | Self::Closed | Self::Stopped | Self::Opened => false,
        }
    }
}

/// An event of the automaton (RFC 1661, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Up: the lower layer is ready.
    Up,
    /// Down: the lower layer is no longer ready.
    Down,
    /// Open: the administrator permits the layer to open.
    Open,
    /// Close: the administrator requires the layer to close.
    Close,
    /// TO+: the Restart timer expired, and retransmissions remain.
    TimeoutPlus,
    /// TO-: the Restart timer expired, and no retransmission remains.
    TimeoutMinus,
    /// RCR+: Configure-Request, acceptable.
    RequestGood,
    /// RCR-: Configure-Request, not acceptable.
    RequestBad,
    /// RCA: Configure-Ack.
    Ack,
    /// RCN: Configure-Nak or Configure-Reject.
    Nak,
    /// RTR: Terminate-Request.
    TerminateRequest,
    /// RTA: Terminate-Ack.
    TerminateAck,
    /// RUC: a packet with an unknown code.
    UnknownCode,
    /// RXJ+: a reject that the layer can accept.
    RejectGood,
    /// RXJ-: a reject after which the layer cannot continue.
    RejectBad,
    /// RXR: Echo-Request, Echo-Reply or Discard-Request.
    Echo,
}

/// A set of actions (RFC 1661, section 4.4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Actions(u16);

impl Actions {
    pub(crate) const NONE: Self = Self(0);
    /// This-Layer-Up.
    pub(crate) const TLU: Self = Self(1);
    /// This-Layer-Down.
    pub(crate) const TLD: Self = Self(1 << 1);
    /// This-Layer-Started.
    pub(crate) const TLS: Self = Self(1 << 2);
    /// This-Layer-Finished.
    pub(crate) const TLF: Self = Self(1 << 3);
    /// Initialize-Restart-Count.
    pub(crate) const IRC: Self = Self(1 << 4);
    /// Zero-Restart-Count.
    pub(crate) const ZRC: Self = Self(1 << 5);
    /// Send-Configure-Request.
    pub(crate) const SCR: Self = Self(1 << 6);
    /// Send-Configure-Ack.
    pub(crate) const SCA: Self = Self(1 << 7);
    /// Send-Configure-Nak or -Reject.
    pub(crate) const SCN: Self = Self(1 << 8);
    /// Send-Terminate-Request.
    pub(crate) const STR: Self = Self(1 << 9);
    /// Send-Terminate-Ack.
    pub(crate) const STA: Self = Self(1 << 10);
    /// Send-Code-Reject.
    pub(crate) const SCJ: Self = Self(1 << 11);
    /// Send-Echo-Reply.
    pub(crate) const SER: Self = Self(1 << 12);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set contains `action`.
    pub(crate) const fn has(self, action: Self) -> bool {
        self.0 & action.0 != 0
    }
}

/// The state table: returns the actions for an event and the next state. A cell that the RFC calls illegal changes
/// nothing.
pub(crate) const fn step(state: State, event: Event) -> (Actions, State) {
    match state {
        State::Initial => initial(event),
        State::Starting => starting(event),
        State::Closed => closed(event),
        State::Stopped => stopped(event),
        State::Closing => closing(event),
        State::Stopping => stopping(event),
        State::ReqSent => req_sent(event),
        State::AckRcvd => ack_rcvd(event),
        State::AckSent => ack_sent(event),
        State::Opened => opened(event),
    }
}

type A = Actions;

const fn initial(event: Event) -> (Actions, State) {
    match event {
        Event::Up => (A::NONE, State::Closed),
        Event::Open => (A::TLS, State::Starting),
        Event::Close
        | Event::Down
        | Event::TimeoutPlus
        | Event::TimeoutMinus
        | Event::RequestGood
        | Event::RequestBad
        | Event::Ack
        | Event::Nak
        | Event::TerminateRequest
        | Event::TerminateAck
        | Event::UnknownCode
        | Event::RejectGood
        | Event::RejectBad
        | Event::Echo => (A::NONE, State::Initial),
    }
}

const fn starting(event: Event) -> (Actions, State) {
    match event {
        Event::Up => (A::IRC.and(A::SCR), State::ReqSent),
        Event::Close => (A::TLF, State::Initial),
        Event::Open
        | Event::Down
        | Event::TimeoutPlus
        | Event::TimeoutMinus
        | Event::RequestGood
        | Event::RequestBad
        | Event::Ack
        | Event::Nak
        | Event::TerminateRequest
        | Event::TerminateAck
        | Event::UnknownCode
        | Event::RejectGood
        | Event::RejectBad
        | Event::Echo => (A::NONE, State::Starting),
    }
}

const fn closed(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Initial),
        Event::Open => (A::IRC.and(A::SCR), State::ReqSent),
        Event::RequestGood
        | Event::RequestBad
        | Event::Ack
        | Event::Nak
        | Event::TerminateRequest => (A::STA, State::Closed),
        Event::UnknownCode => (A::SCJ, State::Closed),
        Event::RejectBad => (A::TLF, State::Closed),
        Event::Up
        | Event::Close
        | Event::TimeoutPlus
        | Event::TimeoutMinus
        | Event::TerminateAck
        | Event::RejectGood
        | Event::Echo => (A::NONE, State::Closed),
    }
}

const fn stopped(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::TLS, State::Starting),
        Event::Close => (A::NONE, State::Closed),
        Event::RequestGood => (A::IRC.and(A::SCR).and(A::SCA), State::AckSent),
        Event::RequestBad => (A::IRC.and(A::SCR).and(A::SCN), State::ReqSent),
        Event::Ack | Event::Nak | Event::TerminateRequest => (A::STA, State::Stopped),
        Event::UnknownCode => (A::SCJ, State::Stopped),
        Event::RejectBad => (A::TLF, State::Stopped),
        Event::Up
        | Event::Open
        | Event::TimeoutPlus
        | Event::TimeoutMinus
        | Event::TerminateAck
        | Event::RejectGood
        | Event::Echo => (A::NONE, State::Stopped),
    }
}

const fn closing(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Initial),
        Event::Open => (A::NONE, State::Stopping),
        Event::TimeoutPlus => (A::STR, State::Closing),
        Event::TimeoutMinus | Event::TerminateAck | Event::RejectBad => (A::TLF, State::Closed),
        Event::TerminateRequest => (A::STA, State::Closing),
        Event::UnknownCode => (A::SCJ, State::Closing),
        Event::Up
        | Event::Close
        | Event::RequestGood
        | Event::RequestBad
        | Event::Ack
        | Event::Nak
        | Event::RejectGood
        | Event::Echo => (A::NONE, State::Closing),
    }
}

const fn stopping(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Starting),
        Event::Close => (A::NONE, State::Closing),
        Event::TimeoutPlus => (A::STR, State::Stopping),
        Event::TimeoutMinus | Event::TerminateAck | Event::RejectBad => (A::TLF, State::Stopped),
        Event::TerminateRequest => (A::STA, State::Stopping),
        Event::UnknownCode => (A::SCJ, State::Stopping),
        Event::Up
        | Event::Open
        | Event::RequestGood
        | Event::RequestBad
        | Event::Ack
        | Event::Nak
        | Event::RejectGood
        | Event::Echo => (A::NONE, State::Stopping),
    }
}

const fn req_sent(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Starting),
        Event::Close => (A::IRC.and(A::STR), State::Closing),
        Event::TimeoutPlus => (A::SCR, State::ReqSent),
        Event::TimeoutMinus | Event::RejectBad => (A::TLF, State::Stopped),
        Event::RequestGood => (A::SCA, State::AckSent),
        Event::RequestBad => (A::SCN, State::ReqSent),
        Event::Ack => (A::IRC, State::AckRcvd),
        Event::Nak => (A::IRC.and(A::SCR), State::ReqSent),
        Event::TerminateRequest => (A::STA, State::ReqSent),
        Event::UnknownCode => (A::SCJ, State::ReqSent),
        Event::Up | Event::Open | Event::TerminateAck | Event::RejectGood | Event::Echo => {
            (A::NONE, State::ReqSent)
        }
    }
}

const fn ack_rcvd(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Starting),
        Event::Close => (A::IRC.and(A::STR), State::Closing),
        Event::TimeoutPlus | Event::Ack | Event::Nak => (A::SCR, State::ReqSent),
        Event::TimeoutMinus | Event::RejectBad => (A::TLF, State::Stopped),
        Event::RequestGood => (A::SCA.and(A::TLU), State::Opened),
        Event::RequestBad => (A::SCN, State::AckRcvd),
        Event::TerminateRequest => (A::STA, State::ReqSent),
        Event::TerminateAck | Event::RejectGood => (A::NONE, State::ReqSent),
        Event::UnknownCode => (A::SCJ, State::AckRcvd),
        Event::Up | Event::Open | Event::Echo => (A::NONE, State::AckRcvd),
    }
}

const fn ack_sent(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::NONE, State::Starting),
        Event::Close => (A::IRC.and(A::STR), State::Closing),
        Event::TimeoutPlus => (A::SCR, State::AckSent),
        Event::TimeoutMinus | Event::RejectBad => (A::TLF, State::Stopped),
        Event::RequestGood => (A::SCA, State::AckSent),
        Event::RequestBad => (A::SCN, State::ReqSent),
        Event::Ack => (A::IRC.and(A::TLU), State::Opened),
        Event::Nak => (A::IRC.and(A::SCR), State::AckSent),
        Event::TerminateRequest => (A::STA, State::ReqSent),
        Event::UnknownCode => (A::SCJ, State::AckSent),
        Event::Up | Event::Open | Event::TerminateAck | Event::RejectGood | Event::Echo => {
            (A::NONE, State::AckSent)
        }
    }
}

const fn opened(event: Event) -> (Actions, State) {
    match event {
        Event::Down => (A::TLD, State::Starting),
        Event::Close => (A::TLD.and(A::IRC).and(A::STR), State::Closing),
        Event::RequestGood => (A::TLD.and(A::SCR).and(A::SCA), State::AckSent),
        Event::RequestBad => (A::TLD.and(A::SCR).and(A::SCN), State::ReqSent),
        Event::Ack | Event::Nak | Event::TerminateAck => (A::TLD.and(A::SCR), State::ReqSent),
        Event::TerminateRequest => (A::TLD.and(A::ZRC).and(A::STA), State::Stopping),
        Event::UnknownCode => (A::SCJ, State::Opened),
        Event::RejectBad => (A::TLD.and(A::IRC).and(A::STR), State::Stopping),
        Event::Echo => (A::SER, State::Opened),
        Event::Up | Event::Open | Event::TimeoutPlus | Event::TimeoutMinus | Event::RejectGood => {
            (A::NONE, State::Opened)
        }
    }
}

#[cfg(test)]
mod tests;
