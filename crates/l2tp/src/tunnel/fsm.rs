//! The control connection state machine: the table of RFC 2661 7.2.1, which
//! RFC 3931 7.2 repeats.

use core::fmt;

/// A control connection's state, by the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelState {
    /// No connection.
    Idle,
    /// SCCRQ sent.
    WaitCtlReply,
    /// SCCRP sent.
    WaitCtlConn,
    /// Established.
    Established,
}

/// An input of the control connection state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// We want a tunnel, or a call in one.
    OpenRequest,
    SccrqAcceptable,
    SccrqUnacceptable,
    SccrpAcceptable,
    SccrpUnacceptable,
    ScccnAcceptable,
    ScccnUnacceptable,
    /// The peer's simultaneous SCCRQ won the tie.
    LoseTie,
    StopCcn,
    /// We close it, whatever the reason.
    Close,
    /// It ends without a message: its peer restarted, or its record is evicted.
    Forget,
}

/// An action of the control connection state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    SendSccrq,
    SendSccrp,
    /// Send SCCCN, then the tunnel-open event to waiting sessions.
    SendScccn,
    /// The tunnel-open event to waiting sessions.
    TunnelOpen,
    /// Send StopCCN, then clean up.
    SendStopCcn,
    CleanUp,
}

/// The table: the actions, and the next state.
pub(crate) const fn step(state: TunnelState, event: Event) -> (Action, TunnelState) {
    use Action as A;
    use Event as E;
    use TunnelState::{Established, Idle, WaitCtlConn, WaitCtlReply};
    match (state, event) {
        (Idle, E::OpenRequest) => (A::SendSccrq, WaitCtlReply),
        (Idle, E::SccrqAcceptable) => (A::SendSccrp, WaitCtlConn),
        (Idle, E::SccrqUnacceptable | E::SccrpAcceptable | E::SccrpUnacceptable) => {
            (A::SendStopCcn, Idle)
        }
        (
            Idle,
            E::ScccnAcceptable
            | E::ScccnUnacceptable
            | E::LoseTie
            | E::StopCcn
            | E::Close
            | E::Forget,
        ) => (A::CleanUp, Idle),
        (WaitCtlReply, E::SccrpAcceptable) => (A::SendScccn, Established),
        (WaitCtlReply, E::LoseTie | E::StopCcn | E::Forget) => (A::CleanUp, Idle),
        (
            WaitCtlReply,
            E::SccrpUnacceptable
            | E::ScccnAcceptable
            | E::ScccnUnacceptable
            | E::SccrqAcceptable
            | E::SccrqUnacceptable
            | E::Close,
        ) => (A::SendStopCcn, Idle),
        (WaitCtlReply, E::OpenRequest) => (A::Nothing, WaitCtlReply),
        (WaitCtlConn, E::ScccnAcceptable) => (A::TunnelOpen, Established),
        (
            WaitCtlConn,
            E::ScccnUnacceptable
            | E::SccrpAcceptable
            | E::SccrpUnacceptable
            | E::SccrqAcceptable
            | E::SccrqUnacceptable
            | E::Close,
        ) => (A::SendStopCcn, Idle),
        (WaitCtlConn, E::LoseTie | E::StopCcn | E::Forget) => (A::CleanUp, Idle),
        (WaitCtlConn, E::OpenRequest) => (A::Nothing, WaitCtlConn),
        (Established, E::OpenRequest) => (A::TunnelOpen, Established),
        (
            Established,
            E::SccrqAcceptable
            | E::SccrqUnacceptable
            | E::SccrpAcceptable
            | E::SccrpUnacceptable
            | E::ScccnAcceptable
            | E::ScccnUnacceptable
            | E::Close,
        ) => (A::SendStopCcn, Idle),
        (Established, E::LoseTie | E::StopCcn | E::Forget) => (A::CleanUp, Idle),
    }
}

impl fmt::Display for TunnelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::WaitCtlReply => "wait-ctl-reply",
            Self::WaitCtlConn => "wait-ctl-conn",
            Self::Established => "established",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2661 7.2.1, row by row.
    #[test]
    fn every_row_of_the_rfc_table() {
        use Action as A;
        use Event as E;
        use TunnelState::{Established, Idle, WaitCtlConn, WaitCtlReply};
        let rows = [
            (Idle, E::OpenRequest, A::SendSccrq, WaitCtlReply),
            (Idle, E::SccrqAcceptable, A::SendSccrp, WaitCtlConn),
            (Idle, E::SccrqUnacceptable, A::SendStopCcn, Idle),
            (Idle, E::SccrpAcceptable, A::SendStopCcn, Idle),
            (Idle, E::ScccnAcceptable, A::CleanUp, Idle),
            (WaitCtlReply, E::SccrpAcceptable, A::SendScccn, Established),
            (WaitCtlReply, E::SccrpUnacceptable, A::SendStopCcn, Idle),
            (WaitCtlReply, E::LoseTie, A::CleanUp, Idle),
            (WaitCtlReply, E::ScccnAcceptable, A::SendStopCcn, Idle),
            (WaitCtlConn, E::ScccnAcceptable, A::TunnelOpen, Established),
            (WaitCtlConn, E::ScccnUnacceptable, A::SendStopCcn, Idle),
            (WaitCtlConn, E::SccrpAcceptable, A::SendStopCcn, Idle),
            (WaitCtlConn, E::SccrqAcceptable, A::SendStopCcn, Idle),
            (Established, E::OpenRequest, A::TunnelOpen, Established),
            (Established, E::Close, A::SendStopCcn, Idle),
            (Established, E::SccrqAcceptable, A::SendStopCcn, Idle),
            (Established, E::SccrpAcceptable, A::SendStopCcn, Idle),
            (Established, E::ScccnAcceptable, A::SendStopCcn, Idle),
            (Idle, E::StopCcn, A::CleanUp, Idle),
            (WaitCtlReply, E::StopCcn, A::CleanUp, Idle),
            (WaitCtlConn, E::StopCcn, A::CleanUp, Idle),
            (Established, E::StopCcn, A::CleanUp, Idle),
        ];
        for (state, event, action, next) in rows {
            assert_eq!(step(state, event), (action, next), "{state:?} {event:?}");
        }
    }
}
