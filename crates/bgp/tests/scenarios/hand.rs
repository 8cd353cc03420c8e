//! Tests that play the peer by hand: octets into a speaker, messages out of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::fsm::State;
use bgp::speaker::NeighborView;
use bgp::{
    CloseReason, ConnId, Discard, DynamicConfig, Event, PeerConfig, PeerSettings, RemoteAsn,
    Speaker, SpeakerConfig,
};
use wire::bgp::notification::Notification;
use wire::bgp::{
    Capability, GracefulRestart, HEADER_LEN, KEEPALIVE, Kind, Open, Refresh, RouteRefresh, frame,
};

pub(crate) const OURS: u32 = 65_001;
pub(crate) const THEIRS: u32 = 65_002;
pub(crate) const REMOTE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A speaker with one peer, which the test plays.
pub(crate) struct Hand {
    pub(crate) speaker: Speaker,
    pub(crate) now: Instant,
    /// What the speaker sent on each connection.
    pub(crate) got: Vec<(ConnId, Kind, Vec<u8>)>,
    pub(crate) events: Vec<Event>,
}

pub(crate) fn config(settings: PeerSettings) -> SpeakerConfig {
    let mut config = SpeakerConfig::new(OURS, Ipv4Addr::new(10, 0, 0, 1));
    let asn = RemoteAsn::Exactly(THEIRS);
    config
        .peers
        .push(PeerConfig::new(REMOTE, asn, Arc::new(settings)));
    config
}

pub(crate) fn open() -> Open {
    let mut open = Open::new(THEIRS, 90, 0x0a00_0002);
    open.capabilities.push(Capability::RouteRefresh);
    open
}

/// An OPEN with graceful restart: the peer preserves its forwarding state, and is back within 30 s.
pub(crate) fn restarting() -> Open {
    let mut open = open();
    let graceful = GracefulRestart {
        restarted: false,
        notification: false,
        time_s: 30,
        families: vec![(wire::bgp::FamilyId::Ipv4Unicast.into(), true)],
    };
    open.capabilities
        .push(Capability::GracefulRestart(graceful));
    open
}

fn octets(open: &Open) -> Vec<u8> {
    let mut out = Vec::new();
    open.emit(&mut out).expect("a short one");
    out
}

/// A message of that type and body.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xff; 16];
    out.extend_from_slice(&((HEADER_LEN + body.len()) as u16).to_be_bytes());
    out.push(kind);
    out.extend_from_slice(body);
    out
}

/// An UPDATE that announces prefixes of 24 bits with a path of four-octet AS numbers.
pub(crate) fn announcement(path: &[u32], prefixes: &[[u8; 3]]) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 2 + 4 * path.len() as u8];
    attributes.extend([2, path.len() as u8]);
    attributes.extend(path.iter().flat_map(|asn| asn.to_be_bytes()));
    attributes.extend([0x40, 3, 4, 192, 0, 2, 2]);
    let mut body = vec![0, 0];
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    for [a, b, c] in prefixes {
        body.extend([24, *a, *b, *c]);
    }
    message(2, &body)
}

impl Hand {
    pub(crate) fn new(settings: PeerSettings) -> Self {
        Self::of(config(settings))
    }

    pub(crate) fn of(config: SpeakerConfig) -> Self {
        config.check().expect("a good configuration");
        let mut hand = Self {
            speaker: Speaker::new(config, [1; 32]),
            now: Instant::from_nanos(5_000_000_000),
            got: Vec::new(),
            events: Vec::new(),
        };
        hand.speaker.start(hand.now);
        hand.drain();
        hand
    }

    pub(crate) fn drain(&mut self) {
        while self.speaker.work(64, self.now) {}
        while let Some(conn) = self.speaker.poll_ready() {
            let mut out = Vec::new();
            while self.speaker.fill(conn, &mut out, 65_536, self.now) {}
            self.take(conn, &out);
        }
        while let Some(event) = self.speaker.poll_event() {
            if let Event::Close { conn, last } = &event {
                self.take(*conn, last);
            }
            self.events.push(event);
        }
    }

