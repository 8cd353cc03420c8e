//! The floor of `headend bench tunnels`: loops that answer datagrams, or send them on time, and do
//! nothing else. They run as a process of their own, `headend bench tunnels-bare`, so that they are
//! measured in the same way as an LNS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket as StdSocket};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use reactor::{Call, RecvBatch, SendBatch, SysCounts, UdpOptions, UdpSocket, clock};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use serde_json::Value;

use crate::harness::Bench;
use crate::harness::server::{LnsProgram, Server};

/// Datagrams in one system call, as in our LNS.
const BATCH: usize = 64;

/// Longest wait before the loop checks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time between two bursts of HELLOs: the tick of our LNS's timer wheel.
const TICK: base::Duration = base::Duration::from_millis(8);

/// Run a bare loop until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct TunnelsBareArgs {
    #[command(subcommand)]
    kind: Kind,
}

/// What the loop does.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Kind {
    /// Receives and answers in batches: `long` bytes to a datagram of `request`, else `short`
    Batch {
        request: usize,
        long: usize,
        short: usize,
    },
    /// Receives one and sends it back
    Echo,
    /// Sends `bytes` to `count` addresses from `first` on in turn, `rate` in a second
    Hello {
        first: Ipv4Addr,
        count: u32,
        port: u16,
        rate: u32,
        bytes: usize,
    },
}

impl Kind {
    fn arguments(&self) -> Vec<String> {
        match self {
            Kind::Batch {
                request,
                long,
                short,
            } => vec![
                "batch".into(),
                request.to_string(),
                long.to_string(),
                short.to_string(),
            ],
            Kind::Echo => vec!["echo".into()],
            Kind::Hello {
                first,
                count,
                port,
                rate,
                bytes,
            } => vec![
                "hello".into(),
                first.to_string(),
                count.to_string(),
                port.to_string(),
                rate.to_string(),
                bytes.to_string(),
            ],
        }
    }
}

/// A running bare loop.
pub(crate) struct Bare {
    pub(crate) server: Server,
}

impl Bare {
    /// Starts one and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(bench: &Bench, kind: &Kind) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["bench", "tunnels-bare"])
            .args(kind.arguments());
        let mut running = bench.spawn("bare", command)?;
        let mut line = String::new();
        let out = running.stdout.as_mut().context("the bare loop's output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse();
        let address = address.with_context(|| format!("the bare loop: {}", running.log()))?;
        Ok(Self {
            server: Server {
                running,
                addresses: vec![address],
            },
        })
    }

    /// Ends it. Returns its system calls by name.
    ///
    /// # Errors
    /// It has not counted them.
    pub(crate) fn finish(mut self) -> Result<Vec<(String, f64)>> {
        let running = &mut self.server.running;
        running.stdin = None;
        let mut text = String::new();
        let out = running.stdout.as_mut().context("the bare loop's output")?;
        out.read_to_string(&mut text)?;
        let calls: Vec<(String, f64)> = serde_json::from_str(&text)
            .with_context(|| format!("{}'s counts: {}", LnsProgram::Bare.name(), running.log()))?;
        Ok(calls)
    }
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &TunnelsBareArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The parent is gone when standard input ends or fails.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        told.store(true, Ordering::Relaxed);
    });
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let calls: Vec<(&str, u64)> = match args.kind {
        Kind::Echo => {
            let socket = StdSocket::bind(at)?;
            say(&socket.local_addr()?)?;
            let answered = reactor::bare::echo(&socket, &stop)?;
            vec![("recvfrom", answered), ("sendto", answered)]
        }
        Kind::Batch {
            request,
            long,
            short,
        } => {
            let mut socket = open(at)?;
            let before = SysCounts::of_this_thread();
            answer(&mut socket, request, [long, short], &stop)?;
            SysCounts::of_this_thread().since(&before).iter().collect()
        }
        Kind::Hello {
            first,
            count,
            port,
            rate,
            bytes,
        } => {
            let mut socket = open(at)?;
            let before = SysCounts::of_this_thread();
            let peer = |n: u64| {
                let n = (n % u64::from(count.max(1))) as u32;
                SocketAddr::from((Ipv4Addr::from(u32::from(first).wrapping_add(n)), port))
            };
            hello(&mut socket, peer, rate, bytes, &stop)?;
            SysCounts::of_this_thread().since(&before).iter().collect()
        }
    };
    say(&Value::from_iter(calls.into_iter().map(|(name, n)| {
        Value::from(vec![Value::from(name), n.into()])
    })))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a line and flushes it.
fn say(line: &dyn std::fmt::Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn open(at: SocketAddr) -> Result<UdpSocket> {
    let options = UdpOptions {
        recv_buffer_bytes: Some(64 << 20),
        send_buffer_bytes: Some(4 << 20),
        ..UdpOptions::default()
    };
    let socket = UdpSocket::bind(at, &options)?;
    say(&socket.local_addr())?;
    Ok(socket)
}

/// Receives batches and answers each datagram.
fn answer(
    socket: &mut UdpSocket,
    request: usize,
    sizes: [usize; 2],
    stop: &AtomicBool,
) -> Result<()> {
    let payload = vec![0; sizes[0].max(sizes[1])];
    let mut received = RecvBatch::new(BATCH);
    let mut out = SendBatch::new(BATCH);
    while !stop.load(Ordering::Relaxed) {
        if socket.recv(&mut received)? == 0 {
            wait(socket, LOOK_EVERY)?;
            continue;
        }
        for datagram in received.iter() {
            let size = sizes[usize::from(datagram.bytes.len() != request)];
            out.push(&payload[..size], datagram.peer, None);
        }
        socket.send(&mut out);
    }
    Ok(())
}

/// Sends what is due each tick, and reads the replies.
fn hello(
    socket: &mut UdpSocket,
    peer: impl Fn(u64) -> SocketAddr,
    rate: u32,
    bytes: usize,
    stop: &AtomicBool,
) -> Result<()> {
    let payload = vec![0; bytes];
    let mut received = RecvBatch::new(BATCH);
    let mut out = SendBatch::new(4096);
    let start = clock::now();
    let (mut sent, mut tick) = (0, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        let elapsed = now.since(start).as_nanos();
        if elapsed / TICK.as_nanos() > tick {
            tick = elapsed / TICK.as_nanos();
            let due = tick * TICK.as_nanos() * u64::from(rate) / 1_000_000_000;
            while sent < due && !out.is_full() {
                out.push(&payload, peer(sent), None);
                sent += 1;
            }
            socket.send(&mut out);
        }
        let left = (tick + 1) * TICK.as_nanos() - elapsed.min((tick + 1) * TICK.as_nanos());
        wait(socket, Duration::from_nanos(left))?;
        socket.recv(&mut received)?;
    }
    Ok(())
}

/// Waits until input arrives, or `limit` has passed.
fn wait(socket: &UdpSocket, limit: Duration) -> Result<()> {
    let limit = Timespec::try_from(limit)?;
    SysCounts::note(Call::Poll);
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
