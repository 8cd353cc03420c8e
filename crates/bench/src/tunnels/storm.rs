//! All peers connect at once: every SCCRQ is sent before the first reply is read.

use anyhow::Result;
use base::Duration;
use wire::l2tp::Version;

use super::setup::{self, Run};
use crate::harness::Bench;
use crate::harness::server::{Lns, Setup};

/// Longest time that a storm may take.
const STORM_MAX: Duration = Duration::from_secs(30);

/// A receive buffer that needs no privilege: Linux's default for `net.core.rmem_max`.
pub(super) const MODEST_BYTES: u64 = 212_992;

/// One storm.
#[derive(Clone, Debug)]
pub(super) struct Storm {
    pub(super) tunnels: u32,
    /// Receive buffer in bytes that the configuration asks for, if it does.
    pub(super) asked_bytes: Option<u64>,
    /// The receive buffer that the LNS got, as it reports.
    pub(super) buffer: String,
    pub(super) run: Run,
}

impl Storm {
    /// Whether the LNS got a receive buffer above the kernel's limit.
    pub(super) fn is_forced(&self) -> bool {
        self.buffer.contains("forced")
    }
}

/// Opens `tunnels` at our LNS, all at once.
///
/// # Errors
/// It does not start or has ended, or the kernel's error for a socket.
pub(super) fn storm(bench: &Bench, tunnels: u32, asked_bytes: Option<u64>) -> Result<Storm> {
    let setup = Setup {
        receive_buffer_bytes: asked_bytes,
        ..Setup::default()
    };
    let mut lns = Lns::start(bench, &setup)?;
    let mut load = setup::generator(&lns.server, Version::V3, tunnels)?;
    let run = setup::wave_at_ours(&mut lns, &mut load, tunnels, tunnels, STORM_MAX)?;
    Ok(Storm {
        tunnels,
        asked_bytes,
        buffer: lns.buffer(),
        run,
    })
}
