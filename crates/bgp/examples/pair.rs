//! Two BGP speakers that exchange a route in memory. No socket and no clock is used.
//!
//! `cargo run -p headend-bgp --example pair`
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use bgp::policy::Policy;
use bgp::{Event, PeerConfig, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};

/// The speaker of one AS, with the other as its peer.
fn speaker(
    our_as: u32,
    peer: SocketAddr,
    passive: bool,
) -> Result<Speaker, Box<dyn std::error::Error>> {
    let mut settings = PeerSettings::default();
    // RFC 8212: without a policy, no route of an external peer is accepted or advertised.
    (settings.import, settings.export) = (Some(Policy::accept()), Some(Policy::accept()));
    settings.passive = passive;
    let mut config = SpeakerConfig::new(our_as, Ipv4Addr::from_bits(our_as));
    config.peers = vec![PeerConfig::new(peer.ip(), RemoteAsn::Any, settings.into())];
    config.check()?;
    Ok(Speaker::new(config, [our_as as u8; 32]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addresses: [SocketAddr; 2] = ["192.0.2.1:1024".parse()?, "192.0.2.2:179".parse()?];
    let mut ends = [
        speaker(64_500, addresses[1], false)?,
        speaker(64_501, addresses[0], true)?,
    ];
    let mut now = Instant::ZERO;
    let mut conns = [None; 2];
    let mut bytes = Vec::new();
    for end in &mut ends {
        end.watch_changes();
        end.start(now);
    }
    ends[0].originate("198.51.100.0/24".parse()?, &Default::default());
    let end_at = now + Duration::from_secs(30);
    let mut learned = 0;
    while now < end_at {
        for from in 0..2 {
            ends[from].drained(now);
            ends[from].handle_timeout(now);
            while ends[from].work(10_000, now) {}
            while let Some(conn) = ends[from].poll_ready() {
                bytes.clear();
                while ends[from].fill(conn, &mut bytes, 65_536, now) {}
                if let Some(other) = conns[1 - from] {
                    ends[1 - from].receive(other, &bytes, now)?;
                }
            }
            while let Some(event) = ends[from].poll_event() {
                println!(
                    "{} ms, AS {}: {event:?}",
                    now.as_nanos() / 1_000_000,
                    64_500 + from
                );
                if let Event::Connect { conn, .. } = event {
                    conns = [
                        Some(conn),
                        Some(ends[1].accept(addresses[0], addresses[1], now)?),
                    ];
                    ends[0].connected(conn, addresses[0], now);
                }
            }
            while let Some(change) = ends[from].poll_change() {
                println!(
                    "{} ms, AS {}: {change:?}",
                    now.as_nanos() / 1_000_000,
                    64_500 + from
                );
                learned += from;
            }
        }
        // A simulation would jump to the earliest `poll_timeout`; small steps keep the example short.
        now += Duration::from_millis(100);
    }
    assert_eq!(learned, 1);
    Ok(())
}
