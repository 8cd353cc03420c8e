//! How many PADIs an access concentrator answers, and how many sessions it sets up and finds, per second of one core:
//! the machine alone, without a socket, a PPP link or RADIUS.
//!
//! `cargo run --release -p headend-pppoe --example rates [SESSIONS]` prints a row for a quarter, a half and all of
//! SESSIONS (60,000). Time is that of this process's clock, one run each. Memory is the growth of the resident set, in
//! bytes per session.
#![forbid(unsafe_code)]

use std::time::Instant as Clock;

use base::{Duration, Instant, Machine};
use pppoe::{Config, Endpoint, Frame, Limits, Mac, PortConfig, Route, Vlans};
use wire::pppoe::{Code, Discovery, Writer, parse, tag};

fn server(sessions: u32) -> Endpoint {
    let limits = Limits {
        sessions_max: sessions,
        half_open_max: 0,
        padis_per_s: 0,
        padis_per_vlan_per_s: 0,
        padrs_per_s: 0,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    let mut server = Endpoint::new(config, [1; 32]);
    server.add_port(0, PortConfig::default());
    server
}

fn route(n: u32) -> Route {
    let [a, b, c, d] = n.to_be_bytes();
    Route {
        port: 0,
        peer: Mac([0, 0x53, a, b, c, d]),
        vlans: Vlans::NONE,
    }
}

fn send(server: &mut Endpoint, route: Route, bytes: &[u8], now: Instant) {
    let is_broadcast = false;
    let frame = Frame {
        route,
        is_broadcast,
        bytes,
    };
    server.handle(frame, now).expect("nothing is ignored");
}

fn discovery(out: &mut Vec<u8>, code: Code, uniq: u32, cookie: Option<&[u8]>) {
    out.clear();
    let mut writer = Writer::new(out, code, 0);
    writer.tag(tag::SERVICE_NAME, b"");
    writer.tag(tag::HOST_UNIQ, &uniq.to_be_bytes());
    writer.tag_if(tag::AC_COOKIE, cookie);
    writer.finish();
}

/// The resident set in bytes, as Linux reports it; 0 elsewhere.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|field| field.parse().ok());
    pages.unwrap_or(0_u64) * 4_096
}

/// Operations per second since `start`.
fn rate(count: u32, start: Clock) -> f64 {
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// Answers a PADI of each host.
fn initiations(count: u32) -> f64 {
    let mut server = server(1);
    let now = Instant::ZERO + Duration::from_secs(1);
    let (mut padi, mut out) = (Vec::new(), Vec::new());
    let start = Clock::now();
    for n in 0..count {
        discovery(&mut padi, Code::PADI, n, None);
        send(&mut server, route(n), &padi, now);
        out.clear();
        server.poll_transmit(now, &mut out).expect("a PADO");
    }
    rate(count, start)
}

/// Sets up a session of each host, then receives a PPP frame in each. Returns both rates and the bytes per session.
fn sessions(count: u32, kept: &mut Vec<Endpoint>) -> (f64, f64, u64) {
    let mut server = server(count);
    let now = Instant::ZERO + Duration::from_secs(1);
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    let mut ids = Vec::with_capacity(count as usize);
    let before = resident();
    let start = Clock::now();
    for n in 0..count {
        discovery(&mut bytes, Code::PADI, n, None);
        send(&mut server, route(n), &bytes, now);
        out.clear();
        server.poll_transmit(now, &mut out).expect("a PADO");
        let pado = parse(&out).expect("whole");
        let tags = Discovery::parse(pado.payload).expect("whole");
        discovery(&mut bytes, Code::PADR, n, tags.ac_cookie);
        send(&mut server, route(n), &bytes, now);
        out.clear();
        server.poll_transmit(now, &mut out).expect("a PADS");
        ids.push(parse(&out).expect("whole").session);
        while server.poll_event().is_some() {}
    }
    let set_up = rate(count, start);
    let each = resident().saturating_sub(before) / u64::from(count);
    let start = Clock::now();
    for (n, id) in (0..).zip(&ids) {
        let mut frame = wire::pppoe::header(Code::DATA, *id).to_vec();
        frame.extend_from_slice(&[0, 0x21]);
        wire::pppoe::complete(&mut frame, 0);
        let found = server.receive_data(&route(n), &frame, now);
        assert!(matches!(found, Ok(Some(_))));
    }
    let frames = rate(count, start);
    // Kept, so that the next row's memory is new.
    kept.push(server);
    (set_up, frames, each)
}

fn main() {
    let most = std::env::args().nth(1);
    let most = most
        .and_then(|text| text.parse().ok())
        .unwrap_or(60_000_u32);
    println!(
        "{:>9} {:>10} {:>12} {:>10} {:>14}",
        "SESSIONS", "PADO/S", "SESSIONS/S", "FRAMES/S", "BYTES/SESSION"
    );
    let mut kept = Vec::new();
    for count in [most / 4, most / 2, most] {
        let count = count.max(1);
        let answered = initiations(count);
        let (set_up, frames, each) = sessions(count, &mut kept);
        println!("{count:>9} {answered:>10.0} {set_up:>12.0} {frames:>10.0} {each:>14}");
    }
}
