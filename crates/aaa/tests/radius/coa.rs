//! CoA-Requests (RFC 5176, section 2.2): what they change, and why they are refused.

use aaa::dynauth::{Cause, Dynauth, DynauthClient, DynauthConfig, DynauthDiscard, Order};
use aaa::radius::Nas;
use aaa::radius::queue::own;
use aaa::{Change, Prefix, Walled};
use base::{Duration, Redacted};
use wire::radius::vendor::{EXAMPLE, MIKROTIK, mikrotik};
use wire::radius::{Packet, attribute as a, code};

use crate::dynauth::{CLIENT, SECRET, dynauth, handle, reply, request};

const USER: (u8, &[u8]) = (a::USER_NAME, b"alice");

/// A Vendor-Specific attribute with one attribute of that vendor in it.
fn vendor(vendor: u32, kind: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vendor.to_be_bytes().to_vec();
    out.extend([kind, value.len() as u8 + 2]);
    out.extend(value);
    out
}

/// What a CoA-Request about alice with these attributes changes, or the Error-Cause of the immediate CoA-NAK.
fn change(attributes: &[(u8, &[u8])]) -> Result<Change, u32> {
    let mut dynauth = dynauth();
    let all: Vec<_> = [USER].iter().chain(attributes).copied().collect();
    let bytes = request(code::COA_REQUEST, 7, &all);
    handle(&mut dynauth, &bytes, 0).unwrap();
    match dynauth.poll_event() {
        Some(asked) => {
            assert_eq!(asked.selection.user.as_deref(), Some(&b"alice"[..]));
            match asked.order {
                Order::Change(change) => Ok(*change),
                Order::Disconnect { .. } => panic!("a CoA-Request disconnects nobody"),
            }
        }
        None => {
            let (code, cause) = reply(&mut dynauth, &bytes).unwrap();
            assert_eq!(code, code::COA_NAK);
            Err(cause.unwrap())
        }
    }
}

// long: a table of attributes and their changes.
#[test]
fn each_attribute_of_a_coa_request_changes_its_part_and_no_other() {
    let seconds = |number: u32| number.to_be_bytes();
    let network = |text: &str, length| Prefix::new(text.parse().unwrap(), length).unwrap();
    let none = Change::default;
    let day = Some(Duration::from_secs(86_400));
    let template = vendor(EXAMPLE, own::TEMPLATE, b"gold");
    let limit = vendor(MIKROTIK, mikrotik::RATE_LIMIT, b"5M/20M");
    let mut of_template = none();
    of_template.queue = of_template.queue.with_template(Some("gold"));
    let mut of_limit = none();
    of_limit.queue.rates_bps = [Some(20_000_000), Some(5_000_000)];
    for (attributes, expected) in [
        (
            &[(a::FILTER_ID, &b"slow"[..])][..],
            Change {
                filter: Some("slow".into()),
                ..none()
            },
        ),
        (&[(a::VENDOR_SPECIFIC, &template)], of_template.clone()),
        (&[(a::FILTER_ID, b"queue:gold")], of_template),
        (&[(a::VENDOR_SPECIFIC, &limit)], of_limit),
        (
            &[(a::SESSION_TIMEOUT, &seconds(86_400))],
            Change {
                session_timeout: day,
                ..none()
            },
        ),
        (
            &[(a::IDLE_TIMEOUT, &seconds(0))],
            Change {
                idle_timeout: Some(Duration::ZERO),
                ..none()
            },
        ),
        // RFC 2869, section 5.16: not below 60 s.
        (
            &[(a::ACCT_INTERIM_INTERVAL, &seconds(5))],
            Change {
                interim_interval: Some(Duration::from_secs(60)),
                ..none()
            },
        ),
        (
            &[
                (a::FRAMED_ROUTE, b"10.1.0.0/16 0.0.0.0 1"),
                (a::FRAMED_ROUTE, b"10.2.0.0/16"),
                (a::FRAMED_IPV6_ROUTE, b"2001:db8:1::/48 :: 1"),
            ],
            Change {
                routes: [
                    Some(vec![network("10.1.0.0", 16), network("10.2.0.0", 16)]),
                    Some(vec![network("2001:db8:1::", 48)]),
                ],
                ..none()
            },
        ),
        (
            &[(a::CLASS, b"a"), (a::CLASS, b"b")],
            Change {
                class: Some(vec![b"a"[..].into(), b"b"[..].into()]),
                ..none()
            },
        ),
    ] {
        assert_eq!(change(attributes), Ok(expected), "{attributes:?}");
        // Attributes beside them that change nothing.
        let (service, protocol) = (seconds(2), seconds(1));
        let mut more = attributes.to_vec();
        more.extend([
            (a::SERVICE_TYPE, &service[..]),
            (a::FRAMED_PROTOCOL, &protocol),
            (a::REPLY_MESSAGE, b"hello"),
        ]);
        assert_eq!(change(&more), change(attributes));
    }
}

