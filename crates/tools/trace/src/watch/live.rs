//! Reports each connection when it closes, so that a live capture shows something while it runs.

use std::time::{Duration, Instant};

use trace::{Connection, Segment};

/// Limit of lines in a second; the rest is counted.
const LINES_MAX: u32 = 100;

/// The lines so far.
pub(super) struct Live {
    second: Instant,
    told: u32,
    untold: u64,
}

impl Default for Live {
    fn default() -> Live {
        Live {
            second: Instant::now(),
            told: 0,
            untold: 0,
        }
    }
}

impl Live {
    /// Reports the connection if this segment closes it.
    pub(super) fn segment(&mut self, connection: &Connection, segment: &Segment) {
        if (segment.fin() || segment.rst()) && closes(connection, segment) {
            self.tell(connection);
        }
    }

    #[cold]
    fn tell(&mut self, connection: &Connection) {
        if self.told >= LINES_MAX {
            // The clock is read only if there are many lines.
            if self.second.elapsed() < Duration::from_secs(1) {
                self.untold += 1;
                return;
            }
            if self.untold > 0 {
                eprintln!("headend: {} more closed", self.untold);
            }
            (self.told, self.untold, self.second) = (0, 0, Instant::now());
        }
        self.told += 1;
        let ((a, a_port), (b, b_port)) = (connection.a_end(), connection.b_end());
        let how = if connection.is_reset() {
            "reset"
        } else {
            "complete"
        };
        eprintln!(
            "closed: {a}:{a_port} - {b}:{b_port} {}> {}<  {} bytes> {} bytes<  {:.3} s  ({how})",
            connection.a.packets,
            connection.b.packets,
            connection.a.unique_bytes,
            connection.b.unique_bytes,
            connection.elapsed() as f64 / 1e9,
        );
    }
}

/// Whether this segment closed the connection: it is the first RST, or the second end's FIN.
fn closes(connection: &Connection, segment: &Segment) -> bool {
    let from_a = segment.from_low == connection.a_is_low;
    let this = if from_a { &connection.a } else { &connection.b };
    let resets = connection.a.resets + connection.b.resets;
    if segment.rst() {
        return resets == 1 && connection.fins() < 2;
    }
    resets == 0 && connection.fins() == 2 && this.fins == 1
}
