//! NOTIFICATION messages: RFC 4271, sections 4.5 and 6; their text: RFC 9003.
//!
//! Implements parts of RFC 7606, section 2.

use std::fmt;

use super::{HEADER_LEN, Kind, emit_header};

/// Error codes (RFC 4271, section 4.5; RFC 7313, section 5; RFC 9687).
pub mod code {
    /// Message Header Error.
    pub const HEADER: u8 = 1;
    /// OPEN Message Error.
    pub const OPEN: u8 = 2;
    /// UPDATE Message Error.
    pub const UPDATE: u8 = 3;
    /// Hold Timer Expired.
    pub const HOLD_TIMER: u8 = 4;
    /// Finite State Machine Error.
    pub const FSM: u8 = 5;
    /// Cease.
    pub const CEASE: u8 = 6;
    /// ROUTE-REFRESH Message Error.
    pub const ROUTE_REFRESH: u8 = 7;
    /// Send Hold Timer Expired.
    pub const SEND_HOLD_TIMER: u8 = 8;
}

/// Subcodes of [`code::HEADER`].
pub mod header {
    /// Connection Not Synchronized.
    pub const NOT_SYNCHRONIZED: u8 = 1;
    /// Bad Message Length.
    pub const BAD_LENGTH: u8 = 2;
    /// Bad Message Type.
    pub const BAD_TYPE: u8 = 3;
}

/// Subcodes of [`code::OPEN`] (also RFC 5492, section 5; RFC 9234, section 4.2).
pub mod open {
    /// Unsupported Version Number.
    pub const UNSUPPORTED_VERSION: u8 = 1;
    /// Bad Peer AS.
    pub const BAD_PEER_AS: u8 = 2;
    /// Bad BGP Identifier.
    pub const BAD_IDENTIFIER: u8 = 3;
    /// Unsupported Optional Parameter.
    pub const UNSUPPORTED_PARAMETER: u8 = 4;
    /// Unacceptable Hold Time.
    pub const UNACCEPTABLE_HOLD_TIME: u8 = 6;
    /// Unsupported Capability.
    pub const UNSUPPORTED_CAPABILITY: u8 = 7;
    /// Role Mismatch.
    pub const ROLE_MISMATCH: u8 = 11;
}

/// Subcodes of [`code::UPDATE`].
pub mod update {
    /// Malformed Attribute List.
    pub const MALFORMED_ATTRIBUTES: u8 = 1;
    /// Unrecognized Well-known Attribute.
    pub const UNRECOGNIZED_WELL_KNOWN: u8 = 2;
    /// Missing Well-known Attribute.
    pub const MISSING_WELL_KNOWN: u8 = 3;
    /// Attribute Flags Error.
    pub const FLAGS: u8 = 4;
    /// Attribute Length Error.
    pub const LENGTH: u8 = 5;
    /// Invalid ORIGIN Attribute.
    pub const ORIGIN: u8 = 6;
    /// Invalid NEXT_HOP Attribute.
    pub const NEXT_HOP: u8 = 8;
    /// Optional Attribute Error.
    pub const OPTIONAL: u8 = 9;
    /// Invalid Network Field.
    pub const NETWORK: u8 = 10;
    /// Malformed AS_PATH.
    pub const AS_PATH: u8 = 11;
}

/// Subcodes of [`code::FSM`] (RFC 6608).
pub mod fsm {
    /// Receive Unexpected Message in OpenSent State.
    pub const IN_OPEN_SENT: u8 = 1;
    /// Receive Unexpected Message in OpenConfirm State.
    pub const IN_OPEN_CONFIRM: u8 = 2;
    /// Receive Unexpected Message in Established State.
    pub const IN_ESTABLISHED: u8 = 3;
}

