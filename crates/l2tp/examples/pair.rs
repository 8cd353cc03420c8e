//! A LAC and an LNS that exchange datagrams in memory: a tunnel, a session, a frame, and the shutdown. No socket and no
//! clock is used.
//!
//! `cargo run -p headend-l2tp --example pair`
#![forbid(unsafe_code)]

use std::net::SocketAddr;

use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::{Call, Config, Endpoint, Event, OpenTunnel, SessionKey};
use wire::l2tp::Version;

const NAMES: [&str; 2] = ["LAC", "LNS"];

/// Delivers datagrams and prints events until neither end has anything left. Returns the LAC's newest session.
fn settle(
    ends: &mut [Endpoint; 2],
    addresses: [SocketAddr; 2],
    now: Instant,
) -> Option<SessionKey> {
    let (mut bytes, mut up) = (Vec::new(), None);
    loop {
        let mut moved = false;
        for from in 0..2 {
            while ends[from].poll_transmit(now, &mut bytes).is_some() {
                let route = Route::to(addresses[from]);
                let datagram = Datagram {
                    route,
                    bytes: &bytes,
                };
                if let Err(why) = ends[1 - from].handle(datagram, now) {
                    println!("{} ignored a datagram: {why}", NAMES[1 - from]);
                }
                bytes.clear();
                moved = true;
            }
            while let Some(event) = ends[from].poll_event() {
                println!(
                    "{:>6} ms {}: {event:?}",
                    now.as_nanos() / 1_000_000,
                    NAMES[from]
                );
                if let (0, Event::SessionUp { session, .. }) = (from, event) {
                    up = Some(session);
                }
            }
        }
        if !moved {
            return up;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addresses = ["192.0.2.1:1701".parse()?, "192.0.2.2:1701".parse()?];
    let lns = Config {
        accept: true,
        ..Config::default()
    };
    // Seeds come from the owner: equal seeds give equal runs.
    let mut ends = [
        Endpoint::new(Config::default(), [1; 32]),
        Endpoint::new(lns, [2; 32]),
    ];
    let now = Instant::ZERO + Duration::from_secs(1);
    let open = OpenTunnel {
        route: Route::to(addresses[1]),
        version: Version::V2,
    };
    let tunnel = ends[0].open_tunnel(open, now)?;
    ends[0].open_session(tunnel, Call::default(), now)?;
    let session = settle(&mut ends, addresses, now).ok_or("the session did not come up")?;

    let header = ends[0].data_header(session).ok_or("no such session")?;
    let frame = [header.as_bytes(), b"a PPP frame"].concat();
    let from_lac = Route::to(addresses[0]);
    let received = ends[1]
        .receive_data(&from_lac, &frame, now)?
        .ok_or("a control message")?;
    println!(
        "LNS received: {}",
        String::from_utf8_lossy(&frame[received.start..received.end])
    );

    ends[0].shut_down(now);
    settle(&mut ends, addresses, now);
    assert!(ends[0].is_quiet());
    Ok(())
}
