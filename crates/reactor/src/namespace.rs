//! Network namespaces without names, which are gone when nothing is in them: also when this process was killed.
//!
//! A [`Namespace`] is a descriptor. Sockets belong to the namespace of the thread that opens them, so work in one by
//! [`Namespace::run`], [`Namespace::spawn`] or [`Namespace::command`]. Making one takes a privilege; who has none
//! calls [`become_root_in_user_namespace`] first, or starts itself anew by [`root_command`], and is root among namespaces of its own.
//!
//! Left out: namespaces with names (`ip netns`), and other kinds but for users.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::thread::JoinHandle;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::netlink::Netlink;
use crate::sys::namespace as sys;

/// A network namespace; it goes with the last thread, process, socket or descriptor in it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Makes one, with its loopback interface up.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without the privilege, with what to do about it in words.
    pub fn new() -> io::Result<Self> {
        let namespace = on_thread("namespace", || {
            sys::unshare_network().map_err(|error| refused(&error, "a network namespace"))?;
            Self::of_this_thread()
        })??;
        namespace.run(|| Netlink::open()?.set_up("lo", true))??;
        Ok(namespace)
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// What the kernel said, for example that `/proc` is not there.
    pub fn of_this_thread() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Moves the calling thread into it, for good.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(
            self.0.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }

    /// Runs `work` on a thread in it, and waits for what it returns. A panic of it goes on here.
    ///
    /// # Errors
    /// What the kernel said of the thread, or of entering.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread("in namespace", || self.enter().map(|()| work()))?
    }

    /// Starts a thread in it.
    ///
    /// # Errors
    /// What the kernel said of the thread, or of entering.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<io::Result<T>>> {
        let here = Self(self.0.try_clone()?);
        let builder = std::thread::Builder::new().name(name.to_owned());
        builder.spawn(move || here.enter().map(|()| work()))
    }

    /// Lets `command` start its process in here, to be killed when the thread that started it ends: start it from one
    /// that lives as long as the process shall, the main thread at best.
    ///
    /// # Errors
    /// What the kernel said of the descriptor that the process will need.
    pub fn command<'a>(&self, command: &'a mut Command) -> io::Result<&'a mut Command> {
        sys::start_in(command, self.0.try_clone()?.into());
        Ok(command)
    }

    /// Opens a conversation about the interfaces in it.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn netlink(&self) -> io::Result<Netlink> {
        self.run(Netlink::open)?
    }

    /// Lets it forward packets, IPv4 and IPv6.
    ///
    /// # Errors
    /// As of [`Namespace::set`].
    pub fn forward(&self) -> io::Result<()> {
        self.set("ipv4/ip_forward", "1")?;
        match self.set("ipv6/conf/all/forwarding", "1") {
            // A kernel without IPv6 has none to forward.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Writes a setting of its own under `/proc/sys/net`: `("ipv4/ip_forward", "1")`.
    ///
    /// # Errors
    /// What the kernel said, for example that there is no such setting.
    pub fn set(&self, setting: &str, value: &str) -> io::Result<()> {
        self.run(|| std::fs::write(format!("/proc/sys/net/{setting}"), value))?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A wire: two virtual Ethernet interfaces, each by its namespace and its name there. Both are down.
///
/// # Errors
/// What the kernel said, for example that a name is taken.
pub fn veth(one: (&Namespace, &str), other: (&Namespace, &str)) -> io::Result<()> {
    let peer = Some(other.0.as_fd());
    one.0.netlink()?.add_veth(one.1, other.1, peer)
}

/// Makes this process root of a user namespace and a network namespace of its own, its loopback interface up. It may
/// make more of them then. Outside of them it may what it could before; files that belong to its user still do.
///
/// Call it before the first thread is started.
///
/// # Errors
/// What the kernel said, with what to do about it in words; the process is as before, or about to exit.
pub fn become_root_in_user_namespace() -> io::Result<()> {
    sys::become_root().map_err(|error| refused(&error, "a user namespace"))?;
    Netlink::open()?.set_up("lo", true)
}

/// Lets `command` start its process as root of a user namespace and a network namespace of its own, its loopback
/// interface down, to be killed when the thread that started it ends. Starting fails where the system forbids it.
pub fn root_command(command: &mut Command) -> &mut Command {
    sys::start_as_root(command);
    command
}

/// Runs `work` on a thread of its own, and waits for it.
fn on_thread<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn_scoped(scope, work)?;
        Ok(thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The kernel's refusal with what may be done about it.
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
