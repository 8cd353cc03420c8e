//! Which offloads a running shaper has turned off, in a file for each interface: if the shaper and its keeper are both
//! killed, the next shaper of the network namespace finds the file.
//!
//! The file's name has the inode of the network namespace and the index of the interface; its text is the interface's
//! name and the offloads that were on. It is in a directory that is empty after a restart of the host, as offloads are
//! what the driver makes them then.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where root's records are; else they are below `$RUNTIME_DIRECTORY` or `$XDG_RUNTIME_DIR`.
const DIRECTORY: &str = "/run/headend-qos";

/// The records of the calling thread's network namespace.
#[derive(Debug)]
pub(super) struct Records {
    directory: PathBuf,
    namespace: u64,
}

/// A record that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) index: u32,
    pub(super) name: String,
    /// Names of offloads, with commas between.
    pub(super) offloads: String,
}

impl Records {
    /// # Errors
    /// There is no directory for them.
    pub(super) fn open() -> io::Result<Self> {
        let own = |path: &Path| {
            let mut builder = fs::DirBuilder::new();
            match builder.mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                // Another user's directory could hold anything.
                _ if fs::symlink_metadata(path)?.uid() != rustix::process::geteuid().as_raw() => {
                    Err(io::ErrorKind::PermissionDenied.into())
                }
                _ => Ok(path.to_owned()),
            }
        };
        let directory = own(Path::new(DIRECTORY)).or_else(|error| {
            let places = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];
            let run = places.into_iter().find_map(std::env::var_os).ok_or(error)?;
            own(&PathBuf::from(run).join("headend-qos"))
        })?;
        Self::in_directory(directory)
    }

    fn in_directory(directory: PathBuf) -> io::Result<Self> {
        let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
        Ok(Self {
            directory,
            namespace,
        })
    }

    fn path(&self, index: u32) -> PathBuf {
        self.directory.join(format!("{}-{index}", self.namespace))
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Record> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let index = |name: String| {
            let (namespace, index) = name.split_once('-')?;
            let is_ours = namespace.parse() == Ok(self.namespace);
            is_ours.then(|| index.parse().ok()).flatten()
        };
        let mut all: Vec<Record> = names
            .filter_map(index)
            .filter_map(|index| self.read(index))
            .collect();
        all.sort_unstable_by_key(|record| record.index);
        all
    }

    /// The record of an interface.
    pub(super) fn read(&self, index: u32) -> Option<Record> {
        let text = fs::read_to_string(self.path(index)).ok()?;
        let (name, offloads) = text.trim_end().split_once(": ")?;
        Some(Record {
            index,
            name: name.to_owned(),
            offloads: offloads.to_owned(),
        })
    }

    /// Writes the record of an interface, whole or not at all.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let path = self.path(record.index);
        let fresh = path.with_extension("new");
        fs::write(&fresh, format!("{}: {}\n", record.name, record.offloads))?;
        fs::rename(&fresh, &path)
    }

    pub(super) fn remove(&self, index: u32) {
        // A record that is gone already needs no more.
        let _ = fs::remove_file(self.path(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_of_this_network_namespace_and_survive_rubbish_beside_them() {
        let directory = std::env::temp_dir().join(format!("qos-records-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let records = Records::in_directory(directory.clone()).unwrap();
        let record = |index, offloads: &str| Record {
            index,
            name: format!("eth{index}"),
            offloads: offloads.to_owned(),
        };
        for (index, offloads) in [(7, "gro, gso"), (3, "tx checksum"), (9, "lro")] {
            records.write(&record(index, offloads)).unwrap();
        }
        records.remove(9);
        for rubbish in ["1-2", "no record", "7", "-"] {
            fs::write(directory.join(rubbish), "eth0: gro").unwrap();
        }
        fs::write(records.path(11), "no colon").unwrap();
        let expected = [record(3, "tx checksum"), record(7, "gro, gso")];
        assert_eq!(records.all(), expected);
        assert_eq!(records.read(7).unwrap().offloads, "gro, gso");
        fs::remove_dir_all(&directory).unwrap();
    }
}