    fn take(&mut self, conn: ConnId, mut octets: &[u8]) {
        while let Some((kind, body, len)) = frame(octets, 65_535).expect("we send good headers") {
            self.got.push((conn, kind, body.to_vec()));
            octets = &octets[len..];
        }
        assert!(octets.is_empty(), "half a message was sent");
    }

    pub(crate) fn connect_from(&mut self, remote: IpAddr, port: u16) -> Result<ConnId, Discard> {
        let (remote, local) = (SocketAddr::new(remote, port), SocketAddr::new(LOCAL, 179));
        let result = self.speaker.accept(remote, local, self.now);
        self.drain();
        result
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        self.connect_from(REMOTE, 40_000).expect("it is let in")
    }

    /// Completes the connection that the speaker asked for.
    pub(crate) fn answer(&mut self) -> ConnId {
        let asked = self.events.iter().rev().find_map(|event| match event {
            Event::Connect { conn, .. } => Some(*conn),
            _ => None,
        });
        let conn = asked.expect("it wants to connect");
        let local = SocketAddr::new(LOCAL, 50_000);
        self.speaker.connected(conn, local, self.now);
        self.drain();
        conn
    }

    pub(crate) fn send(&mut self, conn: ConnId, octets: &[u8]) {
        let _ = self.speaker.receive(conn, octets, self.now);
        self.drain();
    }

    pub(crate) fn send_open(&mut self, conn: ConnId, open: &Open) {
        self.send(conn, &octets(open));
    }

    /// A session that is Established.
    pub(crate) fn up(&mut self, open: &Open) -> ConnId {
        let conn = self.connect();
        self.send_open(conn, open);
        self.send(conn, &KEEPALIVE);
        assert_eq!(self.view().state, State::Established);
        conn
    }

    /// Lets time pass; every timer fires when it is due.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some((at, _)) = self.speaker.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.speaker.drained(self.now);
            self.speaker.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
        self.speaker.drained(self.now);
    }

    pub(crate) fn view(&self) -> NeighborView {
        let peer = self.speaker.peer(REMOTE).expect("it is configured");
        self.speaker.neighbor(peer, self.now).expect("it is there")
    }

    /// The last NOTIFICATION on a connection.
    pub(crate) fn told(&self, conn: ConnId) -> Option<Notification> {
        let got = self.got.iter().rev();
        let mut told = got.filter(|(at, kind, _)| *at == conn && *kind == Kind::Notification);
        let (_, _, body) = told.next()?;
        Notification::read(body).ok()
    }

    pub(crate) fn codes(&self, conn: ConnId) -> Option<(u8, u8)> {
        self.told(conn).map(|told| (told.code, told.subcode))
    }

    pub(crate) fn count(&self, conn: ConnId, kind: Kind) -> usize {
        let got = self.got.iter();
        got.filter(|(at, what, _)| *at == conn && *what == kind)
            .count()
    }

    fn is_closed(&self, conn: ConnId) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, Event::Close { conn: closed, .. } if *closed == conn))
    }
}

pub(crate) fn passive() -> PeerSettings {
    PeerSettings {
        passive: true,
        ..PeerSettings::default()
    }
}

#[test]
fn a_handshake_is_open_keepalive_and_then_silence() {
    let mut hand = Hand::new(passive());
    let conn = hand.connect();
    let kinds = |hand: &Hand| {
        hand.got
            .iter()
            .map(|(_, kind, _)| *kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&hand), [Kind::Open]);
    assert_eq!(hand.view().state, State::OpenSent);
    hand.send_open(conn, &open());
    assert_eq!(kinds(&hand), [Kind::Open, Kind::Keepalive]);
    assert_eq!(hand.view().state, State::OpenConfirm);
    hand.send(conn, &KEEPALIVE);
    assert_eq!(hand.view().state, State::Established);
    assert!(matches!(hand.events.last(), Some(Event::Up { .. })));
    assert_eq!(hand.count(conn, Kind::Keepalive), 1);
}

