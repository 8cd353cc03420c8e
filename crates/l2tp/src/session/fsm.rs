//! The four call state machines: the tables of RFC 2661 7.4.1, 7.4.2, 7.5.1 and
//! 7.5.2, which RFC 3931 7.3 and 7.4 repeat.

use core::fmt;

/// A session's state, by the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// No call.
    Idle,
    /// Waits for its tunnel (RFC 3931: wait-control-conn).
    WaitTunnel,
    /// ICRQ or OCRQ sent.
    WaitReply,
    /// Waits for ICCN or OCCN.
    WaitConnect,
    /// OCRP sent; waits for the circuit.
    WaitCsAnswer,
    /// Established.
    Established,
}

/// Which of the four tables a session follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends the ICRQ (RFC 2661 7.4.1).
    LacIncoming,
    /// Receives the ICRQ (RFC 2661 7.4.2).
    LnsIncoming,
    /// Receives the OCRQ (RFC 2661 7.5.1).
    LacOutgoing,
    /// Sends the OCRQ (RFC 2661 7.5.2).
    LnsOutgoing,
}

impl Role {
    /// Whether our side is the LAC.
    #[must_use]
    pub const fn is_lac(self) -> bool {
        matches!(self, Self::LacIncoming | Self::LacOutgoing)
    }
}

/// An input of the call state machines. Request is ICRQ or OCRQ, Reply ICRP or OCRP, Connected ICCN or OCCN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    OpenRequest,
    TunnelOpen,
    RequestAcceptable,
    RequestUnacceptable,
    ReplyAcceptable,
    ReplyUnacceptable,
    ConnectedAcceptable,
    ConnectedUnacceptable,
    Cdn,
    /// Bearer answer, framing detected.
    BearerAnswer,
    /// Local close request, bearer failure or line drop.
    Close,
}

/// An action of the call state machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Open the tunnel, or learn that it is open.
    AwaitTunnel,
    SendRequest,
    SendReply,
    /// Send ICCN or OCCN; data may flow.
    SendConnected,
    /// Data may flow.
    Connected,
    /// Send CDN, then clean up.
    SendCdn,
    CleanUp,
}

/// The tables: the actions, and the next state.
pub(crate) const fn step(role: Role, state: SessionState, event: Event) -> (Action, SessionState) {
    match role {
        Role::LacIncoming => lac_incoming(state, event),
        Role::LnsIncoming => lns_incoming(state, event),
        Role::LacOutgoing => lac_outgoing(state, event),
        Role::LnsOutgoing => lns_outgoing(state, event),
    }
}

use Action as A;
use Event as E;
use SessionState::{Established, Idle, WaitConnect, WaitCsAnswer, WaitReply, WaitTunnel};

/// 7.4.1 LAC Incoming Call States.
const fn lac_incoming(state: SessionState, event: Event) -> (Action, SessionState) {
    match (state, event) {
        (Idle, E::OpenRequest) => (A::AwaitTunnel, WaitTunnel),
        (
            Idle,
            E::TunnelOpen
            | E::RequestAcceptable
            | E::RequestUnacceptable
            | E::ReplyAcceptable
            | E::ReplyUnacceptable
            | E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::Cdn
            | E::BearerAnswer
            | E::Close,
        ) => (A::CleanUp, Idle),
        (WaitTunnel, E::TunnelOpen) => (A::SendRequest, WaitReply),
        (WaitTunnel, event) => waiting_for_tunnel(event),
        (WaitReply, E::ReplyAcceptable) => (A::SendConnected, Established),
        (WaitReply, E::ReplyUnacceptable | E::RequestAcceptable | E::RequestUnacceptable) => {
            (A::SendCdn, Idle)
        }
        (WaitReply, E::Cdn | E::ConnectedAcceptable | E::ConnectedUnacceptable) => {
            (A::CleanUp, Idle)
        }
        (WaitReply, E::Close) => (A::SendCdn, Idle),
        (WaitReply, E::OpenRequest | E::TunnelOpen | E::BearerAnswer) => (A::Nothing, WaitReply),
        (Established, event) => established(event),
        (WaitConnect | WaitCsAnswer, event) => not_of_this_role(event),
    }
}

/// 7.4.2 LNS Incoming Call States.
const fn lns_incoming(state: SessionState, event: Event) -> (Action, SessionState) {
    match (state, event) {
        (Idle, E::RequestAcceptable) => (A::SendReply, WaitConnect),
        (Idle, E::RequestUnacceptable | E::ReplyAcceptable | E::ReplyUnacceptable) => {
            (A::SendCdn, Idle)
        }
        (
            Idle,
            E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::Cdn
            | E::OpenRequest
            | E::TunnelOpen
            | E::BearerAnswer
            | E::Close,
        ) => (A::CleanUp, Idle),
        (WaitConnect, E::ConnectedAcceptable) => (A::Connected, Established),
        (
            WaitConnect,
            E::ConnectedUnacceptable
            | E::RequestAcceptable
            | E::RequestUnacceptable
            | E::ReplyAcceptable
            | E::ReplyUnacceptable
            | E::Close,
        ) => (A::SendCdn, Idle),
        (WaitConnect, E::Cdn) => (A::CleanUp, Idle),
        (WaitConnect, E::OpenRequest | E::TunnelOpen | E::BearerAnswer) => {
            (A::Nothing, WaitConnect)
        }
        (Established, event) => established(event),
        (WaitTunnel | WaitReply | WaitCsAnswer, event) => not_of_this_role(event),
    }
}

