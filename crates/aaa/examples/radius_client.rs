//! Asks a RADIUS server to authenticate one user, and prints the answer. The protocol is in [`Client`]; the
//! socket, the clock and the random seed are here.
//!
//! `cargo run -p headend-aaa --example radius_client -- 127.0.0.1:1812 testing123 alice sesame`

use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::UdpSocket;

use aaa::radius::{AccessRequest, Client, Config, Event, Nas, ServerConfig};
use base::{Datagram, Duration, Instant, Machine, Route};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [server, secret, user, password] = &arguments[..] else {
        return Err("usage: radius_client ADDRESS:PORT SECRET USER PASSWORD".into());
    };
    let mut server_config = ServerConfig::new("server", secret.as_bytes());
    server_config.authentication = Some(server.parse()?);
    let mut config = Config::new(Nas::named("example"));
    config.servers.push(server_config);
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let mut client = Client::new(config, seed)?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let started = std::time::Instant::now();
    let request = AccessRequest::pap(user.as_bytes(), password.as_bytes());
    client.authenticate(Instant::ZERO, &request, 1)?;
    let (mut input, mut output) = (vec![0; 4_096], Vec::new());
    loop {
        let now = Instant::ZERO + started.elapsed().into();
        client.handle_timeout(now);
        // After every change: transmits, then events, then the next deadline.
        while let Some(transmit) = client.poll_transmit(now, &mut output) {
            socket.send_to(&output, transmit.peer)?;
            output.clear();
        }
        while let Some(event) = client.poll_event() {
            println!("{event:#?}");
            // Accepted, Rejected or Failed: every request ends in exactly one of these.
            if !matches!(event, Event::ServerDead { .. }) {
                return Ok(());
            }
        }
        let next = client.poll_timeout().map_or(now, |(at, _)| at);
        let wait = next.since(now).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(wait.into()))?;
        let (bytes, route) = match socket.recv_from(&mut input) {
            Ok((length, peer)) => (&input[..length], Route::to(peer)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        };
        if let Err(why) = client.handle(Datagram { route, bytes }, now) {
            println!("ignored: {why}");
        }
    }
}
