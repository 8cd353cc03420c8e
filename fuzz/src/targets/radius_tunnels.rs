//! The tunnels of an Access-Accept (RFC 2868), whatever its attributes are: what is read can be opened, and written
//! again it is read as the same.
//!
//! An input is the attributes of the packet.

use std::collections::BTreeSet;

use aaa::radius::QueueAttributes;
use aaa::radius::accept::read_accept;
use aaa::radius::tunnels::Salted;
use aaa::{Lns, Tunnelled};
use wire::radius::attribute::{
    TUNNEL_ASSIGNMENT_ID, TUNNEL_CLIENT_AUTH_ID, TUNNEL_CLIENT_ENDPOINT, TUNNEL_MEDIUM_TYPE,
    TUNNEL_PASSWORD, TUNNEL_PREFERENCE, TUNNEL_PRIVATE_GROUP_ID, TUNNEL_SERVER_AUTH_ID,
    TUNNEL_SERVER_ENDPOINT, TUNNEL_TYPE,
};
use wire::radius::{Attribute, Authenticator, Packet, code};

const SECRET: &[u8] = b"secret";
const REQUEST: Authenticator = *b"0123456789abcdef";
/// The most octets of attributes in a packet (RFC 2865, section 3).
const ATTRIBUTES_MAX: usize = 4_096 - 20;
/// The largest tag (RFC 2868, section 3.1).
const TAG_MAX: u8 = 0x1f;

/// No octets cause a panic.
///
/// # Panics
/// If the tunnels cannot be opened, or are others when they are written and read again.
pub fn target(input: &[u8]) {
    let octets = accept(&input[..input.len().min(ATTRIBUTES_MAX)]);
    let Ok(packet) = Packet::parse(&octets) else {
        return;
    };
    let salted = Salted {
        secret: SECRET,
        request: &REQUEST,
    };
    let all: Vec<Attribute<'_>> = packet.attributes().collect();
    let has_password = all.iter().any(|one| one.kind == TUNNEL_PASSWORD);
    let bare = read_accept(&packet, QueueAttributes::default(), None);
    assert!(
        !has_password || bare.is_err(),
        "a password cannot be read without its secret"
    );
    let Ok(grant) = read_accept(&packet, QueueAttributes::default(), Some(salted)) else {
        return;
    };
    let Some(tunnelled) = grant.profile.tunnel.as_deref() else {
        let is_tunnel = all.iter().any(|one| one.kind == TUNNEL_TYPE);
        assert!(!is_tunnel, "a tunnel was asked for");
        return;
    };
    let Tunnelled::To(lns) = tunnelled else {
        panic!("a server names no tunnel of the configuration: {tunnelled:?}");
    };
    check(lns, &all);
    check_again(lns, salted);
}

/// An Access-Accept with these attributes.
fn accept(attributes: &[u8]) -> Vec<u8> {
    let length = (20 + attributes.len()) as u16;
    let mut octets = vec![code::ACCESS_ACCEPT, 7];
    octets.extend_from_slice(&length.to_be_bytes());
    octets.extend_from_slice(&[0; 16]);
    octets.extend_from_slice(attributes);
    octets
}

fn check(lns: &[Lns], all: &[Attribute<'_>]) {
    // A group of attributes without a tag is one more.
    let tags: BTreeSet<u8> = all
        .iter()
        .filter_map(|one| one.value.first().copied())
        .filter(|tag| *tag <= TAG_MAX)
        .collect();
    assert!(!lns.is_empty() && lns.len() <= tags.len() + 1);
    for one in lns {
        let to = &one.tunnel;
        assert_eq!(to.server.port(), 1701);
        assert!(!to.server.ip().is_unspecified() && !to.server.ip().is_multicast());
        let of_family = |own: core::net::IpAddr| own.is_ipv4() == to.server.is_ipv4();
        assert!(to.client.is_none_or(of_family));
        assert!(one.preference <= 1 << 24);
        for name in [&to.client_name, &to.server_name].into_iter().flatten() {
            assert!((1..=255).contains(&name.len()));
        }
        let secret = to.secret.as_ref();
        assert!(secret.is_none_or(|secret| !secret.reveal().is_empty()));
    }
}

/// Writes the tunnels with tags of their own, without their secrets, and reads them again.
fn check_again(lns: &[Lns], salted: Salted<'_>) {
    let mut attributes = Vec::new();
    let mut put = |kind: u8, tag: u8, value: &[u8]| {
        let length = 3 + value.len();
        // A value that filled its attribute without a tag has no room for one.
        if let Ok(length) = u8::try_from(length) {
            attributes.extend_from_slice(&[kind, length, tag]);
            attributes.extend_from_slice(value);
        }
        length <= 255
    };
    let mut fits = lns.len() <= usize::from(TAG_MAX);
    for (tag, one) in (1..).zip(lns.iter().take(TAG_MAX.into())) {
        let to = &one.tunnel;
        let medium = if to.server.is_ipv4() { 1 } else { 2 };
        fits &= put(TUNNEL_TYPE, tag, &[0, 0, 3]);
        fits &= put(TUNNEL_MEDIUM_TYPE, tag, &[0, 0, medium]);
        fits &= put(
            TUNNEL_SERVER_ENDPOINT,
            tag,
            to.server.ip().to_string().as_bytes(),
        );
        if let Some(own) = to.client {
            fits &= put(TUNNEL_CLIENT_ENDPOINT, tag, own.to_string().as_bytes());
        }
        if one.preference < 1 << 24 {
            fits &= put(TUNNEL_PREFERENCE, tag, &one.preference.to_be_bytes()[1..]);
        }
        let texts = [
            (TUNNEL_CLIENT_AUTH_ID, to.client_name.as_deref()),
            (TUNNEL_SERVER_AUTH_ID, to.server_name.as_deref()),
            (TUNNEL_ASSIGNMENT_ID, Some(&*to.assignment)),
        ];
        for (kind, text) in texts {
            if let Some(text) = text {
                fits &= put(kind, tag, text.as_bytes());
            }
        }
        fits &= put(TUNNEL_PRIVATE_GROUP_ID, tag, &one.private_group);
    }
    if !fits || attributes.len() > ATTRIBUTES_MAX {
        return;
    }
    let octets = accept(&attributes);
    let packet = Packet::parse(&octets).expect("the attributes fit into a packet");
    let again = read_accept(&packet, QueueAttributes::default(), Some(salted));
    let again = again.expect("each value was read before").profile.tunnel;
    let bare = |one: &Lns| {
        let mut to = (*one.tunnel).clone();
        to.secret = None;
        (to, one.preference, one.private_group.clone())
    };
    let Some(Tunnelled::To(again)) = again.as_deref() else {
        panic!("the tunnels are gone: {again:?}");
    };
    let (before, after): (Vec<_>, Vec<_>) = (
        lns.iter().map(bare).collect(),
        again.iter().map(bare).collect(),
    );
    assert_eq!(before, after);
}
