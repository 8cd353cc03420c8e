//! The floor: a loop that receives packets, replaces the bytes before their content by fixed ones, and sends them on. It
//! runs as a process of its own, `headend bench switched-bare`, so that it is measured in the same way as the daemon.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use base::Duration;
use reactor::ether::{EtherRecv, EtherSend, EtherSocket};
use reactor::{Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, UdpSocket, clock};

use super::place::{self, LISTEN, OWN, Place, WIRE};
use super::{Arrival, Way};
use crate::harness::Bench;
use crate::harness::server::Server;

/// Packets in one call, as in the daemon.
const BATCH: usize = 64;
/// Longest wait before the loop checks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Run a bare loop until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct SwitchedBareArgs {
    arrival: Arrival,
    way: Way,
    /// Bytes that packets lose
    strip: usize,
    /// The bytes that they get, in hexadecimal digits
    head: String,
    /// Peer of a socket that sends datagrams
    peer: SocketAddr,
}

/// Starts a bare loop in the daemon's place, and waits until it receives. Packets lose `strip` bytes and get `head`.
///
/// # Errors
/// It does not start.
pub(super) fn start(
    bench: &Bench,
    place: &Place,
    (arrival, way): (Arrival, Way),
    (strip, head): (usize, &[u8]),
    peer: SocketAddr,
) -> Result<Server> {
    let arrival = match arrival {
        Arrival::Pppoe => "pppoe",
        Arrival::L2tp => "l2tp",
    };
    let way = match way {
        Way::Up => "up",
        Way::Down => "down",
    };
    let head: String = head.iter().map(|octet| format!("{octet:02x}")).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "switched-bare", arrival, way]);
    command.args([strip.to_string(), head, peer.to_string()]);
    place.daemon.command(&mut command)?;
    let mut running = bench.spawn("bare", command)?;
    let mut line = String::new();
    let out = running.stdout.as_mut().context("the bare loop's output")?;
    BufReader::new(out).read_line(&mut line)?;
    anyhow::ensure!(line == "ready\n", "the bare loop: {}", running.log());
    Ok(Server {
        running,
        addresses: Vec::new(),
    })
}

/// One of the two sockets.
enum Port {
    Ether(EtherSocket, Box<EtherRecv>, Box<EtherSend>),
    Udp(UdpSocket, Box<RecvBatch>, Box<SendBatch>),
}

impl Port {
    fn ether() -> Result<Self> {
        let socket = place::ether(WIRE, false)?;
        Ok(Self::Ether(
            socket,
            Box::new(EtherRecv::new(BATCH)),
            Box::new(EtherSend::new(BATCH)),
        ))
    }

    fn udp(address: SocketAddr) -> Result<Self> {
        let socket = place::udp(address)?;
        // A message can hold several datagrams.
        let out = SendBatch::new(64 * BATCH);
        Ok(Self::Udp(
            socket,
            Box::new(RecvBatch::new(BATCH)),
            Box::new(out),
        ))
    }

    fn watch(&self, reactor: &mut Reactor) -> Result<()> {
        match self {
            Self::Ether(socket, ..) => reactor.add(socket, "bare", 0, Interest::READ)?,
            Self::Udp(socket, ..) => reactor.add(socket, "bare", 0, Interest::READ)?,
        };
        Ok(())
    }

    /// Receives, and passes the bytes of each packet to `take`. Returns whether there were any.
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        match self {
            Self::Ether(socket, batch, _) => {
                let count = socket.receive(batch)?;
                batch.iter().for_each(|frame| take(frame.bytes));
                Ok(count > 0)
            }
            Self::Udp(socket, batch, _) => {
                let count = socket.recv(batch)?;
                batch.iter().for_each(|datagram| take(datagram.bytes));
                Ok(count > 0)
            }
        }
    }

    fn push(&mut self, head: &[u8], content: &[u8], peer: SocketAddr) {
        match self {
            Self::Ether(_, _, batch) => {
                let out = batch.begin();
                out.extend_from_slice(head);
                out.extend_from_slice(content);
                batch.commit();
            }
            Self::Udp(_, _, batch) => {
                let out = batch.begin();
                out.extend_from_slice(head);
                out.extend_from_slice(content);
                batch.commit(peer, None);
            }
        }
    }

    fn flush(&mut self) {
        match self {
            Self::Ether(socket, _, batch) => {
                socket.send(batch);
                batch.clear();
            }
            Self::Udp(socket, _, batch) => {
                socket.send(batch);
                batch.clear();
            }
        }
    }
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &SwitchedBareArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The parent is gone when standard input ends or fails.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        told.store(true, Ordering::Relaxed);
    });
    let head = octets(&args.head).context("the bytes before packets")?;
    let subscribers = match args.arrival {
        Arrival::Pppoe => Port::ether()?,
        Arrival::L2tp => Port::udp(LISTEN)?,
    };
    let lns = Port::udp(OWN)?;
    let (mut from, mut to) = match args.way {
        Way::Up => (subscribers, lns),
        Way::Down => (lns, subscribers),
    };
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
    from.watch(&mut reactor)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    while !stop.load(Ordering::Relaxed) {
        let any = from.receive(|packet| {
            if let Some(content) = packet.get(args.strip..) {
                to.push(&head, content, args.peer);
            }
        })?;
        if any {
            to.flush();
            continue;
        }
        reactor.wait(Some(clock::now() + LOOK_EVERY))?;
        while let Some(ready) = reactor.next_ready() {
            reactor.drained(ready.token);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn octets(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_header_are_read_as_digits() {
        assert_eq!(octets("00ff03"), Some(vec![0, 255, 3]));
        assert_eq!(octets("0"), None);
        assert_eq!(octets("zz"), None);
    }
}
