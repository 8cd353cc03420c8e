//! Challenge Handshake Authentication Protocol (RFC 1994). Its packets are [`super::control::Control`]s.

use md5::{Digest as _, Md5};

/// Codes of RFC 1994, section 4.
pub mod code {
    /// Challenge.
    pub const CHALLENGE: u8 = 1;
    /// Response.
    pub const RESPONSE: u8 = 2;
    /// Success.
    pub const SUCCESS: u8 = 3;
    /// Failure.
    pub const FAILURE: u8 = 4;
}

/// The algorithm "CHAP with MD5" (RFC 1994, section 3).
pub const MD5: u8 = 5;

/// The data of a Challenge or a Response (RFC 1994, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// The challenge, or the response to one, of 1 to 255 octets.
    pub value: &'a [u8],
    /// The sender's name.
    pub name: &'a [u8],
}

impl<'a> Value<'a> {
    /// Reads a packet's data; `None` if the value's length is zero or exceeds the data.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (&length, rest) = data.split_first()?;
        let (value, name) = rest.split_at_checked(usize::from(length))?;
        (length > 0).then_some(Self { value, name })
    }

    /// Appends the data; the value is truncated to 255 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let value = &self.value[..self.value.len().min(255)];
        out.push(value.len() as u8);
        out.extend_from_slice(value);
        out.extend_from_slice(self.name);
    }
}

/// The response to a challenge under a secret (RFC 1994, section 4.1).
#[must_use]
pub fn md5_response(identifier: u8, secret: &[u8], challenge: &[u8]) -> [u8; 16] {
    Md5::new()
        .chain_update([identifier])
        .chain_update(secret)
        .chain_update(challenge)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_as_it_was_written() {
        let challenge = Value {
            value: &[1, 2, 3],
            name: b"lns",
        };
        let mut out = Vec::new();
        challenge.emit(&mut out);
        assert_eq!(out, b"\x03\x01\x02\x03lns");
        assert_eq!(Value::parse(&out), Some(challenge));
    }

    #[test]
    fn values_that_are_empty_or_cut_short_are_refused() {
        for data in [&b""[..], b"\x00lns", b"\x04\x01\x02"] {
            assert_eq!(Value::parse(data), None, "{data:?}");
        }
    }

    #[test]
    fn the_response_is_the_digest_of_identifier_secret_and_challenge() {
        // RFC 1321's own vector, A.5: the digest of "message digest", split in three.
        let digest = md5_response(b'm', b"essage ", b"digest");
        let expected = [
            0xf9, 0x6b, 0x69, 0x7d, 0x7c, 0xb7, 0x93, 0x8d, 0x52, 0x5a, 0x2f, 0x31, 0xaa, 0xf1,
            0x61, 0xd0,
        ];
        assert_eq!(digest, expected);
    }
}