#[test]
fn a_garden_is_named_by_filter_id_or_by_our_own_attribute() {
    let (unpaid, none) = (
        vendor(EXAMPLE, own::GARDEN, b"unpaid"),
        vendor(EXAMPLE, own::GARDEN, b"none"),
    );
    let unpaid_walled = Some(Walled::In("unpaid".into()));
    for (attributes, garden) in [
        (&[(a::FILTER_ID, &b"garden:unpaid"[..])][..], &unpaid_walled),
        (&[(a::VENDOR_SPECIFIC, &unpaid)], &unpaid_walled),
        (&[(a::VENDOR_SPECIFIC, &none)], &Some(Walled::Out)),
        (&[(a::FILTER_ID, b"garden:none")], &Some(Walled::Out)),
        // Our own attribute is the stronger one.
        (
            &[
                (a::FILTER_ID, b"garden:virus"),
                (a::VENDOR_SPECIFIC, &unpaid),
            ],
            &unpaid_walled,
        ),
    ] {
        let changed = change(attributes).unwrap();
        assert_eq!(&changed.garden, garden, "{attributes:?}");
        assert_eq!(changed.filter, None);
    }
}

/// All attributes are mandatory (RFC 5176, section 2.3).
#[test]
fn what_cannot_be_changed_refuses_the_whole_request() {
    let slow = (a::FILTER_ID, &b"slow"[..]);
    let seconds = |number: u32| number.to_be_bytes();
    let (framed, login, authorize) = (seconds(2), seconds(1), seconds(17));
    let class = [7; 253];
    let unknown = vendor(EXAMPLE, 200, b"x");
    let stranger = vendor(1, 1, b"x");
    let bad_rate = vendor(EXAMPLE, own::RATE_DOWN, b"fast");
    let bad_name = vendor(EXAMPLE, own::GARDEN, b"a b");
    let routes: Vec<String> = (0..65).map(|n| format!("10.{n}.0.0/16")).collect();
    let routes: Vec<_> = routes
        .iter()
        .map(|text| (a::FRAMED_ROUTE, text.as_bytes()))
        .collect();
    for (attributes, cause) in [
        // An attribute that is supported nowhere, or not here.
        (&[slow, (a::FRAMED_POOL, b"home")][..], 401),
        (&[slow, (250, b"x")], 401),
        (&[slow, (a::VENDOR_SPECIFIC, &unknown)], 401),
        (&[slow, (a::VENDOR_SPECIFIC, &stranger)], 401),
        // Nothing to change.
        (&[], 402),
        (&[(a::SERVICE_TYPE, &framed)], 402),
        (&[(a::STATE, b"x")], 402),
        // Another NAS.
        (&[slow, (a::NAS_IDENTIFIER, b"another")], 403),
        // Once too often, or with an impossible length.
        (&[slow, (a::STATE, b"x"), (a::STATE, b"y")], 404),
        (&[slow, USER], 404),
        (&[(a::SESSION_TIMEOUT, &[1, 2, 3])], 404),
        (
            &[(a::IDLE_TIMEOUT, &framed), (a::IDLE_TIMEOUT, &framed)],
            404,
        ),
        // Section 3.2.
        (&[slow, (a::SERVICE_TYPE, &login)], 405),
        (&[(a::SERVICE_TYPE, &authorize), (a::STATE, b"x")], 405),
        (&[(a::SERVICE_TYPE, &authorize)], 402),
        (
            &[(a::SERVICE_TYPE, &authorize), (a::STATE, b"x"), slow],
            401,
        ),
        // Values that mean nothing.
        (&[slow, slow], 407),
        (&[slow, (a::FRAMED_PROTOCOL, &framed)], 407),
        (&[(a::FRAMED_ROUTE, b"everywhere")], 407),
        (&[(a::VENDOR_SPECIFIC, &bad_rate)], 407),
        (&[(a::VENDOR_SPECIFIC, &bad_name)], 407),
        (&[(a::FILTER_ID, b"garden:")], 407),
        // More than there is room for.
        (&routes, 506),
        (&[(a::CLASS, &class[..]); 6], 506),
    ] {
        assert_eq!(change(attributes), Err(cause), "{attributes:?}");
    }
}

