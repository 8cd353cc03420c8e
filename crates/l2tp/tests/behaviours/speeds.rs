//! Connect speeds that change: RFC 5515, sections 4 and 6.

use l2tp::{Call, CallDetails, Event};
use wire::l2tp::{Attribute as A, ConnectSpeed, MessageType as M, Version};

use crate::common::{Body, Got, Peer, Stage, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// A call whose LAC may update its speeds.
fn call() -> Call {
    Call {
        details: CallDetails {
            tx_speed_bps: 50_000_000,
            rx_speed_bps: 10_000_000,
            speed_updates: true,
            ..CallDetails::default()
        },
        ..Call::default()
    }
}

fn speed(session: u32, tx_bps: u64, rx_bps: u64) -> ConnectSpeed {
    ConnectSpeed {
        session,
        tx_bps,
        rx_bps,
    }
}

/// A message about these speeds.
fn message(kind: M, version: Version, speeds: &[ConnectSpeed]) -> Body {
    let mut body = Body::empty().raw(0, 0, 0, &kind.number().to_be_bytes());
    for one in speeds {
        let mut value = Vec::new();
        one.emit(version, &mut value);
        body = body.raw(0, 0, A::ConnectSpeedUpdate.number(), &value);
    }
    body
}

fn speeds(got: &Got) -> Vec<ConnectSpeed> {
    got.message().speeds().collect()
}

/// Section 4.1: "The following AVPs MUST be present"; section 6.1: the id is the one that the receiver assigned.
#[test]
fn a_lac_reports_new_speeds_once_and_answers_requests() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (session, remote) = lns.take_call(&mut stage, tunnel, call(), 9);
        assert!(stage.endpoint().may_update_speed(session));
        stage.with(|lac, _| assert!(lac.update_speed(session, Some(100_000_000), None)));
        let csun = only(&lns.hear(&mut stage), M::Csun);
        assert!(
            !csun.message().kind_mandatory(),
            "section 4: SHOULD be clear"
        );
        assert_eq!(csun.session, 0, "it is of the tunnel");
        assert_eq!(speeds(&csun), [speed(9, 100_000_000, 10_000_000)]);
        lns.ack(&mut stage);
        // The same speeds are no news.
        stage.with(|lac, _| assert!(lac.update_speed(session, Some(100_000_000), None)));
        assert!(lns.hear(&mut stage).is_empty());

        // Section 4.2; "the LAC MUST NOT respond to unknown sessions".
        let asked = [speed(remote, 0, 0), speed(remote ^ 1, 0, 0)];
        let request = message(M::Csurq, lns.version, &asked);
        let csun = only(&lns.say(&mut stage, &request), M::Csun);
        assert_eq!(speeds(&csun), [speed(9, 100_000_000, 10_000_000)]);
        assert_eq!(stage.counter("speeds_ignored"), 1);
    }
}

/// Section 4.1: "the LAC MUST NOT include a Connect Speed Update AVP for which it did not send a Connect Speed Update
/// Enable AVP"; section 4.2: nor respond for such a session.
#[test]
fn a_lac_that_did_not_say_so_reports_nothing() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (session, remote) = lns.take_call(&mut stage, tunnel, Call::default(), 9);
        assert!(!stage.endpoint().may_update_speed(session));
        stage.with(|lac, _| assert!(!lac.update_speed(session, Some(1), Some(1))));
        let request = message(M::Csurq, lns.version, &[speed(remote, 0, 0)]);
        only_ack(&lns.say(&mut stage, &request));
        assert_eq!(stage.counter("speeds_ignored"), 1);
        assert_eq!(stage.counts().sessions_established, 1);
    }
}

/// Section 6.2: the AVP is in the ICRQ, and is a flag without M bit.
#[test]
fn the_icrq_says_whether_there_are_updates() {
    for peer in VERSIONS {
        for is_on in [true, false] {
            let (mut stage, mut lns) = (Stage::lac(), peer());
            let tunnel = lns.answer(&mut stage);
            let mut call = call();
            call.details.speed_updates = is_on;
            stage.open_session(tunnel, call);
            let icrq = only(&lns.hear(&mut stage), M::Icrq);
            let enable = icrq.get(A::ConnectSpeedUpdateEnable);
            assert_eq!(enable, is_on.then(Vec::new));
        }
    }
}

/// Section 4.1: "the LNS SHOULD be able to update its connection speed on an active session".
#[test]
fn an_lns_takes_new_speeds_of_sessions_that_have_updates() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        let icrq = lac
            .icrq(9)
            .raw(0, 0, A::ConnectSpeedUpdateEnable.number(), &[]);
        let own = lac.call_with(&mut stage, 9, &icrq);
        let session = stage.session();
        let other = lac.call(&mut stage, 10);
        stage.events();
        let update = [
            speed(own, 7_000_000, 1_000_000),
            speed(other, 1, 1),
            speed(0, 1, 1),
        ];
        let csun = message(M::Csun, lac.version, &update);
        only_ack(&lac.say(&mut stage, &csun));
        let changed = Event::SpeedChanged {
            session,
            tx_bps: 7_000_000,
            rx_bps: 1_000_000,
        };
        assert_eq!(stage.events(), [changed]);
        assert_eq!(stage.counter("speeds_ignored"), 2);
        let view = stage.endpoint().session(session).unwrap();
        let details = view.details.unwrap();
        assert_eq!(
            (details.tx_speed_bps, details.rx_speed_bps),
            (7_000_000, 1_000_000)
        );
        // The same again is no news.
        only_ack(&lac.say(&mut stage, &csun));
        assert_eq!(stage.events(), []);

        // Section 4.2: "MUST only be issued for each outstanding session ... on which the LNS has already received a
        // Connect Speed Update Enable AVP", with speeds of 0.
        let tunnel = stage.tunnel();
        stage.with(|lns, _| assert_eq!(lns.request_speeds(tunnel), 1));
        let csurq = only(&lac.hear(&mut stage), M::Csurq);
        assert!(!csurq.message().kind_mandatory());
        assert_eq!(speeds(&csurq), [speed(9, 0, 0)]);
    }
}

/// A peer that does not know the messages ignores them, because their M bit is 0; so do we with those of others.
#[test]
fn messages_before_the_tunnel_is_up_or_without_speeds_change_nothing() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        for kind in [M::Csun, M::Csurq] {
            let empty = message(kind, lac.version, &[]);
            only_ack(&lac.say(&mut stage, &empty));
        }
        assert_eq!(stage.counts().established, 1);
        assert_eq!(stage.counter("speeds_ignored"), 0);
        assert_eq!(stage.counter("received_csun"), 1);
        assert_eq!(stage.counter("received_csurq"), 1);
    }
}
