//! A file that has its name only once it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

/// Where octets go.
pub(super) struct Target {
    out: BufWriter<File>,
    /// The present name and the one to be; `None` for what is no ordinary file, or has its name already.
    names: Option<(PathBuf, PathBuf)>,
}

impl Target {
    /// A file that will be `path`. What is there and no ordinary file, such as a pipe, is written as it is.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn create(path: &Path) -> io::Result<Target> {
        // What a symbolic link leads to is replaced, not the link.
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

    /// It is complete: gives it its name.
    ///
    /// # Errors
    /// It cannot be written or named.
    pub(super) fn finish(mut self) -> io::Result<()> {
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
    /// What is not complete goes.
    fn drop(&mut self) {
        if let Some((present, _)) = &self.names {
            // There is nobody to tell, and nothing else to try.
            let _ = fs::remove_file(present);
        }
    }
}
