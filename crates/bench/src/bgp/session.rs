//! One BGP session on the load's side: it connects, sends OPEN, confirms, and then passes received
//! messages on.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use reactor::tcp::{TcpOptions, TcpStream};
use reactor::{Interest, Reactor, Token};

use super::octets::{
    HEADER_LEN, KEEPALIVE, KIND_KEEPALIVE, KIND_NOTIFICATION, KIND_OPEN, KIND_REFRESH, KIND_UPDATE,
    frame, open,
};

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Connecting,
    OpenSent,
    OpenConfirm,
    Established,
    Closed,
}

/// What was received over a session, apart from its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) octets: u64,
    pub(crate) keepalives: u32,
    pub(crate) updates: u32,
    /// ROUTE-REFRESH messages.
    pub(crate) refreshes: u32,
    /// Code and subcode of a NOTIFICATION.
    pub(crate) notification: Option<(u8, u8)>,
}

/// One session.
pub(crate) struct Session {
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    pub(crate) stage: Stage,
    /// The start of an incomplete message.
    partial: Vec<u8>,
}

impl Session {
    /// Starts to connect; the reactor returns `user` with each event.
    ///
    /// # Errors
    /// The kernel's immediate error.
    pub(crate) fn begin(
        reactor: &mut Reactor,
        from: Ipv4Addr,
        server: SocketAddr,
        options: TcpOptions,
        user: u64,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(Some((from, 0).into()), server, options, None)?;
        let token = reactor
            .add(&stream, "load", user, Interest::WRITE)
            .map_err(io::Error::other)?;
        Ok(Self {
            stream,
            token,
            stage: Stage::Connecting,
            partial: Vec::new(),
        })
    }

    /// The socket is writable for the first time: sends OPEN, or finds that the connection failed.
    ///
    /// # Errors
    /// The kernel's error from the reactor.
    pub(crate) fn connected(
        &mut self,
        reactor: &mut Reactor,
        asn: u32,
        hold_s: u16,
    ) -> io::Result<()> {
        let local = self.stream.local()?;
        let SocketAddr::V4(local) = local else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        if self.stream.error()?.is_some() {
            self.close(reactor);
            return Ok(());
        }
        self.say(reactor, &open(asn, *local.ip(), hold_s));
        if self.stage == Stage::Connecting {
            self.stage = Stage::OpenSent;
            reactor.set_interest(self.token, Interest::READ)?;
        }
        Ok(())
    }

    /// Writes a short message. A peer that reads leaves room for it; if there is none, the session
    /// is closed.
    pub(crate) fn say(&mut self, reactor: &mut Reactor, octets: &[u8]) {
        match self.stream.write(octets) {
            Ok(Some(count)) if count == octets.len() => {}
            Ok(_) | Err(_) => self.close(reactor),
        }
    }

    /// Stops watching the session; dropping it closes the connection.
    pub(crate) fn close(&mut self, reactor: &mut Reactor) {
        reactor.remove(self.token);
        self.stage = Stage::Closed;
        self.partial = Vec::new();
    }

    /// Reads once, into `buffer`, and passes each UPDATE's body to `on_update`.
    pub(crate) fn read(
        &mut self,
        reactor: &mut Reactor,
        buffer: &mut [u8],
        mut on_update: impl FnMut(&[u8]),
    ) -> Came {
        let mut came = Came::default();
        let count = match self.stream.read(buffer) {
            Ok(Some(count)) if count > 0 => count,
            Ok(None) => return came,
            Ok(_) | Err(_) => {
                self.close(reactor);
                return came;
            }
        };
        came.octets = count as u64;
        if self.partial.is_empty() {
            let used = self.messages(reactor, &buffer[..count], &mut came, &mut on_update);
            if self.stage != Stage::Closed {
                self.partial.extend(&buffer[used..count]);
            }
        } else {
            let mut whole = std::mem::take(&mut self.partial);
            whole.extend(&buffer[..count]);
            let used = self.messages(reactor, &whole, &mut came, &mut on_update);
            if self.stage != Stage::Closed {
                whole.drain(..used);
                self.partial = whole;
            }
        }
        came
    }

    /// Handles every complete message; returns the number of bytes used.
    fn messages(
        &mut self,
        reactor: &mut Reactor,
        octets: &[u8],
        came: &mut Came,
        on_update: &mut impl FnMut(&[u8]),
    ) -> usize {
        let mut used = 0;
        while self.stage != Stage::Closed {
            let rest = &octets[used..];
            let (length, kind) = match frame(rest) {
                Ok(Some(found)) if found.0 <= rest.len() => found,
                Ok(_) => break,
                Err(()) => {
                    self.close(reactor);
                    break;
                }
            };
            let body = &rest[HEADER_LEN..length];
            used += length;
            match (kind, self.stage) {
                (KIND_OPEN, Stage::OpenSent) => {
                    self.stage = Stage::OpenConfirm;
                    self.say(reactor, &KEEPALIVE);
                }
                (KIND_KEEPALIVE, Stage::OpenConfirm) => self.stage = Stage::Established,
                (KIND_KEEPALIVE, _) => came.keepalives += 1,
                (KIND_UPDATE, _) => {
                    came.updates += 1;
                    on_update(body);
                }
                (KIND_REFRESH, _) => came.refreshes += 1,
                (KIND_NOTIFICATION, _) => {
                    let code = |n| body.get(n).copied().unwrap_or(0);
                    came.notification = Some((code(0), code(1)));
                    self.close(reactor);
                }
                _ => {}
            }
        }
        used
    }
}
