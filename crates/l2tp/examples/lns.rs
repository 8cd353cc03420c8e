//! An LNS on one UDP socket: it accepts tunnels and sessions, and prints its events. The protocol is in [`Endpoint`];
//! the socket, the clock and the random seed are here.
//!
//! `cargo run -p headend-l2tp --example lns -- 127.0.0.1:1701 60` serves for 60 seconds, or until Ctrl-C.

use std::fs::File;
use std::io::{ErrorKind, Read, Result};
use std::net::UdpSocket;

use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::{Config, Endpoint};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let socket = UdpSocket::bind(arguments.next().expect("usage: lns ADDRESS:PORT [SECONDS]"))?;
    let serve_s = arguments.next().and_then(|text| text.parse().ok());
    let end = Instant::ZERO + Duration::from_secs(serve_s.unwrap_or(60));
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let config = Config {
        accept: true,
        ..Config::default()
    };
    let mut lns = Endpoint::new(config, seed);
    let started = std::time::Instant::now();
    let (mut input, mut output) = (vec![0; 65_536], Vec::new());
    let mut is_ending = false;
    while !(is_ending && lns.is_quiet()) {
        let now = Instant::ZERO + started.elapsed().into();
        lns.handle_timeout(now);
        if now >= end && !is_ending {
            is_ending = true;
            lns.shut_down(now); // Sends every peer a StopCCN.
        }
        // After every change: transmits, then events, then the next deadline.
        while let Some(route) = lns.poll_transmit(now, &mut output) {
            socket.send_to(&output, route.peer)?;
            output.clear();
        }
        while let Some(event) = lns.poll_event() {
            println!("{event:?}");
        }
        let next = lns.poll_timeout().map_or(Instant::FAR_FUTURE, |(at, _)| at);
        let wait = next
            .since(now)
            .clamp(Duration::from_millis(1), Duration::from_secs(1));
        socket.set_read_timeout(Some(wait.into()))?;
        let (bytes, route) = match socket.recv_from(&mut input) {
            Ok((length, peer)) => (&input[..length], Route::to(peer)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        match lns.receive_data(&route, bytes, now) {
            Ok(Some(frame)) => println!("a frame of {} bytes", frame.end - frame.start),
            Ok(None) => drop(lns.handle(Datagram { route, bytes }, now)),
            Err(why) => println!("ignored: {why}"),
        }
    }
    Ok(())
}
