//! The directories for captures and graphs. Directories that the run made are removed when it ends,
//! also after a signal.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cli::interrupt::{self, AtEnd};
use lab::captures::{Kind, Scale};

use super::child::read;

/// A capture as a file.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    pub(super) kind: &'static Kind,
    pub(super) factor: f64,
    pub(super) path: PathBuf,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Number of connections, once they were counted.
    pub(super) connections: Option<u64>,
}

/// The directories of a run.
pub(super) struct CaptureStore {
    at_end: Option<AtEnd>,
    own: PathBuf,
    /// The directory where captures are kept between runs, if any.
    kept: Option<PathBuf>,
}

impl CaptureStore {
    /// Makes a directory that is removed also when a signal ends the run.
    ///
    /// # Errors
    /// A directory cannot be made.
    pub(super) fn new(kept: Option<&Path>) -> Result<Self> {
        let name = format!("headend-bench-trace-{}", std::process::id());
        let own = std::env::temp_dir().join(name);
        let at_end = {
            let own = own.clone();
            interrupt::at_end(move || {
                let _ = fs::remove_dir_all(&own);
            })?
        };
        let failed = |dir: &Path| format!("cannot make {}", dir.display());
        DirBuilder::new()
            .mode(0o700)
            .create(&own)
            .with_context(|| failed(&own))?;
        if let Some(kept) = kept {
            fs::create_dir_all(kept).with_context(|| failed(kept))?;
        }
        Ok(Self {
            at_end: Some(at_end),
            own,
            kept: kept.map(Path::to_owned),
        })
    }

    /// The capture of that kind and factor. Writes it if it does not exist, and reads it once, so
    /// that it is in the page cache.
    ///
    /// # Errors
    /// It cannot be written or read.
    pub(super) fn capture(&self, kind: &'static Kind, factor: f64) -> Result<Capture> {
        let scale = Scale::new(factor).context("a capture cannot be so large")?;
        let dir = self.kept.as_ref().unwrap_or(&self.own);
        let path = dir.join(format!("{}-{factor}.pcap", kind.name));
        if !path.exists() {
            // It gets its final name once it is complete.
            let begun = dir.join("partial.pcap");
            File::create(&begun)
                .and_then(|mut file| kind.write(scale, &mut file, &mut |_| {}))
                .and_then(|_| fs::rename(&begun, &path))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Capture {
            kind,
            factor,
            packets: read(&path, |_| {})?,
            bytes: fs::metadata(&path)?.len(),
            connections: None,
            path,
        })
    }

    /// Removes a capture, unless it is to be kept.
    pub(super) fn done_with(&self, capture: &Capture) {
        if self.kept.is_none() {
            // If this fails, it is removed with the directory.
            let _ = fs::remove_file(&capture.path);
        }
    }

    /// Calls `work` with an empty directory.
    ///
    /// # Errors
    /// The directory cannot be made, or those of `work`.
    pub(super) fn with_directory<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let dir = self.own.join("graphs");
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let done = work(&dir);
        fs::remove_dir_all(&dir)?;
        done
    }
}

impl Drop for CaptureStore {
    fn drop(&mut self) {
        self.at_end = None;
        // What cannot be removed stays in the system's directory for temporary files.
        let _ = fs::remove_dir_all(&self.own);
    }
}
