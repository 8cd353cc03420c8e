//! Why a session ended, and the NOTIFICATION for each reason. Only this file maps reasons to codes.

use core::fmt;

use wire::bgp::notification::{Notification, cease, code, fsm};

use crate::fsm::State;

/// Why a connection or session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed the stream, or it broke.
    Closed,
    /// The peer could not be reached.
    ConnectFailed,
    /// The peer sent a NOTIFICATION.
    Received(Box<Notification>),
    /// We found an error in the peer's messages, and sent this NOTIFICATION.
    Fault(Box<Notification>),
    /// Nothing was received for the hold time.
    HoldTimer,
    /// The stream accepted no data for the send hold time (RFC 9687).
    SendHoldTimer,
    /// An operator stopped the peer, with this text (RFC 9003).
    Shutdown(Box<str>),
    /// An operator reset the session, with this text.
    Reset(Box<str>),
    /// The peer was removed from the configuration.
    Deconfigured,
    /// The peer's configuration changed.
    ConfigurationChanged,
    /// The peer announced more prefixes than its limit (RFC 4486, section 4).
    PrefixLimit {
        /// The family that exceeded the limit.
        family: wire::bgp::FamilyId,
        /// The limit.
        prefixes_max: u32,
    },
    /// The connection lost a collision (RFC 4271, section 6.8).
    Collision,
    /// The peer connected again without ending its session (RFC 4724, section 4.2).
    PeerRestarted,
    /// A state machine error.
    StateMachine(State),
    /// The ConnectRetryTimer expired before the session was Established.
    ConnectRetryTimer,
}

impl CloseReason {
    /// The NOTIFICATION for the peer; `None` if none is sent.
    #[must_use]
    pub fn notification(&self) -> Option<Notification> {
        Some(match self {
            Self::Closed
            | Self::ConnectFailed
            | Self::Received(_)
            | Self::PeerRestarted
            | Self::ConnectRetryTimer => return None,
            Self::Fault(notification) => (**notification).clone(),
            Self::HoldTimer => Notification::new(code::HOLD_TIMER, 0),
            Self::SendHoldTimer => Notification::new(code::SEND_HOLD_TIMER, 0),
            Self::Shutdown(text) => Notification::cease(cease::SHUTDOWN, text),
            Self::Reset(text) => Notification::cease(cease::RESET, text),
            Self::Deconfigured => Notification::new(code::CEASE, cease::DECONFIGURED),
            Self::ConfigurationChanged => Notification::new(code::CEASE, cease::CONFIGURATION),
            Self::PrefixLimit {
                family,
                prefixes_max,
            } => {
                let family = wire::bgp::AfiSafi::from(*family);
                let [a, b] = family.afi.to_be_bytes();
                let [c, d, e, f] = prefixes_max.to_be_bytes();
                let data = [a, b, family.safi, c, d, e, f];
                Notification::with_data(code::CEASE, cease::PREFIXES, &data)
            }
            Self::Collision => Notification::new(code::CEASE, cease::COLLISION),
            Self::StateMachine(state) => Notification::new(code::FSM, unexpected_in(*state)),
        })
    }
}

/// The subcode of RFC 6608 for a message that a state does not expect.
const fn unexpected_in(state: State) -> u8 {
    match state {
        State::Idle | State::Connect | State::Active => 0,
        State::OpenSent => fsm::IN_OPEN_SENT,
        State::OpenConfirm => fsm::IN_OPEN_CONFIRM,
        State::Established => fsm::IN_ESTABLISHED,
    }
}

/// The error for a message of that type in a state that does not expect it (RFC 6608, section 4).
pub(crate) fn unexpected(state: State, kind: wire::bgp::Kind) -> CloseReason {
    let data = [kind as u8];
    CloseReason::Fault(Box::new(Notification::with_data(
        code::FSM,
        unexpected_in(state),
        &data,
    )))
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("connection closed"),
            Self::ConnectFailed => f.write_str("connection failed"),
            Self::Received(notification) => write!(f, "received {notification}"),
            Self::Fault(notification) => write!(f, "found {notification}"),
            Self::HoldTimer => f.write_str("hold timer expired"),
            Self::SendHoldTimer => f.write_str("send hold timer expired"),
            Self::Shutdown(text) if text.is_empty() => f.write_str("shut down"),
            Self::Shutdown(text) => write!(f, "shut down: {text:?}"),
            Self::Reset(text) if text.is_empty() => f.write_str("reset"),
            Self::Reset(text) => write!(f, "reset: {text:?}"),
            Self::Deconfigured => f.write_str("not configured any more"),
            Self::ConfigurationChanged => f.write_str("configuration changed"),
            Self::PrefixLimit {
                family,
                prefixes_max,
            } => write!(f, "more than {prefixes_max} {family} prefixes"),
            Self::Collision => f.write_str("lost a collision"),
            Self::PeerRestarted => f.write_str("peer restarted"),
            Self::StateMachine(state) => write!(f, "state machine error in {}", state.name()),
            Self::ConnectRetryTimer => f.write_str("connect retry timer expired"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_prefixes_is_told_with_its_family_and_number() {
        let reason = CloseReason::PrefixLimit {
            family: wire::bgp::FamilyId::Ipv6Unicast,
            prefixes_max: 1_000,
        };
        let told = reason.notification().unwrap();
        assert_eq!((told.code, told.subcode), (6, 1));
        assert_eq!(told.data, [0, 2, 1, 0, 0, 3, 0xe8]);
    }

    #[test]
    fn an_unexpected_message_is_told_with_its_state_and_type() {
        let subcodes = [State::OpenSent, State::OpenConfirm, State::Established]
            .map(|state| {
                unexpected(state, wire::bgp::Kind::Open)
                    .notification()
                    .unwrap()
            })
            .map(|told| (told.code, told.subcode, told.data));
        assert_eq!(
            subcodes,
            [(5, 1, vec![1]), (5, 2, vec![1]), (5, 3, vec![1])]
        );
    }
}
