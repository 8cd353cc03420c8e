//! Reads and writes result files, plain or compressed. The suffix decides the format on writing, the content on
//! reading.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Result, anyhow};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ping::Outcome;
use ping::file::{ReadError, read, write};

use super::files::Target;

/// Compressed with a fast setting: 10,000,000 packets are 300 MB of text.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;
/// The leading bytes that identify each compression format.
const MAGIC_MAX: u64 = 4;

/// Writes the result, compressed as the file's suffix says.
///
/// # Errors
/// The file system's error. A previous file is left unchanged.
pub fn save(target: Target, outcome: &Outcome) -> Result<()> {
    let suffix = target.suffix().map(str::to_owned);
    target.write(|mut file| match suffix.as_deref() {
        Some("gz") => {
            let mut gzip = GzEncoder::new(file, flate2::Compression::new(GZIP_LEVEL));
            write(outcome, &mut gzip).and_then(|()| gzip.finish())
        }
        Some("zst") => zstd::Encoder::new(file, ZSTD_LEVEL).and_then(|mut zstd| {
            write(outcome, &mut zstd)?;
            zstd.finish()
        }),
        _ => write(outcome, &mut file).map(|()| file),
    })
}

/// Reads a result.
///
/// # Errors
/// The file, and why it is not a result.
pub fn load(path: &Path) -> Result<Outcome> {
    open(path).map_err(|error| match error {
        ReadError::Io(error) => anyhow!("cannot read {}: {error}", path.display()),
        error => anyhow!("{}: {error}", path.display()),
    })
}

fn open(path: &Path) -> Result<Outcome, ReadError> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    Read::by_ref(&mut file)
        .take(MAGIC_MAX)
        .read_to_end(&mut magic)?;
    let whole = io::Cursor::new(magic.clone()).chain(file);
    if magic.starts_with(&[0x1f, 0x8b]) {
        read(MultiGzDecoder::new(whole)).map_err(compressed)
    } else if magic == [0x28, 0xb5, 0x2f, 0xfd] {
        read(zstd::Decoder::new(whole)?).map_err(compressed)
    } else {
        read(whole)
    }
}

/// A read error while decompressing means that the file is damaged.
fn compressed(error: ReadError) -> ReadError {
    match error {
        ReadError::Io(error) => ReadError::Damaged(error.to_string()),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::tests::Place;
    use super::*;
    use ping::{Experiment, Plan};
    use std::fs;

    fn outcome() -> Outcome {
        let plan = Plan {
            streams: vec![],
            wait: base::Duration::from_secs(1),
            samples_max: 1,
        };
        Experiment::new(plan, base::Instant::ZERO).finish(7, false)
    }

    #[test]
    fn a_result_is_compressed_by_name_and_told_by_content() {
        let place = Place::new("names");
        for (name, magic) in [
            ("a.json", &b"{\"fo"[..]),
            ("a.json.gz", b"\x1f\x8b"),
            ("a.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ] {
            let path = place.0.join(name);
            save(Target::open(&path).unwrap(), &outcome()).unwrap();
            let octets = fs::read(&path).unwrap();
            assert!(octets.starts_with(magic), "{name}");
            let other = place.0.join("other");
            fs::rename(&path, &other).unwrap();
            assert_eq!(load(&other).unwrap(), outcome());
            fs::write(&other, &octets[..octets.len() - 5]).unwrap();
            let error = load(&other).unwrap_err().to_string();
            assert!(error.ends_with("other: cut short"), "{name}: {error}");
        }
        assert_eq!(place.count(), 1, "no part is left");
    }
}
