//! Keeps finished connections up to a limit of memory: a page has no temporary file to move them to.

use trace::capture::Error;
use trace::{Finished, Watch};

/// Bytes of finished connections.
const KEPT_MAX: usize = 256 << 20;

/// Counts finished connections, and leaves out those beyond the limit.
#[derive(Default)]
pub(crate) struct Keep {
    bytes: usize,
    /// Numbers of the first packets of the connections that are left out: 8 bytes for each.
    pub(crate) left_out: Vec<u64>,
}

impl Watch for Keep {
    const PACKETS: bool = false;
    type Error = Error;

    fn finished(&mut self, finished: Vec<Finished>, _end: i64) -> Result<Vec<Finished>, Error> {
        let mut kept = finished;
        kept.retain(|connection| {
            let fits = self.bytes + connection.octets.len() <= KEPT_MAX;
            match fits {
                true => self.bytes += connection.octets.len(),
                false => self.left_out.push(connection.first_packet),
            }
            fits
        });
        Ok(kept)
    }
}
