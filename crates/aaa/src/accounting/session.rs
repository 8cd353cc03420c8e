//! The session's identifier in accounting (RFC 2866, section 5.5), unique across restarts.

use core::fmt;
use core::str::FromStr;

/// An Acct-Session-Id (RFC 2866, section 5.5). It is unique as long as no two starts of the daemon share a
/// number, which the owner ensures. The start time in seconds suffices if the daemon never starts twice within
/// one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionId {
    /// Identifies the daemon's start.
    pub boot: u32,
    /// Counts sessions since that start; 40 bits are used.
    pub number: u64,
}

/// Hex digits of both parts.
const DIGITS: usize = 18;

impl SessionId {
    /// The encoded text: eight hex digits for the start, ten for the number.
    #[must_use]
    pub fn text(self) -> [u8; DIGITS] {
        let mut bits = u128::from(self.boot) << 40 | u128::from(self.number & ((1 << 40) - 1));
        let mut text = [0; DIGITS];
        for place in text.iter_mut().rev() {
            *place = b"0123456789abcdef"[(bits & 15) as usize];
            bits >>= 4;
        }
        text
    }

    /// Parses a text; `None` unless it has the form that we send.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != DIGITS {
            return None;
        }
        let mut bits = 0_u128;
        for &octet in text {
            let digit = match octet {
                b'0'..=b'9' => octet - b'0',
                b'a'..=b'f' => octet - b'a' + 10,
                _ => return None,
            };
            bits = bits << 4 | u128::from(digit);
        }
        Some(Self {
            boot: (bits >> 40) as u32,
            number: bits as u64 & ((1 << 40) - 1),
        })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

/// The text is not a session ID of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id has 18 hexadecimal digits")]
pub struct NoSessionId;

impl FromStr for SessionId {
    type Err = NoSessionId;

    fn from_str(text: &str) -> Result<Self, NoSessionId> {
        Self::parse(text.as_bytes()).ok_or(NoSessionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_read_as_it_was_written() {
        let id = SessionId {
            boot: 0x6920_b1aa,
            number: 0xab_cdef_0123,
        };
        assert_eq!(id.to_string(), "6920b1aaabcdef0123");
        assert_eq!("6920b1aaabcdef0123".parse(), Ok(id));
        for text in [
            "",
            "6920b1aaabcdef012",
            "6920B1AAABCDEF0123",
            "6920b1aaabcdef01234",
            "x",
        ] {
            assert_eq!(SessionId::parse(text.as_bytes()), None, "{text}");
        }
    }
}
