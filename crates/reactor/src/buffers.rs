//! Socket buffers: the requested size and the granted one.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;

use crate::syscalls::{Call, enter};

/// A socket's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferSide {
    /// Data that has arrived and was not yet read.
    Receive,
    /// Data that was sent and has not yet left.
    Send,
}

/// The requested and granted size of a buffer. The kernel's own overhead, for which it doubles the figure, is not
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferReport {
    /// The buffer.
    pub side: BufferSide,
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes the kernel gave.
    pub got: usize,
    /// Whether it exceeds the kernel's own limit, which needs `CAP_NET_ADMIN`.
    pub forced: bool,
}

impl BufferReport {
    /// Whether the kernel gave less than asked.
    pub fn is_short(&self) -> bool {
        self.got < self.asked
    }
}

impl fmt::Display for BufferReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, sysctl) = match self.side {
            BufferSide::Receive => ("receive", "net.core.rmem_max"),
            BufferSide::Send => ("send", "net.core.wmem_max"),
        };
        let Self { asked, got, .. } = self;
        match (self.is_short(), self.forced) {
            (true, _) => write!(
                f,
                "{name} buffer of {got} bytes where {asked} were asked: raise {sysctl} or grant \
                 CAP_NET_ADMIN"
            ),
            (false, true) => write!(f, "{name} buffer of {got} bytes, forced past {sysctl}"),
            (false, false) => write!(f, "{name} buffer of {got} bytes"),
        }
    }
}

/// Sizes a buffer: past the kernel's limit if that is permitted, else up to it.
pub(crate) fn size(socket: &OwnedFd, side: BufferSide, asked: usize) -> io::Result<BufferReport> {
    let (polite, force, read): (Setter, Setter, Getter) = match side {
        BufferSide::Receive => (
            |socket, size| sockopt::set_socket_recv_buffer_size(socket, size),
            |socket, size| sockopt::set_socket_recv_buffer_size_force(socket, size),
            |socket| sockopt::socket_recv_buffer_size(socket),
        ),
        BufferSide::Send => (
            |socket, size| sockopt::set_socket_send_buffer_size(socket, size),
            |socket, size| sockopt::set_socket_send_buffer_size_force(socket, size),
            |socket| sockopt::socket_send_buffer_size(socket),
        ),
    };
    // The kernel doubles the requested size for its overhead, and reports the double.
    let got = || {
        enter(Call::Getsockopt)?;
        read(socket).map(|bytes| bytes / 2)
    };
    let asked = asked.min(i32::MAX as usize / 2);
    enter(Call::Setsockopt)?;
    polite(socket, asked)?;
    let within_limit = got()?;
    if within_limit >= asked {
        return Ok(BufferReport {
            side,
            asked,
            got: within_limit,
            forced: false,
        });
    }
    let forced = enter(Call::Setsockopt).and_then(|()| force(socket, asked));
    let forced = forced.is_ok();
    Ok(BufferReport {
        side,
        asked,
        got: got()?,
        forced,
    })
}

type Setter = fn(&OwnedFd, usize) -> rustix::io::Result<()>;
type Getter = fn(&OwnedFd) -> rustix::io::Result<usize>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_how_to_get_more() {
        let side = BufferSide::Receive;
        let short = BufferReport {
            side,
            asked: 100,
            got: 50,
            forced: false,
        };
        assert_eq!(
            short.to_string(),
            "receive buffer of 50 bytes where 100 were asked: raise net.core.rmem_max or grant \
             CAP_NET_ADMIN"
        );
        let side = BufferSide::Send;
        let forced = BufferReport {
            side,
            asked: 100,
            got: 100,
            forced: true,
        };
        assert_eq!(
            forced.to_string(),
            "send buffer of 100 bytes, forced past net.core.wmem_max"
        );
    }

    #[test]
    fn a_buffer_is_forced_where_allowed_and_said_not_where_not() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = OwnedFd::from(socket);
        let limit: usize = std::fs::read_to_string("/proc/sys/net/core/rmem_max")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let modest = size(&socket, BufferSide::Receive, limit).unwrap();
        assert_eq!((modest.got, modest.forced), (limit, false));
        let asked = limit + 4096;
        let report = size(&socket, BufferSide::Receive, asked).unwrap();
        if report.forced {
            assert_eq!(report.got, asked);
        } else {
            assert_eq!(report.got, limit);
            assert!(report.is_short());
        }
    }
}
