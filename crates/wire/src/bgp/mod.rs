//! BGP-4 messages (RFC 4271), read and written.
//!
//! - [`frame`]: the header (section 4.1), and where a message ends in a stream. Start reading here.
//! - [`Open`] and [`Capability`]: section 4.2; RFC 5492, RFC 9072.
//! - [`Update`]: section 4.3; RFC 4760, with the error handling of RFC 7606. [`attr`] reads and writes path attributes,
//!   [`AsPath`] one of them.
//! - [`UpdateWriter`]: routes with equal attributes, packed into messages.
//! - [`Notification`]: section 4.5. [`RouteRefresh`]: RFC 2918, RFC 7313.
//! - [`Family`]: what differs between address families; [`FamilyId`], a family's name at run time.
//! - [`Prefix`], [`Nlri`]: the destination of a route.
//!
//! Further RFCs used: RFC 1997, 4360, 4456, 4486, 4724, 5065, 5701, 6286, 6608, 6793, 7607, 7911, 8092, 8654,
//! 9003, 9234.
//!
//! Left out: families other than IPv4 and IPv6 unicast (recognised and skipped), IPv6 next hops of IPv4 routes
//! (RFC 8950) and outbound route filters (RFC 5291). Where RFC 7606 offers to disable an address family, the
//! session is reset instead.

#[macro_use]
mod family;

mod as4;
pub mod attr;
mod capability;
mod nlri;
pub mod notification;
mod open;
mod path;
mod prefix;
mod refresh;
mod update;
mod writer;

#[cfg(test)]
mod tests;

pub use as4::{AS_TRANS, to_two_octet};
pub use capability::{AddPathMode, Capability, GracefulRestart, Role};
pub use family::*;
pub use nlri::{Nlris, emit as emit_nlri, encoded_len};
pub use notification::Notification;
pub use open::Open;
pub use path::{AsPath, Segment, SegmentKind};
pub use prefix::{Nlri, Prefix, PrefixError};
pub use refresh::{Refresh, RouteRefresh};
pub use update::{
    FAULTS_MAX, Fault, NextHop, PeerKind, Treatment, Update, UpdateContext, Verdict, What,
};
pub use writer::{TooLong, UpdateWriter};

use notification::{code, header};

/// BGP's TCP port.
pub const PORT: u16 = 179;
/// Octets of marker, length and type.
pub const HEADER_LEN: usize = 19;
/// The longest message (RFC 4271, section 4.1).
pub const MESSAGE_MAX: usize = 4_096;
/// The longest message once RFC 8654 is negotiated; OPEN and KEEPALIVE stay below [`MESSAGE_MAX`].
pub const EXTENDED_MAX: usize = 65_535;
/// A whole KEEPALIVE message.
pub const KEEPALIVE: [u8; HEADER_LEN] = {
    let mut message = [0xff; HEADER_LEN];
    message[16] = 0;
    message[17] = HEADER_LEN as u8;
    message[18] = Kind::Keepalive as u8;
    message
};

/// A message's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// OPEN.
    Open = 1,
    /// UPDATE.
    Update = 2,
    /// NOTIFICATION.
    Notification = 3,
    /// KEEPALIVE.
    Keepalive = 4,
    /// ROUTE-REFRESH (RFC 2918).
    RouteRefresh = 5,
}

impl Kind {
    /// The type with that number.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Kind::Open),
            2 => Some(Kind::Update),
            3 => Some(Kind::Notification),
            4 => Some(Kind::Keepalive),
            5 => Some(Kind::RouteRefresh),
            _ => None,
        }
    }

    /// The type's shortest message, in octets. A ROUTE-REFRESH that is too short has its own error code.
    const fn len_min(self) -> usize {
        match self {
            Kind::Open => 29,
            Kind::Update => 23,
            Kind::Notification => 21,
            Kind::Keepalive | Kind::RouteRefresh => HEADER_LEN,
        }
    }

    /// The type's longest message; `max` octets for types that can be extended.
    const fn len_max(self, max: usize) -> usize {
        match self {
            Kind::Keepalive => HEADER_LEN,
            Kind::Open if max > MESSAGE_MAX => MESSAGE_MAX,
            Kind::Open | Kind::Update | Kind::Notification | Kind::RouteRefresh => max,
        }
    }
}

/// A message's type, the bytes after its header, and its total length in octets.
pub type Framed<'a> = Option<(Kind, &'a [u8], usize)>;

/// The first message of a stream: its type, the bytes after its header, and its total length in octets. `None`
/// until the message is complete. `max` is [`MESSAGE_MAX`], or [`EXTENDED_MAX`] if we announced extended
/// messages.
///
/// # Errors
/// An invalid header (RFC 4271, section 6.1), as soon as its 19 octets have arrived.
#[inline]
pub fn frame(octets: &[u8], max: usize) -> Result<Framed<'_>, Notification> {
    let Some(header) = octets.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes([header[16], header[17]]));
    let kind = Kind::from_number(header[18]);
    let is_marked = header[..16] == [0xff; 16];
    match kind {
        Some(kind) if is_marked && len >= kind.len_min() && len <= kind.len_max(max) => {
            Ok(octets.get(HEADER_LEN..len).map(|body| (kind, body, len)))
        }
        _ => Err(header_fault(is_marked, len, max, header[18])),
    }
}

#[cold]
fn header_fault(is_marked: bool, len: usize, max: usize, kind: u8) -> Notification {
    if !is_marked {
        Notification::new(code::HEADER, header::NOT_SYNCHRONIZED)
    } else if len >= HEADER_LEN && len <= max && Kind::from_number(kind).is_none() {
        Notification::with_data(code::HEADER, header::BAD_TYPE, &[kind])
    } else {
        let len = (len as u16).to_be_bytes();
        Notification::with_data(code::HEADER, header::BAD_LENGTH, &len)
    }
}

/// Appends the header of a message with a body of that many octets.
fn emit_header(kind: Kind, body_len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xff; 16]);
    out.extend_from_slice(&((HEADER_LEN + body_len) as u16).to_be_bytes());
    out.push(kind as u8);
}
