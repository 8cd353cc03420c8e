//! Appends packets: RFC 2516, sections 4 and 5.

use super::packet::{Code, HEADER_LEN, VER_TYPE};

/// The header of session data, with LENGTH 0: append the PPP frame, then call [`complete`].
#[must_use]
#[inline]
pub const fn header(code: Code, session: u16) -> [u8; HEADER_LEN] {
    let [s0, s1] = session.to_be_bytes();
    [VER_TYPE, code.0, s0, s1, 0, 0]
}

/// Writes the LENGTH of the last packet in `out`, whose header is at offset `start`. A packet whose payload is longer
/// than 65,535 octets gets a LENGTH of 65,535; no Ethernet frame is that long. Does nothing if there is no header at
/// `start`.
#[inline]
pub fn complete(out: &mut [u8], start: usize) {
    let Some(packet) = out.get_mut(start..) else {
        return;
    };
    let length = packet.len().saturating_sub(HEADER_LEN);
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    if let Some(field) = packet.get_mut(4..HEADER_LEN) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Writes one Discovery packet. [`Writer::finish`] writes its LENGTH.
///
/// Emitting cannot fail: a value longer than 65,535 octets is cut.
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
}

impl<'b> Writer<'b> {
    /// Appends the header to `out`.
    #[must_use]
    pub fn new(out: &'b mut Vec<u8>, code: Code, session: u16) -> Self {
        let start = out.len();
        out.extend_from_slice(&header(code, session));
        Writer { out, start }
    }

    /// Appends a tag.
    pub fn tag(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.out.extend_from_slice(&kind.to_be_bytes());
        self.out.extend_from_slice(&length.to_be_bytes());
        self.out.extend_from_slice(&value[..usize::from(length)]);
        self
    }

    /// Appends a tag if there is a value.
    pub fn tag_if(&mut self, kind: u16, value: Option<&[u8]>) -> &mut Self {
        if let Some(value) = value {
            self.tag(kind, value);
        }
        self
    }

    /// Writes the LENGTH. Returns the octets of the packet with its header.
    pub fn finish(self) -> usize {
        complete(self.out, self.start);
        self.out.len() - self.start
    }
}
