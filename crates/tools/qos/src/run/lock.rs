//! Ensures that only one `headend qos run` uses an interface.
//!
//! The lock is an abstract Unix socket whose name contains the index of the interface. Abstract names and interface
//! indices both belong to the network namespace. No file is left over, because the kernel frees the name when the last
//! descriptor of the socket is closed. The keeper inherits the descriptors. If the shaper is killed, the lock is
//! therefore held until the keeper has restored the offloads. Start reading at [`Locks::of`].

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{bind, connect, listen, socket_with, sockopt};

use crate::system;

/// How often a lock may be asked for its process; nobody accepts these connections.
const ASKED_MAX: i32 = 4_096;

/// Time for the keeper of a shaper that was killed to restore offloads.
const RESTORED_WITHIN: Duration = Duration::from_secs(5);

/// The locks of the interfaces that this process uses.
#[derive(Debug)]
pub(super) struct Locks(Vec<OwnedFd>);

impl Locks {
    /// Locks each interface, given with its option.
    ///
    /// # Errors
    /// Another process uses one of them; none is locked then.
    pub(super) fn of(interfaces: [(&str, &str); 2]) -> Result<Self> {
        let mut locks = Vec::new();
        for (option, name) in interfaces {
            let Some(found) = system::interface(name) else {
                bail!("{option} {name}: there is no such interface");
            };
            match lock_when_free(found.index) {
                Ok(lock) => locks.push(lock),
                Err(Errno::ADDRINUSE) => {
                    let process = holder(found.index)
                        .map_or(String::new(), |process| format!(" (process {process})"));
                    bail!(
                        "{option} {name}: another headend qos run{process} shapes this interface already; stop that one \
                         first"
                    );
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("{option} {name}: cannot lock it"));
                }
            }
        }
        Ok(Self(locks))
    }

    /// Calls `start`, which starts a process; the process holds the locks too, until it ends.
    ///
    /// # Errors
    /// A system call failed.
    pub(super) fn shared_with<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        self.set_flags(FdFlags::empty())?;
        let started = start();
        self.set_flags(FdFlags::CLOEXEC)?;
        started
    }

    fn set_flags(&self, flags: FdFlags) -> io::Result<()> {
        for lock in &self.0 {
            fcntl_setfd(lock, flags)?;
        }
        Ok(())
    }
}

fn address(index: u32) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("headend-qos-interface-{index}").as_bytes())
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Locks the interface of this index, until the descriptor is closed.
///
/// # Errors
/// `ADDRINUSE` if another process has locked it.
pub(crate) fn lock(index: u32) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    bind(&socket, &address(index)?)?;
    // A listener's credentials are those of the process that holds the lock.
    listen(&socket, ASKED_MAX)?;
    Ok(socket)
}

/// Locks an interface. If the process that locked it was killed, waits for its keeper to restore offloads.
fn lock_when_free(index: u32) -> Result<OwnedFd, Errno> {
    let end = Instant::now() + RESTORED_WITHIN;
    loop {
        match lock(index) {
            Err(Errno::ADDRINUSE) if holder(index).is_some_and(is_gone) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// Whether a process has ended; a zombie has no program any more.
fn is_gone(process: i32) -> bool {
    let program = std::fs::read_link(format!("/proc/{process}/exe"));
    program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The process that holds a lock; `None` if it is in another PID namespace, or cannot be asked.
pub(crate) fn holder(index: u32) -> Option<i32> {
    let socket = socket().ok()?;
    connect(&socket, &address(index).ok()?).ok()?;
    let credentials = sockopt::socket_peercred(&socket).ok()?;
    let process = credentials.pid.as_raw_nonzero().get();
    (process > 0).then_some(process)
}
