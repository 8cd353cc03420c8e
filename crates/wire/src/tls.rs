//! The first messages of TLS: server name, protocols and version (RFC 8446 4.1, RFC 6066 3, RFC 7301).
//!
//! [`hello_in_records`] reads the start of a TLS stream over TCP, [`hello`] the handshake messages themselves, as QUIC
//! carries them (RFC 9001 4). Both accept a prefix, because a ClientHello may be split over several packets.
//!
//! Left out: everything that is encrypted, the client's other offers, SSL 2.0, encrypted ClientHello (the outer name is
//! reported).

/// TLS's content type of handshake messages (RFC 8446 5.1).
const HANDSHAKE: u8 = 22;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// The longest hello that is read. RFC 8446 allows 2^24 octets; browsers send at most 2 KiB.
pub const HELLO_MAX: usize = 16 << 10;

/// A ClientHello or ServerHello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello<'a> {
    /// The server sent it.
    pub from_server: bool,
    /// The highest version offered, or the version chosen: 0x0304 is TLS 1.3.
    pub version: u16,
    /// The name of the server that the client wants (SNI), if it is printable ASCII.
    pub server_name: Option<&'a str>,
    /// The list of protocols (ALPN) as sent: an octet of length before each.
    alpn: &'a [u8],
}

/// Why there is no hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHello {
    /// More octets are needed.
    Incomplete,
    /// The stream does not begin with one, or it is malformed or too long.
    Other,
}

impl<'a> Hello<'a> {
    /// The names of the protocols that the client offers or the server chose.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.alpn;
        core::iter::from_fn(move || {
            let (name, after) = prefixed(rest, 1)?;
            rest = after;
            Some(name)
        })
    }
}

/// Reads the hello at the start of a TLS stream. `scratch` has room for one that is divided over several records.
///
/// # Errors
/// See [`NoHello`].
pub fn hello_in_records<'a>(
    octets: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<Hello<'a>, NoHello> {
    scratch.clear();
    let mut rest = octets;
    loop {
        let record = record(rest)?;
        // Nearly always, one record has all of it.
        if scratch.is_empty() && record.whole {
            match length(record.body) {
                Some(length) if length <= record.body.len() => return hello(record.body),
                _ => {}
            }
        }
        scratch.extend_from_slice(record.body);
        let length = length(scratch);
        if length.is_some_and(|length| length > HELLO_MAX) {
            return Err(NoHello::Other);
        }
        if length.is_some_and(|length| scratch.len() >= length) {
            return hello(scratch);
        }
        if !record.whole {
            return Err(NoHello::Incomplete);
        }
        if scratch.len() > HELLO_MAX {
            return Err(NoHello::Other);
        }
        rest = record.rest;
    }
}

/// A record, as far as it is there.
struct Record<'a> {
    body: &'a [u8],
    whole: bool,
    rest: &'a [u8],
}

fn record(octets: &[u8]) -> Result<Record<'_>, NoHello> {
    let Some((head, rest)) = octets.split_first_chunk::<5>() else {
        // As much of a record's header as there is: content type and major version.
        let fits = octets
            .iter()
            .zip([HANDSHAKE, 3])
            .all(|(&octet, expected)| octet == expected);
        return Err(if fits {
            NoHello::Incomplete
        } else {
            NoHello::Other
        });
    };
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if head[0] != HANDSHAKE || head[1] != 3 || length == 0 || length > HELLO_MAX {
        return Err(NoHello::Other);
    }
    let whole = rest.len() >= length;
    let (body, rest) = rest.split_at(length.min(rest.len()));
    Ok(Record { body, whole, rest })
}

/// The length of the handshake message that the octets begin with, including its header.
fn length(octets: &[u8]) -> Option<usize> {
    let [_, high, middle, low, ..] = octets else {
        return None;
    };
    Some(4 + (usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low)))
}

/// Reads the hello that handshake messages begin with.
///
/// # Errors
/// See [`NoHello`].
pub fn hello(octets: &[u8]) -> Result<Hello<'_>, NoHello> {
    match octets.first() {
        Some(&(CLIENT_HELLO | SERVER_HELLO)) => {}
        Some(_) => return Err(NoHello::Other),
        None => return Err(NoHello::Incomplete),
    }
    let length = length(octets).ok_or(NoHello::Incomplete)?;
    if length > HELLO_MAX {
        return Err(NoHello::Other);
    }
    let body = octets.get(4..length).ok_or(NoHello::Incomplete)?;
    parse(body, octets[0] == SERVER_HELLO).ok_or(NoHello::Other)
}

fn parse(body: &[u8], from_server: bool) -> Option<Hello<'_>> {
    let (version, rest) = body.split_first_chunk::<2>()?;
    // Random number, then the session's identifier.
    let (_, rest) = prefixed(rest.get(32..)?, 1)?;
    let rest = match from_server {
        // The cipher suite and the compression that the server chose.
        true => rest.get(3..)?,
        false => {
            let (_suites, rest) = prefixed(rest, 2)?;
            prefixed(rest, 1)?.1
        }
    };
    let mut hello = Hello {
        from_server,
        version: u16::from_be_bytes(*version),
        ..Hello::default()
    };
    // Old clients send no extensions.
    let Some((mut extensions, _)) = prefixed(rest, 2) else {
        return rest.is_empty().then_some(hello);
    };
    while let Some((kind, rest)) = extensions.split_first_chunk::<2>() {
        let (value, rest) = prefixed(rest, 2)?;
        hello.extension(u16::from_be_bytes(*kind), value);
        extensions = rest;
    }
    Some(hello)
}

impl<'a> Hello<'a> {
    fn extension(&mut self, kind: u16, value: &'a [u8]) {
        match kind {
            SERVER_NAME if !self.from_server => {
                self.server_name = server_name(value).or(self.server_name);
            }
            ALPN => {
                if let Some((list, _)) = prefixed(value, 2) {
                    self.alpn = list;
                }
            }
            SUPPORTED_VERSIONS => {
                let versions = match self.from_server {
                    true => Some(value),
                    false => prefixed(value, 1).map(|(list, _)| list),
                };
                let versions = versions.unwrap_or_default().chunks_exact(2);
                let versions = versions.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                // Others are GREASE (RFC 8701) or drafts.
                let best = versions.filter(|version| version >> 8 == 3).max();
                self.version = best.unwrap_or(self.version);
            }
            _ => {}
        }
    }
}

/// The host name of a list of names.
fn server_name(value: &[u8]) -> Option<&str> {
    let (mut list, _) = prefixed(value, 2)?;
    while let Some((&kind, rest)) = list.split_first() {
        let (name, rest) = prefixed(rest, 2)?;
        if kind == 0 {
            let printable = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
            return core::str::from_utf8(name).ok().filter(|_| printable);
        }
        list = rest;
    }
    None
}

/// Splits off a value that follows its length in `width` octets.
fn prefixed(octets: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (head, rest) = octets.split_at_checked(width)?;
    let length = head
        .iter()
        .fold(0, |sum, &octet| sum << 8 | usize::from(octet));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests;
