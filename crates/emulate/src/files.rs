//! Opens the files that scenarios name, and decompresses them.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;

/// Opens the file at `path`, and decompresses it if it starts as a gzip or bzip2 file does.
///
/// # Errors
/// The file cannot be opened. Faults further on in the file are reported by the reads.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut start = [0; 3];
    let got = file.read(&mut start)?;
    file.rewind()?;
    let file = BufReader::with_capacity(1 << 16, file);
    Ok(match &start[..got] {
        [0x1f, 0x8b, _] => Box::new(MultiGzDecoder::new(file)),
        b"BZh" => Box::new(MultiBzDecoder::new(file)),
        _ => Box::new(file),
    })
}
