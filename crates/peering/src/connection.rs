//! One connection: its stream, where it stands, and what the stream did not take.

use std::io;

use base::Instant;
use bgp::ConnId;
use reactor::tcp::TcpStream;
use reactor::{Interest, Reactor, Token};

/// A connection of the speaker's.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    /// Until the kernel says how the connection attempt ended.
    pub(crate) is_opening: bool,
    /// What the stream did not take; nothing more is made for it until this has gone.
    pub(crate) unsent: Option<Box<Unsent>>,
}

/// Octets that wait for the stream.
#[derive(Debug)]
pub(crate) struct Unsent {
    octets: Vec<u8>,
    sent: usize,
}

/// What became of octets that were to be written.
#[derive(Debug)]
pub(crate) enum Written {
    All,
    /// The rest waits.
    Some,
    Broken,
}

impl Connection {
    /// Writes `octets`, or keeps what the stream does not take.
    pub(crate) fn write(&mut self, octets: &[u8]) -> Written {
        debug_assert!(
            self.unsent.is_none(),
            "nothing is made for a stream that waits"
        );
        match self.stream.write(octets) {
            Ok(taken) => {
                let taken = taken.unwrap_or(0);
                if taken == octets.len() {
                    return Written::All;
                }
                let octets = octets[taken..].to_vec();
                self.unsent = Some(Box::new(Unsent { octets, sent: 0 }));
                Written::Some
            }
            Err(_) => Written::Broken,
        }
    }

    /// Writes what waits.
    pub(crate) fn write_unsent(&mut self) -> Written {
        let Some(unsent) = &mut self.unsent else {
            return Written::All;
        };
        match self.stream.write(&unsent.octets[unsent.sent..]) {
            Ok(taken) => {
                unsent.sent += taken.unwrap_or(0);
                if unsent.sent < unsent.octets.len() {
                    return Written::Some;
                }
                self.unsent = None;
                Written::All
            }
            Err(_) => Written::Broken,
        }
    }

    /// Watches it for what it waits for.
    pub(crate) fn watch(&self, reactor: &mut Reactor) -> io::Result<()> {
        let interest = if self.is_opening {
            Interest::WRITE
        } else if self.unsent.is_some() {
            Interest::BOTH
        } else {
            Interest::READ
        };
        reactor.set_interest(self.token, interest)
    }
}

/// A stream whose speaker has done with it: the peer is to read the last message before it hears of the end, which a
/// close with octets unread would take from it.
#[derive(Debug)]
pub(crate) struct Parting {
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    pub(crate) until: Instant,
}
