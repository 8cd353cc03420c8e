//! Emulated routers: a full mesh in virtual time and in real time, and a hijack over a graph of
//! autonomous systems. Each runs in a process of its own, so that its memory can be measured.

pub(crate) mod child;

use std::io::Read;
use std::process::Command;

use anyhow::{Context, Result};
use lab::report::CoreWitness;
use serde::de::DeserializeOwned;

use self::child::{Hijack, Mesh};
use crate::harness::Bench;
use crate::harness::others_of;

/// Results of a mesh in memory.
#[derive(Clone, Debug)]
pub(crate) struct InMemory {
    pub(crate) routers: u32,
    pub(crate) mesh: Mesh,
    pub(crate) others_percent: Option<f64>,
}

impl InMemory {
    /// Whether every session came up and stayed up.
    pub(super) fn is_whole(&self) -> bool {
        self.mesh.up == self.mesh.endpoints && self.mesh.lost == 0
    }

    /// Emulated time divided by real time.
    pub(super) fn times_real(&self) -> f64 {
        self.mesh.loose.inside_s / self.mesh.loose.wall_s.max(1e-9)
    }

    /// Percent of one core, in real time.
    pub(crate) fn held_percent(&self) -> f64 {
        self.mesh.held.cpu_s * 100.0 / self.mesh.held.wall_s.max(1e-9)
    }

    /// Processor time of one session end for one second of virtual time.
    pub(super) fn each_ns(&self) -> f64 {
        let end_seconds = self.mesh.loose.inside_s * self.mesh.up as f64;
        self.mesh.loose.cpu_s * 1e9 / end_seconds.max(1e-9)
    }

    /// Memory of one session end.
    pub(super) fn each_bytes(&self) -> f64 {
        self.mesh.bytes as f64 / self.mesh.endpoints.max(1) as f64
    }
}

/// Results of a hijack.
#[derive(Clone, Debug)]
pub(super) struct Hijacked {
    pub(super) routers: u32,
    pub(super) hijack: Hijack,
    pub(super) others_percent: Option<f64>,
}

/// Runs a mesh in memory for the given times, on one core.
///
/// # Errors
/// It does not come up.
pub(crate) fn mesh(bench: &Bench, routers: u32, virtual_s: u64, real_s: u64) -> Result<InMemory> {
    let numbers = [u64::from(routers), virtual_s, real_s].map(|n| n.to_string());
    let [routers_word, virtual_word, real_word] = &numbers;
    let words = ["mesh", routers_word, virtual_word, real_word];
    let (mesh, others_percent) = ask(bench, &words)?;
    Ok(InMemory {
        routers,
        mesh,
        others_percent,
    })
}

/// Runs a hijack over a graph of autonomous systems, on all cores.
///
/// # Errors
/// It does not end.
pub(super) fn hijack(bench: &Bench, routers: u32) -> Result<Hijacked> {
    let word = routers.to_string();
    bench.cores.leave();
    let asked = bench
        .directory
        .spawn("emulate", command(&["hijack", &word])?);
    bench.cores.at_server(|| ());
    let witness = CoreWitness::start();
    let hijack = answer(asked?)?;
    Ok(Hijacked {
        routers,
        hijack,
        others_percent: others_of(witness.finish()),
    })
}

fn command(words: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "bgp-emulate"]).args(words);
    Ok(command)
}

fn ask<T: DeserializeOwned>(bench: &Bench, words: &[&str]) -> Result<(T, Option<f64>)> {
    let witness = CoreWitness::start();
    let found = answer(bench.spawn("emulate", command(words)?)?)?;
    Ok((found, others_of(witness.finish())))
}

/// The line that a child prints when it is done.
fn answer<T: DeserializeOwned>(mut running: crate::harness::run::Running) -> Result<T> {
    let mut text = String::new();
    let out = running.stdout.as_mut().context("the emulation's output")?;
    out.read_to_string(&mut text)?;
    let log = || running.log().trim().to_owned();
    serde_json::from_str(&text).with_context(log)
}
