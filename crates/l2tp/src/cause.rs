//! Why PPP in a session ended, as one end reports it to the other (RFC 3145).

use core::fmt;

use wire::l2tp::DisconnectCause;
use wire::l2tp::disconnect::{code, direction};

/// The most octets of a peer's text that are kept.
const MESSAGE_MAX: usize = 128;

/// A PPP Disconnect Cause Code AVP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PppCause {
    /// Disconnect Code (RFC 3145 3).
    pub code: u16,
    /// Control Protocol Number; 0 for global errors.
    pub protocol: u16,
    /// Direction, from the view of the sender: 0 global, 1 at its peer, 2 at itself.
    pub direction: u8,
    /// The sender's text, printable and of 128 octets at most.
    pub message: Box<str>,
}

impl PppCause {
    pub(crate) fn from_wire(cause: DisconnectCause<'_>) -> Self {
        Self {
            code: cause.code,
            protocol: cause.protocol,
            direction: cause.direction,
            message: printable(cause.message, MESSAGE_MAX),
        }
    }

    pub(crate) fn to_wire(&self) -> DisconnectCause<'_> {
        DisconnectCause {
            code: self.code,
            protocol: self.protocol,
            direction: self.direction,
            message: self.message.as_bytes(),
        }
    }
}

/// The first `most` octets of a peer's text, without control characters.
pub(crate) fn printable(text: &[u8], most: usize) -> Box<str> {
    let shown = &text[..text.len().min(most)];
    let shown = String::from_utf8_lossy(shown);
    let printable = shown.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.collect::<String>().into()
}

impl fmt::Display for PppCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.code {
            code::NO_INFORMATION => "no information",
            code::ADMINISTRATIVE => "disconnected by the administrator",
            code::NO_PROXY_LCP => "LCP is not negotiated again, and there was no proxy LCP",
            code::TERMINATE_REQUEST => "Terminate-Request",
            code::ENCRYPTION_REFUSED => "encryption refused",
            code::LCP_TIMEOUT => "LCP was not answered",
            code::NO_LCP => "no LCP packets that can be read",
            code::LOOPED => "the line is looped",
            code::ECHO_TIMEOUT => "Echo-Requests were not answered",
            code::MP_DISCRIMINATOR | code::MP_MRRU | code::MP_SHORT_SEQUENCE | code::MP_NAME => {
                "it does not fit its multilink bundle"
            }
            code::CALL_BACK_REFUSED => "call-back refused",
            code::AUTHENTICATION_TIMEOUT => "authentication took too long",
            code::NO_AUTHENTICATION_PROTOCOL => "no common authentication protocol",
            code::AUTHENTICATION_FAILED => "authentication failed",
            code::NCP_TIMEOUT => "a network protocol was not answered",
            code::NO_NCP => "no network protocol was opened",
            code::ADDRESSES_DIFFER => "no common address",
            code::NO_ADDRESS => "no address is permitted",
            _ => "unknown",
        };
        write!(f, "PPP cause {}, {text}", self.code)?;
        match self.direction {
            direction::PEER => f.write_str(" (at the peer)")?,
            direction::LOCAL => f.write_str(" (at the sender)")?,
            _ => {}
        }
        if self.protocol != 0 {
            write!(f, ", protocol {:04x}", self.protocol)?;
        }
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.message),
        }
    }
}
