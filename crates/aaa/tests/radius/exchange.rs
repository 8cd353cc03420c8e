//! The contents of a request, and the parsing of an Access-Accept.

use aaa::accounting::SessionId;
use aaa::radius::accept::read_accept;
use aaa::radius::queue::QueueAttributes;
use aaa::radius::{AccessRequest, Event, Line, Proof, Purpose, Refused, Rejection, Tunnel};
use aaa::{Address, Profile};
use base::{Duration, Machine};
use wire::radius::attribute as a;
use wire::radius::{Packet, Writer, code};

use crate::lab::{How, Lab, RTT, config};

fn accept(grants: &[(u8, &[u8])]) -> Result<Profile, Rejection> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, code::ACCESS_ACCEPT, 1, &[0; 16]);
    for (kind, value) in grants {
        writer.attribute(*kind, value);
    }
    writer.finish_signed(b"secret").unwrap();
    let packet = Packet::parse(&out).unwrap();
    read_accept(&packet, QueueAttributes::default(), None).map(|grant| grant.profile)
}

#[test]
fn an_accept_s_attributes_become_a_profile() {
    let profile = accept(&[
        (a::SERVICE_TYPE, &[0, 0, 0, 2]),
        (a::FRAMED_PROTOCOL, &[0, 0, 0, 1]),
        (a::FRAMED_IP_ADDRESS, &[203, 0, 113, 9]),
        (a::FRAMED_POOL, b"gold"),
        (a::FRAMED_ROUTE, b"10.1.0.0/16 0.0.0.0 1"),
        (a::FRAMED_IPV6_ROUTE, b"2001:db8:1::/48 :: 1"),
        (a::FRAMED_IPV6_PREFIX, &[0, 32, 0x20, 1, 0x0d, 0xb8]),
        (a::FRAMED_IPV6_PREFIX, &[0, 32, 0x20, 1, 0x0d, 0xb9]),
        (a::FILTER_ID, b"web"),
        (a::SESSION_TIMEOUT, &[0, 0, 0x0e, 0x10]),
        (a::IDLE_TIMEOUT, &[0, 0, 0, 60]),
        (a::ACCT_INTERIM_INTERVAL, &[0, 0, 2, 88]),
        (a::CLASS, b"first"),
        (a::CLASS, &[0, 255]),
        (a::USER_NAME, b"alice@example.net"),
        (a::REPLY_MESSAGE, b"welcome"),
        (a::FRAMED_MTU, &[0, 0, 5, 220]),
    ]);
    let profile = profile.unwrap();
    assert_eq!(profile.address, Address::Fixed([203, 0, 113, 9].into()));
    assert_eq!(profile.pool.as_deref(), Some("gold"));
    let routes: Vec<String> = profile.routes.iter().map(ToString::to_string).collect();
    // The first Framed-IPv6-Prefix is the link's; another one is a network behind the subscriber.
    assert_eq!(routes, ["10.1.0.0/16", "2001:db8:1::/48", "2001:db9::/32"]);
    let ipv6 = profile.ipv6.unwrap();
    assert_eq!(ipv6.prefix.unwrap().to_string(), "2001:db8::/32");
    assert_eq!(profile.filter.as_deref(), Some("web"));
    assert_eq!(profile.session_timeout, Some(Duration::from_secs(3_600)));
    assert_eq!(profile.idle_timeout, Some(Duration::from_secs(60)));
    assert_eq!(profile.interim_interval, Some(Duration::from_secs(600)));
    assert_eq!(
        *profile.class,
        [b"first".as_slice().into(), [0, 255].as_slice().into()]
    );
    assert_eq!(profile.name.as_deref(), Some("alice@example.net"));
}

