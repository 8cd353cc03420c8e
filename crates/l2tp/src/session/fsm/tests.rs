//! The RFC's tables, row by row.

use super::{Action as A, Event as E, Role, SessionState, step};
use SessionState::{Established, Idle, WaitConnect, WaitCsAnswer, WaitReply, WaitTunnel};

fn check(role: Role, rows: &[(SessionState, E, A, SessionState)]) {
    for &(state, event, action, next) in rows {
        assert_eq!(
            step(role, state, event),
            (action, next),
            "{role:?} {state:?} {event:?}"
        );
    }
}

#[test]
fn rfc_2661_7_4_1_lac_incoming() {
    check(
        Role::LacIncoming,
        &[
            (Idle, E::OpenRequest, A::AwaitTunnel, WaitTunnel),
            (Idle, E::ConnectedAcceptable, A::CleanUp, Idle),
            (Idle, E::ReplyAcceptable, A::CleanUp, Idle),
            (Idle, E::Cdn, A::CleanUp, Idle),
            (WaitTunnel, E::Close, A::CleanUp, Idle),
            (WaitTunnel, E::TunnelOpen, A::SendRequest, WaitReply),
            (WaitReply, E::ReplyAcceptable, A::SendConnected, Established),
            (WaitReply, E::ReplyUnacceptable, A::SendCdn, Idle),
            (WaitReply, E::RequestAcceptable, A::SendCdn, Idle),
            (WaitReply, E::Cdn, A::CleanUp, Idle),
            (WaitReply, E::ConnectedAcceptable, A::CleanUp, Idle),
            (WaitReply, E::Close, A::SendCdn, Idle),
            (Established, E::Cdn, A::CleanUp, Idle),
            (Established, E::RequestAcceptable, A::SendCdn, Idle),
            (Established, E::ReplyAcceptable, A::SendCdn, Idle),
            (Established, E::ConnectedAcceptable, A::SendCdn, Idle),
            (Established, E::Close, A::SendCdn, Idle),
        ],
    );
}

#[test]
fn rfc_2661_7_4_2_lns_incoming() {
    check(
        Role::LnsIncoming,
        &[
            (Idle, E::RequestAcceptable, A::SendReply, WaitConnect),
            (Idle, E::RequestUnacceptable, A::SendCdn, Idle),
            (Idle, E::ReplyAcceptable, A::SendCdn, Idle),
            (Idle, E::ConnectedAcceptable, A::CleanUp, Idle),
            (
                WaitConnect,
                E::ConnectedAcceptable,
                A::Connected,
                Established,
            ),
            (WaitConnect, E::ConnectedUnacceptable, A::SendCdn, Idle),
            (WaitConnect, E::RequestAcceptable, A::SendCdn, Idle),
            (WaitConnect, E::ReplyAcceptable, A::SendCdn, Idle),
            (Idle, E::Cdn, A::CleanUp, Idle),
            (WaitConnect, E::Cdn, A::CleanUp, Idle),
            (Established, E::Cdn, A::CleanUp, Idle),
            (WaitConnect, E::Close, A::SendCdn, Idle),
            (Established, E::Close, A::SendCdn, Idle),
            (Established, E::RequestAcceptable, A::SendCdn, Idle),
            (Established, E::ReplyAcceptable, A::SendCdn, Idle),
            (Established, E::ConnectedAcceptable, A::SendCdn, Idle),
        ],
    );
}

#[test]
fn rfc_2661_7_5_1_lac_outgoing() {
    check(
        Role::LacOutgoing,
        &[
            (Idle, E::RequestAcceptable, A::SendReply, WaitCsAnswer),
            (Idle, E::RequestUnacceptable, A::SendCdn, Idle),
            (Idle, E::ReplyAcceptable, A::SendCdn, Idle),
            (Idle, E::ConnectedAcceptable, A::CleanUp, Idle),
            (Idle, E::Cdn, A::CleanUp, Idle),
            (WaitCsAnswer, E::BearerAnswer, A::SendConnected, Established),
            (WaitCsAnswer, E::Close, A::SendCdn, Idle),
            (WaitCsAnswer, E::RequestAcceptable, A::SendCdn, Idle),
            (WaitCsAnswer, E::ReplyAcceptable, A::SendCdn, Idle),
            (WaitCsAnswer, E::ConnectedAcceptable, A::SendCdn, Idle),
            (Established, E::RequestAcceptable, A::SendCdn, Idle),
            (Established, E::ReplyAcceptable, A::SendCdn, Idle),
            (Established, E::ConnectedAcceptable, A::SendCdn, Idle),
            (WaitCsAnswer, E::Cdn, A::CleanUp, Idle),
            (Established, E::Cdn, A::CleanUp, Idle),
            (Established, E::Close, A::SendCdn, Idle),
        ],
    );
}

#[test]
fn rfc_2661_7_5_2_lns_outgoing() {
    check(
        Role::LnsOutgoing,
        &[
            (Idle, E::OpenRequest, A::AwaitTunnel, WaitTunnel),
            (Idle, E::ConnectedAcceptable, A::CleanUp, Idle),
            (Idle, E::ReplyAcceptable, A::CleanUp, Idle),
            (Idle, E::Cdn, A::CleanUp, Idle),
            (WaitTunnel, E::TunnelOpen, A::SendRequest, WaitReply),
            (WaitReply, E::ReplyAcceptable, A::Nothing, WaitConnect),
            (WaitReply, E::ReplyUnacceptable, A::SendCdn, Idle),
            (WaitReply, E::ConnectedAcceptable, A::SendCdn, Idle),
            (WaitReply, E::RequestAcceptable, A::SendCdn, Idle),
            (
                WaitConnect,
                E::ConnectedAcceptable,
                A::Connected,
                Established,
            ),
            (WaitConnect, E::RequestAcceptable, A::SendCdn, Idle),
            (WaitConnect, E::ReplyAcceptable, A::SendCdn, Idle),
            (WaitReply, E::Cdn, A::CleanUp, Idle),
            (WaitConnect, E::Cdn, A::CleanUp, Idle),
            (Established, E::Cdn, A::CleanUp, Idle),
            (Established, E::RequestAcceptable, A::SendCdn, Idle),
            (Established, E::ReplyAcceptable, A::SendCdn, Idle),
            (Established, E::ConnectedAcceptable, A::SendCdn, Idle),
            (WaitReply, E::Close, A::SendCdn, Idle),
            (WaitConnect, E::Close, A::SendCdn, Idle),
            (Established, E::Close, A::SendCdn, Idle),
            (WaitTunnel, E::Close, A::CleanUp, Idle),
        ],
    );
}
