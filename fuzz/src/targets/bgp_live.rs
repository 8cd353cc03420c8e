//! Bytes into a live BGP session: any stream, in any pieces, in any state, while a bystander has its own
//! session.
//!
//! An input is an octet that chooses the session's progress, then pieces: an octet for the length and the time
//! before it, then the bytes. Invariants: nothing panics, the speaker sends complete messages with valid
//! headers, and the bystander's session is unaffected.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use base::{Duration, Instant};
use bgp::policy::Policy;
use bgp::{ConnId, Event, PeerConfig, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};
use wire::bgp::{Capability, Families, KEEPALIVE, Kind, Open, frame};

const PEER: u8 = 2;
const BYSTANDER: u8 = 3;

struct Live {
    speaker: Speaker,
    now: Instant,
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

fn settings() -> Arc<PeerSettings> {
    static SETTINGS: OnceLock<Arc<PeerSettings>> = OnceLock::new();
    let make = || {
        Arc::new(PeerSettings {
            passive: true,
            families: Families::ALL,
            import: Some(Policy::accept()),
            export: Some(Policy::accept()),
            ..PeerSettings::default()
        })
    };
    SETTINGS.get_or_init(make).clone()
}

fn open(last: u8) -> Vec<u8> {
    let mut open = Open::new(65_000 + u32::from(last), 90, u32::from(last));
    for family in Families::ALL.iter() {
        open.capabilities
            .push(Capability::Multiprotocol(family.into()));
    }
    open.capabilities.push(Capability::RouteRefresh);
    open.capabilities.push(Capability::EnhancedRouteRefresh);
    open.capabilities.push(Capability::ExtendedMessage);
    let mut out = Vec::new();
    open.emit(&mut out).expect("a short one");
    out
}

impl Live {
    fn new() -> Self {
        let mut config = SpeakerConfig::new(65_001, Ipv4Addr::new(192, 0, 2, 1));
        config.limits.recent_events_max = Some(20);
        for last in [PEER, BYSTANDER] {
            let remote = address(last);
            config
                .peers
                .push(PeerConfig::new(remote, RemoteAsn::Any, settings()));
        }
        let now = Instant::from_nanos(1_000_000_000);
        let mut speaker = Speaker::new(config, [1; 32]);
        speaker.start(now);
        Self { speaker, now }
    }

    fn connect(&mut self, last: u8) -> Option<ConnId> {
        let remote = SocketAddr::new(address(last), 50_000);
        let local = SocketAddr::new(address(1), 179);
        let conn = self.speaker.accept(remote, local, self.now).ok();
        self.drain();
        conn
    }

    fn send(&mut self, conn: ConnId, octets: &[u8]) {
        let _ = self.speaker.receive(conn, octets, self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while self.speaker.work(1_000, self.now) {}
        while let Some(conn) = self.speaker.poll_ready() {
            let mut out = Vec::new();
            while self.speaker.fill(conn, &mut out, 4_096, self.now) {}
            assert_whole(&out);
        }
        while let Some(event) = self.speaker.poll_event() {
            if let Event::Close { last, .. } = event {
                assert_whole(&last);
            }
        }
    }
}

/// Checks that a speaker sends complete messages.
fn assert_whole(mut octets: &[u8]) {
    while !octets.is_empty() {
        let (kind, _, len) = frame(octets, 65_535)
            .expect("good headers")
            .expect("whole messages");
        assert!(kind != Kind::Keepalive || len == KEEPALIVE.len());
        octets = &octets[len..];
    }
}

/// Runs one input.
pub fn target(input: &[u8]) {
    let Some((&stage, mut rest)) = input.split_first() else {
        return;
    };
    let mut live = Live::new();
    let bystander = live.connect(BYSTANDER).expect("nobody else is there");
    live.send(bystander, &open(BYSTANDER));
    live.send(bystander, &KEEPALIVE);
    let mut conn = live.connect(PEER).expect("it is let in");
    if stage & 1 != 0 {
        live.send(conn, &open(PEER));
    }
    if stage & 2 != 0 {
        live.send(conn, &KEEPALIVE);
    }
    while let Some((&how, after)) = rest.split_first() {
        let len = match how & 7 {
            0 => usize::MAX,
            bits => 1 << (bits + 1),
        };
        let (piece, after) = after.split_at(len.min(after.len()));
        rest = after;
        live.now += Duration::from_millis(if how & 0x80 == 0 { 0 } else { 900 });
        live.speaker.drained(live.now);
        live.speaker.handle_timeout(live.now);
        match how & 0x30 {
            0x10 => live.speaker.set_blocked(conn, how & 0x40 != 0),
            0x20 => {
                live.speaker.closed(conn, live.now);
                live.drain();
                conn = live.connect(PEER).unwrap_or(conn);
            }
            0x30 => conn = live.connect(PEER).unwrap_or(conn),
            _ => {}
        }
        live.send(conn, piece);
        live.send(bystander, &KEEPALIVE);
    }
    let peer = live.speaker.peer(address(BYSTANDER)).expect("configured");
    let view = live.speaker.neighbor(peer, live.now).expect("configured");
    assert_eq!(view.counts.ups, 1);
    assert_eq!(view.state, bgp::fsm::State::Established);
    let peer = live.speaker.peer(address(PEER)).expect("configured");
    assert!(live.speaker.neighbor(peer, live.now).is_some());
    assert!(live.speaker.summary().connections <= 3);
}
