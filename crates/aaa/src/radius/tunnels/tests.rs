//! Each rule of RFC 2868 with the attributes that show it.

use super::*;

const REQUEST: Authenticator = *b"0123456789abcdef";
const SECRET: &[u8] = b"xyzzy5461";

fn read(attributes: &[(u8, &[u8])]) -> Result<Option<Box<Tunnelled>>, ()> {
    let mut reader = Reader::default();
    let salted = Salted {
        secret: SECRET,
        request: &REQUEST,
    };
    for (kind, value) in attributes {
        let (kind, value) = (*kind, *value);
        let taken = reader.take(Attribute { kind, value }, Some(salted));
        assert_eq!(taken, Some(true), "{kind}");
    }
    reader.finish()
}

fn lns(attributes: &[(u8, &[u8])]) -> Vec<Lns> {
    match read(attributes) {
        Ok(Some(tunnelled)) => match *tunnelled {
            Tunnelled::To(lns) => lns.into(),
            Tunnelled::Named(name) => panic!("{name}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Section 3: "attributes ... with the same tag refer to the same tunnel".
#[test]
fn tags_group_the_attributes_of_a_tunnel() {
    let found = lns(&[
        (TUNNEL_TYPE, &[1, 0, 0, 3]),
        (TUNNEL_TYPE, &[2, 0, 0, 3]),
        (TUNNEL_MEDIUM_TYPE, &[1, 0, 0, 1]),
        (TUNNEL_MEDIUM_TYPE, &[2, 0, 0, 2]),
        (TUNNEL_SERVER_ENDPOINT, b"\x022001:db8::1"),
        (TUNNEL_SERVER_ENDPOINT, b"\x01192.0.2.1"),
        (TUNNEL_PREFERENCE, &[1, 0, 1, 0]),
        (TUNNEL_PREFERENCE, &[2, 0, 0, 5]),
        (TUNNEL_ASSIGNMENT_ID, b"\x01gold"),
        (TUNNEL_CLIENT_AUTH_ID, b"\x01lac-7"),
        (TUNNEL_SERVER_AUTH_ID, b"\x01lns-1"),
        (TUNNEL_CLIENT_ENDPOINT, b"\x01192.0.2.7"),
        (TUNNEL_PRIVATE_GROUP_ID, b"\x01blue"),
    ]);
    let [first, second] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(first.preference, 256);
    assert_eq!(first.tunnel.server, "192.0.2.1:1701".parse().unwrap());
    assert_eq!(first.tunnel.client, Some("192.0.2.7".parse().unwrap()));
    assert_eq!(&*first.tunnel.assignment, "gold");
    assert_eq!(first.tunnel.client_name.as_deref(), Some("lac-7"));
    assert_eq!(first.tunnel.server_name.as_deref(), Some("lns-1"));
    assert_eq!(*first.private_group, *b"blue");
    assert_eq!(second.preference, 5);
    assert_eq!(second.tunnel.server, "[2001:db8::1]:1701".parse().unwrap());
    assert_eq!(*second.tunnel, TunnelTo::new(second.tunnel.server));
}

/// Section 3.4: a tag above 0x1F "SHOULD be interpreted as the first byte of the following String field".
#[test]
fn a_text_needs_no_tag() {
    let found = lns(&[
        (TUNNEL_TYPE, &[0, 0, 0, 3]),
        (TUNNEL_SERVER_ENDPOINT, b"192.0.2.1"),
        (TUNNEL_ASSIGNMENT_ID, b"\0one"),
    ]);
    assert_eq!(found[0].tunnel.server, "192.0.2.1:1701".parse().unwrap());
    assert_eq!(&*found[0].tunnel.assignment, "one");
}

/// Section 3.5: b(1) = MD5(S + R + A), c(1) = p(1) xor b(1), b(i) = MD5(S + c(i-1)). The ciphertexts were made with
/// another program (Python's hashlib) from that text.
#[test]
fn a_tunnel_password_is_decrypted() {
    for (password, hidden) in PASSWORDS {
        let value: Vec<u8> = [&[1], *hidden].concat();
        let found = lns(&[
            (TUNNEL_TYPE, &[1, 0, 0, 3]),
            (TUNNEL_SERVER_ENDPOINT, b"\x01192.0.2.1"),
            (TUNNEL_PASSWORD, &value),
        ]);
        let secret = found[0].tunnel.secret.as_ref().expect("a password");
        assert_eq!(secret.reveal(), password);
    }
}

/// Salt and String of passwords, under [`SECRET`] and [`REQUEST`].
const PASSWORDS: &[(&[u8], &[u8])] = &[
    (b"tunnel", PASSWORD_6),
    (b"a secret of more than sixteen octets", PASSWORD_36),
];
const PASSWORD_6: &[u8] = &[
    0x80, 0x01, 0x4c, 0x58, 0x0d, 0x11, 0x7c, 0x2a, 0xca, 0x10, 0x9c, 0xa5, 0x4e, 0xce, 0xd1, 0x90,
    0x05, 0x6a,
];
const PASSWORD_36: &[u8] = &[
    0xfe, 0x03, 0xe1, 0xff, 0x8c, 0x66, 0xc2, 0xfd, 0x22, 0xdd, 0xbe, 0xfe, 0x11, 0xc8, 0x0e, 0xf5,
    0x08, 0xda, 0x27, 0x25, 0x03, 0x56, 0x13, 0xf9, 0xce, 0x5a, 0x0a, 0xd4, 0x72, 0x36, 0xef, 0x9f,
    0x6b, 0x01, 0xbb, 0x0c, 0x9d, 0x69, 0xc2, 0x26, 0xc9, 0x92, 0x79, 0x93, 0xc7, 0x1f, 0xc5, 0xe9,
    0x6f, 0xd2,
];

#[test]
fn a_password_that_cannot_be_one_is_refused() {
    let mut reader = Reader::default();
    let salted = Some(Salted {
        secret: SECRET,
        request: &REQUEST,
    });
    // No salt, no block, half a block, a length beyond the blocks.
    for value in [&b"\x01"[..], b"\x01\x80\x01", b"\x01\x80\x01abc"] {
        let kind = TUNNEL_PASSWORD;
        assert_eq!(reader.take(Attribute { kind, value }, salted), None);
    }
    let wrong = Salted {
        secret: b"another",
        request: &REQUEST,
    };
    let value = [&[1], PASSWORD_6].concat();
    let attribute = Attribute {
        kind: TUNNEL_PASSWORD,
        value: &value,
    };
    assert_eq!(reader.take(attribute, Some(wrong)), None);
}

/// Section 3.1: a reply with "only unknown or unsupported Tunnel-Types" counts as an Access-Reject.
#[test]
fn tunnels_that_cannot_be_opened_are_a_rejection() {
    let server: (u8, &[u8]) = (TUNNEL_SERVER_ENDPOINT, b"\x01192.0.2.1");
    for others in [
        // PPTP; a VLAN; a medium of another kind; a name; no server.
        &[(TUNNEL_TYPE, &[1, 0, 0, 1][..]), server][..],
        &[(TUNNEL_TYPE, &[1, 0, 0, 13])],
        &[
            (TUNNEL_TYPE, &[1, 0, 0, 3]),
            (TUNNEL_MEDIUM_TYPE, &[1, 0, 0, 6]),
            server,
        ],
        &[
            (TUNNEL_TYPE, &[1, 0, 0, 3]),
            (TUNNEL_MEDIUM_TYPE, &[1, 0, 0, 2]),
            server,
        ],
        &[
            (TUNNEL_TYPE, &[1, 0, 0, 3]),
            (TUNNEL_SERVER_ENDPOINT, b"\x01lns.example"),
        ],
        &[(TUNNEL_TYPE, &[1, 0, 0, 3])],
    ] {
        assert_eq!(read(others), Err(()), "{others:?}");
    }
    // One that can be opened is enough.
    let found = lns(&[
        (TUNNEL_TYPE, &[1, 0, 0, 3]),
        server,
        (TUNNEL_TYPE, &[2, 0, 0, 1]),
        (TUNNEL_SERVER_ENDPOINT, b"\x02192.0.2.2"),
    ]);
    assert_eq!(found.len(), 1);
}

#[test]
fn values_without_a_tag_are_those_of_each_tunnel() {
    let found = lns(&[
        (TUNNEL_TYPE, &[0, 0, 0, 3]),
        (TUNNEL_CLIENT_AUTH_ID, b"\0lac"),
        (TUNNEL_SERVER_ENDPOINT, b"\x01192.0.2.1"),
        (TUNNEL_SERVER_ENDPOINT, b"\x02192.0.2.2"),
        (TUNNEL_CLIENT_AUTH_ID, b"\x02other"),
    ]);
    let names: Vec<_> = found
        .iter()
        .map(|one| one.tunnel.client_name.as_deref())
        .collect();
    assert_eq!(names, [Some("lac"), Some("other")]);
}

#[test]
fn a_reply_without_a_tunnel_type_has_no_tunnel() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[(TUNNEL_PRIVATE_GROUP_ID, b"\x01blue")]), Ok(None));
}
