//! One bring-up: two daemons, and one request per tunnel through the LAC's control socket, while
//! the rate is sampled.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::build::Build;
use control::client::{Client, refusal};
use control::pace::Pace;
use control::request::{Do, Nothing, TunnelCreate, Wait};
use tool_demo::ends::{End, Ends};

/// Limit of creations in progress: what a daemon queues for one client.
const WINDOW_MAX: u32 = 256;

/// How long a daemon may take to answer after the run.
const PATIENCE: Duration = Duration::from_secs(10);

/// Approximate number of points kept of a curve.
const POINTS: u64 = 400;

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) tunnels: u32,
    pub(crate) cap: Duration,
    /// Limit of rounds for each build that finishes.
    pub(crate) rounds: u32,
    /// No further round starts after this time.
    pub(crate) budget: Duration,
}

impl Wanted {
    /// Parameters for a run of some seconds.
    pub(crate) const QUICK: Self = Self {
        tunnels: 400,
        cap: Duration::from_secs(2),
        rounds: 1,
        budget: Duration::ZERO,
    };
}

/// Results of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) build: &'static Build,
    /// Seconds since the first request, and tunnels up by then.
    pub(crate) samples: Vec<(f64, u64)>,
    /// Whether all tunnels came up within the time limit, on both sides.
    pub(crate) finished: bool,
    /// Creations that failed and were repeated, by reason.
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) lns: Side,
    pub(crate) lac: Side,
}

/// What one daemon used in a run.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) cpu_s: f64,
    /// Tunnels established; absent, like all fields below, if the daemon no longer answered.
    pub(crate) established: Option<u64>,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) waits: Option<Waits>,
    /// System calls by name.
    pub(crate) calls: Vec<(String, f64)>,
}

/// Counters of a daemon's waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub(crate) count: f64,
    pub(crate) ready: f64,
    /// Mean share of the watched descriptors that were ready, over all waits.
    pub(crate) ready_to_watched: f64,
}

impl Run {
    /// Tunnels up at the end, as the LAC reports.
    pub(crate) fn up(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.1)
    }

    /// Seconds until the last sample.
    pub(crate) fn seconds(&self) -> f64 {
        self.samples.last().map_or(0.0, |sample| sample.0)
    }

    /// Whether this is the better of two runs of one build.
    pub(crate) fn is_faster_than(&self, other: &Self) -> bool {
        (self.finished, -self.seconds()) > (other.finished, -other.seconds())
    }

    /// Seconds until `tunnels` tunnels were up.
    pub(crate) fn seconds_to(&self, tunnels: u64) -> Option<f64> {
        let reached = self.samples.iter().find(|(_, up)| *up >= tunnels);
        reached.map(|sample| sample.0)
    }
}

/// Runs one build; `progress` is called with the number of tunnels that are up.
pub(crate) fn run(
    build: &'static Build,
    wanted: Wanted,
    progress: &mut dyn FnMut(u64),
) -> Result<Run> {
    let ends = Ends::start([&build.config("lns"), &build.config("lac")])?;
    let (mut lns, mut lac) = (ends.lns()?, ends.lac()?);
    // A client's requests are served in order, so status queries use a second client.
    let mut creator = ends.lac()?.client;
    let peer = lns.address()?;
    let before = [Account::open(&mut lns)?, Account::open(&mut lac)?];
    let mut drive = Drive::new(peer, wanted);
    drive.all(&mut creator, progress)?;
    let cpu = before.each_ref().map(Account::cpu_s);
    let all = u64::from(wanted.tunnels);
    let up = drive.up == all;
    let finished = up && await_established(&mut lns, all)?;
    let lns = before[0].close(&mut lns, cpu[0])?;
    let lac = before[1].close(&mut lac, cpu[1])?;
    Ok(Run {
        build,
        samples: thinned(drive.samples, all),
        finished,
        failures: drive.failures,
        lns,
        lac,
    })
}

