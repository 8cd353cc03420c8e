//! The load service beside the responder: what a client and the service say to each other over TCP, and who may load.
//!
//! TCP's handshake proves the client's address, so nothing is amplified towards a third host. A token, if the service
//! has one, keeps strangers from using the service; it never crosses the network. [`Gate`] limits how many streams one
//! source and all sources have, how long a stream lasts, and how often a source may start one.
//!
//! The service speaks first. All fields are in network byte order.
//!
//! [`Greeting`], 32 bytes, from the service:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | magic, `hLod` |
//! | 4 | version, 1 |
//! | 5 | 0, or why the service closes the connection ([`Refusal`]) |
//! | 6 | 1 if a token is needed, else 0 |
//! | 7 | reserved |
//! | 8-9 | streams that one source may have |
//! | 10-11 | reserved |
//! | 12-15 | longest stream, in milliseconds |
//! | 16-31 | a number chosen at random for this connection |
//!
//! [`Request`], 52 bytes, from the client:
//!
//! | bytes | what |
//! |---|---|
//! | 0-4 | magic and version |
//! | 5 | 1: the service sends (down); 2: the client sends (up) |
//! | 6-11 | reserved |
//! | 12-15 | how long, in milliseconds |
//! | 16-31 | the sender's congestion control, as the kernel names it, filled up with 0; empty for the kernel's choice |
//! | 32-51 | HMAC-SHA-1 (RFC 2104) of greeting and bytes 0 to 31, keyed with the token; 0 without a token |
//!
//! [`Answer`], 32 bytes, from the service: bytes 0 to 4 as above, byte 5 is 0 or a [`Refusal`], 12-15 the granted
//! milliseconds, 16-31 the congestion control of the sending host, if that is the service. Then the data follow. While
//! the client sends, the service sends a [`Report`] of 16 bytes now and then: microseconds since its answer, and bytes
//! received since then.

mod gate;

pub use gate::{Gate, Limits};

use hmac::{Hmac, Mac};
use sha1::Sha1;

/// Bytes of a greeting, a request, an answer and a report.
pub const GREETING: usize = 32;
/// Bytes of a request.
pub const REQUEST: usize = 52;
/// Bytes of an answer.
pub const ANSWER: usize = 32;
/// Bytes of a report.
pub const REPORT: usize = 16;
/// Longest name of a congestion control: the kernel's `TCP_CA_NAME_MAX` with its last zero.
pub const NAME_MAX: usize = 15;

const MAGIC: [u8; 4] = *b"hLod";
const VERSION: u8 = 1;
const PROOF: usize = 20;

/// Why the service does not load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// This source has all streams that one source may have.
    #[error("all streams that one host may have are in use")]
    SourceFull,
    /// All streams of the service are in use.
    #[error("all its streams are in use by other hosts")]
    Full,
    /// The source starts streams too often.
    #[error("this host started too many streams within a minute")]
    TooOften,
    /// The token is missing or wrong.
    #[error("the token is missing or wrong")]
    Token,
    /// The sending host has no such congestion control, or may not use it.
    #[error("it cannot use this congestion control")]
    Congestion,
    /// The request is not one of this version.
    #[error("it does not understand the request; use the same version of headend on both hosts")]
    Request,
    /// A reason that this version does not know.
    #[error("for a reason that this version does not know ({0})")]
    Other(u8),
}

/// Why bytes are no message of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Fewer bytes than the message has.
    #[error("cut short")]
    Short,
    /// The magic is missing.
    #[error("no load service of headend answers there")]
    Magic,
    /// Another version of the messages.
    #[error(
        "version {0} of the load service is not known; use the same version of headend on both hosts"
    )]
    Version(u8),
    /// A direction that is neither up nor down.
    #[error("direction {0} is neither down (1) nor up (2)")]
    Direction(u8),
    /// The name of the congestion control has other characters than letters, digits, `_` and `-`.
    #[error("no name of a congestion control")]
    Name,
}

/// Which way the data go, as the client sees it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the service to the client.
    Down,
    /// From the client to the service.
    Up,
}

/// The name of a congestion control; empty for the kernel's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Congestion([u8; NAME_MAX + 1]);

/// The service's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Why the service closes the connection, if it does.
    pub refusal: Option<Refusal>,
    /// Whether a token is needed.
    pub needs_token: bool,
    /// Streams that one source may have at once.
    pub streams_max: u16,
    /// Longest stream.
    pub duration_max_ms: u32,
    /// A number chosen at random for this connection.
    pub nonce: [u8; 16],
}

/// What the client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Who sends.
    pub direction: Direction,
    /// How long.
    pub duration_ms: u32,
    /// The sender's congestion control. The service sets it only if it is the sender.
    pub congestion: Congestion,
}

/// What the service grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Why it does not load, if it does not.
    pub refusal: Option<Refusal>,
    /// How long the stream may last.
    pub duration_ms: u32,
    /// The congestion control that the service sends with.
    pub congestion: Congestion,
}

/// What the service has received so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Microseconds since the answer.
    pub elapsed_us: u64,
    /// Bytes received since then.
    pub received: u64,
}

impl Refusal {
    fn code(self) -> u8 {
        match self {
            Refusal::SourceFull => 1,
            Refusal::Full => 2,
            Refusal::TooOften => 3,
            Refusal::Token => 4,
            Refusal::Congestion => 5,
            Refusal::Request => 6,
            Refusal::Other(code) => code,
        }
    }

    fn of(code: u8) -> Option<Refusal> {
        match code {
            0 => None,
            1 => Some(Refusal::SourceFull),
            2 => Some(Refusal::Full),
            3 => Some(Refusal::TooOften),
            4 => Some(Refusal::Token),
            5 => Some(Refusal::Congestion),
            6 => Some(Refusal::Request),
            code => Some(Refusal::Other(code)),
        }
    }
}