/// RFC 3162, section 2.6; RFC 4818, section 3; RFC 6911, section 3.
#[test]
fn prefixes_addresses_and_pools_of_ipv6_are_read() {
    let address = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let profile = accept(&[
        (a::DELEGATED_IPV6_PREFIX, &[0, 40, 0x20, 1, 0x0d, 0xb8, 5]),
        (a::FRAMED_IPV6_ADDRESS, &address),
        (a::FRAMED_IPV6_POOL, b"links"),
        (a::DELEGATED_IPV6_PREFIX_POOL, b"homes"),
        (a::STATEFUL_IPV6_ADDRESS_POOL, b"hosts"),
        (a::DNS_SERVER_IPV6_ADDRESS, &address),
    ]);
    let ipv6 = profile.unwrap().ipv6.unwrap();
    let text = |prefix: Option<aaa::Prefix>| prefix.map(|prefix| prefix.to_string());
    assert_eq!(text(ipv6.delegated).as_deref(), Some("2001:db8:500::/40"));
    assert_eq!(text(ipv6.address).as_deref(), Some("2001:db8::7/128"));
    assert_eq!(ipv6.pool.as_deref(), Some("links"));
    assert_eq!(ipv6.delegated_pool.as_deref(), Some("homes"));
    assert_eq!(ipv6.address_pool.as_deref(), Some("hosts"));
    assert_eq!(
        ipv6.dns,
        ["2001:db8::7".parse::<core::net::Ipv6Addr>().unwrap()]
    );
    for kind in [a::FRAMED_IPV6_ADDRESS, a::DNS_SERVER_IPV6_ADDRESS] {
        let short = accept(&[(kind, &address[1..])]);
        assert_eq!(short, Err(Rejection::Attribute(kind)));
    }
}

/// RFC 3162, section 2.2.
#[test]
fn an_interface_identifier_has_eight_octets_and_is_not_zero() {
    let id = [0, 0, 0, 0, 0, 0, 1, 7];
    let profile = accept(&[(a::FRAMED_INTERFACE_ID, &id)]).unwrap();
    let interface = profile.ipv6.unwrap().interface;
    assert_eq!(interface.map(core::num::NonZeroU64::get), Some(0x107));
    for wrong in [&id[1..], &[0; 8]] {
        let refused = accept(&[(a::FRAMED_INTERFACE_ID, wrong)]);
        assert_eq!(refused, Err(Rejection::Attribute(a::FRAMED_INTERFACE_ID)));
    }
}

#[test]
fn the_two_special_addresses_leave_the_choice_to_the_edge_or_to_the_subscriber() {
    let address = |octets: [u8; 4]| accept(&[(a::FRAMED_IP_ADDRESS, &octets)]);
    assert_eq!(
        address([255, 255, 255, 254]).unwrap().address,
        Address::FromPool
    );
    assert_eq!(
        address([255, 255, 255, 255]).unwrap().address,
        Address::ItsOwn
    );
    assert_eq!(accept(&[]).unwrap(), Profile::default());
}

#[test]
fn an_interim_interval_below_a_minute_is_raised_and_zero_is_none() {
    let interval = |seconds: u8| accept(&[(a::ACCT_INTERIM_INTERVAL, &[0, 0, 0, seconds])]);
    assert_eq!(
        interval(5).unwrap().interim_interval,
        Some(Duration::from_secs(60))
    );
    assert_eq!(interval(0).unwrap().interim_interval, None);
}

