//! One connection: its stream, its state, and the data that the stream did not accept.

use std::io;

use base::Instant;
use bgp::ConnId;
use reactor::tcp::TcpStream;
use reactor::{Interest, Reactor, Token};

/// A connection of the speaker.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    /// Whether the connection attempt has not finished.
    pub(crate) is_opening: bool,
    /// Whether it waits for its turn to be sent routes.
    pub(crate) is_queued: bool,
    /// Whether it waits for its turn to be read.
    pub(crate) is_unread: bool,
    /// Data that the stream did not accept. No more messages are written for the stream until this is empty.
    pub(crate) unsent: Option<Box<Unsent>>,
}

/// Data that waits for the stream.
#[derive(Debug)]
pub(crate) struct Unsent {
    octets: Vec<u8>,
    sent: usize,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) enum Written {
    All,
    /// A part is left and waits.
    Some,
    Broken,
}

impl Connection {
    /// Writes `octets`, and stores what the stream does not accept.
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

    /// Writes the stored data.
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

    /// Registers the connection for what it waits for.
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

/// A stream that the speaker has closed. It stays open until the peer has read the last message; closing it with unread
/// input would discard that message.
#[derive(Debug)]
pub(crate) struct Parting {
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    pub(crate) until: Instant,
}
