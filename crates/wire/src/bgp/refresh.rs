//! ROUTE-REFRESH messages: RFC 2918; RFC 7313.

use super::family::AfiSafi;
use super::notification::{REFRESH_LENGTH, code};
use super::{HEADER_LEN, Kind, Notification, emit_header};

/// The subtype of a ROUTE-REFRESH message (RFC 7313, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// A request to resend all routes.
    Request,
    /// Beginning of a refresh (BoRR).
    Begin,
    /// End of a refresh (EoRR).
    End,
    /// Any other subtype, to be ignored (section 5).
    Unknown(u8),
}

/// A ROUTE-REFRESH message. Outbound route filter entries (RFC 5291) after it are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRefresh {
    /// The family of the routes.
    pub family: AfiSafi,
    /// The message's subtype.
    pub refresh: Refresh,
}

impl RouteRefresh {
    /// Reads the bytes after the header.
    ///
    /// # Errors
    /// Invalid Message Length with the whole message as data (RFC 7313, section 5), if there are fewer than
    /// four octets, or more than four in a BoRR or EoRR.
    pub fn read(body: &[u8]) -> Result<Self, Notification> {
        let Some((&[a, b, subtype, c], rest)) = body.split_first_chunk::<4>() else {
            return Err(bad_length(body));
        };
        let refresh = match subtype {
            0 => Refresh::Request,
            1 => Refresh::Begin,
            2 => Refresh::End,
            other => Refresh::Unknown(other),
        };
        if matches!(refresh, Refresh::Begin | Refresh::End) && !rest.is_empty() {
            return Err(bad_length(body));
        }
        let family = AfiSafi::from_octets([a, b, c]);
        Ok(RouteRefresh { family, refresh })
    }

    /// Appends the complete message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_header(Kind::RouteRefresh, 4, out);
        let subtype = match self.refresh {
            Refresh::Request => 0,
            Refresh::Begin => 1,
            Refresh::End => 2,
            Refresh::Unknown(other) => other,
        };
        let [a, b] = self.family.afi.to_be_bytes();
        out.extend_from_slice(&[a, b, subtype, self.family.safi]);
    }
}

#[cold]
fn bad_length(body: &[u8]) -> Notification {
    let mut message = Vec::with_capacity(HEADER_LEN + body.len());
    emit_header(Kind::RouteRefresh, body.len(), &mut message);
    message.extend_from_slice(body);
    Notification::with_data(code::ROUTE_REFRESH, REFRESH_LENGTH, &message)
}