#[test]
fn a_peer_is_up_or_down_since_its_first_session_and_never_before() {
    let mut hand = Hand::new(passive());
    hand.pass(Duration::from_secs(60));
    assert_eq!(hand.view().since, None);
    let conn = hand.connect();
    hand.speaker.closed(conn, hand.now);
    assert_eq!(hand.view().since, None);
    let up = hand.now;
    let conn = hand.up(&open());
    hand.pass(Duration::from_secs(3));
    assert_eq!(hand.view().since, Some(up));
    hand.speaker.closed(conn, hand.now);
    hand.drain();
    assert_eq!(hand.view().since, Some(up + Duration::from_secs(3)));
}

#[test]
fn every_cut_of_a_stream_reads_the_same() {
    let mut stream = octets(&open());
    stream.extend_from_slice(&KEEPALIVE);
    stream.extend_from_slice(&message(2, &[0, 0, 0, 0]));
    stream.extend_from_slice(&KEEPALIVE);
    for cut in 0..stream.len() {
        for second in [cut + 1, cut + 18, cut + 19, cut + 40] {
            let second = second.min(stream.len());
            let mut hand = Hand::new(passive());
            let conn = hand.connect();
            hand.send(conn, &stream[..cut]);
            hand.send(conn, &stream[cut..second]);
            hand.send(conn, &stream[second..]);
            let view = hand.view();
            assert_eq!(view.state, State::Established, "{cut} {second}");
            assert_eq!((view.counts.keepalives_in, view.counts.updates_in), (2, 1));
        }
    }
}

#[test]
fn a_stream_that_ends_at_any_octet_ends_the_session_alone() {
    let mut stream = octets(&open());
    stream.extend_from_slice(&KEEPALIVE);
    for len in 0..=stream.len() {
        let mut hand = Hand::new(passive());
        let conn = hand.connect();
        hand.send(conn, &stream[..len]);
        hand.speaker.closed(conn, hand.now);
        hand.drain();
        assert!(matches!(hand.view().state, State::Idle | State::Active));
        assert_eq!(hand.speaker.summary().connections, 0);
        assert!(
            hand.got
                .iter()
                .all(|(_, kind, _)| *kind != Kind::Notification)
        );
        hand.pass(Duration::from_secs(5));
        hand.up(&open());
    }
}

#[test]
fn headers_that_are_none_are_told_so() {
    let cases: [(Vec<u8>, (u8, u8)); 5] = [
        (vec![0; 19], (1, 1)),
        (message(9, &[]), (1, 3)),
        (message(4, &[0]), (1, 2)),
        (message(1, &[0; 5]), (1, 2)),
        (message(2, &[0; 1]), (1, 2)),
    ];
    for (octets, codes) in cases {
        let mut hand = Hand::new(passive());
        let conn = hand.up(&open());
        hand.send(conn, &octets);
        assert_eq!(hand.codes(conn), Some(codes));
        assert!(hand.is_closed(conn));
        assert_eq!(hand.view().state, State::Idle);
    }
}

#[test]
fn messages_that_a_state_does_not_expect_are_told_with_state_and_type() {
    let update = message(2, &[0, 0, 0, 0]);
    let refresh = message(5, &[0, 1, 0, 1]);
    for octets in [&KEEPALIVE[..], &update, &refresh] {
        let mut hand = Hand::new(passive());
        let conn = hand.connect();
        hand.send(conn, octets);
        assert_eq!(hand.codes(conn), Some((5, 1)));
        assert_eq!(hand.told(conn).unwrap().data, [octets[18]]);
    }
    for octets in [&update, &refresh] {
        let mut hand = Hand::new(passive());
        let conn = hand.connect();
        hand.send_open(conn, &open());
        hand.send(conn, octets);
        assert_eq!(hand.codes(conn), Some((5, 2)));
    }
    let mut hand = Hand::new(passive());
    let conn = hand.up(&open());
    hand.send_open(conn, &open());
    assert_eq!(hand.codes(conn), Some((5, 3)));
    assert_eq!(hand.told(conn).unwrap().data, [1]);
}

