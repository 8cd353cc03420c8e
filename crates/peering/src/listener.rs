//! Listening sockets, and the TCP signatures that they expect of peers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::{Instant, Redacted};
use reactor::tcp::{TcpListener, TcpOptions};
use reactor::{Interest, Reactor, Token};

use crate::write::UNSENT_MAX;

/// The backlog: connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address and port; port 0 takes a free port.
    pub address: SocketAddr,
    /// Whether it is a default that the operator did not ask for. If the host lacks the address family, it is skipped.
    pub is_optional: bool,
}

/// A key with which the peers of a network sign their segments (RFC 2385).
#[derive(Clone, Debug)]
pub struct Signature {
    /// The peers: an address and its prefix length in bits.
    pub network: (IpAddr, u8),
    /// The key, at most [`reactor::tcp::MD5_KEY_MAX`] octets.
    pub key: Arc<Redacted<Vec<u8>>>,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) token: Token,
    pub(crate) local: SocketAddr,
    /// Until when it is paused because descriptors are short.
    pub(crate) rests_until: Option<Instant>,
}

impl Listener {
    /// Returns `None` if the listener is optional and the host lacks its address family.
    pub(crate) fn open(
        listen: Listen,
        user: u64,
        reactor: &mut Reactor,
    ) -> io::Result<Option<Self>> {
        // Peers that use GTSM (RFC 5082) would drop our answer to their first segment if its TTL were lower.
        let near = TcpOptions {
            ttl: Some(255),
            unsent_bytes: Some(UNSENT_MAX),
            ..TcpOptions::default()
        };
        let socket = match TcpListener::listen(listen.address, near, BACKLOG) {
            Ok(socket) => socket,
            Err(error) if listen.is_optional && is_family_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let local = socket.local()?;
        let token = reactor.add(&socket, "bgp listener", user, Interest::READ)?;
        Ok(Some(Self {
            socket,
            token,
            local,
            rests_until: None,
        }))
    }

    /// Requires signatures from peers of these networks, and no longer from those of `before` that are not among them.
    pub(crate) fn sign(&self, before: &[Signature], now: &[Signature]) -> io::Result<()> {
        let ours = |signature: &&Signature| signature.network.0.is_ipv4() == self.local.is_ipv4();
        for gone in before.iter().filter(ours) {
            if !now.iter().any(|other| other.network == gone.network) {
                self.socket.set_md5(gone.network, &[])?;
            }
        }
        for signature in now.iter().filter(ours) {
            self.socket
                .set_md5(signature.network, signature.key.reveal())?;
        }
        Ok(())
    }

    /// Stops accepting connections until a time, or accepts them again.
    pub(crate) fn rest(&mut self, until: Option<Instant>, reactor: &mut Reactor) {
        let interest = match until {
            Some(_) => Interest::NONE,
            None => Interest::READ,
        };
        if reactor.set_interest(self.token, interest).is_ok() {
            self.rests_until = until;
        }
    }
}

fn is_family_missing(error: &io::Error) -> bool {
    // EAFNOSUPPORT and EADDRNOTAVAIL.
    matches!(error.raw_os_error(), Some(97 | 99))
}
