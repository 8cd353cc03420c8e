//! Unix.

use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process;

/// Whether it is a pipe or the like, which may be silent for long.
pub(in super::super) fn is_pipe(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_char_device()
}

/// Standard input as a file.
pub(in super::super) fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

pub(in super::super) fn read_exact_at(
    file: &File,
    octets: &mut [u8],
    offset: u64,
) -> io::Result<()> {
    file.read_exact_at(octets, offset)
}

pub(in super::super) fn write_all_at(file: &File, octets: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(octets, offset)
}

/// An unlinked file: only this process can use it, and it disappears when the process ends.
pub(in super::super) fn unnamed_file() -> io::Result<File> {
    let mut attempt = 0;
    loop {
        let name = format!("headend-trace-{}-{attempt}", process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