#[test]
fn opens_that_are_not_acceptable_are_told_why() {
    let mut version = octets(&open());
    version[19] = 3;
    let mut hold = octets(&open());
    hold[22..24].copy_from_slice(&[0, 2]);
    let mut id = octets(&open());
    id[24..28].copy_from_slice(&[0; 4]);
    let mut asn = open();
    asn.capabilities[0] = Capability::FourOctetAs(65_003);
    let mut zero = open();
    zero.capabilities[0] = Capability::FourOctetAs(0);
    let mut parameter = octets(&open());
    parameter[29] = 1;
    let cases = [
        (version, (2, 1)),
        (octets(&asn), (2, 2)),
        (octets(&zero), (2, 2)),
        (id, (2, 3)),
        (parameter, (2, 4)),
        (hold, (2, 6)),
    ];
    for (octets, codes) in cases {
        let mut hand = Hand::new(passive());
        let conn = hand.connect();
        hand.send(conn, &octets);
        assert_eq!(hand.codes(conn), Some(codes));
        assert!(hand.is_closed(conn));
    }
    let mut hand = Hand::new(passive());
    let conn = hand.connect();
    let mut version = octets(&open());
    version[19] = 5;
    hand.send(conn, &version);
    assert_eq!(hand.told(conn).unwrap().data, [0, 4]);
}

#[test]
fn a_peer_with_two_octet_numbers_is_one_of_as_trans_or_its_own() {
    let mut hand = Hand::new(passive());
    let mut old = open();
    old.capabilities.clear();
    hand.up(&old);
    let agreed = hand.view().agreed.unwrap();
    assert_eq!((agreed.remote_asn, agreed.four_octet), (THEIRS, false));
}

#[test]
fn an_idle_session_sends_a_keepalive_a_second_and_nothing_else() {
    let settings = PeerSettings {
        hold_time_s: 3,
        ..passive()
    };
    let mut hand = Hand::new(settings);
    let conn = hand.up(&open());
    hand.pass(Duration::from_secs(2));
    hand.send(conn, &KEEPALIVE);
    let before = hand.got.len();
    let (mut last, mut count) = (None, before);
    for _ in 0..600 {
        hand.pass(Duration::from_millis(100));
        hand.send(conn, &KEEPALIVE);
        for (_, kind, _) in &hand.got[count..] {
            assert_eq!(*kind, Kind::Keepalive);
            let gap = last.map_or(Duration::from_secs(1), |at| hand.now - at);
            assert!(gap >= Duration::from_millis(900) && gap <= Duration::from_millis(1_100));
            last = Some(hand.now);
        }
        count = hand.got.len();
    }
    let sent = hand.got.len() - before;
    assert!((59..=60).contains(&sent), "{sent}");
}

#[test]
fn without_a_hold_time_there_are_no_keepalives_and_no_end() {
    let settings = PeerSettings {
        hold_time_s: 0,
        ..passive()
    };
    let mut hand = Hand::new(settings);
    let conn = hand.up(&open());
    assert_eq!(hand.speaker.poll_timeout(), None);
    hand.pass(Duration::from_secs(100_000));
    assert_eq!(hand.view().state, State::Established);
    assert_eq!(hand.count(conn, Kind::Keepalive), 1);
}

#[test]
fn who_never_sends_an_open_is_given_up_after_four_minutes() {
    let mut hand = Hand::new(passive());
    let conn = hand.connect();
    hand.pass(Duration::from_secs(239));
    assert_eq!(hand.view().state, State::OpenSent);
    hand.pass(Duration::from_secs(2));
    assert_eq!(hand.codes(conn), Some((4, 0)));
}

