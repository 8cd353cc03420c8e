//! The Ethernet frames of a few protocols at one interface, in batches.
//!
//! An [`EtherSocket`] is a packet socket (packet(7)) with a filter: it receives the frames of some EtherTypes that are
//! addressed to the interface or to a group, under up to two VLAN tags. The kernel drops all other frames before they
//! cost anything here. The interface stays the host's: its own stack still sees every frame.
//!
//! The kernel removes the outermost VLAN tag; [`EtherFrame::tag`] has it. Frames to send contain their tags.
//!
//! Left out: offloads ([`crate::port`] has them).

mod filter;
mod recv;
mod send;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::name_to_index;

pub use recv::{EtherFrame, EtherRecv};
pub use send::EtherSend;

use crate::buffers::{self, BufferReport, BufferSide};
use crate::port::PortError;
use crate::sys::{ether, interface, packet, socket};

/// Options of an [`EtherSocket`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtherOptions {
    /// The EtherTypes to receive, at most 16.
    pub types: Vec<u16>,
    /// Whether frames to any destination are received, as a load that plays many hosts needs. The interface must not
    /// filter them: a veth pair does not.
    pub any_destination: bool,
    /// Which part of the frames to receive; all of them if `None`.
    pub spread: Option<Spread>,
    /// Receive buffer in bytes, including the kernel's overhead; the kernel's default if `None`.
    pub recv_buffer_bytes: Option<usize>,
    /// Send buffer in bytes; the kernel's default if `None`.
    pub send_buffer_bytes: Option<usize>,
}

/// A division of frames over sockets of several threads. Frames of other EtherTypes belong to part 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The EtherType whose frames are divided.
    pub kind: u16,
    /// Where a 16-bit number is, in bytes behind the EtherType. Its remainder by `parts` is the frame's part.
    pub offset: u8,
    /// Number of parts.
    pub parts: u16,
    /// The part of this socket.
    pub part: u16,
}

/// Counters of an [`EtherSocket`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EtherStats {
    /// Frames received.
    pub received: u64,
    /// Frames longer than any that an interface should pass.
    pub truncated: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the kernel refused: its queue for the interface was full, or they were too long.
    pub refused: u64,
    /// How often the send buffer was full.
    pub blocked: u64,
    /// Frames that the kernel dropped because they were not read in time, as of the last [`EtherSocket::look`].
    pub missed: u64,
}

/// A packet socket for some protocols of one interface.
#[derive(Debug)]
pub struct EtherSocket {
    fd: OwnedFd,
    name: String,
    options: EtherOptions,
    /// The interface that it is bound to.
    bound: Bound,
    stats: EtherStats,
    buffers: [Option<BufferReport>; 2],
}

/// An interface as it was when a socket was bound to it.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    index: u32,
    mac: [u8; 6],
    mtu: u32,
}

impl EtherSocket {
    /// Opens a socket for the interface `name`. It receives nothing before [`EtherSocket::bind`], which needs no
    /// privilege.
    ///
    /// # Errors
    /// The privilege is missing, or the kernel's error.
    pub fn open(name: &str, options: &EtherOptions) -> Result<Self, PortError> {
        let other = |error: io::Error| PortError::Other(name.to_owned(), error);
        let fd = packet::open().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => PortError::Denied(name.to_owned()),
            _ => other(error),
        })?;
        let sized = |side, bytes: Option<usize>| {
            let report = bytes.map(|bytes| buffers::size(&fd, side, bytes));
            report.transpose().map_err(other)
        };
        let buffers = [
            sized(BufferSide::Receive, options.recv_buffer_bytes)?,
            sized(BufferSide::Send, options.send_buffer_bytes)?,
        ];
        ether::describe(&fd).map_err(other)?;
        Ok(Self {
            fd,
            name: name.to_owned(),
            options: options.clone(),
            bound: Bound::default(),
            stats: EtherStats::default(),
            buffers,
        })
    }

    /// Binds the socket to its interface in the calling thread's network namespace, also after the interface was
    /// down or was made again.
    ///
    /// # Errors
    /// The interface does not exist, is no Ethernet interface or is down.
    pub fn bind(&mut self) -> Result<(), PortError> {
        let (fd, name) = (&self.fd, &self.name);
        let other = |error: io::Error| PortError::Other(name.clone(), error);
        let flags =
            interface::flags(fd.as_fd(), name).map_err(|error| match error.raw_os_error() {
                Some(libc::ENODEV) => PortError::Unknown(name.clone()),
                _ => other(error),
            })?;
        let index = name_to_index(fd, name).map_err(|error| other(error.into()))?;
        let (link, mac) = interface::hardware(fd.as_fd(), name).map_err(other)?;
        if link != libc::ARPHRD_ETHER {
            return Err(PortError::NotEthernet(name.clone()));
        }
        if flags & libc::IFF_UP == 0 {
            return Err(PortError::Down(name.clone()));
        }
        // The filter comes first, so that no other frame is queued before it.
        let to = (!self.options.any_destination).then_some(mac);
        let program = filter::program(to, &self.options.types, self.options.spread);
        socket::attach_filter(fd.as_fd(), &program).map_err(other)?;
        packet::bind_to(fd, index).map_err(other)?;
        let mtu = interface::mtu(fd.as_fd(), name).map_err(other)?;
        self.bound = Bound { index, mac, mtu };
        Ok(())
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's MAC address when the socket was bound.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.bound.mac
    }

    /// The interface's MTU in bytes, without the Ethernet header, as of the last [`EtherSocket::check`].
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.bound.mtu
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> EtherStats {
        self.stats
    }

    /// The results of the requests for buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferReport> {
        self.buffers.iter().flatten()
    }

    /// Asks the kernel how many frames it dropped since they were not read in time.
    pub fn look(&mut self) -> EtherStats {
        self.stats.missed += packet::drops(&self.fd).map_or(0, u64::from);
        self.stats
    }

    /// Whether the interface exists and is up, so that [`EtherSocket::bind`] is worth a try.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let flags = interface::flags(self.fd.as_fd(), &self.name);
        flags.is_ok_and(|flags| flags & libc::IFF_UP != 0)
    }

    /// Whether the interface is still the one that the socket was bound to: same index, same MAC address, and up.
    /// Reads its MTU.
    ///
    /// # Errors
    /// What changed; the socket must be bound again.
    pub fn check(&mut self) -> Result<(), PortError> {
        let fault = |error| PortError::Other(self.name.clone(), error);
        let is_there = name_to_index(&self.fd, &self.name) == Ok(self.bound.index);
        if !is_there {
            return Err(PortError::Gone(self.name.clone()));
        }
        let flags = interface::flags(self.fd.as_fd(), &self.name).map_err(fault)?;
        if flags & libc::IFF_UP == 0 {
            return Err(PortError::Down(self.name.clone()));
        }
        let (_, mac) = interface::hardware(self.fd.as_fd(), &self.name).map_err(fault)?;
        if mac != self.bound.mac {
            let changed = io::Error::other("the MAC address changed");
            return Err(PortError::Other(self.name.clone(), changed));
        }
        self.bound.mtu = interface::mtu(self.fd.as_fd(), &self.name).map_err(fault)?;
        Ok(())
    }

    /// The reason of an error of the kernel: the interface is down or gone; the kernel reports the same for both.
    fn fault(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                let is_there = name_to_index(&self.fd, &self.name) == Ok(self.bound.index);
                let kind = if is_there {
                    PortError::Down
                } else {
                    PortError::Gone
                };
                kind(self.name.clone())
            }
            _ => PortError::Other(self.name.clone(), error),
        }
    }
}

impl AsFd for EtherSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
