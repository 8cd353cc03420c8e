//! The PPP Disconnect Cause Code AVP: RFC 3145.
//!
//! Left out: the draft form under Vendor ID 43, which receivers may accept (section 4).

/// Why PPP in a session ended: RFC 3145 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DisconnectCause<'a> {
    /// Disconnect Code, a value of [`code`] or another one.
    pub code: u16,
    /// Control Protocol Number; 0 for global errors.
    pub protocol: u16,
    /// Direction, a value of [`direction`] or a reserved one.
    pub direction: u8,
    /// A text, supposedly UTF-8; empty if absent.
    pub message: &'a [u8],
}

impl<'a> DisconnectCause<'a> {
    /// Octets of a value before the text.
    pub const FIXED_LEN: usize = 5;

    /// Reads the AVP's value; `None` if it is shorter than its fixed fields.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (&[c0, c1, p0, p1, direction], message) = value.split_first_chunk()?;
        Some(Self {
            code: u16::from_be_bytes([c0, c1]),
            protocol: u16::from_be_bytes([p0, p1]),
            direction,
            message,
        })
    }
}

/// Values of Disconnect Code: RFC 3145 3.
pub mod code {
    /// No information available.
    pub const NO_INFORMATION: u16 = 0;
    /// Administrative disconnect.
    pub const ADMINISTRATIVE: u16 = 1;
    /// The LNS does not renegotiate LCP, and the LAC sent no proxy LCP.
    pub const NO_PROXY_LCP: u16 = 2;
    /// Normal disconnection: a Terminate-Request of LCP was sent.
    pub const TERMINATE_REQUEST: u16 = 3;
    /// Encryption that one side required was refused by the other.
    pub const ENCRYPTION_REFUSED: u16 = 4;
    /// LCP: no answer in time (event TO-).
    pub const LCP_TIMEOUT: u16 = 5;
    /// LCP: no packets that can be read.
    pub const NO_LCP: u16 = 6;
    /// LCP: the link is possibly looped back.
    pub const LOOPED: u16 = 7;
    /// LCP: no answers to Echo-Requests.
    pub const ECHO_TIMEOUT: u16 = 8;
    /// LCP: an unexpected Endpoint-Discriminator for a bundle.
    pub const MP_DISCRIMINATOR: u16 = 9;
    /// LCP: an unexpected MRRU for a bundle.
    pub const MP_MRRU: u16 = 10;
    /// LCP: an unexpected Short-Sequence-Number option for a bundle.
    pub const MP_SHORT_SEQUENCE: u16 = 11;
    /// LCP: call-back that one side required was refused by the other.
    pub const CALL_BACK_REFUSED: u16 = 12;
    /// Authentication: no answer in time.
    pub const AUTHENTICATION_TIMEOUT: u16 = 13;
    /// Authentication: an unexpected name for a bundle.
    pub const MP_NAME: u16 = 14;
    /// Authentication: no protocol that both sides accept.
    pub const NO_AUTHENTICATION_PROTOCOL: u16 = 15;
    /// Authentication failed: a bad name, password or secret.
    pub const AUTHENTICATION_FAILED: u16 = 16;
    /// NCP: no answer in time.
    pub const NCP_TIMEOUT: u16 = 17;
    /// NCP: none went to Opened.
    pub const NO_NCP: u16 = 18;
    /// NCP: no addresses that both sides accept.
    pub const ADDRESSES_DIFFER: u16 = 19;
    /// NCP: the user may use no address.
    pub const NO_ADDRESS: u16 = 20;
}

/// Values of Direction: RFC 3145 2. What they mean depends on the Disconnect Code.
pub mod direction {
    /// A global error.
    pub const GLOBAL: u8 = 0;
    /// At the peer.
    pub const PEER: u8 = 1;
    /// At the local system.
    pub const LOCAL: u8 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3145 2: "The length MUST be at least 11", of which 6 are the AVP's header.
    #[test]
    fn a_cause_has_five_octets_and_perhaps_a_text() {
        let value = [0, 16, 0xc2, 0x23, 1];
        let cause = DisconnectCause {
            code: code::AUTHENTICATION_FAILED,
            protocol: 0xc223,
            direction: direction::PEER,
            message: b"",
        };
        assert_eq!(DisconnectCause::parse(&value), Some(cause));
        assert_eq!(DisconnectCause::parse(&value[..4]), None);
        let long = [&value[..], b"no"].concat();
        assert_eq!(DisconnectCause::parse(&long).unwrap().message, b"no");
    }
}
