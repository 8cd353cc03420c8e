//! Complete messages: the header, and every message type read and written.

use crate::bgp::notification::{Text, cease, code};
use crate::bgp::*;

/// Bytes from hex digits, separated by blanks.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|octet| !octet.is_ascii_whitespace())
        .map(|digit| char::from(digit).to_digit(16).expect("a digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend_from_slice(&((19 + body.len()) as u16).to_be_bytes());
    message.push(kind);
    message.extend_from_slice(body);
    message
}

fn body(octets: &[u8]) -> &[u8] {
    let (_, body, len) = frame(octets, MESSAGE_MAX).unwrap().unwrap();
    assert_eq!(len, octets.len());
    body
}

#[test]
fn a_message_is_framed_as_soon_as_it_is_whole() {
    let octets = message(2, &[0; 4]);
    for len in 0..octets.len() {
        assert_eq!(frame(&octets[..len], MESSAGE_MAX), Ok(None));
    }
    assert_eq!(
        frame(&octets, MESSAGE_MAX),
        Ok(Some((Kind::Update, &[0; 4][..], 23)))
    );
    assert_eq!(
        frame(&KEEPALIVE, MESSAGE_MAX),
        Ok(Some((Kind::Keepalive, &[][..], 19)))
    );
}

#[test]
fn a_header_that_is_none_says_why() {
    // RFC 4271, section 6.1; RFC 8654, section 6.
    let error = |octets: &[u8], max| frame(octets, max).unwrap_err();
    let mut octets = KEEPALIVE;
    octets[3] = 0;
    assert_eq!(error(&octets, MESSAGE_MAX), Notification::new(1, 1));
    let header = |kind: u8, len: u16| {
        let mut octets = KEEPALIVE;
        octets[16..18].copy_from_slice(&len.to_be_bytes());
        octets[18] = kind;
        octets
    };
    for (kind, len, max) in [
        (1, 28u16, MESSAGE_MAX),
        (2, 22, MESSAGE_MAX),
        (3, 20, MESSAGE_MAX),
        (4, 20, MESSAGE_MAX),
        (4, 18, MESSAGE_MAX),
        (9, 18, MESSAGE_MAX),
        (2, 4_097, MESSAGE_MAX),
        (1, 4_097, EXTENDED_MAX),
        (4, 4_097, EXTENDED_MAX),
    ] {
        let expected = Notification::with_data(1, 2, &len.to_be_bytes());
        assert_eq!(error(&header(kind, len), max), expected, "{kind} {len}");
    }
    for kind in [0, 6, 255] {
        let expected = Notification::with_data(1, 3, &[kind]);
        assert_eq!(error(&header(kind, 19), MESSAGE_MAX), expected);
    }
    for kind in [2, 3, 5] {
        assert_eq!(frame(&header(kind, 65_535), EXTENDED_MAX), Ok(None));
    }
}

#[test]
fn an_open_of_a_router_reads_and_writes() {
    let octets = hex("ffffffffffffffffffffffffffffffff 004d 01
         04 5ba0 00b4 c0000201 30
         02 2e
         01 04 0001 00 01  01 04 0002 00 01  02 00  46 00  06 00
         41 04 0001 0000
         45 04 0001 01 03
         49 06 02 7231 02 6c6e
         40 06 8078 0002 01 80");
    let open = Open::read(body(&octets)).unwrap();
    let families = FamilyId::ALL.map(AfiSafi::from);
    assert_eq!(
        open,
        Open {
            asn: AS_TRANS,
            hold_time_s: 180,
            router_id: 0xc000_0201,
            capabilities: vec![
                Capability::Multiprotocol(families[0]),
                Capability::Multiprotocol(families[1]),
                Capability::RouteRefresh,
                Capability::EnhancedRouteRefresh,
                Capability::ExtendedMessage,
                Capability::FourOctetAs(65_536),
                Capability::AddPath(vec![(families[0], AddPathMode::Both)]),
                Capability::Fqdn {
                    host: b"r1".into(),
                    domain: b"ln".into()
                },
                Capability::GracefulRestart(GracefulRestart {
                    restarted: true,
                    notification: false,
                    time_s: 120,
                    families: vec![(families[1], true)],
                }),
            ],
        }
    );
    assert_eq!(open.asn(), 65_536);
    assert_eq!(open.families(), Families::ALL);
    let mut out = Vec::new();
    open.emit(&mut out).unwrap();
    assert_eq!(out, octets);
}

#[test]
fn an_open_without_capabilities_carries_ipv4() {
    let octets = hex("ffffffffffffffffffffffffffffffff 001d 01 04 fbf0 0000 c0000201 00");
    let open = Open::read(body(&octets)).unwrap();
    assert_eq!(open.asn(), 64_496);
    assert_eq!(open.families(), Families::IPV4);
    let mut out = Vec::new();
    open.emit(&mut out).unwrap();
    assert_eq!(out, octets);
}

#[test]
fn an_open_that_cannot_be_says_why() {
    // RFC 4271, section 6.2; RFC 6286, section 2.2; RFC 7607, section 2; RFC 9072, section 3.
    let error = |text: &str| {
        let error = Open::read(&hex(text)).unwrap_err();
        assert_eq!(error.code, code::OPEN);
        (error.subcode, error.data)
    };
    assert_eq!(error("03 fbf0 0000 c0000201 00"), (1, vec![0, 4]));
    assert_eq!(error("05 fbf0 0000 c0000201 00"), (1, vec![0, 4]));
    assert_eq!(error("04 0000 0000 c0000201 00"), (2, vec![]));
    assert_eq!(
        error("04 5ba0 0000 c0000201 08 02 06 41 04 00000000"),
        (2, vec![])
    );
    assert_eq!(error("04 fbf0 0001 c0000201 00"), (6, vec![]));
    assert_eq!(error("04 fbf0 0002 c0000201 00"), (6, vec![]));
    assert_eq!(error("04 fbf0 0003 00000000 00"), (3, vec![]));
    assert_eq!(error("04 fbf0 0003 c0000201 02 01 00"), (4, vec![]));
    assert_eq!(error("04 fbf0 0003 c0000201 04 0200 ff00"), (4, vec![]));
    for malformed in [
        "01",
        "03 0200",
        "02 0201",
        "03 02 01 41",
        "04 02 02 41 04",
        "ff ff",
        "ff ff 0001",
        "ff ff 0004 02 0002 41",
    ] {
        let text = format!("04 fbf0 0003 c0000201 {malformed}");
        assert_eq!(error(&text), (0, vec![]), "{malformed}");
    }
}

#[test]
fn long_parameters_have_lengths_of_two_octets() {
    // RFC 9072, section 2.
    let read = Open::read(&hex(
        "04 fbf0 0003 c0000201 ff ff 0009 02 0006 41 04 0000fbf0",
    ));
    assert_eq!(read, Ok(Open::new(64_496, 3, 0xc000_0201)));
    // The earlier length is ignored, unless it is 0.
    let read = Open::read(&hex(
        "04 fbf0 0003 c0000201 03 ff 0009 02 0006 41 04 0000fbf0",
    ));
    assert_eq!(read, Ok(Open::new(64_496, 3, 0xc000_0201)));
    let mut open = Open::new(64_496, 3, 1);
    for len in [247, 248, 255] {
        open.capabilities.truncate(1);
        open.capabilities.push(Capability::Unknown {
            code: 200,
            value: vec![7; len - 2],
        });
        let mut out = Vec::new();
        open.emit(&mut out).unwrap();
        assert_eq!(Open::read(body(&out)).as_ref(), Ok(&open));
        assert_eq!(out[29] == 255, len > 247);
    }
    open.capabilities = vec![
        Capability::Unknown {
            code: 200,
            value: vec![7; 255],
        };
        16
    ];
    let mut out = Vec::new();
    assert_eq!(open.emit(&mut out), Err(TooLong));
    assert!(out.is_empty());
}

#[test]
fn a_capability_that_is_not_understood_is_kept() {
    let text = "04 fbf0 0003 c0000201 12 02 10 41 02 0001  c8 01 07  02 01 00  45 04 000101 04";
    let open = Open::read(&hex(text)).unwrap();
    let unknown = |code, value: &[u8]| Capability::Unknown {
        code,
        value: value.into(),
    };
    assert_eq!(
        open.capabilities,
        [
            unknown(65, &[0, 1]),
            unknown(200, &[7]),
            unknown(2, &[0]),
            // RFC 7911, section 4: mode 4 must be ignored.
            Capability::AddPath(vec![]),
        ]
    );
    assert_eq!(open.asn(), 64_496);
}

#[test]
fn roles_fit_their_opposites() {
    // RFC 9234, section 4.2.
    for (local, remote) in [
        (Role::Provider, Role::Customer),
        (Role::RouteServer, Role::RouteServerClient),
        (Role::Peer, Role::Peer),
    ] {
        assert_eq!(local.opposite(), remote);
        assert_eq!(remote.opposite(), local);
    }
    for number in 0..5 {
        assert_eq!(Role::from_number(number).unwrap() as u8, number);
    }
    assert_eq!(Role::from_number(5), None);
}

#[test]
fn a_notification_reads_and_writes() {
    let octets = hex("ffffffffffffffffffffffffffffffff 0017 03 01 03 09 0a");
    let notification = Notification::read(body(&octets)).unwrap();
    assert_eq!(notification, Notification::with_data(1, 3, &[9, 10]));
    assert_eq!(
        notification.to_string(),
        "Message Header Error/Bad Message Type"
    );
    let mut out = Vec::new();
    notification.emit(&mut out);
    assert_eq!(out, octets);
    let text = |code, subcode| Notification::new(code, subcode).to_string();
    assert_eq!(text(4, 0), "Hold Timer Expired");
    assert_eq!(text(8, 0), "Send Hold Timer Expired");
    assert_eq!(text(2, 11), "OPEN Message Error/Role Mismatch");
    assert_eq!(text(2, 5), "OPEN Message Error/subcode 5");
    assert_eq!(text(77, 1), "code 77/subcode 1");
}

#[test]
fn a_shutdown_says_why() {
    // RFC 9003, section 2.
    let notification = Notification::cease(cease::SHUTDOWN, "back in 2 hours");
    let mut out = Vec::new();
    notification.emit(&mut out);
    assert_eq!(&out[19..22], [6, 2, 15]);
    assert_eq!(&out[22..], b"back in 2 hours");
    assert_eq!(notification.text(), Some(Text::Utf8("back in 2 hours")));
    assert_eq!(
        notification.to_string(),
        "Cease/Administrative Shutdown \"back in 2 hours\""
    );
    let long = Notification::cease(cease::RESET, &"ö".repeat(200));
    assert_eq!(long.data.len(), 255);
    assert!(matches!(long.text(), Some(Text::Utf8(text)) if text.chars().count() == 127));
    let malformed = |subcode, data: &[u8]| {
        matches!(
            Notification::with_data(6, subcode, data).text(),
            Some(Text::Malformed(_))
        )
    };
    assert!(malformed(2, &[1, 0xff]));
    assert!(malformed(4, &[2, b'a']));
    assert!(malformed(4, &[1, b'a', b'b']));
    assert!(!malformed(5, &[1, 0xff]));
    assert_eq!(Notification::cease(cease::SHUTDOWN, "").text(), None);
    assert_eq!(Notification::with_data(6, 2, &[0]).text(), None);
}

#[test]
fn a_route_refresh_reads_and_writes() {
    for (text, refresh) in [
        ("0002 00 01", Refresh::Request),
        ("0002 01 01", Refresh::Begin),
        ("0002 02 01", Refresh::End),
        ("0002 ff 01", Refresh::Unknown(255)),
    ] {
        let octets = message(5, &hex(text));
        let read = RouteRefresh::read(body(&octets)).unwrap();
        let family = FamilyId::Ipv6Unicast.into();
        assert_eq!(read, RouteRefresh { family, refresh });
        let mut out = Vec::new();
        read.emit(&mut out);
        assert_eq!(out, octets);
    }
    // RFC 7313, section 5: the data is the whole message.
    for text in ["", "0002 01", "0002 01 01 00", "0002 02 01 00"] {
        let octets = message(5, &hex(text));
        assert_eq!(
            RouteRefresh::read(body(&octets)),
            Err(Notification::with_data(7, 1, &octets))
        );
    }
    assert!(RouteRefresh::read(&hex("0002 00 01 01 80 0000")).is_ok());
}

#[test]
fn the_update_of_rfc_6396_reads_and_writes() {
    // RFC 6396, appendix A, figures 16 and 17. The octets printed there have a Total Path Attribute Length of
    // 31, but 35 octets of attributes, and their NEXT_HOP is 198.51.100.85.
    let octets = hex("ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff
         00 3e 02 00 00 00 23 40 01 01 02 40 02 0e 02 03
         00 00 fb f0 00 00 fb ff 00 00 fb f6 40 03 04 c6
         33 64 55 c0 08 04 fb f0 00 0e 18 cb 00 71");
    let update = Update::read(body(&octets), &UpdateContext::default()).unwrap();
    let attributes = update.attributes();
    assert_eq!(attr::origin(attributes), attr::Origin::Incomplete);
    assert_eq!(attr::as_path(attributes).to_string(), "64496 64511 64502");
    let next_hop = NextHop::V4([198, 51, 100, 85].into());
    assert_eq!(update.next_hop(FamilyId::Ipv4Unicast), Some(next_hop));
    let communities: Vec<_> = attr::communities(attributes)
        .map(|c| c.to_string())
        .collect();
    assert_eq!(communities, ["64496:14"]);
    let routes: Vec<Nlri> = update.announced().collect();
    assert_eq!(routes, [Prefix::v4(0xcb00_7100, 24).into()]);
    assert!(update.withdrawn().is_empty());
    assert_eq!(update.verdict(), Verdict::Accept);
    assert!(update.faults().is_empty());
    let mut out = Vec::new();
    let messages = UpdateWriter::default().announce(attributes, next_hop, routes, &mut out);
    assert_eq!(messages, Ok(1));
    assert_eq!(out, octets);
}

#[test]
fn ipv6_routes_read_and_write() {
    let octets = hex("ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff
         00 62 02 00 00 00 4b
         90 0e 00 31 00 02 01 20
         20 01 0d b8 00 0d 00 ff 00 00 00 00 00 00 01 87
         fe 80 00 00 00 00 00 00 02 12 f2 ff fe 9f 1b 00
         00 20 20 01 0d b8 2f 20 01 0d b8 00 00
         40 01 01 00 50 02 00 0e 02 03 00 00 fb f0 00 00 fb ff 00 00 fb f6");
    let update = Update::read(body(&octets), &UpdateContext::default()).unwrap();
    let next_hop = NextHop::V6(
        "2001:db8:d:ff::187".parse().unwrap(),
        Some("fe80::212:f2ff:fe9f:1b00".parse().unwrap()),
    );
    assert_eq!(update.next_hop(FamilyId::Ipv6Unicast), Some(next_hop));
    assert_eq!(update.next_hop(FamilyId::Ipv4Unicast), None);
    let routes: Vec<String> = update.announced().map(|n| n.prefix.to_string()).collect();
    assert_eq!(routes, ["2001:db8::/32", "2001:db8::/47"]);
    let mut out = Vec::new();
    let announced = update.announced();
    UpdateWriter::default()
        .announce(update.attributes(), next_hop, announced, &mut out)
        .unwrap();
    assert_eq!(out, octets);
}

#[test]
fn the_end_of_a_rib_reads_and_writes() {
    // RFC 4724, section 2.
    let context = UpdateContext::default();
    for (family, text) in [
        (FamilyId::Ipv4Unicast, "0000 0000"),
        (FamilyId::Ipv6Unicast, "0000 0007 90 0f 0003 0002 01"),
    ] {
        let octets = message(2, &hex(text));
        let mut out = Vec::new();
        UpdateWriter::end_of_rib(family, &mut out);
        assert_eq!(out, octets);
        let update = Update::read(body(&octets), &context).unwrap();
        assert_eq!(update.end_of_rib(), Some(family));
        assert!(update.announced().is_empty() && update.withdrawn().is_empty());
    }
    for (text, family) in [
        ("0000 0006 80 0f 03 0002 01", Some(FamilyId::Ipv6Unicast)),
        ("0000 0006 80 0f 03 0001 01", Some(FamilyId::Ipv4Unicast)),
        ("0000 0006 80 0f 03 0001 02", None),
        ("0000 0007 80 0f 04 0002 01 00", None),
        ("0001 00 0000", None),
        ("0000 000a 40 01 01 00 80 0f 03 0002 01", None),
    ] {
        let octets = hex(text);
        let update = Update::read(&octets, &context).unwrap();
        assert_eq!(update.end_of_rib(), family, "{text}");
    }
}
