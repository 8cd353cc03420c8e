//! One measurement of an emulation, in a process of its own: `headend bench bgp-emulate` runs it
//! and prints one line.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::{Duration, Instant};
use emulate::{Emulation, Scenario};
use lab::generator::resident_of;
use reactor::clock;
use reactor::usage::process_cpu;
use serde::{Deserialize, Serialize};

use super::super::usage::peak_of;

/// The longest emulated time that a mesh may take to come up.
const UP_MAX_S: u64 = 60;

/// In real time, the loop looks for work at most this often.
const PACE: Duration = Duration::from_millis(1);

/// Run an emulation and print what it took.
#[derive(Debug, clap::Args)]
pub(crate) struct EmulatedChildArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum What {
    /// A full mesh in memory, kept for so many seconds of virtual time and of real time
    Mesh {
        routers: u32,
        virtual_s: u64,
        real_s: u64,
    },
    /// One victim, one hijacker, over a graph of autonomous systems
    Hijack { routers: u32 },
}

/// A mesh in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mesh {
    pub(crate) endpoints: u64,
    pub(crate) up: u64,
    /// Session ends that were lost.
    pub(crate) lost: u64,
    /// Wall time until all sessions were up.
    pub(crate) up_s: f64,
    /// Resident memory gained since before the first router.
    pub(crate) bytes: u64,
    /// Emulated time, wall time and processor time: once as fast as possible, and once in real
    /// time.
    pub(crate) loose: Span,
    pub(crate) held: Span,
}

/// One stretch of an emulation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) inside_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
}

/// A hijack over a graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hijack {
    pub(crate) links: u64,
    /// Wall time of the whole run: the graph, the sessions, both announcements and their
    /// convergence.
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// Wall time until the graph was built.
    pub(crate) built_s: f64,
    pub(crate) inside_s: f64,
    pub(crate) updates: u64,
    /// Emulated seconds from the hijack to the last change.
    pub(crate) convergence_s: Option<f64>,
    /// Share of the routers whose route leads to the hijacker at the end.
    pub(crate) deceived: f64,
    pub(crate) peak_bytes: u64,
}

/// Runs one measurement in this process.
pub(crate) fn run(args: &EmulatedChildArgs) -> Result<ExitCode> {
    let line = match args.what {
        What::Mesh {
            routers,
            virtual_s,
            real_s,
        } => serde_json::to_string(&mesh(routers, virtual_s, real_s)?)?,
        What::Hijack { routers } => serde_json::to_string(&hijack(routers)?)?,
    };
    println!("{line}");
    Ok(ExitCode::SUCCESS)
}

fn load(text: &str) -> Result<Scenario> {
    Ok(Scenario::load(text, "bench.toml")?)
}

/// The start of a measured stretch.
struct Since {
    inside: Duration,
    wall: Instant,
    cpu: Duration,
}

impl Since {
    fn now(emulation: &Emulation) -> Self {
        Self {
            inside: emulation.now(),
            wall: clock::now(),
            cpu: process_cpu(),
        }
    }

    fn until_now(&self, emulation: &Emulation) -> Span {
        let inside = emulation.now().as_nanos() - self.inside.as_nanos();
        let cpu = process_cpu().as_nanos() - self.cpu.as_nanos();
        Span {
            inside_s: inside as f64 / 1e9,
            wall_s: clock::now().since(self.wall).as_secs_f64(),
            cpu_s: cpu as f64 / 1e9,
        }
    }
}

fn mesh(routers: u32, virtual_s: u64, real_s: u64) -> Result<Mesh> {
    let empty = resident_of(std::process::id())?;
    let start = clock::now();
    let scenario = load(&format!(
        "title = \"mesh\"\nrun_s = {}\n[topology]\nkind = \"mesh\"\nrouters = {routers}\n\
         [routers]\nhold_time_s = 3\nkeepalive_s = 1\n[links]\ndelay_ms = 1\n",
        2 * UP_MAX_S + virtual_s + real_s
    ))?;
    let mut emulation = Emulation::new(scenario);
    let mut progress = emulation.progress();
    while progress.endpoints_up < progress.endpoints {
        if emulation.now() > Duration::from_secs(UP_MAX_S) {
            bail!(
                "{} of {} ends came up",
                progress.endpoints_up,
                progress.endpoints
            );
        }
        emulation.run_until(emulation.now() + Duration::from_millis(100));
        progress = emulation.progress();
    }
    let up_s = clock::now().since(start).as_secs_f64();
    // Two seconds of rest after the start, so that all memory has been touched once.
    emulation.run_until(emulation.now() + Duration::from_secs(2));
    let bytes = resident_of(std::process::id())?.saturating_sub(empty);
    let since = Since::now(&emulation);
    emulation.run_until(emulation.now() + Duration::from_secs(virtual_s));
    let loose = since.until_now(&emulation);
    let since = Since::now(&emulation);
    hold(&mut emulation, Duration::from_secs(real_s));
    let held = since.until_now(&emulation);
    let progress = emulation.progress();
    Ok(Mesh {
        endpoints: progress.endpoints,
        up: progress.endpoints_up,
        lost: progress.sessions_lost,
        up_s,
        bytes,
        loose,
        held,
    })
}

/// Advances by `span` in real time.
fn hold(emulation: &mut Emulation, span: Duration) {
    let (start, inside) = (clock::now(), emulation.now());
    loop {
        let passed = clock::now().since(start);
        emulation.run_until(inside + passed.min(span));
        if passed >= span {
            return;
        }
        let due = emulation.next_due().unwrap_or(inside + span).as_nanos();
        let due = due.saturating_sub(inside.as_nanos());
        let rest = due.saturating_sub(clock::now().since(start).as_nanos());
        std::thread::sleep(Duration::from_nanos(rest).max(PACE).into());
    }
}

fn hijack(routers: u32) -> Result<Hijack> {
    let start = clock::now();
    let cpu = process_cpu();
    let scenario = load(&format!(
        "title = \"hijack\"\nseed = 3\nrun_s = 120\nstop_when_quiet_s = 3\n\
         [topology]\nkind = \"random\"\nrouters = {routers}\n[links]\ndelay_ms = 20\njitter_ms = 10\n\
         [[event]]\nkind = \"announce\"\nat_s = 2\nrouter = \"as{}\"\n\
         [[event]]\nkind = \"hijack\"\nat_s = 5\nvictim = \"as{}\"\nrouter = \"as{}\"\n",
        routers / 10 * 9,
        routers / 10 * 9,
        routers / 10 * 7
    ))?;
    let built_s = clock::now().since(start).as_secs_f64();
    let mut emulation = Emulation::new(scenario);
    emulation.run();
    let wall_s = clock::now().since(start).as_secs_f64();
    let cpu_s = (process_cpu().as_nanos() - cpu.as_nanos()) as f64 / 1e9;
    let results = emulation.finish();
    let hijack = results.events.iter().find(|event| event.kind == "hijack");
    let address = results.addresses.first();
    Ok(Hijack {
        links: results.links as u64,
        wall_s,
        cpu_s,
        built_s,
        inside_s: results.end_s,
        updates: results.updates,
        convergence_s: hijack.and_then(|event| event.convergence_s),
        deceived: address
            .and_then(|address| address.shares.last())
            .map_or(0.0, |share| share.deceived),
        peak_bytes: peak_of(std::process::id())?,
    })
}
