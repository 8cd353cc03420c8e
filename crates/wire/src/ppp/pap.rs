//! Password Authentication Protocol (RFC 1334, section 2). Its packets are [`super::control::Control`]s.

/// Codes of RFC 1334, section 2.2.
pub mod code {
    /// Authenticate-Request.
    pub const REQUEST: u8 = 1;
    /// Authenticate-Ack.
    pub const ACK: u8 = 2;
    /// Authenticate-Nak.
    pub const NAK: u8 = 3;
}

/// The data of an Authenticate-Request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The name that the peer claims, at most 255 octets.
    pub peer_id: &'a [u8],
    /// The password, at most 255 octets.
    pub password: &'a [u8],
}

impl core::fmt::Debug for Request<'_> {
    /// Formats everything but the password.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request")
            .field("peer_id", &self.peer_id.escape_ascii().to_string())
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    /// Reads a packet's data; `None` if a length exceeds the data.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (peer_id, rest) = counted(data)?;
        let (password, _) = counted(rest)?;
        Some(Self { peer_id, password })
    }

    /// Appends the data; name and password are each truncated to 255 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        for value in [self.peer_id, self.password] {
            emit_counted(out, value);
        }
    }
}

/// The message of an Ack or a Nak; empty if missing or truncated, as some peers send it.
#[must_use]
pub fn message(data: &[u8]) -> &[u8] {
    counted(data).map_or(&[], |(message, _)| message)
}

/// Appends the message of an Ack or a Nak, truncated to 255 octets.
pub fn emit_message(out: &mut Vec<u8>, message: &[u8]) {
    emit_counted(out, message);
}

fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(length))
}

fn emit_counted(out: &mut Vec<u8>, value: &[u8]) {
    let value = &value[..value.len().min(255)];
    out.push(value.len() as u8);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written_and_does_not_print_its_password() {
        let request = Request {
            peer_id: b"alice",
            password: b"sesame",
        };
        let mut out = Vec::new();
        request.emit(&mut out);
        assert_eq!(out, b"\x05alice\x06sesame");
        let read = Request::parse(&out).unwrap();
        assert!(read == request);
        assert!(!format!("{read:?}").contains("sesame"));
    }

    #[test]
    fn lengths_beyond_the_packet_are_refused() {
        for data in [&b""[..], b"\x05alic", b"\x05alice", b"\x00\x01"] {
            assert!(Request::parse(data).is_none(), "{data:?}");
        }
        assert_eq!(message(b"\x05hell"), b"");
        assert_eq!(message(b"\x05hello"), b"hello");
    }
}