/// The requests of one run.
struct Drive {
    peer: SocketAddr,
    wanted: Wanted,
    pace: Pace,
    outstanding: u32,
    up: u64,
    samples: Vec<(f64, u64)>,
    failures: BTreeMap<String, u64>,
    failed: u64,
}

impl Drive {
    fn new(peer: SocketAddr, wanted: Wanted) -> Self {
        Self {
            peer,
            wanted,
            pace: Pace::default(),
            outstanding: 0,
            up: 0,
            samples: vec![(0.0, 0)],
            failures: BTreeMap::new(),
            failed: 0,
        }
    }

    /// Creates tunnels until all are up or time has run out.
    fn all(&mut self, lac: &mut Client, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let started = Instant::now();
        let all = u64::from(self.wanted.tunnels);
        while self.up < all {
            self.refill(lac)?;
            let left = self.wanted.cap.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            self.take(lac, left, started)?;
            if self.failed > 2 * all {
                let why: Vec<&str> = self.failures.keys().map(String::as_str).collect();
                bail!("more tunnels fail than come up: {}", why.join("; "));
            }
            progress(self.up);
        }
        if self.up < all {
            // The rate covers the whole time, even if no tunnel came up at the end of it.
            self.samples
                .push((started.elapsed().as_secs_f64(), self.up));
        }
        Ok(())
    }

    fn refill(&mut self, lac: &mut Client) -> Result<()> {
        let missing = u64::from(self.wanted.tunnels) - self.up - u64::from(self.outstanding);
        let count = self
            .pace
            .allowance(self.outstanding)
            .min(WINDOW_MAX.saturating_sub(self.outstanding))
            .min(u32::try_from(missing).unwrap_or(u32::MAX));
        for _ in 0..count {
            lac.queue(&Do::TunnelCreate(TunnelCreate {
                peer: self.peer,
                version: 3,
                count: 1,
                from: None,
                skip: 0,
                session: false,
                wait: Wait::Up,
            }));
        }
        self.outstanding += count;
        lac.flush()
    }

    /// Waits for a line, then handles all pending lines.
    fn take(&mut self, lac: &mut Client, limit: Duration, started: Instant) -> Result<()> {
        let mut next = lac.next(Some(limit))?;
        let at = started.elapsed();
        let before = self.up;
        while let Some(reply) = next {
            let refused = refusal(&reply);
            if reply.tunnel.is_some() || refused.is_some() {
                let is_up = reply.up == Some(true);
                if is_up {
                    self.up += 1;
                } else {
                    let told = reply.reason.as_deref().map(str::to_owned).or(refused);
                    let why = told.unwrap_or_else(|| "no reason given".into());
                    *self.failures.entry(why).or_default() += 1;
                    self.failed += 1;
                }
                self.outstanding -= 1;
                self.pace.completed(is_up, at);
            }
            next = lac.next_buffered()?;
        }
        if self.up > before {
            self.samples.push((at.as_secs_f64(), self.up));
        }
        Ok(())
    }
}

