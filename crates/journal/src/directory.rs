//! The directory on a real disk: who may read it, and which process has it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use reactor::disk::{Directory, DiskFile};

use crate::{Host, Moment, OpenError};

const LOCK: &str = "lock";
/// The most bytes of the lock's text that are read.
const TEXT_OCTETS_MAX: u64 = 64;

/// The directory, which is created if its parent exists, and its lock.
pub(crate) fn take(path: &Path) -> Result<(Directory, DiskFile), OpenError> {
    let error = |error| OpenError::Disk {
        file: path.display().to_string(),
        error,
    };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error(problem));
        }
        _ => {}
    }
    check_mode(path, 0o700)?;
    for entry in fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?;
        if entry.file_type().map_err(error)?.is_file() {
            check_mode(&entry.path(), 0o600)?;
        }
    }
    let lock = lock(path)?;
    Ok((Directory::new(path), lock))
}

fn check_mode(path: &Path, right: u32) -> Result<(), OpenError> {
    let metadata = fs::metadata(path).map_err(|error| OpenError::Disk {
        file: path.display().to_string(),
        error,
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(OpenError::Mode {
            path: path.display().to_string(),
            mode,
            right,
        }),
    }
}

/// Locks the directory for this process, and writes there which one it is.
fn lock(directory: &Path) -> Result<DiskFile, OpenError> {
    let path = directory.join(LOCK);
    let error = |error| OpenError::Disk {
        file: path.display().to_string(),
        error,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = DiskFile::open(&path, &options).map_err(error)?;
    if !file.lock().map_err(error)? {
        return Err(OpenError::InUse {
            who: holder(&file).unwrap_or_else(|_| "which is starting".to_owned()),
            directory: directory.display().to_string(),
        });
    }
    let text = format!(
        "pid {}, version {}\n",
        std::process::id(),
        env!("CARGO_PKG_VERSION")
    );
    file.set_len(0).map_err(error)?;
    file.write_all_at(text.as_bytes(), 0).map_err(error)?;
    Ok(file)
}

/// What another process wrote about itself.
fn holder(file: &DiskFile) -> io::Result<String> {
    let length = file.metadata()?.len().min(TEXT_OCTETS_MAX);
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text);
    let text: String = text.trim().chars().filter(|c| !c.is_control()).collect();
    match text.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(text),
    }
}

impl Moment {
    /// This moment by the real clocks.
    #[must_use]
    pub fn now() -> Self {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let wall = wall.map_or(0, |since| since.as_nanos());
        Self {
            clock: reactor::clock::now(),
            wall_ns: u64::try_from(wall).unwrap_or(u64::MAX),
        }
    }
}

impl Host {
    /// This machine. Without a machine id it has zeros; without a boot id, an id that no other process has.
    #[must_use]
    pub fn this() -> Self {
        let machine = fs::read_to_string("/etc/machine-id").ok();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let own = (u128::from(Moment::now().wall_ns) << 32) | u128::from(std::process::id());
        Self {
            machine: machine.and_then(|text| id(&text)).unwrap_or_default(),
            boot: boot.and_then(|text| id(&text)).unwrap_or(own.to_be_bytes()),
        }
    }
}

/// An id of 32 hexadecimal digits, with or without dashes.
fn id(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let is_id = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_id
        .then(|| u128::from_str_radix(&digits, 16).ok())
        .flatten()?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_with_and_without_dashes() {
        let plain = id("000102030405060708090a0b0c0d0e0f\n");
        assert_eq!(plain, Some(core::array::from_fn(|at| at as u8)));
        assert_eq!(id("00010203-0405-0607-0809-0a0b0c0d0e0f"), plain);
        for text in ["", "uninitialized\n", "+00102030405060708090a0b0c0d0e0f"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn the_boot_of_this_machine_stays_the_same() {
        assert_eq!(Host::this(), Host::this());
    }
}
