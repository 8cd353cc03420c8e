//! UDP sockets that receive and send in batches.

mod gather;
mod recv;
mod send;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

pub(crate) use recv::is_about_an_earlier_datagram;
pub use recv::{Received, RecvBatch};
pub use send::{SendBatch, SendOutcome};

use crate::buffers::{self, BufferReport, BufferSide};
pub use crate::sys::socket::Instruction;
use crate::sys::socket::{IntOption, set_int};
use crate::syscalls::{Call, enter};

/// Options of a socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpOptions {
    /// Receive buffer in bytes; the kernel's default if `None`.
    pub recv_buffer_bytes: Option<usize>,
    /// Send buffer in bytes; the kernel's default if `None`.
    pub send_buffer_bytes: Option<usize>,
    /// Allows several sockets on the same address; the kernel chooses one for each datagram.
    pub reuse_port: bool,
    /// Receives from and sends to this peer alone.
    pub connect: Option<SocketAddr>,
    /// Lets the kernel deliver datagrams of one flow joined (GRO).
    pub gro: bool,
}

/// Counters of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SocketStats {
    /// Datagrams received.
    pub received: u64,
    /// Messages dropped because they did not fit their buffer.
    pub truncated: u64,
    /// Messages received with several datagrams.
    pub joined: u64,
    /// Errors of earlier datagrams, reported while receiving.
    pub receive_errors: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the kernel refused to send.
    pub dropped: u64,
    /// Messages sent with several datagrams.
    pub merged: u64,
    /// How often the send buffer was full.
    pub blocked: u64,
}

/// A non-blocking UDP socket that reports the address each datagram was sent to, and sends from a given address.
///
/// IPv6 sockets take IPv6 alone. Datagrams larger than the path MTU are fragmented, not refused, so that a lost ICMP
/// message does not cut off a peer.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    /// Whether the kernel merges datagrams to send (GSO).
    gso: bool,
    /// The largest datagrams that it merges, as far as is known.
    merge_size: usize,
    stats: SocketStats,
    receive_buffer: Option<BufferReport>,
    send_buffer: Option<BufferReport>,
}

impl UdpSocket {
    /// Opens a socket at `address`; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// The kernel's error, for example that the address is in use. A buffer smaller than requested is no error: see
    /// [`UdpSocket::receive_buffer`].
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        enter(Call::Socket)?;
        let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
        set_up(&fd, address, options)?;
        let sized = |side, bytes: Option<usize>| {
            bytes
                .map(|bytes| buffers::size(&fd, side, bytes))
                .transpose()
        };
        let receive_buffer = sized(BufferSide::Receive, options.recv_buffer_bytes)?;
        let send_buffer = sized(BufferSide::Send, options.send_buffer_bytes)?;
        enter(Call::Bind)?;
        rustix::net::bind(&fd, &address)?;
        if let Some(peer) = options.connect {
            enter(Call::Connect)?;
            rustix::net::connect(&fd, &peer)?;
        }
        enter(Call::Getsockname)?;
        let local = rustix::net::getsockname(&fd)?;
        Ok(Self {
            local: SocketAddr::try_from(local).map_err(io::Error::from)?,
            peer: options.connect,
            gso: true,
            merge_size: send::MERGE_SIZE_MAX,
            stats: SocketStats::default(),
            receive_buffer,
            send_buffer,
            fd,
        })
    }

    /// The address it is bound to, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The peer it is connected to.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The result of the request for a receive buffer; `None` if there was none.
    pub fn receive_buffer(&self) -> Option<BufferReport> {
        self.receive_buffer
    }

    /// The result of the request for a send buffer; `None` if there was none.
    pub fn send_buffer(&self) -> Option<BufferReport> {
        self.send_buffer
    }

    /// Its counters so far.
    pub fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Whether the socket still passes several datagrams to the kernel in one message (GSO). It stops when the kernel
    /// reports that it cannot.
    pub fn uses_gso(&self) -> bool {
        self.gso
    }

    /// Stops passing several datagrams in one message, for comparison.
    pub fn disable_gso(&mut self) {
        self.gso = false;
    }

    /// Lets a program of the classic packet filter choose the socket for a datagram, among the sockets of this
    /// address. The program sees the bytes after the UDP header. Its result is the index of the socket in the order
    /// of binding; without such a socket the kernel chooses by flow.
    ///
    /// # Errors
    /// The kernel's error, for example that the program is invalid.
    pub fn steer(&self, program: &[Instruction]) -> io::Result<()> {
        crate::sys::socket::attach_steering(self.as_fd(), program)
    }

    /// The destination address of all datagrams here, if there is only one.
    fn fixed_local(&self) -> Option<IpAddr> {
        let ip = self.local.ip();
        (!ip.is_unspecified()).then_some(ip)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sets the options that must be set before binding.
fn set_up(fd: &OwnedFd, address: SocketAddr, options: &UdpOptions) -> io::Result<()> {
    // A socket bound to one address knows the destination of each datagram.
    let any = address.ip().is_unspecified();
    match address {
        SocketAddr::V4(_) => {
            let fragment = sockopt::Ipv4PathMtuDiscovery::DONT;
            set(|| sockopt::set_ip_mtu_discover(fd, fragment))?;
            if any {
                set_int(fd, IntOption::Ipv4PktInfo, 1)?;
            }
        }
        SocketAddr::V6(_) => {
            let fragment = sockopt::Ipv6PathMtuDiscovery::DONT;
            set(|| sockopt::set_ipv6_v6only(fd, true))?;
            set(|| sockopt::set_ipv6_mtu_discover(fd, fragment))?;
            if any {
                set_int(fd, IntOption::Ipv6PktInfo, 1)?;
            }
        }
    }
    if options.reuse_port {
        set(|| sockopt::set_socket_reuseport(fd, true))?;
    }
    if options.gro {
        // Linux before 5.0 lacks it; then datagrams arrive one by one.
        let _ = set_int(fd, IntOption::UdpGro, 1);
    }
    Ok(())
}

/// Sets an option, counted.
fn set(option: impl FnOnce() -> rustix::io::Result<()>) -> io::Result<()> {
    enter(Call::Setsockopt)?;
    Ok(option()?)
}

#[cfg(test)]
mod tests;
