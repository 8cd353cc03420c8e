//! The connection to the master agent, a Unix socket or TCP (RFC 2741, section 8). The loop never waits for it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use agentx::Session;
use base::Instant;
use reactor::tcp::{TcpOptions, TcpStream};
use reactor::unix::Counted;
use reactor::{Interest, Readiness, Token};

use super::Served;
use crate::config::Master;
use crate::core::Core;
use crate::source::Source;

/// Octets read by one call.
const READ: usize = 16_384;
/// Calls that read in one turn.
const READS: usize = 4;

/// The connection cannot go on.
pub(super) struct Ended;

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection that is open or being opened.
pub(super) struct Link {
    stream: Stream,
    token: Token,
    is_opening: bool,
    interest: Interest,
}

impl Link {
    /// Starts to connect.
    pub(super) fn connect(master: &Master, core: &mut Core) -> io::Result<Self> {
        let (stream, is_opening) = match master {
            Master::Unix(path) => (Stream::Unix(reactor::unix::connect(path)?), false),
            Master::Tcp(address) => {
                let stream = TcpStream::connect(None, *address, TcpOptions::default(), None)?;
                (Stream::Tcp(stream), true)
            }
        };
        let interest = match is_opening {
            true => Interest::WRITE,
            false => Interest::READ,
        };
        let fd = match &stream {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        };
        let source = Source::Snmp.to_bits();
        let token = core
            .reactor
            .add_from_reserve(fd, "snmp", source, interest)?;
        Ok(Self {
            stream,
            token,
            is_opening,
            interest,
        })
    }

    pub(super) const fn is_opening(&self) -> bool {
        self.is_opening
    }

    /// Whether the connection is open now.
    pub(super) fn open(&mut self, readiness: Readiness) -> Served<bool> {
        let error = match &self.stream {
            Stream::Unix(_) => None,
            Stream::Tcp(stream) => stream.error().map_err(|_| Ended)?,
        };
        if error.is_some() {
            return Err(Ended);
        }
        self.is_opening = !readiness.writable();
        Ok(!self.is_opening)
    }

    /// Passes what has arrived to the session, as far as it has room.
    pub(super) fn read(&self, session: &mut Session, now: Instant) -> Served<()> {
        let mut octets = [0; READ];
        for _ in 0..READS {
            let end = READ.min(session.room());
            if end == 0 {
                break;
            }
            match self.read_some(&mut octets[..end]) {
                Ok(Some(0)) | Err(_) => return Err(Ended),
                Ok(Some(count)) => session.receive(&octets[..count], now),
                Ok(None) => break,
            }
        }
        Ok(())
    }

    /// Sends the session's output as far as the kernel takes it, and watches for what is possible next.
    pub(super) fn write(&mut self, session: &mut Session, core: &mut Core) -> Served<()> {
        if self.is_opening {
            return Ok(());
        }
        while !session.output().is_empty() {
            match self.write_some(session.output()) {
                Ok(Some(count)) => session.sent(count, core.now),
                Ok(None) => break,
                Err(_) => return Err(Ended),
            }
        }
        let mut interest = Interest::NONE;
        if session.room() > 0 {
            interest = interest.with(Interest::READ);
        }
        if !session.output().is_empty() {
            interest = interest.with(Interest::WRITE);
        }
        if interest != self.interest {
            self.interest = interest;
            let set = core.reactor.set_interest(self.token, interest);
            set.map_err(|_| Ended)?;
        }
        Ok(())
    }

    /// Sends what the kernel takes at once.
    pub(super) fn write_once(&self, octets: &[u8]) {
        // The master notices the end of the connection in any case.
        let _ = self.write_some(octets);
    }

    /// Closes the connection.
    pub(super) fn close(self, core: &mut Core) {
        core.reactor.remove(self.token);
    }

    fn read_some(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match &self.stream {
            Stream::Unix(stream) => now_or_later(|| Counted(stream).read(into)),
            Stream::Tcp(stream) => stream.read(into),
        }
    }

    fn write_some(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        match &self.stream {
            Stream::Unix(stream) => now_or_later(|| Counted(stream).write(octets)),
            Stream::Tcp(stream) => stream.write(octets),
        }
    }
}

/// `None` if the call would block.
fn now_or_later(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
