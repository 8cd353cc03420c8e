//! Facts about an interface that need no privilege.

use std::io;
use std::os::fd::AsFd;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys::interface;

/// Facts about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its index in the network namespace.
    pub index: u32,
    /// The MTU in bytes, without the link layer's header.
    pub mtu: u32,
    /// Whether it is set up.
    pub is_up: bool,
}

impl Link {
    /// Reads the interface `name` of the calling thread's network namespace. It does not use `/sys`, which may show
    /// another namespace.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no interface of this name; else the kernel's error.
    pub fn of(name: &str) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        let not_found = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => io::Error::from(io::ErrorKind::NotFound),
            _ => error,
        };
        let flags = interface::flags(socket.as_fd(), name).map_err(not_found)?;
        Ok(Self {
            index: name_to_index(&socket, name).map_err(|error| not_found(error.into()))?,
            mtu: interface::mtu(socket.as_fd(), name).map_err(not_found)?,
            is_up: flags & libc::IFF_UP != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_what_has_no_name_is_not() {
        assert!(Link::of("lo").unwrap().mtu >= 1_500);
        for name in ["", "no-such", "a name that is far too long", "nul\0"] {
            let error = Link::of(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name:?}");
        }
    }
}