/// Subcodes of [`code::CEASE`] (RFC 4486; 9: RFC 8538; 10: RFC 9384).
pub mod cease {
    /// Maximum Number of Prefixes Reached.
    pub const PREFIXES: u8 = 1;
    /// Administrative Shutdown.
    pub const SHUTDOWN: u8 = 2;
    /// Peer De-configured.
    pub const DECONFIGURED: u8 = 3;
    /// Administrative Reset.
    pub const RESET: u8 = 4;
    /// Connection Rejected.
    pub const REJECTED: u8 = 5;
    /// Other Configuration Change.
    pub const CONFIGURATION: u8 = 6;
    /// Connection Collision Resolution.
    pub const COLLISION: u8 = 7;
    /// Out of Resources.
    pub const RESOURCES: u8 = 8;
    /// Hard Reset.
    pub const HARD_RESET: u8 = 9;
    /// BFD Down.
    pub const BFD_DOWN: u8 = 10;
}

/// The only subcode of [`code::ROUTE_REFRESH`]: Invalid Message Length.
pub const REFRESH_LENGTH: u8 = 1;

/// The longest shutdown communication, in octets (RFC 9003, section 2).
pub const TEXT_LEN_MAX: usize = 255;

/// The most data octets that fit a message of 4,096 octets.
pub const DATA_LEN_MAX: usize = super::MESSAGE_MAX - HEADER_LEN - 2;

/// Why a session ends: the NOTIFICATION that this speaker sends or the peer sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Notification {
    /// Error code, of [`code`].
    pub code: u8,
    /// Error subcode; 0 if none.
    pub subcode: u8,
    /// Data; its meaning depends on code and subcode.
    pub data: Vec<u8>,
}