#[test]
fn what_cannot_be_given_or_has_an_impossible_length_is_a_rejection() {
    let many = [(a::CLASS, [7; 253].as_slice()); 6];
    assert_eq!(accept(&many), Err(Rejection::Attribute(a::CLASS)));
    let two = [(a::FILTER_ID, b"one".as_slice()), (a::FILTER_ID, b"two")];
    assert_eq!(accept(&two), Err(Rejection::Attribute(a::FILTER_ID)));
    for (kind, value, why) in [
        (a::SERVICE_TYPE, &[0, 0, 0, 1][..], Rejection::Service(1)),
        (a::FRAMED_PROTOCOL, &[0, 0, 0, 2], Rejection::Protocol(2)),
        (a::SERVICE_TYPE, &[2], Rejection::Attribute(a::SERVICE_TYPE)),
        (
            a::FRAMED_IP_ADDRESS,
            &[10, 0, 0],
            Rejection::Attribute(a::FRAMED_IP_ADDRESS),
        ),
        (
            a::FRAMED_IP_ADDRESS,
            &[0; 4],
            Rejection::Attribute(a::FRAMED_IP_ADDRESS),
        ),
        (
            a::SESSION_TIMEOUT,
            &[0; 5],
            Rejection::Attribute(a::SESSION_TIMEOUT),
        ),
        (
            a::FRAMED_ROUTE,
            b"nowhere",
            Rejection::Attribute(a::FRAMED_ROUTE),
        ),
        (a::FILTER_ID, &[0xff], Rejection::Attribute(a::FILTER_ID)),
        (
            a::FRAMED_IPV6_PREFIX,
            &[0],
            Rejection::Attribute(a::FRAMED_IPV6_PREFIX),
        ),
    ] {
        assert_eq!(accept(&[(kind, value)]), Err(why), "{kind} {value:?}");
    }
}

#[test]
fn an_accept_arrives_with_its_profile_and_is_counted() {
    let mut lab = Lab::new(config(1), &[How::Accept], 1);
    lab.servers[0].grants = vec![
        (a::REPLY_MESSAGE, b"hello ".to_vec()),
        (a::REPLY_MESSAGE, b"there".to_vec()),
        (a::ACCT_INTERIM_INTERVAL, vec![0, 0, 0, 1]),
        (200, b"unknown".to_vec()),
    ];
    lab.ask(8);
    lab.run_for(1);
    let Event::Accepted {
        message, profile, ..
    } = &lab.ends()[&8]
    else {
        panic!("{:?}", lab.ends());
    };
    assert_eq!(message.as_deref(), Some("hello there"));
    assert_eq!(profile.interim_interval, Some(Duration::from_secs(60)));
    let view = lab.client.services().next().unwrap();
    assert_eq!(
        (view.name, view.purpose),
        ("server0", Purpose::Authentication)
    );
    assert_eq!((view.counters.requests, view.counters.accepts), (1, 1));
    assert_eq!(
        (
            view.counters.attributes_ignored,
            view.counters.intervals_raised
        ),
        (1, 1)
    );
    assert_eq!((view.rtt_last, view.rtt_smoothed), (Some(RTT), Some(RTT)));
    let trips = lab.client.totals().round_trips;
    assert_eq!(trips.total(), RTT);
    assert_eq!(trips.classes().map(|(_, count)| count).sum::<u64>(), 1);
    lab.assert_idle();
}