/// 7.5.1 LAC Outgoing Call States.
const fn lac_outgoing(state: SessionState, event: Event) -> (Action, SessionState) {
    match (state, event) {
        (Idle, E::RequestAcceptable) => (A::SendReply, WaitCsAnswer),
        (Idle, E::RequestUnacceptable | E::ReplyAcceptable | E::ReplyUnacceptable) => {
            (A::SendCdn, Idle)
        }
        (
            Idle,
            E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::Cdn
            | E::OpenRequest
            | E::TunnelOpen
            | E::BearerAnswer
            | E::Close,
        ) => (A::CleanUp, Idle),
        (WaitCsAnswer, E::BearerAnswer) => (A::SendConnected, Established),
        (
            WaitCsAnswer,
            E::RequestAcceptable
            | E::RequestUnacceptable
            | E::ReplyAcceptable
            | E::ReplyUnacceptable
            | E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::Close,
        ) => (A::SendCdn, Idle),
        (WaitCsAnswer, E::Cdn) => (A::CleanUp, Idle),
        (WaitCsAnswer, E::OpenRequest | E::TunnelOpen) => (A::Nothing, WaitCsAnswer),
        (Established, event) => established(event),
        (WaitTunnel | WaitReply | WaitConnect, event) => not_of_this_role(event),
    }
}

/// 7.5.2 LNS Outgoing Call States.
const fn lns_outgoing(state: SessionState, event: Event) -> (Action, SessionState) {
    match (state, event) {
        (Idle, E::OpenRequest) => (A::AwaitTunnel, WaitTunnel),
        (
            Idle,
            E::TunnelOpen
            | E::RequestAcceptable
            | E::RequestUnacceptable
            | E::ReplyAcceptable
            | E::ReplyUnacceptable
            | E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::Cdn
            | E::BearerAnswer
            | E::Close,
        ) => (A::CleanUp, Idle),
        (WaitTunnel, E::TunnelOpen) => (A::SendRequest, WaitReply),
        (WaitTunnel, event) => waiting_for_tunnel(event),
        (WaitReply, E::ReplyAcceptable) => (A::Nothing, WaitConnect),
        (
            WaitReply,
            E::ReplyUnacceptable
            | E::ConnectedAcceptable
            | E::ConnectedUnacceptable
            | E::RequestAcceptable
            | E::RequestUnacceptable
            | E::Close,
        ) => (A::SendCdn, Idle),
        (WaitReply, E::Cdn) => (A::CleanUp, Idle),
        (WaitReply, E::OpenRequest | E::TunnelOpen | E::BearerAnswer) => (A::Nothing, WaitReply),
        (WaitConnect, E::ConnectedAcceptable) => (A::Connected, Established),
        (
            WaitConnect,
            E::ConnectedUnacceptable
            | E::RequestAcceptable
            | E::RequestUnacceptable
            | E::ReplyAcceptable
            | E::ReplyUnacceptable
            | E::Close,
        ) => (A::SendCdn, Idle),
        (WaitConnect, E::Cdn) => (A::CleanUp, Idle),
        (WaitConnect, E::OpenRequest | E::TunnelOpen | E::BearerAnswer) => {
            (A::Nothing, WaitConnect)
        }
        (Established, event) => established(event),
        (WaitCsAnswer, event) => not_of_this_role(event),
    }
}

/// wait-tunnel: nothing was sent, so the peer needs no CDN.
const fn waiting_for_tunnel(event: Event) -> (Action, SessionState) {
    match event {
        E::TunnelOpen => (A::SendRequest, WaitReply),
        E::OpenRequest | E::BearerAnswer => (A::Nothing, WaitTunnel),
        E::RequestAcceptable
        | E::RequestUnacceptable
        | E::ReplyAcceptable
        | E::ReplyUnacceptable
        | E::ConnectedAcceptable
        | E::ConnectedUnacceptable
        | E::Cdn
        | E::Close => (A::CleanUp, Idle),
    }
}

/// established is the same in all four tables.
const fn established(event: Event) -> (Action, SessionState) {
    match event {
        E::RequestAcceptable
        | E::RequestUnacceptable
        | E::ReplyAcceptable
        | E::ReplyUnacceptable
        | E::ConnectedAcceptable
        | E::ConnectedUnacceptable
        | E::Close => (A::SendCdn, Idle),
        E::Cdn => (A::CleanUp, Idle),
        E::OpenRequest | E::TunnelOpen | E::BearerAnswer => (A::Nothing, Established),
    }
}

/// A state that the role's table does not have: end the call.
const fn not_of_this_role(event: Event) -> (Action, SessionState) {
    match event {
        E::Cdn => (A::CleanUp, Idle),
        E::OpenRequest
        | E::TunnelOpen
        | E::RequestAcceptable
        | E::RequestUnacceptable
        | E::ReplyAcceptable
        | E::ReplyUnacceptable
        | E::ConnectedAcceptable
        | E::ConnectedUnacceptable
        | E::BearerAnswer
        | E::Close => (A::SendCdn, Idle),
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::WaitTunnel => "wait-tunnel",
            Self::WaitReply => "wait-reply",
            Self::WaitConnect => "wait-connect",
            Self::WaitCsAnswer => "wait-cs-answer",
            Self::Established => "established",
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LacIncoming => "lac-incoming",
            Self::LnsIncoming => "lns-incoming",
            Self::LacOutgoing => "lac-outgoing",
            Self::LnsOutgoing => "lns-outgoing",
        })
    }
}

#[cfg(test)]
mod tests;
