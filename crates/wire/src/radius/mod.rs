//! RADIUS packets (RFC 2865, section 3) and their attributes (section 5), for clients of a server and for the server's
//! own requests (RFC 5176).
//!
//! - [`Packet`]: a received packet, fully validated before any of it is used.
//! - [`List`]: attributes alone, as stored until they are sent.
//! - [`Writer`]: builds a packet and finishes it with the authenticator of its kind.
//! - [`attribute`]: types, and values that are used in several places.
//! - [`vendor`]: Vendor-Specific attributes, and the vendors that we know.
//! - [`secret`]: everything that needs the shared secret: authenticators, User-Password, Message-Authenticator.
//!
//! Left out: extended attributes (RFC 6929).

pub mod attribute;
mod list;
mod packet;
pub mod secret;
pub mod vendor;
mod writer;

#[cfg(test)]
mod tests;

pub use list::List;
pub use packet::{Attribute, Attributes, Packet, ParseError};
pub use writer::{TooLong, Writer};

/// Octets of code, identifier, length and authenticator.
pub const HEADER: usize = 20;
/// The longest packet (RFC 2865, section 3).
pub const LENGTH_MAX: usize = 4_096;

/// An authenticator (RFC 2865, section 3).
pub type Authenticator = [u8; 16];

/// Codes (RFC 2865, section 4; RFC 2866, section 4; RFC 5176, section 2.3).
pub mod code {
    /// Access-Request.
    pub const ACCESS_REQUEST: u8 = 1;
    /// Access-Accept.
    pub const ACCESS_ACCEPT: u8 = 2;
    /// Access-Reject.
    pub const ACCESS_REJECT: u8 = 3;
    /// Accounting-Request.
    pub const ACCOUNTING_REQUEST: u8 = 4;
    /// Accounting-Response.
    pub const ACCOUNTING_RESPONSE: u8 = 5;
    /// Access-Challenge.
    pub const ACCESS_CHALLENGE: u8 = 11;
    /// Status-Server (RFC 5997).
    pub const STATUS_SERVER: u8 = 12;
    /// Disconnect-Request.
    pub const DISCONNECT_REQUEST: u8 = 40;
    /// Disconnect-ACK.
    pub const DISCONNECT_ACK: u8 = 41;
    /// Disconnect-NAK.
    pub const DISCONNECT_NAK: u8 = 42;
    /// CoA-Request.
    pub const COA_REQUEST: u8 = 43;
    /// CoA-ACK.
    pub const COA_ACK: u8 = 44;
    /// CoA-NAK.
    pub const COA_NAK: u8 = 45;
}
