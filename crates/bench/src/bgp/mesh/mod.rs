//! A full mesh over real TCP on all cores: a daemon for each router, or one program that emulates
//! all routers, or bare loops over as many connections.
//!
//! The kernel's table of connections shows which sessions are up or lost, for all subjects alike.
//! An endpoint counts as lost when its connection has gone or was replaced by another.

mod members;
mod table;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::generator::{cpu_of, resident_of, waits_of};
use lab::report::CoreWitness;

pub(crate) use members::Member;
use members::Mesh;
pub(crate) use table::Endpoint;

use crate::harness::Bench;
use crate::harness::others_of;

/// Longest time that a mesh may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);

/// Time for sessions to get established, or fail, after their connections exist.
pub(crate) const SETTLE: Duration = Duration::from_secs(4);

/// Results of a mesh.
#[derive(Clone, Debug)]
pub(crate) struct Meshed {
    pub(crate) member: Member,
    pub(crate) routers: u32,
    /// Number of endpoints of the mesh.
    pub(crate) endpoints: u64,
    /// Endpoints present at the end.
    pub(crate) up: u64,
    /// Endpoints present at the start and not at the end.
    pub(crate) lost: u64,
    /// From the start of the first process to the last connection.
    pub(crate) up_s: f64,
    /// All processes together, in percent of one core.
    pub(crate) cpu_percent: f64,
    /// Processor time of one endpoint per second.
    pub(crate) each_us: f64,
    /// Waits (voluntary context switches) of one process per second.
    pub(crate) waits: f64,
    /// Resident memory of all processes.
    pub(crate) memory_bytes: u64,
    pub(crate) others_percent: Option<f64>,
}

impl Meshed {
    /// Whether every session was up all the time.
    pub(crate) fn is_whole(&self) -> bool {
        self.up == self.endpoints && self.lost == 0
    }
}

/// Brings a mesh up and, `settle` after its last connection, measures it for `span`, on all cores.
///
/// # Errors
/// A process does not start, or it ends.
pub(crate) fn keep(
    bench: &Bench,
    member: &Member,
    routers: u32,
    [settle, span]: [Duration; 2],
) -> Result<Meshed> {
    bench.cores.leave();
    let kept = keep_everywhere(bench, member, routers, settle, span);
    bench.cores.at_server(|| ());
    kept
}

fn keep_everywhere(
    bench: &Bench,
    member: &Member,
    routers: u32,
    settle: Duration,
    span: Duration,
) -> Result<Meshed> {
    let endpoints = u64::from(routers) * u64::from(routers.saturating_sub(1));
    let start = Instant::now();
    let mesh = Mesh::start(bench, member, routers)?;
    let mut up = 0;
    let mut last = start;
    while up < endpoints && start.elapsed() < UP_MAX {
        // The time to read the table grows with its size.
        std::thread::sleep(Duration::from_millis(50 + endpoints / 500));
        mesh.check()?;
        let now = mesh.endpoints()?.len() as u64;
        if now > up {
            last = Instant::now();
        }
        up = now;
    }
    std::thread::sleep(settle);
    let before = mesh.endpoints()?;
    let witness = CoreWitness::start();
    let (from, spent) = (Instant::now(), mesh.spent()?);
    std::thread::sleep(span);
    let seconds = from.elapsed().as_secs_f64();
    mesh.check()?;
    let after = mesh.spent()?;
    let others = witness.finish();
    let now = mesh.endpoints()?;
    let cpu_us = (after.cpu_ns - spent.cpu_ns) as f64 / 1e3;
    Ok(Meshed {
        member: member.clone(),
        routers,
        endpoints,
        up: now.len() as u64,
        lost: before.difference(&now).count() as u64,
        up_s: last.duration_since(start).as_secs_f64(),
        cpu_percent: cpu_us / 1e4 / seconds,
        each_us: cpu_us / seconds / (now.len() as f64).max(1.0),
        waits: (after.waits - spent.waits) as f64 / seconds / mesh.pids.len() as f64,
        memory_bytes: mesh.resident()?,
        others_percent: others_of(others),
    })
}

/// Counters of the kernel, summed over all processes.
struct Spent {
    cpu_ns: u64,
    waits: u64,
}

impl Mesh {
    fn endpoints(&self) -> Result<BTreeSet<Endpoint>> {
        let pid = self.pids.first().context("a mesh of nobody")?;
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/tcp"))?;
        Ok(table::established(&text, &self.ports))
    }

    fn spent(&self) -> Result<Spent> {
        let mut spent = Spent {
            cpu_ns: 0,
            waits: 0,
        };
        for &pid in &self.pids {
            spent.cpu_ns += cpu_of(pid)?.as_nanos();
            spent.waits += waits_of(pid)?;
        }
        Ok(spent)
    }

    fn resident(&self) -> Result<u64> {
        let each = self.pids.iter().map(|&pid| resident_of(pid));
        Ok(each.sum::<std::io::Result<u64>>()?)
    }

    fn check(&self) -> Result<()> {
        self.running.iter().try_for_each(|running| running.check())
    }
}
