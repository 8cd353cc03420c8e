//! A host and an access concentrator in memory: Discovery, a PPP frame, and the end of the session.
//!
//! `cargo run -p headend-pppoe --example pair`
#![forbid(unsafe_code)]

use base::{Duration, Instant, Machine};
use pppoe::{Config, Dial, Endpoint, Event, Frame, Mac, PortConfig, Route, Vlans};
use wire::pppoe::{complete, parse};

const HOST: Mac = Mac([0, 0x53, 0, 0, 0, 1]);
const AC: Mac = Mac([0, 0x53, 0, 0, 0, 2]);

/// Passes every frame that one end has to send to the other one, as the wire would.
fn pass(from: &mut Endpoint, source: Mac, to: &mut Endpoint, now: Instant) -> bool {
    let mut has_passed = false;
    let mut bytes = Vec::new();
    while let Some(route) = from.poll_transmit(now, &mut bytes) {
        if let Ok(packet) = parse(&bytes) {
            println!("{source} to {}: {}", route.peer, packet.code);
        }
        let frame = Frame {
            route: Route {
                peer: source,
                ..route
            },
            is_broadcast: route.peer == Mac::BROADCAST,
            bytes: &bytes,
        };
        if let Err(why) = to.handle(frame, now) {
            println!("ignored: {why}");
        }
        bytes.clear();
        has_passed = true;
    }
    has_passed
}

fn exchange(host: &mut Endpoint, ac: &mut Endpoint, now: Instant) {
    while pass(host, HOST, ac, now) | pass(ac, AC, host, now) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = Instant::ZERO;
    let mut host = Endpoint::new(Config::default(), [1; 32]);
    let mut ac = Endpoint::new(Config::default(), [2; 32]);
    host.add_port(0, PortConfig::default());
    ac.add_port(0, PortConfig::default());

    let session = host.dial(0, Vlans::one(100), Dial::default(), now)?;
    exchange(&mut host, &mut ac, now);
    let (header, _) = host.header(session).ok_or("the session is not up")?;
    if let Some(Event::SessionUp { session }) = ac.poll_event()
        && let Some(view) = ac.session(session)
    {
        println!("session {:#06x} of {}", view.id, view.route);
    }

    // A PPP frame: an LCP Echo-Request.
    let mut frame = header.to_vec();
    frame.extend_from_slice(&[0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4]);
    complete(&mut frame, 0);
    let from = Route {
        port: 0,
        peer: HOST,
        vlans: Vlans::one(100),
    };
    if let Some((_, ppp)) = ac.receive_data(&from, &frame, now)? {
        println!("a PPP frame of {} bytes", ppp.len());
    }

    host.end(session, Duration::ZERO, now);
    exchange(&mut host, &mut ac, now);
    if let Some(Event::SessionDown { place, reason, .. }) = ac.poll_event() {
        println!("{place}: {reason}");
    }
    Ok(())
}
