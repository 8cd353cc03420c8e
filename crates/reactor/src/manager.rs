//! The two ways in which a service manager and a service that it started talk: notifications of the service's state
//! (sd_notify(3)), and listening sockets that the manager opened for the service (sd_listen_fds(3)).
//!
//! [`NotifySocket`] only carries text; its owner decides what to report and when. [`inherited`] takes a listening
//! Unix socket by its name.
//!
//! Left out: the notify socket of a virtual machine (`vsock:`), and inherited sockets of other kinds.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use crate::sys::inherited;
use crate::syscalls::{Call, enter};

/// A socket that carries notifications to a service manager. It never blocks.
#[derive(Debug)]
pub struct NotifySocket {
    socket: UnixDatagram,
    manager: SocketAddr,
}

impl NotifySocket {
    /// Opens a socket to the manager at `address`, the value of `NOTIFY_SOCKET`: an absolute path, or `@` and an
    /// abstract name.
    ///
    /// # Errors
    /// The address is of another kind, or no descriptor is left.
    pub fn open(address: &OsStr) -> io::Result<Self> {
        let manager = match address.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => {
                let text = "it must start with \"/\" or \"@\"";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, manager })
    }

    /// Sends one notification: lines of `NAME=value`.
    ///
    /// # Errors
    /// `WouldBlock` while the manager's queue is full; otherwise the kernel's error.
    pub fn send(&self, text: &str) -> io::Result<()> {
        enter(Call::Sendto)?;
        self.socket
            .send_to_addr(text.as_bytes(), &self.manager)
            .map(drop)
    }
}

/// The sockets that a manager passed on: the values of `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// The process that they are for.
    pub pid: &'a str,
    /// Their number; the first is descriptor 3.
    pub count: &'a str,
    /// Their names, with colons between.
    pub names: &'a str,
}

/// Takes the listening Unix stream socket that is called `name`, so that it does not block and no child inherits it.
/// `None` if none of the sockets has this name, or if they are for another process. A second call returns `None`.
///
/// # Errors
/// The descriptor is not open, or is no listening Unix stream socket.
pub fn inherited(passed: Passed<'_>, name: &str) -> io::Result<Option<UnixListener>> {
    if passed.pid.parse() != Ok(std::process::id()) {
        return Ok(None);
    }
    let count = passed.count.parse::<usize>().unwrap_or(0);
    let mut names = passed.names.split(':').take(count);
    let Some(index) = names.position(|other| other == name) else {
        return Ok(None);
    };
    let Some(socket) = inherited::take(index)? else {
        return Ok(None);
    };
    let is_ours = rustix::net::sockopt::socket_acceptconn(socket.as_fd())?
        && rustix::net::sockopt::socket_domain(socket.as_fd())? == rustix::net::AddressFamily::UNIX
        && rustix::net::sockopt::socket_type(socket.as_fd())? == rustix::net::SocketType::STREAM;
    if !is_ours {
        let text = format!(
            "descriptor {} ({name}) is not a listening Unix stream socket",
            index + 3
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(Some(listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_arrives_at_a_path_and_at_an_abstract_name() {
        let number = std::process::id();
        let path = std::env::temp_dir().join(format!("reactor-notify-{number}"));
        let name = format!("reactor-notify-{number}");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        for (manager, address) in [
            (by_path, path.clone().into_os_string()),
            (by_name, format!("@{name}").into()),
        ] {
            let socket = NotifySocket::open(&address).unwrap();
            socket.send("READY=1\nSTATUS=well").unwrap();
            let mut octets = [0; 64];
            let length = manager.recv(&mut octets).unwrap();
            assert_eq!(&octets[..length], b"READY=1\nSTATUS=well");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_manager_that_does_not_read_does_not_block() {
        let name = format!("reactor-notify-full-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _manager = UnixDatagram::bind_addr(&address).unwrap();
        let socket = NotifySocket::open(format!("@{name}").as_ref()).unwrap();
        let error = std::iter::repeat_with(|| socket.send("WATCHDOG=1")).find_map(Result::err);
        assert_eq!(error.unwrap().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn other_kinds_of_address_are_refused() {
        for address in ["", "run/notify", "vsock:2:1234"] {
            let error = NotifySocket::open(address.as_ref()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{address}");
        }
    }

    #[test]
    fn sockets_of_another_process_or_name_are_left_alone() {
        let own = std::process::id().to_string();
        for (pid, count, names) in [
            ("1", "1", "control"),
            (&*own, "0", "control"),
            (&*own, "1", "other:control"),
            ("", "", ""),
        ] {
            let passed = Passed { pid, count, names };
            assert!(
                inherited(passed, "control").unwrap().is_none(),
                "{passed:?}"
            );
        }
    }
}