#[test]
fn a_stream_that_takes_nothing_ends_after_the_send_hold_time() {
    let settings = PeerSettings {
        send_hold: Some(Duration::from_secs(20)),
        hold_time_s: 30,
        ..passive()
    };
    let mut hand = Hand::new(settings);
    let conn = hand.up(&open());
    hand.speaker.set_blocked(conn, true);
    let before = hand.count(conn, Kind::Keepalive);
    hand.pass(Duration::from_secs(19));
    assert_eq!(hand.count(conn, Kind::Keepalive), before);
    hand.send(conn, &KEEPALIVE);
    // The stream accepts data again, just in time.
    hand.speaker.set_blocked(conn, false);
    hand.drain();
    assert_eq!(hand.count(conn, Kind::Keepalive), before + 1);
    hand.speaker.set_blocked(conn, true);
    for _ in 0..4 {
        hand.send(conn, &KEEPALIVE);
        hand.pass(Duration::from_millis(5_001));
    }
    assert_eq!(hand.codes(conn), Some((8, 0)));
    assert_eq!(hand.view().last_end, Some(CloseReason::SendHoldTimer));
}

#[test]
fn of_two_connections_the_one_of_the_higher_identifier_stays() {
    for (theirs, ours_stays) in [(0x0a00_0000, true), (0x0a00_0002, false)] {
        for incoming_first in [true, false] {
            let mut hand = Hand::new(PeerSettings::default());
            let outgoing = hand.answer();
            let incoming = hand.connect();
            let mut open = open();
            open.router_id = theirs;
            let (first, second) = if incoming_first {
                (incoming, outgoing)
            } else {
                (outgoing, incoming)
            };
            hand.send_open(first, &open);
            hand.send_open(second, &open);
            let (stays, goes) = if ours_stays {
                (outgoing, incoming)
            } else {
                (incoming, outgoing)
            };
            assert_eq!(hand.codes(goes), Some((6, 7)));
            assert!(hand.is_closed(goes) && !hand.is_closed(stays));
            hand.send(stays, &KEEPALIVE);
            assert_eq!(hand.view().state, State::Established);
            assert_eq!(hand.view().counts.collisions, 1);
            assert_eq!(hand.speaker.summary().connections, 1);
        }
    }
}

#[test]
fn a_connection_beside_an_established_one_is_closed_at_its_open() {
    let settings = PeerSettings {
        graceful_restart: None,
        ..passive()
    };
    let mut hand = Hand::new(settings.clone());
    let first = hand.up(&open());
    let second = hand.connect();
    assert!(!hand.is_closed(second));
    hand.send_open(second, &open());
    assert_eq!(hand.codes(second), Some((6, 7)));
    assert_eq!(hand.view().state, State::Established);
    assert!(!hand.is_closed(first));
    // With CollisionDetectEstablishedState, collisions are resolved there too.
    let mut hand = Hand::new(PeerSettings {
        collision_detect_established: true,
        ..settings
    });
    let first = hand.up(&open());
    let second = hand.connect();
    hand.send_open(second, &open());
    assert_eq!(hand.codes(first), Some((6, 7)));
    hand.send(second, &KEEPALIVE);
    assert_eq!(hand.view().state, State::Established);
}

#[test]
fn no_more_than_two_connections_are_tracked() {
    let mut hand = Hand::new(passive());
    hand.connect();
    hand.connect();
    for port in 0..100 {
        assert_eq!(
            hand.connect_from(REMOTE, port),
            Err(Discard::TooManyConnections)
        );
    }
    assert_eq!(hand.speaker.summary().connections, 2);
    let discards = hand.speaker.summary().discards;
    assert_eq!(discards.get(Discard::TooManyConnections), 100);
}

