//! The start of each end's stream, put together until it has a TLS hello, and what the hellos say.

use wire::tls::{self, HELLO_MAX, NoHello};

/// Segments that arrived before the data below them.
const EARLY_MAX: usize = 8;

/// Text that is kept of a name or a list of protocols.
const TEXT_MAX: usize = 256;

/// The start of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// The hello was read, or there is none, or it is too long.
    pub(super) over: bool,
    /// Offset of the first byte; 0 before it.
    pub(super) base: u64,
    pub(super) octets: Vec<u8>,
    /// Segments above a gap.
    pub(super) early: Vec<(u64, Vec<u8>)>,
}

impl Stream {
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn memory(&self) -> usize {
        let early = self.early.iter().map(|(_, octets)| octets.len());
        self.octets.len() + early.sum::<usize>()
    }

    /// Adds payload at an offset. The stream begins at `base`.
    pub(super) fn add(&mut self, base: u64, offset: u64, payload: &[u8]) {
        if self.base == 0 {
            self.base = base;
        }
        if !self.append(offset, payload) {
            let room =
                self.early.len() < EARLY_MAX && self.memory() + payload.len() <= 2 * HELLO_MAX;
            if room {
                self.early.push((offset, payload.to_vec()));
            }
            return;
        }
        while let Some(at) = (self.early.iter()).position(|&(offset, _)| offset <= self.end()) {
            let (offset, payload) = self.early.swap_remove(at);
            self.append(offset, &payload);
        }
    }

    fn end(&self) -> u64 {
        self.base + self.octets.len() as u64
    }

    /// False if it begins above the end.
    fn append(&mut self, offset: u64, payload: &[u8]) -> bool {
        let Some(known) = self.end().checked_sub(offset) else {
            return false;
        };
        if let Some(new) = usize::try_from(known)
            .ok()
            .and_then(|known| payload.get(known..))
        {
            let room = 2 * HELLO_MAX - self.octets.len().min(2 * HELLO_MAX);
            self.octets.extend_from_slice(&new[..new.len().min(room)]);
        }
        true
    }

    pub(super) fn finish(&mut self) {
        *self = Stream {
            over: true,
            ..Stream::default()
        };
    }
}

/// What the start of TLS shows (RFC 8446 4.1). Empty without TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The name of the server that the client asked for (SNI).
    pub server_name: String,
    /// The protocols that the client offered (ALPN), separated by commas.
    pub offered: String,
    /// The protocol that the server chose, if it said so in the clear (before TLS 1.3).
    pub chosen: String,
    /// The highest version that the client offered; 0 if none: 0x0304 is TLS 1.3.
    pub client_version: u16,
    /// The version that the server chose; 0 if none.
    pub server_version: u16,
}

impl Tls {
    /// Reads the hello at the start of a stream, if there is a whole one.
    pub(super) fn read(&mut self, stream: &mut Stream) {
        let mut scratch = Vec::new();
        let hello = match tls::hello_in_records(&stream.octets, &mut scratch) {
            Ok(hello) => hello,
            Err(NoHello::Incomplete) if stream.octets.len() < 2 * HELLO_MAX => return,
            Err(_) => {
                stream.finish();
                return;
            }
        };
        let mut protocols = String::new();
        for name in hello.protocols() {
            let comma = if protocols.is_empty() { "" } else { "," };
            let name = String::from_utf8_lossy(name);
            if protocols.len() + name.len() < TEXT_MAX {
                protocols.push_str(comma);
                protocols.extend(name.chars().filter(|c| !c.is_control()));
            }
        }
        if hello.from_server {
            self.server_version = hello.version;
            self.chosen = protocols;
        } else {
            self.client_version = hello.version;
            self.offered = protocols;
            let name = hello.server_name.unwrap_or_default();
            self.server_name = name.chars().take(TEXT_MAX).collect();
        }
        stream.finish();
    }
}

/// The name of a version; `None` for 0.
#[must_use]
pub(crate) fn version_name(version: u16) -> Option<String> {
    match version {
        0 => None,
        0x0300 => Some("SSL 3.0".into()),
        0x0301 => Some("TLS 1.0".into()),
        0x0302 => Some("TLS 1.1".into()),
        0x0303 => Some("TLS 1.2".into()),
        0x0304 => Some("TLS 1.3".into()),
        other => Some(format!("0x{other:04x}")),
    }
}
