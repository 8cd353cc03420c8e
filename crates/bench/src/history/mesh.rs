//! The measurements of the sixth chapter: full meshes with a daemon for each router, and with all
//! routers in one process.

use std::time::Duration;

use anyhow::Result;
use lab::history::{Chapter, MeshRow, Waiting, chapter_mesh};
use reactor::PollerKind;

use crate::bgp::emulated::{self, InMemory};
use crate::bgp::mesh::{self, Member, Meshed};
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::run::{RunDirectory, temporary};
use cli::progress::spinner;

/// Above this use of all cores, a larger mesh with the same poller would only take longer to fail.
const FULL_PERCENT: f64 = 97.0;

/// Size of the mesh measured only in memory, in a full run.
const IN_MEMORY: u32 = 1_000;

/// The chapter's measurements.
///
/// # Errors
/// A daemon of ours that does not start.
pub(super) fn chapter(quick: bool) -> Result<Chapter> {
    let (sizes, spans): (&[u32], _) = if quick {
        (
            &[4, 8],
            [Duration::from_millis(500), Duration::from_secs(1)],
        )
    } else {
        (&[32, 64, 128], [mesh::SETTLE, Duration::from_secs(2)])
    };
    let largest = &sizes[sizes.len() - 1..];
    let span = spans[1];
    // Counted before this thread is bound to one core.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench {
        directory: RunDirectory::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("history"),
    };
    let mut rows = Vec::new();
    for (member, waiting, sizes) in [
        (
            Member::Headend(PollerKind::PollRebuilt),
            Waiting::Poll,
            sizes,
        ),
        (Member::Headend(PollerKind::Epoll), Waiting::Epoll, sizes),
        (Member::Bare, Waiting::Bare, largest),
    ] {
        for &routers in sizes {
            bench.say(format!("a mesh of {routers} routers: {member}"));
            let meshed = mesh::keep(&bench, &member, routers, spans)?;
            let is_full = meshed.cpu_percent > FULL_PERCENT * cores as f64;
            rows.push(row(waiting, &meshed));
            if is_full || !meshed.is_whole() {
                break;
            }
        }
    }
    for &routers in largest.iter().chain((!quick).then_some(&IN_MEMORY)) {
        bench.say(format!("a mesh of {routers} routers in memory"));
        let found = emulated::mesh(&bench, routers, 1, span.as_secs())?;
        rows.push(in_memory(&found));
    }
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut chapter = chapter_mesh(&rows, cores);
    chapter.method.push(method(spans));
    Ok(chapter)
}

fn row(waiting: Waiting, meshed: &Meshed) -> MeshRow {
    MeshRow {
        waiting,
        routers: meshed.routers.into(),
        up: meshed.up,
        lost: meshed.lost,
        cpu_percent: meshed.cpu_percent,
        waits: (waiting != Waiting::Bare).then_some(meshed.waits),
    }
}

fn in_memory(found: &InMemory) -> MeshRow {
    MeshRow {
        waiting: Waiting::Memory,
        routers: found.routers.into(),
        up: found.mesh.up,
        lost: found.mesh.lost,
        cpu_percent: found.held_percent(),
        waits: None,
    }
}

fn method([settle, span]: [Duration; 2]) -> String {
    format!(
        "Each router is a process of this program's daemon with an address of its own in 127.0.0.0/8, on all cores. \
         Once all connections are there and {} s later, {} s are measured. What is up and what was lost is read off the \
         kernel's table of connections: an end counts as lost when its connection is no longer the same one. In memory all \
         routers are one process that keeps to the machine's clock for as long, with links of 1 ms.",
        settle.as_secs_f64(),
        span.as_secs()
    )
}
