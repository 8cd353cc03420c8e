//! Why PPP in a session ended: RFC 3145.

use base::Duration;
use l2tp::{Call, PppCause, Pseudowire, SessionEnd};
use wire::l2tp::{Attribute as A, MessageType as M, disconnect};

use crate::common::{Peer, Stage, lac_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn cause() -> PppCause {
    PppCause {
        code: disconnect::code::AUTHENTICATION_FAILED,
        protocol: 0xc223,
        direction: disconnect::direction::PEER,
        message: Box::default(),
    }
}

/// Section 2: the fields of the AVP, "Mandatory (M) bit: MUST be 0".
#[test]
fn the_cdn_of_an_lns_says_why_ppp_ended() {
    for peer in VERSIONS {
        for wait in [Duration::ZERO, Duration::from_secs(3)] {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            lac.connect(&mut stage);
            lac.call(&mut stage, 9);
            let session = stage.session();
            stage.with(|lns, now| {
                assert!(lns.set_ppp_cause(session, cause()));
                match wait {
                    Duration::ZERO => lns.end_payload(session, now),
                    wait => lns.end_payload_after(session, wait, now),
                }
            });
            stage.run_for(wait);
            let cdn = only(&lac.hear(&mut stage), M::Cdn);
            assert_eq!(cdn.codes(), (3, None));
            let value = cdn.get(A::PppDisconnectCauseCode).unwrap();
            assert_eq!(value, [0, 16, 0xc2, 0x23, 1]);
            let message = cdn.message();
            let mut avps = message.avps();
            let avp = avps.find(|avp| avp.attribute == 46).unwrap();
            assert!(!avp.mandatory);
        }
    }
}

#[test]
fn a_cdn_without_a_cause_has_no_such_avp() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::lns(), peer());
        lac.connect(&mut stage);
        lac.call(&mut stage, 9);
        let session = stage.session();
        stage.with(|lns, now| assert!(lns.end_payload(session, now)));
        let cdn = only(&lac.hear(&mut stage), M::Cdn);
        assert_eq!(cdn.get(A::PppDisconnectCauseCode), None);
    }
}

/// Section 4: "most useful in sending notification from the LNS to LAC". A LAC that switches the call passes it on.
#[test]
fn a_lac_reads_the_cause_and_passes_it_on() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (_, remote) = lns.take_call(&mut stage, tunnel, Call::default(), 9);
        let cdn = lns
            .cdn(9, remote, 3)
            .raw(0, 0, 46, b"\x00\x10\xc2\x23\x01no\x07");
        only_ack(&lns.say_in(&mut stage, remote as u16, &cdn));
        let SessionEnd::Peer(notice) = stage.session_end() else {
            panic!("{:?}", stage.session_end());
        };
        let received = PppCause {
            message: "no ".into(),
            ..cause()
        };
        assert_eq!(notice.cause.as_deref(), Some(&received));
        let text = SessionEnd::Peer(notice.clone()).to_string();
        assert!(
            text.contains("PPP cause 16, authentication failed"),
            "{text}"
        );

        let (other, _) = lns.take_call(&mut stage, tunnel, Call::default(), 10);
        stage.with(|lac, now| lac.hang_up(other, SessionEnd::Relayed(notice), now));
        let cdn = only(&lns.hear(&mut stage), M::Cdn);
        let value = cdn.get(A::PppDisconnectCauseCode).unwrap();
        assert_eq!(value, b"\x00\x10\xc2\x23\x01no ");
    }
}

/// Section 2: "Length: ... MUST be at least 11"; a shorter one is ignored, because its M bit is 0.
#[test]
fn a_cause_that_is_too_short_is_ignored() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (_, remote) = lns.take_call(&mut stage, tunnel, Call::default(), 9);
        let cdn = lns.cdn(9, remote, 3).raw(0, 0, 46, &[0, 16, 0xc2, 0x23]);
        only_ack(&lns.say_in(&mut stage, remote as u16, &cdn));
        assert!(matches!(stage.session_end(), SessionEnd::Peer(notice) if notice.cause.is_none()));
    }
}

#[test]
fn a_session_without_ppp_has_no_cause() {
    let mut config = lac_config();
    config.pseudowires = vec![Pseudowire::Ethernet];
    let (mut stage, mut lns) = (Stage::new(config), Peer::v3());
    let tunnel = lns.answer(&mut stage);
    let call = Call {
        pseudowire: Pseudowire::Ethernet,
        ..Call::default()
    };
    let (session, _) = lns.take_call(&mut stage, tunnel, call, 9);
    stage.with(|lac, _| assert!(!lac.set_ppp_cause(session, cause())));
}