/// A shutdown communication as it was received (RFC 9003).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text<'a> {
    /// Valid text.
    Utf8(&'a str),
    /// Not UTF-8, or a wrong length: to be shown as raw bytes only (section 4).
    Malformed(&'a [u8]),
}

impl Notification {
    /// A notification without data.
    #[must_use]
    pub const fn new(code: u8, subcode: u8) -> Self {
        Notification {
            code,
            subcode,
            data: Vec::new(),
        }
    }

    /// A notification with data, truncated to [`DATA_LEN_MAX`] octets.
    #[must_use]
    pub fn with_data(code: u8, subcode: u8, data: &[u8]) -> Self {
        Notification {
            code,
            subcode,
            data: data[..data.len().min(DATA_LEN_MAX)].to_vec(),
        }
    }

    /// Cease with a text for the peer's operator (RFC 9003), truncated at a character boundary to
    /// [`TEXT_LEN_MAX`] octets. An empty text is omitted.
    #[must_use]
    pub fn cease(subcode: u8, text: &str) -> Self {
        let mut notification = Notification::new(code::CEASE, subcode);
        let text = &text[..boundary(text, TEXT_LEN_MAX)];
        if !text.is_empty() {
            notification.data.push(text.len() as u8);
            notification.data.extend_from_slice(text.as_bytes());
        }
        notification
    }

    /// Reads the bytes after the header.
    ///
    /// # Errors
    /// Bad Message Length if there are fewer than two octets; no message from [`frame`](super::frame) is that
    /// short.
    pub fn read(body: &[u8]) -> Result<Self, Notification> {
        let [code, subcode, data @ ..] = body else {
            let len = (HEADER_LEN + body.len()) as u16;
            return Err(Notification::with_data(
                self::code::HEADER,
                header::BAD_LENGTH,
                &len.to_be_bytes(),
            ));
        };
        Ok(Notification {
            code: *code,
            subcode: *subcode,
            data: data.to_vec(),
        })
    }

    /// Appends the complete message; data is truncated to [`DATA_LEN_MAX`] octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let data = &self.data[..self.data.len().min(DATA_LEN_MAX)];
        emit_header(Kind::Notification, 2 + data.len(), out);
        out.push(self.code);
        out.push(self.subcode);
        out.extend_from_slice(data);
    }

    /// The text that the peer's operator gave for a shutdown or reset; `None` if there is none.
    #[must_use]
    pub fn text(&self) -> Option<Text<'_>> {
        if self.code != code::CEASE || !matches!(self.subcode, cease::SHUTDOWN | cease::RESET) {
            return None;
        }
        let (&len, rest) = self.data.split_first()?;
        if len == 0 && rest.is_empty() {
            return None;
        }
        match rest
            .get(..usize::from(len))
            .filter(|text| text.len() == rest.len())
            .map(str::from_utf8)
        {
            Some(Ok(text)) => Some(Text::Utf8(text)),
            Some(Err(_)) | None => Some(Text::Malformed(&self.data)),
        }
    }

    /// The code's name; `"Unknown"` for other codes.
    #[must_use]
    pub fn code_name(&self) -> &'static str {
        match self.code {
            code::HEADER => "Message Header Error",
            code::OPEN => "OPEN Message Error",
            code::UPDATE => "UPDATE Message Error",
            code::HOLD_TIMER => "Hold Timer Expired",
            code::FSM => "Finite State Machine Error",
            code::CEASE => "Cease",
            code::ROUTE_REFRESH => "ROUTE-REFRESH Message Error",
            code::SEND_HOLD_TIMER => "Send Hold Timer Expired",
            _ => "Unknown",
        }
    }

    /// The subcode's name; `None` if it has none.
    #[must_use]
    pub fn subcode_name(&self) -> Option<&'static str> {
        let names: &[&str] = match self.code {
            code::HEADER => &[
                "Connection Not Synchronized",
                "Bad Message Length",
                "Bad Message Type",
            ],
            code::OPEN => &[
                "Unsupported Version Number",
                "Bad Peer AS",
                "Bad BGP Identifier",
                "Unsupported Optional Parameter",
                "",
                "Unacceptable Hold Time",
                "Unsupported Capability",
                "",
                "",
                "",
                "Role Mismatch",
            ],
            code::UPDATE => &[
                "Malformed Attribute List",
                "Unrecognized Well-known Attribute",
                "Missing Well-known Attribute",
                "Attribute Flags Error",
                "Attribute Length Error",
                "Invalid ORIGIN Attribute",
                "",
                "Invalid NEXT_HOP Attribute",
                "Optional Attribute Error",
                "Invalid Network Field",
                "Malformed AS_PATH",
            ],
            code::FSM => &[
                "Receive Unexpected Message in OpenSent State",
                "Receive Unexpected Message in OpenConfirm State",
                "Receive Unexpected Message in Established State",
            ],
            code::CEASE => &[
                "Maximum Number of Prefixes Reached",
                "Administrative Shutdown",
                "Peer De-configured",
                "Administrative Reset",
                "Connection Rejected",
                "Other Configuration Change",
                "Connection Collision Resolution",
                "Out of Resources",
                "Hard Reset",
                "BFD Down",
            ],
            code::ROUTE_REFRESH => &["Invalid Message Length"],
            _ => &[],
        };
        let index = usize::from(self.subcode).checked_sub(1)?;
        names.get(index).copied().filter(|name| !name.is_empty())
    }
}

impl fmt::Display for Notification {
    /// `Cease/Administrative Shutdown`, with numbers for unnamed codes, and the text if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code_name() {
            "Unknown" => write!(f, "code {}", self.code)?,
            name => f.write_str(name)?,
        }
        match self.subcode_name() {
            Some(name) => write!(f, "/{name}")?,
            None if self.subcode != 0 => write!(f, "/subcode {}", self.subcode)?,
            None => {}
        }
        match self.text() {
            // The peer's text is printed escaped, so that it cannot imitate a log line of ours (RFC 9003,
            // section 6).
            Some(Text::Utf8(text)) => write!(f, " {text:?}"),
            Some(Text::Malformed(_)) | None => Ok(()),
        }
    }
}

/// The longest prefix length of at most `len` octets that splits no character.
fn boundary(text: &str, len: usize) -> usize {
    let mut len = len.min(text.len());
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    len
}
