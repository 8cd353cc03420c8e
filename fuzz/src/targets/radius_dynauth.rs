//! Requests of RFC 5176: raw bytes, and attributes signed with the right secret.
//!
//! An input is datagrams: an octet that chooses how each is built, an octet of length, and that many octets.

use aaa::dynauth::{Cause, Dynauth, DynauthClient, DynauthConfig, Order};
use aaa::radius::Nas;
use base::{Datagram, Duration, Instant, Redacted, Route};
use wire::radius::{Attributes, Packet, Writer, code};

const SECRET: &[u8] = b"secret";
const WALL_S: u64 = 1_700_000_000;

/// No bytes cause a panic; an accepted request causes either a question or a reply, never both, and a
/// repetition of it causes neither.
///
/// # Panics
/// If that does not hold.
pub fn target(input: &[u8]) {
    let nas = Nas {
        identifier: Some("nas".into()),
        address: Some([198, 51, 100, 1].into()),
    };
    let mut config = DynauthConfig::new(nas);
    config.recent_max = 8;
    let secret = Redacted::new(SECRET.into());
    config
        .clients
        .push(DynauthClient::new([192, 0, 2, 1].into(), secret));
    let mut dynauth = Dynauth::new(config);
    let mut now = Instant::ZERO;
    let mut rest = input;
    while let [how, length, following @ ..] = rest {
        let (octets, next) = following.split_at(following.len().min(usize::from(*length)));
        rest = next;
        now += Duration::from_secs(u64::from(how >> 3));
        let bytes = match how & 1 {
            0 => signed(*how, octets),
            _ => octets.to_vec(),
        };
        one(&mut dynauth, &bytes, now);
    }
}

fn signed(how: u8, octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let code = match how & 2 {
        0 => code::DISCONNECT_REQUEST,
        _ => code::COA_REQUEST,
    };
    let mut writer = Writer::new(&mut out, code, how, &[0; 16]);
    if how & 4 != 0 {
        writer.message_authenticator();
    }
    if let Ok(attributes) = Attributes::parse(octets) {
        writer.list().encoded(attributes);
    }
    writer.finish_signed(SECRET).expect("it has room");
    out
}

fn one(dynauth: &mut Dynauth, bytes: &[u8], now: Instant) {
    let route = Route {
        peer: ([192, 0, 2, 1], 4_000).into(),
        local: None,
        socket: 0,
    };
    let before = dynauth.counters();
    let mut out = Vec::new();
    if dynauth
        .handle(Datagram { route, bytes }, now, WALL_S)
        .is_err()
    {
        assert_eq!(dynauth.poll_event(), None);
        assert_eq!(dynauth.poll_transmit(&mut out), None);
        return;
    }
    let is_new = dynauth.counters().requests > before.requests;
    if let Some(asked) = dynauth.poll_event() {
        assert!(is_new && !asked.selection.is_empty());
        if let Order::Change(change) = &asked.order {
            assert!(!change.reset_queue);
        }
        assert_eq!(dynauth.poll_transmit(&mut out), None);
        dynauth.answer(asked.ticket, Err(Cause::NotFound));
    }
    assert_eq!(dynauth.poll_transmit(&mut out), Some(route));
    assert_eq!(dynauth.poll_event(), None);
    let reply = Packet::parse(&out).expect("a reply is a packet");
    assert!(matches!(reply.code(), code::DISCONNECT_NAK | code::COA_NAK));
}
