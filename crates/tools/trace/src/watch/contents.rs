//! `-e`: a file with the stream of each direction. Data that the capture lacks reads as zeros.

use std::collections::HashMap;

use trace::Connection;
use trace::xplot::{FileId, Sink as _};
use wire::tcp::Tcp;

use super::{Called, direction};
use crate::files::Files;

/// Largest distance in bytes of new data from the last data: more than any window. Data farther away is from a forged
/// or broken packet and would make the file huge, so it is not written.
const AHEAD_MAX: i64 = 1 << 30;

/// A direction's file.
struct Stream {
    file: FileId,
    /// The sequence number of the last data, and its offset in the file.
    sequence: u32,
    place: i64,
}

/// The files.
pub(super) struct Contents {
    files: Files,
    prefix: String,
    streams: HashMap<(u64, bool), Stream>,
}

impl Contents {
    pub(super) fn new(files: Files, prefix: String) -> Contents {
        Contents {
            files,
            prefix,
            streams: HashMap::new(),
        }
    }

    pub(super) fn segment(
        &mut self,
        called: Called,
        tcp: &Tcp<'_>,
        connection: &Connection,
        from_a: bool,
    ) {
        if tcp.payload.is_empty() {
            return;
        }
        let Contents {
            files,
            prefix,
            streams,
        } = self;
        let stream = streams.entry((called.pair, from_a)).or_insert_with(|| {
            let this = if from_a { &connection.a } else { &connection.b };
            let name = format!("{prefix}{}_contents.dat", direction(called.pair, from_a));
            Stream {
                file: files.open(&name),
                // The file starts after the SYN; without one, with the first data in the capture.
                sequence: this
                    .syn
                    .map_or(tcp.sequence, |syn| (syn as u32).wrapping_add(1)),
                place: 0,
            }
        });
        // The data of a SYN follows the SYN.
        let syn = u32::from(tcp.flags.contains(wire::tcp::Flags::SYN));
        let sequence = tcp.sequence.wrapping_add(syn);
        let ahead = i64::from(sequence.wrapping_sub(stream.sequence) as i32);
        let place = stream.place + ahead;
        if place < 0 || ahead > AHEAD_MAX {
            return;
        }
        (stream.sequence, stream.place) = (sequence, place);
        files.write_at(stream.file, tcp.payload, place as u64);
    }

    /// A connection has finished.
    pub(super) fn close(&mut self, pair: u64) {
        for of_a in [true, false] {
            if let Some(stream) = self.streams.remove(&(pair, of_a)) {
                self.files.close(stream.file);
            }
        }
    }

    pub(super) fn finish(self) -> Files {
        self.files
    }
}
