//! What `show bgp` has of peers that never were up, are held back, or are gone.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::Instant;
use bgp::config::PrefixLimit;
use bgp::policy::Policy;
use bgp::{
    ConnId, DynamicConfig, PeerConfig, PeerId, PeerSettings, RemoteAsn, Speaker, SpeakerConfig,
};
use control::reply::Rows;
use control::request::BgpNeighbors;
use peering::show::{Aside, BgpShow};
use wire::bgp::{KEEPALIVE, Open};

const NOW: Instant = Instant::from_nanos(5_000_000_000);
const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));

/// A speaker with one configured peer, which never connects, and a network of dynamic peers.
fn speaker() -> Speaker {
    let settings = Arc::new(PeerSettings {
        passive: true,
        import: Some(Policy::accept()),
        prefix_limit: Some(PrefixLimit {
            prefixes_max: 1,
            restart_after: None,
        }),
        ..PeerSettings::default()
    });
    let mut config = SpeakerConfig::new(65_001, Ipv4Addr::new(10, 0, 0, 1));
    let never = IpAddr::from([192, 0, 2, 7]);
    let peer = PeerConfig::new(never, RemoteAsn::Any, settings.clone());
    config.peers.push(peer);
    config.dynamic.push(DynamicConfig {
        prefix: "198.51.100.0/24".parse().unwrap(),
        remote_asn: RemoteAsn::Any,
        peers_max: 10,
        settings,
    });
    config.limits.recent_events_max = Some(4);
    let mut speaker = Speaker::new(config, [1; 32]);
    speaker.start(NOW);
    speaker
}

/// A session of the guest.
fn up(speaker: &mut Speaker) -> ConnId {
    let (remote, local) = (SocketAddr::new(GUEST, 40_000), "192.0.2.1:179");
    let conn = speaker.accept(remote, local.parse().unwrap(), NOW).unwrap();
    let mut open = Vec::new();
    Open::new(65_002, 90, 0x0a00_0002).emit(&mut open).unwrap();
    speaker.receive(conn, &open, NOW).unwrap();
    speaker.receive(conn, &KEEPALIVE, NOW).unwrap();
    assert_eq!(speaker.established(), 1);
    conn
}

fn update(body: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend([0, 19 + body.len() as u8, 2]);
    message.extend(body);
    message
}

fn rows(speaker: &mut Speaker, show: BgpShow) -> String {
    let mut out = Vec::new();
    let mut rows = Rows::new(&mut out, 1);
    let mut left = Some(show);
    while let Some(show) = left {
        left = show.step(speaker, Aside::default(), NOW, &mut rows);
    }
    String::from_utf8(out).unwrap()
}

fn neighbor(speaker: &mut Speaker, address: IpAddr) -> Option<String> {
    let asked = BgpNeighbors {
        peer: Some(address.to_string()),
        router: None,
    };
    let show = BgpShow::neighbors(&asked, speaker).ok()?;
    Some(rows(speaker, show))
}

#[test]
fn a_peer_that_never_was_up_has_no_time_since() {
    let mut speaker = speaker();
    let conn = up(&mut speaker);
    let shown = rows(&mut speaker, BgpShow::Peers(PeerId(0)));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("\"since_s\":null"), "{shown}");
    assert!(lines[1].contains("\"since_s\":0.0"), "{shown}");
    // Many events are lost to later ones, and counted.
    speaker.closed(conn, NOW);
    let shown = rows(&mut speaker, BgpShow::Summary);
    assert!(!shown.contains("\"events_lost\":0,"), "{shown}");
}

#[test]
fn a_held_peer_is_shown_with_the_reason() {
    let mut speaker = speaker();
    let conn = up(&mut speaker);
    let mut body = vec![0, 0, 0, 20, 0x40, 1, 1, 0, 0x40, 2, 6, 2, 1];
    body.extend(65_002_u32.to_be_bytes());
    body.extend([0x40, 3, 4, 192, 0, 2, 9, 24, 10, 0, 0, 24, 10, 0, 1]);
    speaker.receive(conn, &update(&body), NOW).unwrap();
    assert_eq!(speaker.established(), 0);
    let shown = rows(&mut speaker, BgpShow::Summary);
    assert!(shown.contains("\"held\":1,"), "{shown}");
    assert!(shown.contains("Idle (prefixes)"), "{shown}");
}

#[test]
fn the_malformed_update_of_a_peer_that_is_gone_is_shown_by_its_address() {
    let mut speaker = speaker();
    assert_eq!(neighbor(&mut speaker, GUEST), None);
    let conn = up(&mut speaker);
    speaker.receive(conn, &update(&[0, 9, 0, 0]), NOW).unwrap();
    assert_eq!(speaker.peer(GUEST), None);
    let shown = neighbor(&mut speaker, GUEST).expect("it is shown");
    for part in [
        "\"malformed_octets\":\"00090000\"",
        "\"malformed\":1",
        "198.51.100.7",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(
        neighbor(&mut speaker, IpAddr::from([198, 51, 100, 8])),
        None
    );
}