impl Congestion {
    /// The name as a value.
    ///
    /// # Errors
    /// It is longer than [`NAME_MAX`], or has characters that no name has.
    pub fn new(name: &str) -> Result<Congestion, ParseError> {
        let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.len() > NAME_MAX || !name.as_bytes().iter().all(is_usual) {
            return Err(ParseError::Name);
        }
        let mut bytes = [0; NAME_MAX + 1];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Congestion(bytes))
    }

    /// The name; empty for the kernel's choice.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0);
        let name = &self.0[..end.unwrap_or(NAME_MAX)];
        std::str::from_utf8(name).unwrap_or_default()
    }

    fn parse(bytes: [u8; NAME_MAX + 1]) -> Result<Congestion, ParseError> {
        let end = bytes.iter().position(|byte| *byte == 0);
        let (name, rest) = bytes.split_at(end.ok_or(ParseError::Name)?);
        if rest.iter().any(|byte| *byte != 0) {
            return Err(ParseError::Name);
        }
        Congestion::new(std::str::from_utf8(name).map_err(|_| ParseError::Name)?)
    }
}

/// The first `N` bytes, with magic and version checked.
fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], ParseError> {
    let head: &[u8; N] = bytes.first_chunk().ok_or(ParseError::Short)?;
    if head[..4] != MAGIC {
        return Err(ParseError::Magic);
    }
    match head[4] {
        VERSION => Ok(head),
        version => Err(ParseError::Version(version)),
    }
}

/// The `N` bytes at `at`, which the caller's length has.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

fn start<const N: usize>(code: u8) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = VERSION;
    bytes[5] = code;
    bytes
}

impl Greeting {
    /// The message.
    #[must_use]
    pub fn emit(&self) -> [u8; GREETING] {
        let mut bytes = start(self.refusal.map_or(0, Refusal::code));
        bytes[6] = u8::from(self.needs_token);
        bytes[8..10].copy_from_slice(&self.streams_max.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.duration_max_ms.to_be_bytes());
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads the message.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, ParseError> {
        let head: &[u8; GREETING] = head(bytes)?;
        Ok(Greeting {
            refusal: Refusal::of(head[5]),
            needs_token: head[6] != 0,
            streams_max: u16::from_be_bytes(part(head, 8)),
            duration_max_ms: u32::from_be_bytes(part(head, 12)),
            nonce: part(head, 16),
        })
    }
}

impl Request {
    /// The message in reply to a greeting, with the proof that the client has the token.
    #[must_use]
    pub fn emit(&self, greeting: &Greeting, token: &[u8]) -> [u8; REQUEST] {
        let mut bytes = start(match self.direction {
            Direction::Down => 1,
            Direction::Up => 2,
        });
        bytes[12..16].copy_from_slice(&self.duration_ms.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.congestion.0);
        if !token.is_empty() {
            let proof = keyed(greeting, &bytes[..32], token).finalize().into_bytes();
            bytes[32..].copy_from_slice(&proof);
        }
        bytes
    }

    /// Reads the message. [`Request::is_proven`] checks the token.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Request, ParseError> {
        let head: &[u8; REQUEST] = head(bytes)?;
        let direction = match head[5] {
            1 => Direction::Down,
            2 => Direction::Up,
            other => return Err(ParseError::Direction(other)),
        };
        Ok(Request {
            direction,
            duration_ms: u32::from_be_bytes(part(head, 12)),
            congestion: Congestion::parse(part(head, 16))?,
        })
    }

    /// Whether the sender of a request has the token. Without a token everyone has it.
    #[must_use]
    pub fn is_proven(request: &[u8; REQUEST], greeting: &Greeting, token: &[u8]) -> bool {
        token.is_empty()
            || keyed(greeting, &request[..32], token)
                .verify_slice(&request[32..32 + PROOF])
                .is_ok()
    }
}

fn keyed(greeting: &Greeting, request: &[u8], token: &[u8]) -> Hmac<Sha1> {
    let mut mac = Hmac::<Sha1>::new_from_slice(token).expect("HMAC takes keys of any length");
    mac.update(&greeting.emit());
    mac.update(request);
    mac
}

impl Answer {
    /// The message.
    #[must_use]
    pub fn emit(&self) -> [u8; ANSWER] {
        let mut bytes = start(self.refusal.map_or(0, Refusal::code));
        bytes[12..16].copy_from_slice(&self.duration_ms.to_be_bytes());
        bytes[16..].copy_from_slice(&self.congestion.0);
        bytes
    }

    /// Reads the message.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Answer, ParseError> {
        let head: &[u8; ANSWER] = head(bytes)?;
        Ok(Answer {
            refusal: Refusal::of(head[5]),
            duration_ms: u32::from_be_bytes(part(head, 12)),
            congestion: Congestion::parse(part(head, 16))?,
        })
    }
}

impl Report {
    /// The message.
    #[must_use]
    pub fn emit(&self) -> [u8; REPORT] {
        let mut bytes = [0; REPORT];
        bytes[..8].copy_from_slice(&self.elapsed_us.to_be_bytes());
        bytes[8..].copy_from_slice(&self.received.to_be_bytes());
        bytes
    }

    /// Reads the message; any 16 bytes are one.
    #[must_use]
    pub fn parse(bytes: &[u8; REPORT]) -> Report {
        Report {
            elapsed_us: u64::from_be_bytes(part(bytes, 0)),
            received: u64::from_be_bytes(part(bytes, 8)),
        }
    }
}

#[cfg(test)]
mod tests;
