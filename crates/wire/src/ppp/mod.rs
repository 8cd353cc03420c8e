//! PPP packets (RFC 1661) without their HDLC framing, as tunnels carry them.
//!
//! - [`Frame`]: optional address and control octets, and the protocol number, of one octet or two.
//! - [`control`]: the format common to all control protocols: code, identifier, length; and options.
//! - [`pap`] (RFC 1334, section 2), [`chap`] (RFC 1994), [`mschap`] (RFC 2759), [`eap`] (RFC 3748).
//!
//! Left out: RFC 1662's escapes and frame check sequence; L2TP carries neither (RFC 2661, section 4.4).

pub mod chap;
pub mod control;
pub mod eap;
pub mod mschap;
pub mod pap;

/// Protocol numbers of PPP (RFC 1661, section 2; IANA's registry).
pub mod protocol {
    /// Internet Protocol version 4 (RFC 1332).
    pub const IPV4: u16 = 0x0021;
    /// Internet Protocol version 6 (RFC 5072).
    pub const IPV6: u16 = 0x0057;
    /// IP Control Protocol (RFC 1332).
    pub const IPCP: u16 = 0x8021;
    /// IPv6 Control Protocol (RFC 5072).
    pub const IPV6CP: u16 = 0x8057;
    /// Compression Control Protocol (RFC 1962).
    pub const CCP: u16 = 0x80fd;
    /// Link Control Protocol (RFC 1661).
    pub const LCP: u16 = 0xc021;
    /// Password Authentication Protocol (RFC 1334).
    pub const PAP: u16 = 0xc023;
    /// Challenge Handshake Authentication Protocol (RFC 1994).
    pub const CHAP: u16 = 0xc223;
    /// Extensible Authentication Protocol (RFC 3748, section 3.1).
    pub const EAP: u16 = 0xc227;
}

/// A PPP frame as carried in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The protocol number.
    pub protocol: u16,
    /// The information field, with any padding.
    pub information: &'a [u8],
}

/// The frame is too short for a protocol number, or the number is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It ends before its protocol number does.
    Truncated,
    /// The protocol's last octet is even (RFC 1661, section 2).
    Protocol(u16),
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => f.write_str("the frame ends before its protocol number does"),
            Self::Protocol(number) => write!(f, "{number:#06x} is no protocol number"),
        }
    }
}

impl core::error::Error for FrameError {}

impl<'a> Frame<'a> {
    /// Reads a frame with or without address and control octets, its protocol number compressed or not,
    /// whatever was negotiated: accepting both forms is unambiguous (RFC 1661, sections 6.5 and 6.6).
    ///
    /// # Errors
    /// The frame is too short, or has no valid protocol number.
    #[inline]
    pub fn parse(octets: &'a [u8]) -> Result<Self, FrameError> {
        let octets = match octets {
            [0xff, 0x03, rest @ ..] => rest,
            octets => octets,
        };
        match *octets {
            [first, ref information @ ..] if first & 1 == 1 => Ok(Self {
                protocol: u16::from(first),
                information,
            }),
            [first, second, ref information @ ..] => {
                let protocol = u16::from_be_bytes([first, second]);
                if second & 1 == 0 {
                    return Err(FrameError::Protocol(protocol));
                }
                Ok(Self {
                    protocol,
                    information,
                })
            }
            _ => Err(FrameError::Truncated),
        }
    }
}

/// How a frame's header may be compressed, if the peer has agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Compression {
    /// Protocol numbers below 256 are sent as one octet (RFC 1661, section 6.5).
    pub protocol: bool,
    /// Address and control octets are omitted (RFC 1661, section 6.6).
    pub address: bool,
}

impl Compression {
    /// The frame's header and its length in octets, at most 4.
    ///
    /// LCP packets are never compressed (RFC 1661, section 6).
    #[inline]
    #[must_use]
    pub fn head(self, number: u16) -> ([u8; 4], usize) {
        let [high, low] = number.to_be_bytes();
        let (address, short) = match number {
            protocol::LCP => (true, false),
            _ => (!self.address, self.protocol && high == 0),
        };
        match (address, short) {
            (true, false) => ([0xff, 0x03, high, low], 4),
            (true, true) => ([0xff, 0x03, low, 0], 3),
            (false, false) => ([high, low, 0, 0], 2),
            (false, true) => ([low, 0, 0, 0], 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_however_its_head_was_shortened() {
        for compression in [(false, false), (false, true), (true, false), (true, true)] {
            let compression = Compression {
                protocol: compression.0,
                address: compression.1,
            };
            for number in [protocol::IPV4, protocol::IPCP, protocol::LCP] {
                let (head, length) = compression.head(number);
                let octets = [&head[..length], &[1, 2, 3]].concat();
                let frame = Frame::parse(&octets).unwrap();
                assert_eq!(frame.protocol, number);
                assert_eq!(frame.information, [1, 2, 3]);
            }
        }
    }

    #[test]
    fn lcp_is_sent_whole_and_others_as_short_as_agreed() {
        let both = Compression {
            protocol: true,
            address: true,
        };
        assert_eq!(both.head(protocol::LCP), ([0xff, 0x03, 0xc0, 0x21], 4));
        assert_eq!(both.head(protocol::IPV4), ([0x21, 0, 0, 0], 1));
        assert_eq!(both.head(protocol::IPCP), ([0x80, 0x21, 0, 0], 2));
        assert_eq!(
            Compression::default().head(protocol::IPV4),
            ([0xff, 0x03, 0, 0x21], 4)
        );
    }

    #[test]
    fn what_has_no_protocol_number_is_refused() {
        assert_eq!(Frame::parse(&[]), Err(FrameError::Truncated));
        assert_eq!(Frame::parse(&[0xff, 0x03]), Err(FrameError::Truncated));
        assert_eq!(Frame::parse(&[0xc0]), Err(FrameError::Truncated));
        assert_eq!(
            Frame::parse(&[0xc0, 0x20]),
            Err(FrameError::Protocol(0xc020))
        );
    }
}