/// Waits until the LNS also has all tunnels established; the LAC knows first.
fn await_established(lns: &mut End, all: u64) -> Result<bool> {
    let started = Instant::now();
    while lns.stats()?.established < all {
        if started.elapsed() > PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// A daemon's counters at the start of a run.
struct Account {
    pid: u32,
    cpu_s: f64,
    calls: Vec<(String, f64)>,
}

impl Account {
    fn open(end: &mut End) -> Result<Self> {
        let measured = end.measure()?;
        let pid = measured.stats.pid;
        Ok(Self {
            pid,
            cpu_s: process_cpu_s(pid),
            calls: calls(&measured.handlers),
        })
    }

    /// Processor time since the start.
    fn cpu_s(&self) -> f64 {
        process_cpu_s(self.pid) - self.cpu_s
    }

    /// What the daemon used since the start. Gives up if the daemon does not answer in time.
    fn close(&self, end: &mut End, cpu_s: f64) -> Result<Side> {
        let mut side = Side {
            cpu_s,
            ..Side::default()
        };
        let by = Instant::now() + PATIENCE;
        let Some(stats) = ask(&mut end.client, &Do::ServerStats(Nothing {}), by)? else {
            return Ok(side);
        };
        let stats = stats.first().cloned().unwrap_or_default();
        side.established = stats["established"].as_u64();
        side.rss_bytes = stats["rss_bytes"].as_u64();
        if let Some(rows) = ask(&mut end.client, &Do::ShowEventCpu(Nothing {}), by)? {
            side.calls = calls(&rows);
            for (name, count) in &mut side.calls {
                let earlier = self.calls.iter().find(|(known, _)| known == name);
                *count -= earlier.map_or(0.0, |(_, count)| *count);
            }
        }
        if let Some(rows) = ask(&mut end.client, &Do::ShowEventPoll(Nothing {}), by)? {
            let row = rows.iter().find(|row| row["schema"] == "event.waits/1");
            side.waits = row.and_then(|row| {
                Some(Waits {
                    count: row["waits"].as_f64()?,
                    ready: row["ready"].as_f64()?,
                    ready_to_watched: row["ready_to_watched"].as_f64()?,
                })
            });
        }
        Ok(side)
    }
}

/// The system calls in `show event cpu`.
fn calls(rows: &[Value]) -> Vec<(String, f64)> {
    let is_call = |row: &&Value| row["schema"] == "event.syscall/1";
    rows.iter()
        .filter(is_call)
        .filter_map(|row| Some((row["name"].as_str()?.into(), row["calls"].as_f64()?)))
        .collect()
}

/// The rows of a `show`, after all replies to earlier requests; `None` if they do not arrive in
/// time.
fn ask(client: &mut Client, what: &Do, by: Instant) -> Result<Option<Vec<Value>>> {
    let id = client.queue(what);
    client.flush()?;
    let mut rows = Vec::new();
    loop {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let Some(reply) = client.next(Some(left))? else {
            return Ok(None);
        };
        if reply.id != id {
            continue;
        }
        if let Some(row) = reply.row {
            rows.push(serde_json::from_str(row.get())?);
        }
        if reply.end {
            return Ok(Some(rows));
        }
    }
}

/// Processor time in seconds of a process with one thread. This works even if the daemon does not
/// answer (proc(5): `schedstat` in nanoseconds, else `stat` in ticks).
fn process_cpu_s(pid: u32) -> f64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let exact = read("schedstat");
    if let Some(ns) = exact
        .split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
    {
        return ns / 1e9;
    }
    let stat = read("stat");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// A curve with fewer points, evenly spread over the tunnels, that keeps its last point.
fn thinned(samples: Vec<(f64, u64)>, all: u64) -> Vec<(f64, u64)> {
    let step = (all / POINTS).max(1);
    let last = samples.len().saturating_sub(1);
    let mut next = 0;
    let mut kept = Vec::new();
    for (i, sample) in samples.into_iter().enumerate() {
        if sample.1 >= next || i == last {
            next = sample.1 + step;
            kept.push(sample);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_curve_keeps_its_ends_and_never_falls() {
        let samples: Vec<(f64, u64)> = (0..=10_000).map(|n| (n as f64, n)).collect();
        let kept = thinned(samples, 10_000);
        assert!(kept.len() <= POINTS as usize + 2, "{}", kept.len());
        assert_eq!(kept.first(), Some(&(0.0, 0)));
        assert_eq!(kept.last(), Some(&(10_000.0, 10_000)));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
    }

    #[test]
    fn a_stall_at_the_end_stays_in_a_thinned_curve() {
        let kept = thinned(vec![(0.0, 0), (1.0, 500), (60.0, 500)], 1_000);
        assert_eq!(kept.last(), Some(&(60.0, 500)));
    }

    #[test]
    fn this_process_has_used_processor_time() {
        assert!(process_cpu_s(std::process::id()) > 0.0);
        assert_eq!(process_cpu_s(0), 0.0);
    }
}
