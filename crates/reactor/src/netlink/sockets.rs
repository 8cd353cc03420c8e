//! The host's own TCP sockets by their addresses and ports (sock_diag(7), `NETLINK_SOCK_DIAG`).
//!
//! Each request names one connection exactly, so that its cost does not grow with the number of sockets. It needs no
//! privilege.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags, netlink, recv, sendto};

use super::{HEADER, Request, acknowledged, family, octets, socket};
use crate::syscalls::{Call, enter};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;

/// `TCP_LISTEN`: the kernel's answer if no connection matches, but a listening socket does.
const LISTEN: u8 = 10;

/// Bytes of `struct inet_diag_msg`, and where it has the socket's owner and its inode.
const MESSAGE: usize = 72;
const UID: usize = 64;
const INODE: usize = 68;

/// A TCP socket of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSocket {
    /// Its inode, by which `/proc/PID/fd` names it; 0 if no process has it any more.
    pub inode: u32,
    /// The user that opened it.
    pub uid: u32,
}

/// A connection to the kernel's socket lists.
#[derive(Debug)]
pub struct Sockets {
    fd: OwnedFd,
    sequence: u32,
}

impl Sockets {
    /// Opens a socket for the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Self> {
        let fd = socket(Some(netlink::SOCK_DIAG))?;
        Ok(Self { fd, sequence: 0 })
    }

    /// The host's socket of the connection from `local` to `remote`; `None` if the host has none. A socket that is
    /// bound to a device is found if `interface` is its index.
    ///
    /// # Errors
    /// The kernel's error, for example that it has no `inet_diag`.
    pub fn find(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        interface: u32,
    ) -> io::Result<Option<FoundSocket>> {
        if local.is_ipv4() != remote.is_ipv4() {
            return Ok(None);
        }
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = request(local, remote, interface);
        request.finish(self.sequence);
        enter(Call::Sendto)?;
        let to = netlink::SocketAddrNetlink::new(0, 0);
        sendto(&self.fd, &request.0, SendFlags::empty(), &to)?;
        let mut buffer = [0; 1_024];
        loop {
            let read = enter(Call::Recvfrom)
                .and_then(|()| recv(&self.fd, &mut buffer[..], RecvFlags::empty()));
            let (length, _) = match read {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let answer = &buffer[..length];
            if let Some(code) = acknowledged(answer, self.sequence) {
                return match -code {
                    0 | libc::ENOENT => Ok(None),
                    code => Err(io::Error::from_raw_os_error(code)),
                };
            }
            if answer.get(8..12) == Some(&self.sequence.to_ne_bytes()) {
                return Ok(answer.get(HEADER..).and_then(read_message));
            }
        }
    }
}

/// `struct inet_diag_req_v2` for one connection.
fn request(local: SocketAddr, remote: SocketAddr, interface: u32) -> Request {
    // Without NLM_F_ACK: the kernel sends either an answer or an error.
    let mut request = Request::unacknowledged(BY_FAMILY, 0);
    request
        .0
        .extend([family(local.ip()), libc::IPPROTO_TCP as u8, 0, 0]);
    // All states.
    request.0.extend(u32::MAX.to_ne_bytes());
    request.0.extend(local.port().to_be_bytes());
    request.0.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        request.0.extend(padded(address));
    }
    request.0.extend(interface.to_ne_bytes());
    // `INET_DIAG_NOCOOKIE`.
    request.0.extend([0xff; 8]);
    request
}

fn padded(address: IpAddr) -> [u8; 16] {
    let mut padded = [0; 16];
    let octets = octets(address);
    padded[..octets.len()].copy_from_slice(&octets);
    padded
}

/// Reads `struct inet_diag_msg`.
fn read_message(message: &[u8]) -> Option<FoundSocket> {
    let message = message.get(..MESSAGE)?;
    let word = |at: usize| {
        let bytes = message.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    if message[1] == LISTEN {
        return None;
    }
    Some(FoundSocket {
        inode: word(INODE)?,
        uid: word(UID)?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_connection_is_found_from_both_ends_and_a_listener_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let Ok(mut sockets) = Sockets::open() else {
            return;
        };
        let here = server.local_addr().unwrap();
        let inode = |stream: &TcpStream| {
            let link = format!("/proc/self/fd/{}", stream.as_raw_fd());
            std::fs::read_link(link).unwrap().display().to_string()
        };
        // A kernel without inet_diag has no answer.
        let Ok(found) = sockets.find(peer, here, 0) else {
            return;
        };
        let found = found.unwrap();
        assert_eq!(format!("socket:[{}]", found.inode), inode(&client));
        assert_eq!(found.uid, rustix::process::getuid().as_raw());
        let found = sockets.find(here, peer, 0).unwrap().unwrap();
        assert_eq!(format!("socket:[{}]", found.inode), inode(&server));
        let stranger = "127.0.0.9:9".parse().unwrap();
        assert_eq!(sockets.find(here, stranger, 0).unwrap(), None);
        let mixed = "[::1]:9".parse().unwrap();
        assert_eq!(sockets.find(here, mixed, 0).unwrap(), None);
    }

    #[test]
    fn an_answer_that_is_too_short_is_none() {
        for length in 0..MESSAGE {
            assert_eq!(read_message(&vec![1; length]), None);
        }
    }
}
