//! OPEN messages: RFC 4271, sections 4.2 and 6.2; RFC 5492; RFC 9072.

use super::capability::Capability;
use super::notification::{code, open};
use super::writer::TooLong;
use super::{AS_TRANS, HEADER_LEN, Kind, MESSAGE_MAX, Notification, emit_header};

/// The supported version.
const VERSION: u8 = 4;
/// Octets before the optional parameters' length.
const FIXED_LEN: usize = 9;
/// The optional parameter that carries capabilities (RFC 5492, section 4).
const CAPABILITIES: u8 = 2;
/// The "parameter" that announces two-octet lengths (RFC 9072, section 2).
const EXTENDED: u8 = 255;

/// An OPEN message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// My Autonomous System: two octets, [`AS_TRANS`] for a number that needs four.
    pub asn: u16,
    /// Hold Time, in seconds: 0, or 3 and more.
    pub hold_time_s: u16,
    /// BGP Identifier, not 0 (RFC 6286).
    pub router_id: u32,
    /// Capabilities, in order.
    pub capabilities: Vec<Capability>,
}

impl Open {
    /// An OPEN for that AS number, which is also sent as a four-octet capability (RFC 6793).
    #[must_use]
    pub fn new(asn: u32, hold_time_s: u16, router_id: u32) -> Self {
        Open {
            asn: u16::try_from(asn).unwrap_or(AS_TRANS),
            hold_time_s,
            router_id,
            capabilities: vec![Capability::FourOctetAs(asn)],
        }
    }

    /// The sender's AS number: from the capability if present (RFC 6793, section 4.1).
    #[must_use]
    pub fn asn(&self) -> u32 {
        self.four_octet_as().unwrap_or(u32::from(self.asn))
    }

    /// The AS number in the four-octet AS capability.
    #[must_use]
    pub fn four_octet_as(&self) -> Option<u32> {
        self.capabilities
            .iter()
            .find_map(|capability| match capability {
                Capability::FourOctetAs(asn) => Some(*asn),
                _ => None,
            })
    }

    /// The families that the sender lists; IPv4 unicast if it lists none (RFC 4760, section 8).
    #[must_use]
    pub fn families(&self) -> super::Families {
        let mut is_silent = true;
        let named = self
            .capabilities
            .iter()
            .filter_map(|capability| match capability {
                Capability::Multiprotocol(family) => {
                    is_silent = false;
                    family.family()
                }
                _ => None,
            })
            .collect();
        if is_silent {
            super::Families::IPV4
        } else {
            named
        }
    }

    /// Reads the bytes after the header.
    ///
    /// # Errors
    /// The error that RFC 4271, section 6.2, RFC 6286, section 2.2, and RFC 7607 prescribe for an invalid
    /// version, AS number, hold time or identifier, and for malformed or unknown optional parameters.
    pub fn read(body: &[u8]) -> Result<Self, Notification> {
        let error = |subcode| Notification::new(code::OPEN, subcode);
        let Some((&fixed, rest)) = body.split_first_chunk::<FIXED_LEN>() else {
            return Err(error(0));
        };
        let [version, a, b, c, d, id @ ..] = fixed;
        if version != VERSION {
            return Err(Notification::with_data(
                code::OPEN,
                open::UNSUPPORTED_VERSION,
                &u16::from(VERSION).to_be_bytes(),
            ));
        }
        let message = Open {
            asn: u16::from_be_bytes([a, b]),
            hold_time_s: u16::from_be_bytes([c, d]),
            router_id: u32::from_be_bytes(id),
            capabilities: parameters(rest)?,
        };
        if message.asn == 0 || message.asn() == 0 {
            return Err(error(open::BAD_PEER_AS));
        }
        if matches!(message.hold_time_s, 1 | 2) {
            return Err(error(open::UNACCEPTABLE_HOLD_TIME));
        }
        if message.router_id == 0 {
            return Err(error(open::BAD_IDENTIFIER));
        }
        Ok(message)
    }

    /// Appends the complete message: all capabilities in one parameter, two-octet lengths (RFC 9072) only if
    /// needed.
    ///
    /// # Errors
    /// A capability longer than 255 octets or a message longer than 4,096; nothing is appended.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let mut capabilities = Vec::new();
        for capability in &self.capabilities {
            capability.emit(&mut capabilities)?;
        }
        let len = capabilities.len();
        let is_extended = len + 2 > usize::from(u8::MAX);
        let parameters_len = match (len, is_extended) {
            (0, _) => 1,
            (_, false) => 3 + len,
            (_, true) => 4 + 3 + len,
        };
        if HEADER_LEN + FIXED_LEN + parameters_len > MESSAGE_MAX {
            return Err(TooLong);
        }
        emit_header(Kind::Open, FIXED_LEN + parameters_len, out);
        out.push(VERSION);
        out.extend_from_slice(&self.asn.to_be_bytes());
        out.extend_from_slice(&self.hold_time_s.to_be_bytes());
        out.extend_from_slice(&self.router_id.to_be_bytes());
        let short = |len: usize| (len as u16).to_be_bytes();
        if len == 0 {
            out.push(0);
        } else if is_extended {
            out.extend_from_slice(&[EXTENDED, EXTENDED]);
            out.extend_from_slice(&short(len + 3));
            out.push(CAPABILITIES);
            out.extend_from_slice(&short(len));
        } else {
            out.extend_from_slice(&[len as u8 + 2, CAPABILITIES, len as u8]);
        }
        out.extend_from_slice(&capabilities);
        Ok(())
    }
}

/// Reads the optional parameters, starting at their length.
fn parameters(octets: &[u8]) -> Result<Vec<Capability>, Notification> {
    let malformed = || Notification::new(code::OPEN, 0);
    let (&len, rest) = octets.split_first().ok_or_else(malformed)?;
    let (mut rest, len_len) = match rest {
        [EXTENDED, a, b, rest @ ..] if len != 0 => {
            let len = usize::from(u16::from_be_bytes([*a, *b]));
            (Some(rest).filter(|rest| rest.len() == len), 2)
        }
        rest => {
            let is_whole = rest.len() == usize::from(len);
            (Some(rest).filter(|_| is_whole), 1)
        }
    };
    let mut capabilities = Vec::new();
    while let Some((&kind, after)) = rest.ok_or_else(malformed)?.split_first() {
        let (len, after) = after.split_at_checked(len_len).ok_or_else(malformed)?;
        let len = len
            .iter()
            .fold(0, |len, &octet| len << 8 | usize::from(octet));
        let (value, after) = after.split_at_checked(len).ok_or_else(malformed)?;
        rest = Some(after);
        if kind != CAPABILITIES {
            return Err(Notification::new(code::OPEN, open::UNSUPPORTED_PARAMETER));
        }
        let mut value = value;
        while let Some((&[code, len], after)) = value.split_first_chunk::<2>() {
            let (octets, after) = after
                .split_at_checked(usize::from(len))
                .ok_or_else(malformed)?;
            capabilities.push(Capability::read(code, octets));
            value = after;
        }
        if !value.is_empty() {
            return Err(malformed());
        }
    }
    Ok(capabilities)
}