#[test]
fn strangers_are_refused_and_counted() {
    let mut hand = Hand::new(passive());
    let stranger = IpAddr::from([198, 51, 100, 1]);
    assert_eq!(hand.connect_from(stranger, 1), Err(Discard::UnknownPeer));
    let peer = hand.speaker.peer(REMOTE).unwrap();
    hand.speaker.stop_peer(peer, "", hand.now);
    assert_eq!(hand.connect_from(REMOTE, 1), Err(Discard::PeerIdle));
}

#[test]
fn a_network_s_hosts_are_peers_while_they_are_there_up_to_a_number() {
    let mut config = SpeakerConfig::new(OURS, Ipv4Addr::new(10, 0, 0, 1));
    let network = |prefix: &str, peers_max| DynamicConfig {
        prefix: prefix.parse().unwrap(),
        remote_asn: RemoteAsn::Any,
        peers_max,
        settings: Arc::new(PeerSettings::default()),
    };
    config.dynamic = vec![network("192.0.2.0/24", 10), network("192.0.2.128/25", 1)];
    let mut hand = Hand::of(config);
    let host = |last| IpAddr::from([192, 0, 2, last]);
    // The longer prefix has its own limit.
    let one = hand.connect_from(host(200), 1).unwrap();
    assert_eq!(hand.connect_from(host(201), 1), Err(Discard::DynamicLimit));
    for last in 1..=10 {
        hand.connect_from(host(last), 1).unwrap();
    }
    assert_eq!(hand.connect_from(host(11), 1), Err(Discard::DynamicLimit));
    assert_eq!(hand.speaker.summary().dynamic, 11);
    hand.speaker.closed(one, hand.now);
    hand.drain();
    assert!(matches!(hand.events.last(), Some(Event::Forgotten { .. })));
    assert_eq!(hand.speaker.peer(host(200)), None);
    hand.connect_from(host(201), 1).unwrap();
}

#[test]
fn an_operator_s_text_reaches_the_peer() {
    let mut hand = Hand::new(passive());
    let conn = hand.up(&open());
    let peer = hand.speaker.peer(REMOTE).unwrap();
    hand.speaker.stop_peer(peer, "Wartung bis 4 Uhr", hand.now);
    hand.drain();
    let told = hand.told(conn).unwrap();
    assert_eq!((told.code, told.subcode), (6, 2));
    assert_eq!(told.data[0], 17);
    assert_eq!(&told.data[1..], b"Wartung bis 4 Uhr");
    hand.pass(Duration::from_secs(1_000));
    assert_eq!(hand.view().state, State::Idle);
    hand.speaker.start_peer(peer, hand.now);
    hand.drain();
    let conn = hand.up(&open());
    hand.speaker.reset_peer(peer, "", hand.now);
    hand.drain();
    assert_eq!(hand.codes(conn), Some((6, 4)));
    hand.up(&open());
}

#[test]
fn failures_are_damped_twice_as_long_each_time() {
    let settings = PeerSettings {
        idle_hold: Duration::from_secs(2),
        idle_hold_max: Duration::from_secs(10),
        ..passive()
    };
    let mut hand = Hand::new(settings);
    for expected_s in [2, 4, 8, 10, 10] {
        let conn = hand.connect();
        hand.send(conn, &[0; 19]);
        assert_eq!(hand.view().state, State::Idle);
        assert_eq!(hand.connect_from(REMOTE, 1), Err(Discard::PeerIdle));
        let wait = hand.view().next_try.unwrap() - hand.now;
        let (least, most) = (expected_s * 750, expected_s * 1_000);
        assert!(
            wait.as_millis() >= least && wait.as_millis() <= most,
            "{wait:?}"
        );
        hand.pass(wait);
        assert_eq!(hand.view().state, State::Active);
    }
}

