//! `-e`: the data of each direction in a file, in its place in the stream. What the capture lacks reads as zeros.

use std::collections::HashMap;

use trace::Connection;
use trace::xplot::{FileId, Sink as _};
use wire::tcp::Tcp;

use super::{Called, direction};
use crate::files::Files;

/// Octets past the last data that data may lie and be written: more than any window there is. Farther off, it is a
/// forged or broken packet, and its place would only make the file huge.
const AHEAD_MAX: i64 = 1 << 30;

/// A direction's file.
struct Stream {
    file: FileId,
    /// The sequence number of the last data, and its place in the file.
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
                // The file begins behind the SYN; without one, with the first data there is.
                sequence: this
                    .syn
                    .map_or(tcp.sequence, |syn| (syn as u32).wrapping_add(1)),
                place: 0,
            }
        });
        // A SYN that carries data carries what follows it.
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
