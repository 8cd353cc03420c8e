//! A reload of what is our own: AS number, BGP Identifier, cluster identifier. Each applies to all that is sent and
//! received from then on.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bgp::fsm::State;
use bgp::policy::Policy;
use bgp::{ConnId, PeerConfig, PeerSettings, RemoteAsn, SpeakerConfig};
use wire::bgp::{KEEPALIVE, Kind, Open, Prefix};

use crate::hand::{Hand, OURS, REMOTE, THEIRS, announcement, config, message, open, passive};

const INTERNAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));

fn taking() -> PeerSettings {
    PeerSettings {
        import: Some(Policy::accept()),
        export: Some(Policy::accept()),
        is_client: true,
        ..passive()
    }
}

/// A speaker with an external peer and an internal one.
fn both() -> SpeakerConfig {
    let mut both = config(taking());
    let (asn, settings) = (RemoteAsn::Internal, Arc::new(taking()));
    both.peers.push(PeerConfig::new(INTERNAL, asn, settings));
    both
}

/// A session of the internal peer.
fn up_internal(hand: &mut Hand, asn: u32) -> ConnId {
    let conn = hand.connect_from(INTERNAL, 40_000).expect("it is let in");
    hand.send_open(conn, &Open::new(asn, 90, 0x0a00_0009));
    hand.send(conn, &KEEPALIVE);
    let peer = hand.speaker.peer(INTERNAL).unwrap();
    let view = hand.speaker.neighbor(peer, hand.now).unwrap();
    assert_eq!(view.state, State::Established);
    conn
}

/// An UPDATE for 203.0.113.0/24 that a reflector sends.
fn reflected(originator: [u8; 4], cluster: [u8; 4]) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 9];
    attributes.extend([0x40, 5, 4, 0, 0, 0, 100, 0x80, 9, 4]);
    attributes.extend(originator);
    attributes.extend([0x80, 10, 4]);
    attributes.extend(cluster);
    let mut body = vec![0, 0, 0, attributes.len() as u8];
    body.extend(attributes);
    body.extend([24, 203, 0, 113]);
    message(2, &body)
}

fn has(hand: &Hand, prefix: &str) -> bool {
    let prefix: Prefix = prefix.parse().unwrap();
    hand.speaker.rib().best(prefix).is_some()
}

/// Whether a reflected route with these identifiers is taken; it is withdrawn again.
fn takes(hand: &mut Hand, conn: ConnId, originator: [u8; 4], cluster: [u8; 4]) -> bool {
    hand.send(conn, &reflected(originator, cluster));
    let is_taken = has(hand, "203.0.113.0/24");
    hand.send(conn, &message(2, &[0, 4, 24, 203, 0, 113, 0, 0]));
    assert!(!has(hand, "203.0.113.0/24"));
    is_taken
}

/// The OPEN that was sent on a connection.
fn said(hand: &Hand, conn: ConnId) -> Open {
    let mut got = hand.got.iter();
    let open = got.find(|(at, kind, _)| *at == conn && *kind == Kind::Open);
    Open::read(&open.expect("it was sent").2).unwrap()
}

#[test]
fn a_new_as_is_in_every_open_and_is_the_one_that_makes_a_loop() {
    const NEW: u32 = 65_100;
    let mut hand = Hand::of(both());
    let conn = hand.up(&open());
    up_internal(&mut hand, OURS);
    let mut new = both();
    new.asn = NEW;
    let reload = hand.speaker.reload(new, hand.now);
    hand.drain();
    assert_eq!((reload.own, reload.replaced), (vec!["asn"], 2));
    assert_eq!(hand.codes(conn), Some((6, 6)));
    let conn = hand.up(&open());
    assert_eq!(
        (said(&hand, conn).asn(), hand.speaker.summary().asn),
        (NEW, NEW)
    );
    hand.send(conn, &announcement(&[THEIRS, NEW], &[[198, 51, 100]]));
    assert!(!has(&hand, "198.51.100.0/24"), "a loop");
    hand.send(conn, &announcement(&[THEIRS, OURS], &[[198, 51, 100]]));
    assert!(has(&hand, "198.51.100.0/24"), "the old AS is another one");
    up_internal(&mut hand, NEW);
}