#[test]
fn an_active_peer_is_tried_again_at_the_connect_retry_time() {
    let mut hand = Hand::new(PeerSettings::default());
    let asked = |hand: &Hand| {
        let events = hand.events.iter();
        events
            .filter(|event| matches!(event, Event::Connect { .. }))
            .count()
    };
    assert_eq!(asked(&hand), 1);
    let Some(Event::Connect { conn, .. }) = hand.events.last().cloned() else {
        panic!("it wants to connect");
    };
    hand.speaker.connect_failed(conn, hand.now);
    hand.drain();
    assert_eq!(hand.view().state, State::Active);
    hand.pass(Duration::from_millis(7_400));
    assert_eq!(asked(&hand), 1);
    hand.pass(Duration::from_millis(2_700));
    assert_eq!(asked(&hand), 2);
    // A connection attempt without an answer is abandoned and started again.
    hand.pass(Duration::from_secs(100));
    assert!((10..=14).contains(&asked(&hand)), "{}", asked(&hand));
    assert_eq!(hand.speaker.summary().connections, 1);
}

#[test]
fn refreshes_are_asked_for_where_the_peer_understands_them() {
    let mut hand = Hand::new(passive());
    let conn = hand.up(&open());
    let peer = hand.speaker.peer(REMOTE).unwrap();
    let families = wire::bgp::Families::ALL;
    assert!(hand.speaker.refresh_in(peer, families, hand.now));
    hand.drain();
    let (_, kind, body) = hand.got.last().unwrap();
    assert_eq!(*kind, Kind::RouteRefresh);
    let message = RouteRefresh::read(body).unwrap();
    assert_eq!(message.refresh, Refresh::Request);
    assert_eq!(hand.count(conn, Kind::RouteRefresh), 1);
    let mut hand = Hand::new(passive());
    let mut old = open();
    old.capabilities.truncate(1);
    hand.up(&old);
    assert!(!hand.speaker.refresh_in(peer, families, hand.now));
}

#[test]
fn a_peer_that_restarts_gracefully_is_taken_back_without_a_word() {
    let restarting = restarting();
    let mut hand = Hand::new(passive());
    let first = hand.up(&restarting);
    // The peer connects again while its session is Established (RFC 4724, section 4.2).
    let second = hand.connect();
    assert!(hand.is_closed(first));
    assert_eq!(hand.told(first), None);
    assert!(hand.view().stale_until.is_some());
    hand.send_open(second, &restarting);
    hand.send(second, &KEEPALIVE);
    assert_eq!(hand.view().state, State::Established);
    assert!(hand.view().stale_until.is_some());
    hand.send(second, &message(2, &[0, 0, 0, 0]));
    assert_eq!(hand.view().stale_until, None);
    // The peer disconnects, and does not return within its restart time.
    hand.speaker.closed(second, hand.now);
    hand.drain();
    hand.pass(Duration::from_secs(29));
    assert!(hand.view().stale_until.is_some());
    hand.pass(Duration::from_secs(2));
    assert_eq!(hand.view().stale_until, None);
}

#[test]
fn a_malformed_update_is_counted_and_kept_to_be_shown() {
    let mut hand = Hand::new(passive());
    let conn = hand.up(&open());
    // ORIGIN 7, a prefix, no other attribute.
    let body = [0, 0, 0, 4, 0x40, 1, 1, 7, 24, 198, 51, 100];
    for _ in 0..1_000 {
        hand.send(conn, &message(2, &body));
    }
    let view = hand.view();
    assert_eq!(view.state, State::Established);
    assert_eq!(view.counts.malformed, 1_000);
    let malformed = view.malformed.unwrap();
    assert_eq!(*malformed.octets, body);
    assert!(!malformed.why.is_empty());
    // A fault for which RFC 7606 requires a reset ends the session.
    hand.send(conn, &message(2, &[0, 9, 0, 0]));
    assert_eq!(hand.codes(conn), Some((3, 1)));
    assert_eq!(hand.view().counts.malformed, 1_001);
}
