//! A file that gets its name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

/// The file.
pub(crate) struct Target {
    out: BufWriter<File>,
    /// The temporary and the final name; `None` if it is not a regular file, or has its final name.
    names: Option<(PathBuf, PathBuf)>,
}

impl Target {
    /// A file that will be named `path`. A pipe or another special file at `path` is written directly.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Target> {
        // The target of a symbolic link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Target {
                out: BufWriter::new(file),
                names: None,
            });
        }
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is no name of a file",
            ));
        };
        let mut present = std::ffi::OsString::from(".");
        present.push(name);
        present.push(format!(".{}.part", process::id()));
        let present = path.with_file_name(present);
        Ok(Target {
            out: BufWriter::new(File::create(&present)?),
            names: Some((present, path)),
        })
    }

    /// Gives the complete file its final name.
    ///
    /// # Errors
    /// It cannot be written or named.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        if let Some((present, path)) = &self.names {
            fs::rename(present, path)?;
        }
        self.names = None;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.out.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Target {
    /// Removes an incomplete file.
    fn drop(&mut self) {
        if let Some((present, _)) = &self.names {
            // A destructor cannot report the error.
            let _ = fs::remove_file(present);
        }
    }
}
