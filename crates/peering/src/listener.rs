//! Sockets that take connections, and what they ask of peers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::{Instant, Redacted};
use reactor::tcp::{TcpListener, TcpOptions};
use reactor::{Interest, Reactor, Token};

/// Connections that may wait to be taken.
const BACKLOG: i32 = 4096;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address and port; port 0 takes a free one.
    pub address: SocketAddr,
    /// Not asked for by anybody: a host without that address family does without it.
    pub is_optional: bool,
}

/// A key that peers of a network sign with (RFC 2385).
#[derive(Clone, Debug)]
pub struct Signature {
    /// The peers: an address and how many of its first bits count.
    pub network: (IpAddr, u8),
    /// The key, of at most [`reactor::tcp::MD5_KEY_MAX`] octets.
    pub key: Arc<Redacted<Vec<u8>>>,
}

/// A socket that takes connections.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) token: Token,
    pub(crate) local: SocketAddr,
    /// Until when it rests because descriptors are short.
    pub(crate) rests_until: Option<Instant>,
}

impl Listener {
    /// `None` if it is optional and its address family is not there.
    pub(crate) fn open(
        listen: Listen,
        user: u64,
        reactor: &mut Reactor,
    ) -> io::Result<Option<Self>> {
        // Peers that take nothing from further away (RFC 5082) would not get our answer to their first segment.
        let near = TcpOptions {
            ttl: Some(255),
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

    /// Has peers of these networks sign; those of `before` that are not among them need not any more.
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

    /// Takes nobody until then, or takes them again.
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