#[test]
fn a_new_identifier_is_in_every_open_and_is_the_originator_that_is_refused() {
    let (old, id) = ([10, 0, 0, 1], [10, 0, 0, 77]);
    let mut hand = Hand::of(both());
    let conn = up_internal(&mut hand, OURS);
    assert!(!takes(&mut hand, conn, old, [1, 1, 1, 1]));
    assert!(takes(&mut hand, conn, id, [1, 1, 1, 1]));
    let mut new = both();
    new.router_id = Ipv4Addr::from(id);
    let reload = hand.speaker.reload(new, hand.now);
    hand.drain();
    assert_eq!(reload.own, ["router_id"]);
    assert_eq!(hand.codes(conn), Some((6, 6)));
    let conn = up_internal(&mut hand, OURS);
    assert_eq!(said(&hand, conn).router_id, u32::from_be_bytes(id));
    assert!(takes(&mut hand, conn, old, [1, 1, 1, 1]));
    assert!(!takes(&mut hand, conn, id, [1, 1, 1, 1]));
    // Without a key of its own, the cluster identifier changes with it.
    assert!(takes(&mut hand, conn, [1, 1, 1, 1], old));
    assert!(!takes(&mut hand, conn, [1, 1, 1, 1], id));
}

#[test]
fn a_new_cluster_identifier_starts_internal_sessions_again_and_no_other() {
    let id = [10, 9, 9, 9];
    let mut hand = Hand::of(both());
    let external = hand.up(&open());
    let conn = up_internal(&mut hand, OURS);
    assert!(takes(&mut hand, conn, [1, 1, 1, 1], id));
    let mut new = both();
    new.cluster_id = Some(Ipv4Addr::from(id));
    let reload = hand.speaker.reload(new.clone(), hand.now);
    hand.drain();
    assert_eq!(reload.own, ["cluster_id"]);
    assert_eq!((reload.replaced, reload.kept), (1, 1));
    assert_eq!(
        (hand.codes(conn), hand.codes(external)),
        (Some((6, 6)), None)
    );
    let conn = up_internal(&mut hand, OURS);
    assert!(!takes(&mut hand, conn, [1, 1, 1, 1], id));
    // What is reflected to a client has it too.
    let peer = IpAddr::from([192, 0, 2, 10]);
    new.peers.push(PeerConfig::new(
        peer,
        RemoteAsn::Internal,
        Arc::new(taking()),
    ));
    let reload = hand.speaker.reload(new, hand.now);
    assert_eq!((reload.own, reload.kept), (Vec::new(), 2));
    let other = hand.connect_from(peer, 1).unwrap();
    hand.send_open(other, &Open::new(OURS, 90, 0x0a00_000a));
    hand.send(other, &KEEPALIVE);
    hand.send(conn, &reflected([1, 1, 1, 1], [2, 2, 2, 2]));
    let mut updates = hand.got.iter().rev();
    let (_, _, body) = updates
        .find(|(at, kind, _)| *at == other && *kind == Kind::Update)
        .expect("it was reflected");
    let list = [0x80, 10, 8, 10, 9, 9, 9, 2, 2, 2, 2];
    assert!(
        body.windows(list.len()).any(|part| part == list),
        "{body:?}"
    );
}

#[test]
fn without_a_change_of_our_own_the_sessions_go_on() {
    let mut hand = Hand::of(both());
    let conn = hand.up(&open());
    let reload = hand.speaker.reload(both(), hand.now);
    hand.drain();
    assert_eq!((reload.own, reload.kept), (Vec::new(), 2));
    assert_eq!(hand.codes(conn), None);
    assert!(hand.speaker.peer(REMOTE).is_some());
}
