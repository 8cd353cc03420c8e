//! An interface's offloads (ethtool's `SIOCETHTOOL`): reading and setting them, and keeping them off so that packets
//! look as on a wire. Start with [`OffloadsOff`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys::interface::ethtool;
use crate::syscalls::{Call, enter};

/// A set of flags; one of them joins received packets in the card.
const FLAGS: (u32, u32) = (0x25, 0x26);
const LRO: u32 = 1 << 15;

/// An offload that has a switch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Joins received packets of a flow, in the stack.
    Gro,
    /// Lets large packets reach the driver unsegmented.
    Gso,
    /// Segments TCP in the card.
    Tso,
    /// Computes checksums in the card. Without it the card cannot segment either, UDP included.
    TxChecksum,
}

impl Switch {
    /// In the order in which they are turned off.
    const ALL: [Switch; 4] = [Switch::Gro, Switch::Gso, Switch::Tso, Switch::TxChecksum];

    /// Its name, as ethtool has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Switch::Gro => "gro",
            Switch::Gso => "gso",
            Switch::Tso => "tso",
            Switch::TxChecksum => "tx checksum",
        }
    }

    /// The commands that read and set it.
    const fn commands(self) -> (u32, u32) {
        match self {
            Switch::Gro => (0x2b, 0x2c),
            Switch::Gso => (0x23, 0x24),
            Switch::Tso => (0x1e, 0x1f),
            Switch::TxChecksum => (0x16, 0x17),
        }
    }
}

/// Whether an interface segments TCP by itself now.
pub(super) fn cuts_tcp(socket: BorrowedFd<'_>, name: &str) -> bool {
    ethtool(socket, name, Switch::Tso.commands().0, 0).is_ok_and(|value| value != 0)
}

/// The settings of an interface of the calling thread's network namespace.
#[derive(Debug)]
pub struct Settings {
    socket: OwnedFd,
    name: String,
}

impl Settings {
    /// The settings of the interface `name`, which need not exist yet.
    ///
    /// # Errors
    /// The kernel's error for a socket.
    pub fn of(name: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        enter(Call::Socket)?;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        Ok(Self {
            socket,
            name: name.to_owned(),
        })
    }

    /// Whether an offload is on; `None` if the interface lacks it.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn is_on(&self, switch: Switch) -> io::Result<Option<bool>> {
        let value = self.ask(switch.commands().0, 0)?;
        Ok(value.map(|value| value != 0))
    }

    /// Turns an offload on or off. Returns `false` if the interface cannot.
    ///
    /// # Errors
    /// The interface does not exist, or the privilege (`CAP_NET_ADMIN`) is missing.
    pub fn set(&self, switch: Switch, on: bool) -> io::Result<bool> {
        Ok(self.ask(switch.commands().1, on.into())?.is_some())
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

    fn has_lro(&self) -> io::Result<bool> {
        Ok(self.ask(FLAGS.0, 0)?.is_some_and(|flags| flags & LRO != 0))
    }

    fn set_lro(&self, on: bool) -> io::Result<bool> {
        let flags = self.ask(FLAGS.0, 0)?.unwrap_or(0);
        let flags = if on { flags | LRO } else { flags & !LRO };
        Ok(self.ask(FLAGS.1, flags)?.is_some())
    }
}

/// Which offloads to turn off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All, so that packets look as on a wire.
    All,
    /// LRO alone: the packets that a card joins by it cannot be cut into the same ones again.
    Lro,
}

impl Scope {
    const fn switches(self) -> &'static [Switch] {
        match self {
            Scope::All => &Switch::ALL,
            Scope::Lro => &[],
        }
    }
}

/// The offloads of an interface, off until this is dropped.
#[derive(Debug)]
pub struct OffloadsOff {
    settings: Settings,
    scope: Scope,
    /// The offloads that were on.
    former: Vec<Switch>,
    had_lro: bool,
}

/// What names LRO in a record.
const LRO_NAME: &str = "lro";

impl OffloadsOff {
    /// Turns off GRO, LRO, GSO, TSO and transmit checksums of an interface in the calling thread's network namespace.
    /// Settings that the interface cannot change stay as they are.
    ///
    /// # Errors
    /// The interface does not exist, or the privilege (`CAP_NET_ADMIN`) is missing; offloads turned off until then
    /// are on again.
    pub fn new(name: &str) -> io::Result<Self> {
        let mut off = Self::find(name, "", Scope::All)?;
        off.turn_off()?;
        Ok(off)
    }

    /// Finds the offloads that are on, and takes those of `record` for on as well: another process turned them off
    /// and was killed before it turned them on again. All of them are turned on when this is dropped; recorded ones
    /// outside `scope` are turned on at once.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn find(name: &str, record: &str, scope: Scope) -> io::Result<Self> {
        let settings = Settings::of(name)?;
        let recorded = |name: &str| record.split(',').any(|one| one.trim() == name);
        let mut former = Vec::new();
        for switch in Switch::ALL {
            let is_left = recorded(switch.name());
            if !scope.switches().contains(&switch) {
                if is_left {
                    settings.set(switch, true)?;
                }
            } else if is_left || settings.is_on(switch)? == Some(true) {
                former.push(switch);
            }
        }
        let had_lro = settings.has_lro()? || recorded(LRO_NAME);
        Ok(Self {
            settings,
            scope,
            former,
            had_lro,
        })
    }

    /// Turns off what [`OffloadsOff::find`] found.
    ///
    /// # Errors
    /// As [`OffloadsOff::new`].
    pub fn turn_off(&mut self) -> io::Result<()> {
        let mut done = Vec::new();
        for &switch in &self.former {
            if self.settings.set(switch, false)? {
                done.push(switch);
            }
        }
        self.former = done;
        if self.had_lro {
            self.had_lro = self.settings.set_lro(false)?;
        }
        Ok(())
    }

    /// Turns off what another program has turned on meanwhile; it is on again when this is dropped. Returns the names
    /// of that.
    ///
    /// # Errors
    /// As [`OffloadsOff::new`].
    pub fn keep_off(&mut self) -> io::Result<Vec<&'static str>> {
        let mut names = Vec::new();
        for &switch in self.scope.switches() {
            if self.settings.is_on(switch)? == Some(true) && self.settings.set(switch, false)? {
                names.push(switch.name());
                if !self.former.contains(&switch) {
                    self.former.push(switch);
                }
            }
        }
        if self.settings.has_lro()? && self.settings.set_lro(false)? {
            names.push(LRO_NAME);
            self.had_lro = true;
        }
        Ok(names)
    }

    /// Names of the offloads that were on, which are on again when this is dropped: a record, if joined by commas.
    pub fn turned_off(&self) -> impl Iterator<Item = &'static str> + '_ {
        let lro = self.had_lro.then_some(LRO_NAME);
        self.former.iter().map(|switch| switch.name()).chain(lro)
    }
}

impl Drop for OffloadsOff {
    fn drop(&mut self) {
        // An interface that has vanished needs no restoring.
        if self.had_lro {
            let _ = self.settings.set_lro(true);
        }
        for switch in self.former.iter().rev() {
            let _ = self.settings.set(*switch, true);
        }
    }
}