#[test]
fn a_chap_request_says_who_asks_where_and_through_which_tunnel() {
    let mut lab = Lab::new(config(1), &[How::Silent], 1);
    let long = [b'9'; 300];
    let request = AccessRequest {
        user: b"alice",
        proof: Proof::Chap {
            identifier: 22,
            challenge: b"challenge",
            response: &[5; 16],
        },
        session: SessionId { boot: 1, number: 2 },
        line: Line {
            port: 77,
            port_id: "tunnel 3 session 4",
            calling: &long,
            called: b"",
            access: b"",
            kind: aaa::radius::PortType::default(),
            tunnel: Some(Tunnel {
                client: Some([192, 0, 2, 200].into()),
                server: "2001:db8::1".parse().unwrap(),
                client_name: b"lac",
                server_name: b"lns",
                assignment: b"",
                call: 9,
            }),
        },
        servers: aaa::radius::ANY_SERVER,
    };
    lab.client.authenticate(lab.now, &request, 1).unwrap();
    let mut out = Vec::new();
    lab.client.poll_transmit(lab.now, &mut out).unwrap();
    let packet = Packet::parse(&out).unwrap();
    let value = |kind| packet.find(kind).map(|attribute| attribute.value);
    assert_eq!(
        value(a::CHAP_PASSWORD),
        Some(&[&[22][..], &[5; 16]].concat()[..])
    );
    assert_eq!(value(a::CHAP_CHALLENGE), Some(&b"challenge"[..]));
    assert_eq!(value(a::USER_PASSWORD), None);
    assert_eq!(value(a::NAS_IDENTIFIER), Some(&b"edge"[..]));
    assert_eq!(value(a::NAS_IP_ADDRESS), Some(&[198, 51, 100, 1][..]));
    assert_eq!(value(a::NAS_PORT), Some(&[0, 0, 0, 77][..]));
    assert_eq!(value(a::NAS_PORT_TYPE), Some(&[0, 0, 0, 5][..]));
    assert_eq!(value(a::NAS_PORT_ID), Some(&b"tunnel 3 session 4"[..]));
    assert_eq!(value(a::SERVICE_TYPE), Some(&[0, 0, 0, 2][..]));
    assert_eq!(value(a::FRAMED_PROTOCOL), Some(&[0, 0, 0, 1][..]));
    assert_eq!(value(a::CALLING_STATION_ID), Some(&long[..252]));
    assert_eq!(value(a::CALLED_STATION_ID), None);
    assert_eq!(value(a::ACCT_SESSION_ID), Some(&b"000000010000000002"[..]));
    assert_eq!(value(a::TUNNEL_TYPE), Some(&[0, 0, 0, 3][..]));
    assert_eq!(value(a::TUNNEL_MEDIUM_TYPE), Some(&[0, 0, 0, 2][..]));
    assert_eq!(
        value(a::TUNNEL_CLIENT_ENDPOINT),
        Some(&b"\x00192.0.2.200"[..])
    );
    assert_eq!(
        value(a::TUNNEL_SERVER_ENDPOINT),
        Some(&b"\x002001:db8::1"[..])
    );
    assert_eq!(value(a::TUNNEL_CLIENT_AUTH_ID), Some(&b"\x00lac"[..]));
    assert_eq!(value(a::ACCT_TUNNEL_CONNECTION), None);
}

#[test]
fn values_that_no_attribute_has_room_for_are_refused_and_the_longest_are_not() {
    let mut lab = Lab::new(config(1), &[How::Accept], 1);
    let long = [b'x'; 300];
    let mut ask = |user: &[u8], proof: Proof<'_>| {
        let tunnel = Tunnel {
            client: Some("2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap()),
            server: "2001:db8:1111:2222:3333:4444:5555:7777".parse().unwrap(),
            client_name: &long,
            server_name: &long,
            assignment: b"",
            call: u32::MAX,
        };
        let request = AccessRequest {
            user,
            proof,
            session: SessionId::default(),
            line: Line {
                port: 1,
                port_id: core::str::from_utf8(&long).unwrap(),
                calling: &long,
                called: &long,
                access: b"",
                kind: aaa::radius::PortType::default(),
                tunnel: Some(tunnel),
            },
            servers: aaa::radius::ANY_SERVER,
        };
        lab.client.authenticate(lab.now, &request, 1)
    };
    let pap = |password| Proof::Pap { password };
    let chap = |challenge| Proof::Chap {
        identifier: 1,
        challenge,
        response: &[0; 16],
    };
    assert_eq!(ask(&long[..253], pap(&long[..128])), Ok(()));
    assert_eq!(ask(&long[..253], chap(&long[..253])), Ok(()));
    assert_eq!(ask(&long[..254], pap(b"")), Err(Refused::TooLong));
    assert_eq!(ask(b"", pap(&long[..129])), Err(Refused::TooLong));
    assert_eq!(ask(b"", chap(&long[..254])), Err(Refused::TooLong));
    assert_eq!(ask(b"", chap(b"")), Err(Refused::TooLong));
}
