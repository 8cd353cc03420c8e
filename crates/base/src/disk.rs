//! A directory of files as a trait, so that a store runs on a real disk and on one that crashes in a test.
//!
//! A write and a new name reach the disk only when they are synced: [`Disk::sync`] for a file's bytes and length,
//! [`Disk::sync_names`] for what was created, renamed and removed. Names have no path in them.

use std::io;

/// A directory of files.
pub trait Disk {
    /// An open file.
    type File;

    /// The names of the regular files, in any order.
    ///
    /// # Errors
    /// As the disk says; so for all methods.
    fn names(&mut self) -> io::Result<Vec<String>>;

    /// Creates an empty file, or empties the one of that name.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn create(&mut self, name: &str) -> io::Result<Self::File>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn open(&mut self, name: &str) -> io::Result<Self::File>;

    /// The length of a file, in bytes.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn length(&mut self, file: &Self::File) -> io::Result<u64>;

    /// Fills `into` with the bytes at `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file is too short.
    fn read(&mut self, file: &Self::File, into: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    /// Some of the bytes may be written then.
    fn write(&mut self, file: &Self::File, octets: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts a file to `length` bytes.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn cut(&mut self, file: &Self::File, length: u64) -> io::Result<()>;

    /// Waits until a file's bytes and its length are on the disk.
    ///
    /// # Errors
    /// Bytes written since the last success may be lost then, even if a later call succeeds.
    fn sync(&mut self, file: &Self::File) -> io::Result<()>;

    /// Gives a file another name, in place of a file of that name.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Waits until all names are on the disk as they are.
    ///
    /// # Errors
    /// [`Disk::names`].
    fn sync_names(&mut self) -> io::Result<()>;
}
