//! Everyone calls at once: every SCCRQ is sent before the first answer is read.

use anyhow::Result;
use base::Duration;
use wire::l2tp::Version;

use super::setup::{self, Run};
use crate::harness::Bench;
use crate::harness::server::{Lns, Setup};

/// Longest that a storm may take.
const STORM_MAX: Duration = Duration::from_secs(30);

/// A receive buffer that needs no privilege: Linux's `net.core.rmem_max` as it comes.
pub(super) const MODEST_BYTES: u64 = 212_992;

/// One storm.
#[derive(Clone, Debug)]
pub(super) struct Storm {
    pub(super) tunnels: u32,
    /// Bytes of receive buffer that the configuration asks for, where it does.
    pub(super) asked_bytes: Option<u64>,
    /// What became of that, in the LNS's words.
    pub(super) buffer: String,
    pub(super) run: Run,
}

impl Storm {
    /// Whether the LNS got its receive buffer past the kernel's own limit.
    pub(super) fn is_forced(&self) -> bool {
        self.buffer.contains("forced")
    }
}

/// Opens `tunnels` at our LNS, all at once.
///
/// # Errors
/// It does not start, has ended, or what the kernel said of a socket.
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
