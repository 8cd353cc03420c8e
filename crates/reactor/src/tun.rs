//! TUN devices: IP packets from and to the kernel as if by a wire (Linux's `tuntap.rst`).
//!
//! Left out: TAP, several queues, and offloads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys::interface;
use crate::syscalls::{Call, SysCounts};

/// A TUN device of this process's, in the network namespace of the thread that opened it. It goes when this does.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes a device; it is down and has no address. Packets have no header before IP's.
    ///
    /// # Errors
    /// What the kernel said: that the name is taken, the privilege missing, or `/dev/net/tun` not there.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        interface::attach_tun(file.as_fd(), name)?;
        Ok(Self {
            file,
            name: name.to_owned(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the next packet that the kernel routed to it; `None` when there is none now.
    ///
    /// # Errors
    /// What the kernel said, for example that the device is down (`EIO`).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        SysCounts::note(Call::Read);
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel a packet as if it came from a wire.
    ///
    /// # Errors
    /// What the kernel said: it is no IP packet (`EINVAL`), or the device is down (`EIO`).
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        SysCounts::note(Call::Write);
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
