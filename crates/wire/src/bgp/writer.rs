//! Writes UPDATE messages: routes with equal attributes, packed as many per message as fit.
//!
//! Implements parts of RFC 4760.

use std::iter::Peekable;

use super::attr::{self, code, flag};
use super::family::{AfiSafi, FAMILIES, FamilyId, Place};
use super::nlri::{self, encoded_len};
use super::prefix::Nlri;
use super::update::NextHop;
use super::{HEADER_LEN, Kind, MESSAGE_MAX, emit_header};

/// The attributes or the route do not fit a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("does not fit a message")]
pub struct TooLong;

/// Writes UPDATE messages for one peer, or for all peers of an update group.
///
/// A message has routes of one family, either announced or withdrawn; a multiprotocol attribute comes first
/// (RFC 7606, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateWriter {
    /// The longest message: [`MESSAGE_MAX`], or [`EXTENDED_MAX`](super::EXTENDED_MAX) for peers that announced
    /// extended messages.
    pub message_max: usize,
    /// Prefixes carry path identifiers (RFC 7911), by [`FamilyId::index`].
    pub add_path: [bool; FAMILIES],
}

impl Default for UpdateWriter {
    fn default() -> Self {
        UpdateWriter {
            message_max: MESSAGE_MAX,
            add_path: [false; FAMILIES],
        }
    }
}

/// Octets of the length fields and of the multiprotocol attribute's head before its next hop or routes.
const REACH_HEAD: usize = 4 + 4;
const UNREACH_HEAD: usize = 4 + 3;

impl UpdateWriter {
    /// Appends one message that announces the next routes, as many as fit, and returns how many. The first
    /// route determines the family; writing stops at a route of another family, and immediately if the family
    /// cannot have this next hop.
    ///
    /// `attributes` are in the form that the peer reads ([`to_two_octet`](super::to_two_octet)), without
    /// multiprotocol attributes. `next_hop` replaces any NEXT_HOP among them; the family determines where it is
    /// written ([`FamilyId::place`]).
    ///
    /// # Errors
    /// The attributes leave no room for the next route; nothing is appended and no route is consumed.
    pub fn announce_next<I: Iterator<Item = Nlri>>(
        &self,
        attributes: &[u8],
        next_hop: NextHop,
        routes: &mut Peekable<I>,
        out: &mut Vec<u8>,
    ) -> Result<usize, TooLong> {
        let Some(family) = routes.peek().map(|nlri| nlri.prefix.family()) else {
            return Ok(0);
        };
        if !family.takes(next_hop) {
            return Ok(0);
        }
        let start = out.len();
        emit_header(Kind::Update, 0, out);
        out.extend_from_slice(&[0; 4]);
        let fields = out.len();
        let count = match family.place() {
            Place::Fields => {
                emit_with_next_hop(attributes, next_hop, out);
                put_len(out, fields - 2, fields);
                self.fill(family, start, 0, routes, out)
            }
            Place::Multiprotocol => {
                let AfiSafi { afi, safi } = family.into();
                let [a, b] = afi.to_be_bytes();
                let len = next_hop.encoded_len();
                let flags = attr::row(code::MP_REACH).flags | flag::EXTENDED;
                out.extend_from_slice(&[flags, code::MP_REACH, 0, 0, a, b, safi, len as u8]);
                next_hop.emit(out);
                out.push(0);
                debug_assert_eq!(out.len(), fields + REACH_HEAD + len + 1);
                // The other attributes follow, so their length must be known first.
                let tail: usize = without_next_hop(attributes).map(<[u8]>::len).sum();
                let count = self.fill(family, start, tail, routes, out);
                put_len(out, fields + 2, fields + 4);
                without_next_hop(attributes).for_each(|octets| out.extend_from_slice(octets));
                put_len(out, fields - 2, fields);
                count
            }
        };
        if count == 0 {
            out.truncate(start);
            return Err(TooLong);
        }
        put_len(out, start + HEADER_LEN - 3, start);
        Ok(count)
    }

    /// Appends as many messages as the routes need, and returns how many.
    ///
    /// # Errors
    /// Like [`announce_next`](Self::announce_next); messages already written stay.
    pub fn announce(
        &self,
        attributes: &[u8],
        next_hop: NextHop,
        routes: impl IntoIterator<Item = Nlri>,
        out: &mut Vec<u8>,
    ) -> Result<usize, TooLong> {
        let mut routes = routes.into_iter().peekable();
        let mut messages = 0;
        while self.announce_next(attributes, next_hop, &mut routes, out)? > 0 {
            messages += 1;
        }
        Ok(messages)
    }

