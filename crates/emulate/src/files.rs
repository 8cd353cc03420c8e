//! Files that scenarios name, their compression taken off.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;

/// Opens the file at `path`; one that begins as gzip or bzip2 does is decompressed.
///
/// # Errors
/// Of the file itself; what is wrong further on is told by reading.
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
