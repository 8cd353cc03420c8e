//! A UDP socket that can be closed after an error and opened again under the same number.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use reactor::{RecvBatch, SendBatch, SendOutcome, SocketStats, UdpOptions, UdpSocket};

use super::add;

/// A socket and all that is needed to open it again.
pub(super) struct Slot {
    /// `None` while the socket is lost.
    socket: Option<UdpSocket>,
    local: SocketAddr,
    options: UdpOptions,
    /// Counters of earlier sockets in this place.
    earlier: SocketStats,
}

impl Slot {
    pub(super) fn open(address: SocketAddr, options: UdpOptions) -> io::Result<Self> {
        let socket = UdpSocket::bind(address, &options)?;
        Ok(Self {
            local: socket.local_addr(),
            socket: Some(socket),
            options,
            earlier: SocketStats::default(),
        })
    }

    /// The address that it is bound to, or was before it was lost.
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        self.socket.as_ref()
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(UdpSocket::as_fd)
    }

    pub(super) fn stats(&self) -> SocketStats {
        let own = self.socket.as_ref().map(UdpSocket::stats);
        add(self.earlier, own.unwrap_or_default())
    }

    /// Reads a batch; `false` if the socket is lost.
    pub(super) fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<bool> {
        match &mut self.socket {
            Some(socket) => socket.recv(batch).map(|_| true),
            None => Ok(false),
        }
    }

    /// Sends a batch. Without a socket, its datagrams are dropped; their senders retransmit.
    pub(super) fn send(&mut self, batch: &mut SendBatch) -> SendOutcome {
        match &mut self.socket {
            Some(socket) => socket.send(batch),
            None => SendOutcome {
                dropped: batch.clear(),
                ..SendOutcome::default()
            },
        }
    }

    /// Closes the socket.
    pub(super) fn lose(&mut self) {
        self.earlier = self.stats();
        self.socket = None;
    }

    /// Opens the socket again, at the same address.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.socket = Some(UdpSocket::bind(self.local, &self.options)?);
        Ok(())
    }
}