    /// Appends one message that withdraws the next routes, as many as fit, and returns how many; stops at a
    /// route of another family.
    pub fn withdraw_next<I: Iterator<Item = Nlri>>(
        &self,
        family: FamilyId,
        routes: &mut Peekable<I>,
        out: &mut Vec<u8>,
    ) -> usize {
        if routes
            .peek()
            .is_none_or(|nlri| nlri.prefix.family() != family)
        {
            return 0;
        }
        let start = out.len();
        emit_header(Kind::Update, 0, out);
        let fields = out.len();
        let count = match family.place() {
            Place::Fields => {
                out.extend_from_slice(&[0; 2]);
                let count = self.fill(family, start, 2, routes, out);
                put_len(out, fields, fields + 2);
                out.extend_from_slice(&[0; 2]);
                count
            }
            Place::Multiprotocol => {
                out.extend_from_slice(&[0; 4]);
                emit_unreach(family, out);
                let count = self.fill(family, start, 0, routes, out);
                put_len(out, fields + 2, fields + 4);
                put_len(out, fields + 6, fields + 8);
                count
            }
        };
        put_len(out, start + HEADER_LEN - 3, start);
        count
    }

    /// Appends as many messages as the routes need, and returns how many.
    pub fn withdraw(
        &self,
        family: FamilyId,
        routes: impl IntoIterator<Item = Nlri>,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut routes = routes.into_iter().peekable();
        let mut messages = 0;
        while self.withdraw_next(family, &mut routes, out) > 0 {
            messages += 1;
        }
        messages
    }

    /// Appends an End-of-RIB marker (RFC 4724, section 2).
    pub fn end_of_rib(family: FamilyId, out: &mut Vec<u8>) {
        match family.place() {
            Place::Fields => {
                emit_header(Kind::Update, 4, out);
                out.extend_from_slice(&[0; 4]);
            }
            Place::Multiprotocol => {
                emit_header(Kind::Update, 4 + UNREACH_HEAD, out);
                out.extend_from_slice(&[0, 0, 0, UNREACH_HEAD as u8]);
                emit_unreach(family, out);
                let end = out.len();
                put_len(out, end - 5, end - 3);
            }
        }
    }

    /// Appends routes while they fit. The message started at `start` and will get `tail` more octets.
    #[inline]
    fn fill<I: Iterator<Item = Nlri>>(
        &self,
        family: FamilyId,
        start: usize,
        tail: usize,
        routes: &mut Peekable<I>,
        out: &mut Vec<u8>,
    ) -> usize {
        let has_path_id = self.add_path[family.index()];
        let end = (start + self.message_max).saturating_sub(tail);
        let mut count = 0;
        while let Some(nlri) = routes.next_if(|nlri| {
            nlri.prefix.family() == family
                && out.len() + encoded_len(nlri.prefix, has_path_id) <= end
        }) {
            nlri::emit(nlri, has_path_id, out);
            count += 1;
        }
        count
    }
}

/// Writes the number of octets from `from` to the end into the two octets at `at`.
fn put_len(out: &mut [u8], at: usize, from: usize) {
    let len = (out.len() - from) as u16;
    out[at..at + 2].copy_from_slice(&len.to_be_bytes());
}

/// Appends an MP_UNREACH_NLRI without routes; its two-octet length is 0 for now.
fn emit_unreach(family: FamilyId, out: &mut Vec<u8>) {
    let AfiSafi { afi, safi } = family.into();
    let [a, b] = afi.to_be_bytes();
    let flags = attr::row(code::MP_UNREACH).flags | flag::EXTENDED;
    out.extend_from_slice(&[flags, code::MP_UNREACH, 0, 0, a, b, safi]);
}

/// The attributes with that NEXT_HOP: in place of an existing one, otherwise in type order.
fn emit_with_next_hop(attributes: &[u8], next_hop: NextHop, out: &mut Vec<u8>) {
    let mut at = attributes.len();
    let mut after = at;
    let mut walk = attr::iter(attributes);
    let mut start = 0;
    while let Some(attribute) = walk.next() {
        let end = attributes.len() - walk.rest().len();
        if attribute.code == code::NEXT_HOP {
            (at, after) = (start, end);
            break;
        }
        if attribute.code > code::NEXT_HOP && at == attributes.len() {
            (at, after) = (start, start);
        }
        start = end;
    }
    out.extend_from_slice(&attributes[..at]);
    attr::put_with(code::NEXT_HOP, out, |out| next_hop.emit(out));
    out.extend_from_slice(&attributes[after..]);
}

/// The attributes without NEXT_HOP, as up to two slices.
fn without_next_hop(attributes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut walk = attr::iter(attributes);
    let mut start = 0;
    let mut pieces = [attributes, &[]];
    while let Some(attribute) = walk.next() {
        let end = attributes.len() - walk.rest().len();
        if attribute.code == code::NEXT_HOP {
            pieces = [&attributes[..start], &attributes[end..]];
            break;
        }
        start = end;
    }
    pieces.into_iter()
}
