//! A directory for the files of a test.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory of the test's own. Dropping it removes the directory with its files.
pub(crate) struct TemporaryDirectory {
    pub(crate) path: PathBuf,
}

impl TemporaryDirectory {
    pub(crate) fn new() -> TemporaryDirectory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-trace-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        TemporaryDirectory { path }
    }

    /// Writes a file of that name, and returns its path.
    pub(crate) fn file(&self, name: &str, octets: &[u8]) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, octets).unwrap();
        path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