#[test]
fn a_request_that_identifies_no_session_is_refused() {
    let mut dynauth = dynauth();
    let bytes = request(code::COA_REQUEST, 7, &[(a::FILTER_ID, b"slow")]);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let nak = Some((code::COA_NAK, Some(402)));
    assert_eq!(reply(&mut dynauth, &bytes), nak);
    assert_eq!(dynauth.poll_event(), None);
}

/// Sections 3.1 and 3.3.
#[test]
fn state_and_proxy_state_come_back_unmodified_in_an_ack_and_in_a_nak() {
    for answer in [Ok(()), Err(Cause::InvalidValue)] {
        let mut dynauth = dynauth();
        let attributes = [
            USER,
            (a::PROXY_STATE, b"first"),
            (a::STATE, b"kept"),
            (a::CLASS, b"x"),
            (a::PROXY_STATE, b"second"),
        ];
        let bytes = request(code::COA_REQUEST, 7, &attributes);
        handle(&mut dynauth, &bytes, 0).unwrap();
        let asked = dynauth.poll_event().unwrap();
        dynauth.answer(asked.ticket, answer);
        let mut out = Vec::new();
        dynauth.poll_transmit(&mut out).unwrap();
        let reply = Packet::parse(&out).unwrap();
        let of = |kind| {
            let found = reply.attributes().filter(move |one| one.kind == kind);
            found.map(|one| one.value).collect::<Vec<_>>()
        };
        assert_eq!(of(a::STATE), [b"kept"]);
        assert_eq!(of(a::PROXY_STATE), [&b"first"[..], b"second"]);
        let cause = answer.err().map(|cause| cause.value());
        let sent = reply.find(a::ERROR_CAUSE).and_then(|one| one.integer());
        assert_eq!(sent, cause);
    }
}

/// Section 2.3: the repetition gets the same reply; the change is made once.
#[test]
fn a_repeated_coa_request_gets_the_same_reply_and_changes_nothing_again() {
    let mut dynauth = dynauth();
    let bytes = request(code::COA_REQUEST, 7, &[USER, (a::FILTER_ID, b"slow")]);
    handle(&mut dynauth, &bytes, 0).unwrap();
    let asked = dynauth.poll_event().unwrap();
    for _ in 0..3 {
        let again = handle(&mut dynauth, &bytes, 0);
        assert_eq!(again, Err(DynauthDiscard::InProgress));
    }
    dynauth.answer(asked.ticket, Ok(()));
    let mut first = Vec::new();
    dynauth.poll_transmit(&mut first).unwrap();
    for at_s in 1..5 {
        handle(&mut dynauth, &bytes, at_s).unwrap();
        let mut again = Vec::new();
        dynauth.poll_transmit(&mut again).unwrap();
        assert_eq!(again, first);
        assert_eq!(dynauth.poll_event(), None);
    }
    let counters = dynauth.counters();
    let counted = (
        counters.changes,
        counters.change_acks,
        counters.repeated,
        counters.in_progress,
    );
    assert_eq!(counted, (1, 1, 4, 3));
}

#[test]
fn a_client_may_be_required_to_sign_and_to_date_its_requests() {
    let nas = Nas {
        identifier: None,
        address: None,
    };
    let mut config = DynauthConfig::new(nas);
    let secret = Redacted::new(SECRET.into());
    config.clients.push(DynauthClient {
        require_message_authenticator: true,
        require_event_timestamp: true,
        ..DynauthClient::new(CLIENT.into(), secret)
    });
    let mut dynauth = Dynauth::new(config);
    let time = (crate::dynauth::WALL_S as u32).to_be_bytes();
    let (class, signed) = ((a::CLASS, &b"x"[..]), (a::MESSAGE_AUTHENTICATOR, &[][..]));
    let dated = (a::EVENT_TIMESTAMP, &time[..]);
    let mut send = |id, attributes: &[_]| {
        let bytes = request(code::COA_REQUEST, id, attributes);
        handle(&mut dynauth, &bytes, 0)
    };
    assert_eq!(
        send(1, &[USER, class, dated]),
        Err(DynauthDiscard::NoSignature)
    );
    assert_eq!(
        send(2, &[signed, USER, class]),
        Err(DynauthDiscard::NoTimestamp)
    );
    assert_eq!(send(3, &[signed, USER, class, dated]), Ok(()));
    let counters = dynauth.counters();
    assert_eq!((counters.unauthentic, counters.stale), (1, 1));
}
