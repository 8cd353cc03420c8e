//! Regular files that are read and written at offsets, so that tests can let each of their calls fail (see `faults`).
//!
//! A call blocks for as long as the disk takes; keep it off the event loop. Start with [`DiskFile::open`], or with
//! [`Directory`] for a store of several files.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::faults::part;
use crate::syscalls::{Call, enter};

/// A regular file.
#[derive(Debug)]
pub struct DiskFile(File);

impl DiskFile {
    /// Opens a file as `options` say.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        enter(Call::Open)?;
        Ok(Self(options.open(path)?))
    }

    /// Its length, kind and permissions.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn metadata(&self) -> io::Result<Metadata> {
        enter(Call::Fstat)?;
        self.0.metadata()
    }

    /// Locks it for this process alone, until it is closed. Returns `false` if another process has locked it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn lock(&self) -> io::Result<bool> {
        let operation = FlockOperation::NonBlockingLockExclusive;
        match enter(Call::Flock).and_then(|()| rustix::fs::flock(&self.0, operation)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Fills the buffer with the bytes at `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file is too short; else the kernel's error.
    pub fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            let end = done + part(Call::Pread, into.len() - done);
            let read = enter(Call::Pread).map_err(io::Error::from);
            match read.and_then(|()| self.0.read_at(&mut into[done..end], offset + done as u64)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the bytes at `offset`.
    ///
    /// # Errors
    /// The kernel's error. Some of the bytes may be written then.
    pub fn write_all_at(&self, octets: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < octets.len() {
            let end = done + part(Call::Pwrite, octets.len() - done);
            let entered = enter(Call::Pwrite).map_err(io::Error::from);
            match entered.and_then(|()| self.0.write_at(&octets[done..end], offset + done as u64)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Cuts it or lengthens it with zeros.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        again(|| {
            enter(Call::Ftruncate)?;
            self.0.set_len(length)
        })
    }

    /// Waits until its bytes and its length are on the disk.
    ///
    /// # Errors
    /// The disk's error; written bytes may be lost then.
    pub fn sync_data(&self) -> io::Result<()> {
        again(|| {
            enter(Call::Fdatasync)?;
            self.0.sync_data()
        })
    }
}

/// Gives a file another name, in place of a file of that name, and waits until that is on the disk.
///
/// # Errors
/// The kernel's error.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    enter(Call::Rename)?;
    std::fs::rename(from, to)?;
    let parent = to.parent();
    let directory = parent.filter(|parent| !parent.as_os_str().is_empty());
    sync_names(directory.unwrap_or(Path::new(".")))
}

fn sync_names(directory: &Path) -> io::Result<()> {
    enter(Call::Open)?;
    let directory = File::open(directory)?;
    again(|| {
        enter(Call::Fsync)?;
        directory.sync_all()
    })
}

/// A directory whose files only their owner may read and write. It must exist.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The directory at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn file(&self, name: &str, options: &mut OpenOptions) -> io::Result<DiskFile> {
        let options = options.read(true).write(true).mode(0o600);
        DiskFile::open(&self.0.join(name), options)
    }
}

impl base::Disk for Directory {
    type File = DiskFile;

    fn names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        enter(Call::Open)?;
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            if let (true, Ok(name)) = (
                entry.file_type()?.is_file(),
                entry.file_name().into_string(),
            ) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&mut self, name: &str) -> io::Result<DiskFile> {
        self.file(name, OpenOptions::new().create(true).truncate(true))
    }

    fn open(&mut self, name: &str) -> io::Result<DiskFile> {
        self.file(name, &mut OpenOptions::new())
    }

    fn length(&mut self, file: &DiskFile) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    fn read(&mut self, file: &DiskFile, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(into, offset)
    }

    fn write(&mut self, file: &DiskFile, octets: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(octets, offset)
    }

    fn cut(&mut self, file: &DiskFile, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&mut self, file: &DiskFile) -> io::Result<()> {
        file.sync_data()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        enter(Call::Rename)?;
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        enter(Call::Unlink)?;
        std::fs::remove_file(self.0.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        sync_names(&self.0)
    }
}

/// Repeats a call that a signal interrupted.
fn again(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{self, Plan};
    use base::Disk;

    #[test]
    fn a_directory_keeps_files_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let id = std::process::id();
        let path = std::env::temp_dir().join(format!("reactor-directory-{id}"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(path.join("below")).unwrap();
        let mut disk = Directory::new(&path);
        let file = disk.create("new").unwrap();
        disk.write(&file, b"hello, world", 0).unwrap();
        disk.cut(&file, 5).unwrap();
        disk.sync(&file).unwrap();
        disk.rename("new", "old").unwrap();
        disk.sync_names().unwrap();
        assert_eq!(disk.names().unwrap(), ["old"]);
        let file = disk.open("old").unwrap();
        let mut octets = [0; 5];
        disk.read(&file, &mut octets, 0).unwrap();
        assert_eq!((&octets, disk.length(&file).unwrap()), (b"hello", 5));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        disk.remove("old").unwrap();
        let error = disk.open("old").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn bytes_survive_parts_and_interruptions_and_faults_are_reported() {
        let path = std::env::temp_dir().join(format!("reactor-disk-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = DiskFile::open(&path, &options).unwrap();
        assert!(file.lock().unwrap());
        assert!(!DiskFile::open(&path, &options).unwrap().lock().unwrap());
        let octets: Vec<u8> = (0..10_000_u32).map(|n| n as u8).collect();
        let (mut failed, mut read) = (0, vec![0; octets.len()]);
        for seed in 0..200 {
            faults::arm(Plan {
                seed,
                one_in: 20,
                part_in: 2,
                ..Plan::default()
            });
            let done = file
                .write_all_at(&octets, 7)
                .and_then(|()| file.sync_data())
                .and_then(|()| file.read_exact_at(&mut read, 7));
            let struck = faults::disarm();
            let faults = struck
                .iter()
                .any(|(_, code, _)| ![0, libc::EINTR].contains(code));
            assert_eq!(done.is_err(), faults, "{struck:?}");
            if done.is_ok() {
                assert_eq!(read, octets);
            } else {
                failed += 1;
            }
        }
        assert!((20..180).contains(&failed), "{failed}");
        assert_eq!(file.metadata().unwrap().len(), 10_007);
        let end = file.read_exact_at(&mut read, 8).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(&path).unwrap();
    }
}
