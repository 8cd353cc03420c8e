//! A socket that gets notifications of a network namespace: what [`Monitor`](super::Monitor) and
//! [`QueueMonitor`](super::QueueMonitor) have in common.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, netlink};

use super::found;
use crate::sys::socket::{Instruction, attach_filter};
use crate::syscalls::{Call, enter};

/// The largest notification that is read whole. Of longer ones only the beginning is needed.
const READ: usize = 16_384;

/// A socket, and the buffer that it is read into.
#[derive(Debug)]
pub(super) struct Notified {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Notified {
    /// Opens it in the network namespace of the calling thread, for these multicast groups. The filter is in place before
    /// the first notification can arrive; an empty one takes all.
    pub(super) fn open(groups: u32, filter: &[Instruction]) -> io::Result<Self> {
        enter(Call::Socket)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        if !filter.is_empty() {
            attach_filter(fd.as_fd(), filter)?;
        }
        enter(Call::Bind)?;
        rustix::net::bind(&fd, &netlink::SocketAddrNetlink::new(0, groups))?;
        Ok(Self {
            fd,
            buffer: vec![0; READ],
        })
    }

    /// Reads a datagram and appends what `notice` makes of its messages to `out`, or `overflow` if notifications were lost.
    /// Returns `false` if there was none.
    pub(super) fn read<N>(
        &mut self,
        out: &mut Vec<N>,
        overflow: N,
        notice: impl Fn(u16, &[u8]) -> Option<N>,
    ) -> io::Result<bool> {
        let read = enter(Call::Recvfrom)
            .and_then(|()| rustix::net::recv(&self.fd, &mut self.buffer[..], RecvFlags::empty()));
        let length = match read {
            Ok((length, _)) => length,
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(rustix::io::Errno::NOBUFS) => {
                out.push(overflow);
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        let messages = found::messages(&self.buffer[..length]);
        out.extend(messages.filter_map(|message| notice(message.kind, message.body)));
        Ok(true)
    }
}

impl AsFd for Notified {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
