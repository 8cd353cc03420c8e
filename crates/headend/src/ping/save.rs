//! Result files by name: as they are, `.gz`, `.zst`. What is read is told by content.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ping::Outcome;
use ping::file::{ReadError, read, write};

/// Compressed as it is written, which has to be quick: 10,000,000 packets are 300 MB of text.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;
/// Octets by which a compression is told.
const MAGIC_MAX: u64 = 4;

/// A file that will be there whole or not at all: what is written goes beside it first.
pub(super) struct Target {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
}

impl Target {
    /// Makes sure that it can be written, before anything is measured for it.
    ///
    /// # Errors
    /// That it cannot.
    pub(super) fn open(path: &Path) -> Result<Target> {
        let cannot = || format!("cannot write {}", path.display());
        if path.is_dir() {
            return Err(anyhow!("it is a directory")).with_context(cannot);
        }
        let name = path.file_name().ok_or_else(|| anyhow!("it has no name"));
        let name = name.with_context(cannot)?.to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create_new(&part).with_context(cannot)?;
        Ok(Target {
            path: path.to_owned(),
            part,
            file: Some(file),
        })
    }

    /// Writes the result and puts it in its place.
    ///
    /// # Errors
    /// What the file system said; what stood there before stands there still.
    pub(super) fn write(mut self, outcome: &Outcome) -> Result<()> {
        let cannot = || format!("cannot write {}", self.path.display());
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let file = BufWriter::with_capacity(1 << 18, file);
        let done = match self.path.extension().and_then(|name| name.to_str()) {
            Some("gz") => {
                let mut gzip = GzEncoder::new(file, flate2::Compression::new(GZIP_LEVEL));
                write(outcome, &mut gzip).and_then(|()| gzip.finish())
            }
            Some("zst") => zstd::Encoder::new(file, ZSTD_LEVEL).and_then(|mut zstd| {
                write(outcome, &mut zstd)?;
                zstd.finish()
            }),
            _ => {
                let mut file = file;
                write(outcome, &mut file).map(|()| file)
            }
        };
        let mut file = done.with_context(cannot)?;
        file.flush()
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.part, &self.path))
            .with_context(cannot)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // After it was put in its place there is none.
        let _ = fs::remove_file(&self.part);
    }
}

/// Reads a result.
///
/// # Errors
/// The file, and why it is none.
pub(super) fn load(path: &Path) -> Result<Outcome> {
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

/// An error of reading something compressed is the compression's: damage.
fn compressed(error: ReadError) -> ReadError {
    match error {
        ReadError::Io(error) => ReadError::Damaged(error.to_string()),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ping::{Experiment, Plan};

    fn outcome() -> Outcome {
        let plan = Plan {
            streams: vec![],
            wait: base::Duration::from_secs(1),
            samples_max: 1,
        };
        Experiment::new(plan, base::Instant::ZERO).finish(7, false)
    }

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("headend-ping-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
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
            Target::open(&path).unwrap().write(&outcome()).unwrap();
            let octets = fs::read(&path).unwrap();
            assert!(octets.starts_with(magic), "{name}");
            let other = place.0.join("other");
            fs::rename(&path, &other).unwrap();
            assert_eq!(load(&other).unwrap(), outcome());
            fs::write(&other, &octets[..octets.len() - 5]).unwrap();
            let error = load(&other).unwrap_err().to_string();
            assert!(error.ends_with("other: cut short"), "{name}: {error}");
        }
        assert_eq!(
            fs::read_dir(&place.0).unwrap().count(),
            1,
            "no part is left"
        );
    }

    #[test]
    fn what_cannot_be_written_is_said_before_anything_is_measured() {
        let place = Place::new("refused");
        let error = Target::open(&place.0.join("no/where")).err().unwrap();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert!(Target::open(&place.0).is_err());
        drop(Target::open(&place.0.join("unused")).unwrap());
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
    }
}
