//! A table sent from a feeder through the subject to a sink. Measures the time until the sink has
//! every prefix, and the time until all are withdrawn.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, bail};
use base::{Duration, Instant};
use lab::report::CoreWitness;
use reactor::tcp::TcpOptions;
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};

use super::daemons::{BgpProgram, Setup};
use super::feed::{Feed, Tally};
use super::load::ASN as FEEDER_ASN;
use super::octets::{KEEPALIVE, prefixes, routes};
use super::session::{Session, Stage};
use super::usage::peak_of;
use crate::harness::Bench;
use crate::harness::others_of;
use crate::harness::server::Server;

/// The sink's AS number.
pub(super) const SINK_ASN: u32 = 65_002;

const FEEDER: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 1);
const SINK: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 2);

/// Longest time that the sessions may take to come up.
const UP_MAX: Duration = Duration::from_secs(15);

/// Time between two KEEPALIVEs.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);

/// Bytes read at a time.
const BUFFER: usize = 1 << 18;

/// Size of the socket buffers of feeder and sink.
const KERNEL_BUFFER: usize = 1 << 20;

/// Results for one table.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) program: BgpProgram,
    pub(super) prefixes: u32,
    pub(super) sets: u32,
    /// Prefixes that reached the sink, and how many of them were withdrawn in the end.
    pub(super) arrived: u32,
    pub(super) left: u32,
    pub(super) announce: Part,
    pub(super) withdraw: Part,
    /// Prefixes that the sink received again, and prefixes that were never sent.
    pub(super) again: u64,
    pub(super) strange: u64,
    pub(super) empty_bytes: u64,
    /// Peak memory of the process.
    pub(super) peak_bytes: u64,
    pub(super) others_percent: Option<f64>,
}

/// The announcement or the withdrawal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) seconds: f64,
    pub(super) cpu_s: f64,
    /// UPDATEs that the sink received.
    pub(super) updates: u64,
}

/// Sends a table through `program`.
///
/// # Errors
/// It does not start, or the sessions do not come up.
pub(super) fn pass(
    bench: &Bench,
    program: &BgpProgram,
    feed: &Feed,
    cap: Duration,
) -> Result<Passed> {
    let server = program.start(bench, Setup::USUAL)?;
    let empty_bytes = server.resident()?;
    let mut ends = Ends::open(server.addresses[0])?;
    let witness = CoreWitness::start();
    let mut tally = Tally::new(feed.prefixes);
    let announce = part(
        &server,
        &mut ends,
        &mut tally,
        &feed.announce,
        feed.prefixes,
        cap,
    )?;
    let arrived = tally.count;
    let withdraw = if arrived == feed.prefixes {
        part(&server, &mut ends, &mut tally, &feed.withdraw, 0, cap)?
    } else {
        Part::default()
    };
    let others = witness.finish();
    server.running.check()?;
    Ok(Passed {
        program: program.clone(),
        prefixes: feed.prefixes,
        sets: feed.sets,
        arrived,
        left: arrived - tally.count,
        announce,
        withdraw,
        again: tally.again,
        strange: tally.strange,
        empty_bytes,
        peak_bytes: peak_of(server.running.pid)?,
        others_percent: others_of(others),
    })
}

/// Sends `octets` until the sink has `goal` prefixes.
fn part(
    server: &Server,
    ends: &mut Ends,
    tally: &mut Tally,
    octets: &[u8],
    goal: u32,
    cap: Duration,
) -> Result<Part> {
    let before = server.booked()?;
    let updates = ends.updates;
    let seconds = ends.send(octets, tally, goal, cap)?.as_secs_f64();
    // The kernel updates a process's counters when it goes to sleep, so the subject gets time to do
    // so.
    ends.turn(clock::now() + Duration::from_millis(20), tally)?;
    Ok(Part {
        seconds,
        cpu_s: server.spent_since(&before)?.cpu_us / 1e6,
        updates: ends.updates - updates,
    })
}

