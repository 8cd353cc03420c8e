//! The floor: a loop that receives frames on the daemon's kind of socket and answers each, or only counts them. It runs
//! as a process of its own, `headend bench pppoe-bare`, so that it is measured in the same way as the daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use base::{Duration, Instant};
use reactor::ether::{EtherRecv, EtherSend, EtherSocket};
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};
use wire::pppoe::{Code, HEADER_LEN, Mac};

use super::frames;
use super::place::{self, Place, WIRE};
use crate::harness::Bench;
use crate::harness::server::Server;

/// Frames in one call, as in the daemon.
const BATCH: usize = 64;
/// Longest wait before the loop checks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Run a bare loop until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct PppoeBareArgs {
    /// Bytes of each answer; without it, no frame is answered
    answer: Option<usize>,
}

/// The frames of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Number of requests; each is answered before the next is sent.
    pub(super) rounds: u32,
    pub(super) request_octets: usize,
    pub(super) answer_octets: usize,
}

impl Shape {
    /// The frames of one host of `up`, which sent and received these frames and bytes. The larger of the two directions
    /// counts, since the bare loop answers every frame.
    pub(super) fn of(up: u32, sent: (u64, u64), received: (u64, u64)) -> Self {
        let mean = |(count, octets): (u64, u64)| octets.div_ceil(count.max(1)).max(20) as usize;
        let rounds = sent.0.max(received.0).div_ceil(u64::from(up.max(1))).max(1);
        Self {
            rounds: rounds as u32,
            request_octets: mean(sent),
            answer_octets: mean(received),
        }
    }
}

/// A running bare loop.
pub(super) struct Bare {
    pub(super) server: Server,
}

impl Bare {
    /// Starts one in the daemon's place, and waits until it receives.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(bench: &Bench, place: &Place, answer: Option<usize>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "pppoe-bare"]);
        command.args(answer.map(|octets| octets.to_string()));
        place.server.command(&mut command)?;
        let mut running = bench.spawn("bare", command)?;
        let mut line = String::new();
        let out = running.stdout.as_mut().context("the bare loop's output")?;
        BufReader::new(out).read_line(&mut line)?;
        anyhow::ensure!(line == "ready\n", "the bare loop: {}", running.log());
        Ok(Self {
            server: Server {
                running,
                addresses: Vec::new(),
            },
        })
    }

    /// Ends it. Returns the number of frames that it received.
    ///
    /// # Errors
    /// It has not counted them.
    pub(super) fn finish(mut self) -> Result<u64> {
        let running = &mut self.server.running;
        running.stdin = None;
        let mut text = String::new();
        let out = running.stdout.as_mut().context("the bare loop's output")?;
        out.read_to_string(&mut text)?;
        let count = text.trim().parse();
        count.with_context(|| format!("the bare loop's count: {}", running.log()))
    }
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &PppoeBareArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The parent is gone when standard input ends or fails.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        told.store(true, Ordering::Relaxed);
    });
    let mut socket = place::open(WIRE, false)?;
    let own = Mac(socket.mac());
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
    reactor.add(&socket, "bare", 0, Interest::READ)?;
    say("ready")?;
    let mut received = EtherRecv::new(BATCH);
    let mut out = EtherSend::new(BATCH);
    let packet = args.answer.map(|octets| content(Code::PADO, octets));
    while !stop.load(Ordering::Relaxed) {
        if socket.receive(&mut received)? == 0 {
            reactor.wait(Some(clock::now() + LOOK_EVERY))?;
            while let Some(ready) = reactor.next_ready() {
                reactor.drained(ready.token);
            }
            continue;
        }
        let Some(packet) = &packet else {
            continue;
        };
        for frame in received.iter() {
            if let Some(opened) = frames::open(frame.bytes) {
                frames::append(out.begin(), own, opened.from, packet);
                out.commit();
            }
        }
        socket.send(&mut out);
    }
    say(&socket.stats().received.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// A packet that makes a frame of that many bytes.
fn content(code: Code, octets: usize) -> Vec<u8> {
    let mut packet = vec![0; octets.saturating_sub(14).max(HEADER_LEN)];
    packet[0] = 0x11;
    packet[1] = code.0;
    packet
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Sends requests from `count` hosts to a bare loop, each after the answer to the one before, `window` hosts at a time.
/// Returns how many hosts got all answers within `cap`.
///
/// # Errors
/// The kernel's error for the socket.
pub(super) fn exchange(
    socket: &mut EtherSocket,
    shape: &Shape,
    (count, window): (u16, u32),
    cap: Duration,
) -> Result<u32> {
    let request = content(Code::PADI, shape.request_octets);
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
    let token = reactor.add(&*socket, "load", 0, Interest::READ)?;
    let (mut received, mut out) = (EtherRecv::new(256), EtherSend::new(4_096));
    let mut left = vec![shape.rounds; count.into()];
    let (start, mut begun, mut done) = (clock::now(), 0_u16, 0_u32);
    let mut now: Instant = start;
    while done < count.into() && now.since(start) < cap {
        while begun < count && u32::from(begun) - done < window {
            frames::append(out.begin(), frames::host(begun), Mac::BROADCAST, &request);
            out.commit();
            begun += 1;
        }
        socket.send(&mut out);
        now = reactor.wait(Some(start + cap))?;
        while reactor.next_ready().is_some() {}
        let waiting = socket.receive(&mut received)?;
        for frame in received.iter() {
            let Some(host) = frames::open(frame.bytes).and_then(|opened| opened.host) else {
                continue;
            };
            let Some(left) = left.get_mut(usize::from(host)) else {
                continue;
            };
            *left = left.saturating_sub(1);
            if *left == 0 {
                done += 1;
                continue;
            }
            frames::append(out.begin(), frames::host(host), Mac::BROADCAST, &request);
            out.commit();
        }
        if waiting == 0 {
            reactor.drained(token);
        }
    }
    reactor.remove(token);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_loop_s_host_has_the_frames_of_a_real_one() {
        let shape = Shape {
            rounds: 9,
            request_octets: 40,
            answer_octets: 100,
        };
        assert_eq!(Shape::of(10, (75, 3_000), (81, 8_100)), shape);
        assert_eq!(Shape::of(0, (0, 0), (0, 0)).rounds, 1);
        assert_eq!(content(Code::PADI, 60).len(), 46);
    }
}
