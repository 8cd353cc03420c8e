//! An interface's offloads, and turning them off (ethtool's `SIOCETHTOOL`), so that packets look as on a wire.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys::interface::ethtool;
use crate::syscalls::{Call, enter};

/// Joins received packets of a flow, in the stack.
const GRO: (u32, u32) = (0x2b, 0x2c);
/// Lets large packets reach the driver unsegmented.
const GSO: (u32, u32) = (0x23, 0x24);
/// Segments TCP in the card.
const TSO: (u32, u32) = (0x1e, 0x1f);
/// Computes checksums in the card. Without it the card cannot segment either, UDP included.
const TX_CHECKSUM: (u32, u32) = (0x16, 0x17);
/// A set of flags; one of them joins received packets in the card.
const FLAGS: (u32, u32) = (0x25, 0x26);
const LRO: u32 = 1 << 15;

/// In the order in which they are turned off.
const SWITCHES: [(u32, u32); 4] = [GRO, GSO, TSO, TX_CHECKSUM];

/// Whether an interface cuts TCP by itself now.
pub(super) fn cuts_tcp(socket: BorrowedFd<'_>, name: &str) -> bool {
    ethtool(socket, name, TSO.0, 0).is_ok_and(|value| value != 0)
}

/// The offloads of an interface, off until this is dropped.
#[derive(Debug)]
pub struct OffloadsOff {
    socket: OwnedFd,
    name: String,
    /// The former state of each switch; `None` if the interface lacks it or it was off.
    former: [Option<u32>; 4],
    former_flags: Option<u32>,
}

impl OffloadsOff {
    /// Turns off GRO, LRO, GSO, TSO and transmit checksums of an interface in the calling thread's network namespace.
    /// Settings that the interface cannot change stay as they are.
    ///
    /// # Errors
    /// The interface does not exist, or the privilege (`CAP_NET_ADMIN`) is missing; offloads turned off until then
    /// are on again.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::of(name, &SWITCHES)
    }

    /// Turns off LRO alone: the card joins packets by it such that they cannot be cut again into the same ones.
    ///
    /// # Errors
    /// As [`OffloadsOff::new`].
    pub fn lro(name: &str) -> io::Result<Self> {
        Self::of(name, &[])
    }

    fn of(name: &str, switches: &[(u32, u32)]) -> io::Result<Self> {
        enter(Call::Socket)?;
        let socket = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut off = Self {
            socket,
            name: name.to_owned(),
            former: [None; 4],
            former_flags: None,
        };
        for (index, (get, set)) in switches.iter().copied().enumerate() {
            let value = off.ask(get, 0)?.filter(|&value| value != 0);
            if value.is_some() && off.ask(set, 0)?.is_some() {
                off.former[index] = value;
            }
        }
        let flags = off.ask(FLAGS.0, 0)?.filter(|flags| flags & LRO != 0);
        if let Some(flags) = flags
            && off.ask(FLAGS.1, flags & !LRO)?.is_some()
        {
            off.former_flags = Some(flags);
        }
        Ok(off)
    }

    /// Names of the offloads that were on and are off now.
    pub fn turned_off(&self) -> impl Iterator<Item = &'static str> + '_ {
        let names = ["gro", "gso", "tso", "tx checksum"];
        let switches = names.into_iter().zip(self.former);
        let flags = [("lro", self.former_flags)];
        switches
            .chain(flags)
            .filter(|(_, former)| former.is_some())
            .map(|(name, _)| name)
    }

    /// Reads or writes a setting; `None` if the interface lacks it.
    fn ask(&self, command: u32, value: u32) -> io::Result<Option<u32>> {
        match ethtool(self.socket.as_fd(), &self.name, command, value) {
            Ok(value) => Ok(Some(value)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl Drop for OffloadsOff {
    fn drop(&mut self) {
        // An interface that has vanished needs no restoring.
        if let Some(flags) = self.former_flags {
            let _ = self.ask(FLAGS.1, flags);
        }
        for ((_, set), former) in SWITCHES.into_iter().zip(self.former).rev() {
            if let Some(value) = former {
                let _ = self.ask(set, value);
            }
        }
    }
}
