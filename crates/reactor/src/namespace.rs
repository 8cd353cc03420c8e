//! Unnamed network namespaces, which vanish when nothing is in them, even if this process was killed.
//!
//! A [`Namespace`] is a descriptor. A socket belongs to the namespace of the thread that opens it, so work in a
//! namespace by [`Namespace::run`], [`Namespace::spawn`] or [`Namespace::command`]. Creating one needs a privilege. A
//! process without it calls [`become_root_in_user_namespace`] first, or restarts itself by [`root_command`], and is
//! root in its own namespaces.
//!
//! Left out: named namespaces (`ip netns`), and other kinds except user namespaces.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::thread::JoinHandle;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::netlink::Netlink;
use crate::sys::namespace as sys;

/// A network namespace; it vanishes with the last thread, process, socket or descriptor in it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates one, with its loopback interface up.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without the privilege; the text says what to do.
    pub fn new() -> io::Result<Self> {
        let namespace = on_thread("namespace", || {
            sys::unshare_network().map_err(|error| refused(&error, "a network namespace"))?;
            Self::of_this_thread()
        })??;
        namespace.run(|| Netlink::open()?.set_up("lo", true))??;
        Ok(namespace)
    }

    /// Creates one with the Ethernet interface `name`, which is up and has an address. The other end of its wire is
    /// the interface `peer`, which is up too.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn with_interface(
        (name, peer): (&str, &str),
        (address, length): (IpAddr, u8),
    ) -> io::Result<Self> {
        let namespace = Self::new()?;
        let mut netlink = namespace.netlink()?;
        netlink.add_veth(name, peer, None)?;
        for one in [name, peer] {
            netlink.set_up(one, true)?;
        }
        netlink.add_address(name, address, length)?;
        Ok(namespace)
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's error, for example that `/proc` is missing.
    pub fn of_this_thread() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Moves the calling thread into it, permanently.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(
            self.0.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }

    /// Runs `work` on a thread in it, and returns its result. A panic in it continues in the caller.
    ///
    /// # Errors
    /// The kernel's error for the thread, or for entering the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread("in namespace", || self.enter().map(|()| work()))?
    }

    /// Starts a thread in it.
    ///
    /// # Errors
    /// The kernel's error for the thread, or for entering the namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<io::Result<T>>> {
        let here = Self(self.0.try_clone()?);
        let builder = std::thread::Builder::new().name(name.to_owned());
        builder.spawn(move || here.enter().map(|()| work()))
    }

    /// Makes `command` start its process in this namespace. The kernel kills the process when the thread that started
    /// it ends, so start it from a thread that lives long enough, ideally the main thread.
    ///
    /// # Errors
    /// The kernel's error for the descriptor that the process needs.
    pub fn command<'a>(&self, command: &'a mut Command) -> io::Result<&'a mut Command> {
        sys::start_in(command, self.0.try_clone()?.into());
        Ok(command)
    }

    /// Opens a netlink socket in it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn netlink(&self) -> io::Result<Netlink> {
        self.run(Netlink::open)?
    }

    /// Enables forwarding of IPv4 and IPv6 packets.
    ///
    /// # Errors
    /// As [`Namespace::set`].
    pub fn forward(&self) -> io::Result<()> {
        self.set("ipv4/ip_forward", "1")?;
        match self.set("ipv6/conf/all/forwarding", "1") {
            // A kernel without IPv6 has no such setting.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Writes a setting of the namespace under `/proc/sys/net`: `("ipv4/ip_forward", "1")`.
    ///
    /// # Errors
    /// The kernel's error, for example that there is no such setting.
    pub fn set(&self, setting: &str, value: &str) -> io::Result<()> {
        self.run(|| std::fs::write(format!("/proc/sys/net/{setting}"), value))?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A virtual wire: two Ethernet interfaces, each given by its namespace and name. Both are down.
///
/// # Errors
/// The kernel's error, for example that a name is taken.
pub fn veth(one: (&Namespace, &str), other: (&Namespace, &str)) -> io::Result<()> {
    let peer = Some(other.0.as_fd());
    one.0.netlink()?.add_veth(one.1, other.1, peer)
}

/// Makes this process root of its own user namespace and network namespace, with the loopback interface up. It may
/// create further network namespaces then. Outside of them its permissions are unchanged, and its user's files still
/// belong to it.
///
/// Call it before the first thread is started.
///
/// # Errors
/// The kernel's error; the text says what to do. The process is as before, or about to exit.
pub fn become_root_in_user_namespace() -> io::Result<()> {
    sys::become_root().map_err(|error| refused(&error, "a user namespace"))?;
    Netlink::open()?.set_up("lo", true)
}

/// Makes `command` start its process as root of its own user namespace and network namespace, with the loopback
/// interface down. The kernel kills the process when the thread that started it ends. Starting fails if the system
/// forbids it.
pub fn root_command(command: &mut Command) -> &mut Command {
    sys::start_as_root(command);
    command
}

/// Runs `work` on its own thread, and waits for it.
fn on_thread<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn_scoped(scope, work)?;
        Ok(thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The kernel's error, with what to do about it.
fn refused(error: &io::Error, what: &str) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run as root, or allow user namespaces (kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns)"
        }
        Some(libc::ENOSPC) => "raise user.max_net_namespaces or user.max_user_namespaces",
        Some(libc::EINVAL) => {
            "the process has threads already, or the kernel has no such namespaces"
        }
        _ => "the kernel said so",
    };
    io::Error::new(error.kind(), format!("cannot make {what}: {error}: {hint}"))
}