/// The feeder and the sink.
struct Ends {
    reactor: Reactor,
    /// The feeder and the sink, in this order.
    sessions: [Session; 2],
    said: Instant,
    updates: u64,
    buffer: Vec<u8>,
}

impl Ends {
    /// Opens both sessions and waits until they are established.
    fn open(server: SocketAddr) -> Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
        let options = TcpOptions {
            receive_buffer_bytes: Some(KERNEL_BUFFER),
            send_buffer_bytes: Some(KERNEL_BUFFER),
            ..TcpOptions::default()
        };
        let mut begin = |n, from| Session::begin(&mut reactor, from, server, options, n);
        let sessions = [begin(0, FEEDER)?, begin(1, SINK)?];
        let start = clock::now();
        let mut ends = Self {
            reactor,
            sessions,
            said: start,
            updates: 0,
            buffer: vec![0; BUFFER],
        };
        let mut nothing = Tally::new(1);
        while ends.sessions.iter().any(|s| s.stage != Stage::Established) {
            let now = ends.turn(clock::now() + Duration::from_millis(5), &mut nothing)?;
            if now.since(start) > UP_MAX {
                bail!("feeder and sink did not come up");
            }
        }
        Ok(ends)
    }

    /// Waits until `until` or for input, and reads the input.
    fn turn(&mut self, until: Instant, tally: &mut Tally) -> Result<Instant> {
        let now = self.reactor.wait(Some(until))?;
        while let Some(ready) = self.reactor.next_ready() {
            let Some(session) = self.sessions.get_mut(ready.user as usize) else {
                continue;
            };
            if session.stage == Stage::Connecting {
                let asn = [FEEDER_ASN, SINK_ASN][ready.user as usize & 1];
                session.connected(&mut self.reactor, asn, Setup::USUAL.hold_s)?;
            } else if ready.readiness.readable() {
                let is_sink = ready.user == 1;
                let came = session.read(&mut self.reactor, &mut self.buffer, |body| {
                    if is_sink {
                        note(tally, body);
                    }
                });
                if is_sink {
                    self.updates += u64::from(came.updates);
                }
            }
            if let Some(closed) = self.sessions.iter().position(|s| s.stage == Stage::Closed) {
                bail!("the session of the {} ended", ["feeder", "sink"][closed]);
            }
        }
        Ok(now)
    }

    /// Writes `octets` as the feeder, and reads as the sink until it has `goal` prefixes or `cap`
    /// has passed. Returns the time since the first byte.
    fn send(
        &mut self,
        octets: &[u8],
        tally: &mut Tally,
        goal: u32,
        cap: Duration,
    ) -> Result<Duration> {
        let start = clock::now();
        let mut rest = octets;
        let mut is_waiting = false;
        loop {
            if !rest.is_empty() {
                rest = &rest[self.write(rest)?..];
                let interest = if rest.is_empty() {
                    Interest::READ
                } else {
                    Interest::BOTH
                };
                if is_waiting != interest.writes() {
                    is_waiting = interest.writes();
                    self.reactor
                        .set_interest(self.sessions[0].token, interest)?;
                }
            }
            let now = self.turn(clock::now() + Duration::from_millis(100), tally)?;
            if (tally.count == goal && rest.is_empty()) || now.since(start) > cap {
                return Ok(clock::now().since(start));
            }
            if now.since(self.said) > KEEPALIVE_EVERY {
                self.said = now;
                self.sessions[1].say(&mut self.reactor, &KEEPALIVE);
                if rest.is_empty() {
                    self.sessions[0].say(&mut self.reactor, &KEEPALIVE);
                }
            }
        }
    }

    /// Writes what the socket's buffer takes now.
    fn write(&self, octets: &[u8]) -> io::Result<usize> {
        Ok(self.sessions[0].stream.write(octets)?.unwrap_or(0))
    }
}

fn note(tally: &mut Tally, body: &[u8]) {
    let Some((withdrawn, announced)) = routes(body) else {
        tally.strange += 1;
        return;
    };
    prefixes(withdrawn).for_each(|prefix| tally.note(prefix, false));
    prefixes(announced).for_each(|prefix| tally.note(prefix, true));
}
