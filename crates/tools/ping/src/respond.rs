//! `headend ping --responder`: answers UDP streams until a signal ends it.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ping::responder::{Responder, depart};
use reactor::timed::{Outgoing, TimedBatch, TimedOptions, TimedSocket};
use reactor::{Interest, PollerKind, Reactor, Signals, StoreKind, clock};

use super::packets::random;
use super::serve::{Service, Settings};

/// Maximum packets per call.
const BATCH: usize = 64;
/// The largest UDP payload.
const PAYLOAD_MAX: usize = 65_535;
const BUFFER_BYTES: usize = 4 << 20;
/// How often in a row the wait may fail.
const WAITS_FAILED_MAX: u32 = 64;
/// Pause after a call that failed.
const PAUSE: base::Duration = base::Duration::from_millis(1);
/// Tag of the signals' descriptor.
const SIGNALS: u64 = u64::MAX;

/// Answers at `address`. The IPv6 wildcard answers IPv4 too. With `load`, the same addresses load links over TCP.
///
/// # Errors
/// The socket cannot be opened there.
pub(super) fn run(address: SocketAddr, load: Option<Settings>) -> Result<ExitCode> {
    let signals = Signals::new()?;
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
    reactor.add(&signals, "signals", SIGNALS, Interest::READ)?;
    let mut sockets = open(address).with_context(|| format!("cannot listen on {address}"))?;
    for (number, socket) in sockets.iter().enumerate() {
        reactor.add(socket, "responder", number as u64, Interest::READ)?;
        writeln!(io::stdout(), "answering on UDP {}", socket.local_addr())?;
    }
    let addresses = sockets.iter().map(TimedSocket::local_addr);
    let load = load.map(|settings| Service::start(settings, addresses));
    let load = load.transpose()?;
    let mut responder = Responder::new(random()?);
    let mut batch = TimedBatch::new(BATCH, PAYLOAD_MAX);
    let (mut waits_failed, mut told) = (0, false);
    loop {
        match reactor.wait(None) {
            Ok(_) => waits_failed = 0,
            Err(error) if waits_failed == WAITS_FAILED_MAX => return Err(error.into()),
            Err(_) => {
                waits_failed += 1;
                reactor.pause(PAUSE);
                // If that fails too, so does the next wait.
                let _ = reactor.reopen();
            }
        }
        while let Some(ready) = reactor.next_ready() {
            if ready.user == SIGNALS {
                // A signal that cannot be read stays ready.
                if let Ok(Some(_)) = signals.next_signal() {
                    return Ok(end(&responder, load.as_ref())?);
                }
            } else if let Some(socket) = sockets.get_mut(ready.user as usize)
                && let Err(error) = answer(socket, &mut responder, &mut batch)
            {
                if !told {
                    eprintln!("headend ping: packets cannot be read: {error}; trying again");
                }
                told = true;
                reactor.pause(PAUSE);
            }
        }
    }
}

fn open(address: SocketAddr) -> io::Result<Vec<TimedSocket>> {
    let options = TimedOptions {
        recv_buffer_bytes: Some(BUFFER_BYTES),
        ..TimedOptions::default()
    };
    let mut sockets = Vec::new();
    let wildcard = address.is_ipv6() && address.ip().is_unspecified();
    if wildcard {
        let four = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        sockets.push(TimedSocket::udp(four, &options)?);
    }
    match TimedSocket::udp(address, &options) {
        Ok(socket) => sockets.push(socket),
        // On a host without IPv6, answer over IPv4 only.
        Err(error) if !wildcard => return Err(error),
        Err(_) => {}
    }
    Ok(sockets)
}

/// Answers all pending packets, with the traffic class they arrived with and from the address they were sent to.
fn answer(
    socket: &mut TimedSocket,
    responder: &mut Responder,
    batch: &mut TimedBatch,
) -> io::Result<()> {
    // Transmit times are unused but would fill the error queue; the errors are about clients that have left.
    socket.send_times(&mut Vec::new())?;
    socket.errors().for_each(drop);
    let mut answers: Vec<(Vec<u8>, SocketAddr, Option<IpAddr>, u8)> = Vec::new();
    let mut results = Vec::new();
    loop {
        socket.recv(batch)?;
        let now = clock::now();
        answers.clear();
        let mut last = None;
        for packet in batch.iter() {
            let mut out = Vec::with_capacity(packet.bytes.len());
            let arrived = packet.arrived.real_ns;
            let answered = responder.answer(packet.bytes, packet.from.ip(), arrived, now, &mut out);
            if answered.is_ok() {
                let class = packet.traffic_class.unwrap_or(0);
                answers.push((out, packet.from, packet.to, class));
            }
            last = Some(packet.arrived);
        }
        // The current real time, from the last time stamp and the time elapsed since.
        let real_ns = |at| {
            last.map_or(0, |last: reactor::timed::Stamp| {
                let since = base::Instant::since(at, last.at);
                last.real_ns + since.as_nanos()
            })
        };
        let departed = real_ns(clock::now());
        for (out, ..) in &mut answers {
            depart(out, departed);
        }
        let outgoing: Vec<Outgoing<'_>> = answers
            .iter()
            .map(|(bytes, to, from, class)| Outgoing {
                bytes,
                to: *to,
                from: *from,
                traffic_class: *class,
            })
            .collect();
        results.clear();
        // A reply that cannot be sent is lost, like any packet on the network.
        socket.send_many(&outgoing, &mut results);
        if !batch.is_full() {
            return Ok(());
        }
    }
}

fn end(responder: &Responder, load: Option<&Service>) -> io::Result<ExitCode> {
    writeln!(
        io::stdout(),
        "answered {}, above the rate {}, no probes {}",
        responder.answered,
        responder.limited,
        responder.strange
    )?;
    if let Some(load) = load {
        writeln!(io::stdout(), "{}", load.summary())?;
    }
    Ok(ExitCode::SUCCESS)
}
