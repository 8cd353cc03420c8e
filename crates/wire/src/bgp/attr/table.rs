//! The table of path attributes: one row for each attribute that this implementation knows.
//!
//! A row holds everything specific to an attribute: type code, name, flags, value format, which peers may send
//! it, when it is mandatory, and what RFC 7606 prescribes when its value is malformed. The UPDATE decoder, the
//! encoder, the text for operators and the error handling all read this table. To add an attribute, add a row;
//! a value of a new format also needs a line in each method of [`Form`].
//!
//! RFC 4271, section 5 (1 to 7); RFC 1997 (8), 4456 (9, 10), 4760 (14, 15), 4360 (16), 6793 (17, 18), 5701 (25), 8092
//! (32), 9234 (35); RFC 7606, sections 3 (f) and 7.

use std::fmt;
use std::net::Ipv4Addr;

use super::{
    AsPath, Attribute, Community, ExtCommunity, LargeCommunity, Origin, VALUE_LEN_MAX, code, flag,
};
use crate::bgp::update::{Treatment, What};

/// The format of an attribute's value: how it is checked, read, written and displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// One octet: an [`Origin`].
    Origin,
    /// Segments of AS numbers: an [`AsPath`].
    AsPath,
    /// An IPv4 address; the decoder checks it once it knows the message's routes.
    NextHop,
    /// A number of four octets.
    Number,
    /// A BGP identifier.
    Identifier,
    /// No value.
    Empty,
    /// An AS number and a BGP identifier.
    Aggregator,
    /// BGP identifiers.
    Identifiers,
    /// Communities of four octets.
    Communities,
    /// Communities of eight octets.
    ExtCommunities,
    /// Communities of twelve octets.
    LargeCommunities,
    /// Records of twenty octets.
    Ipv6ExtCommunities,
    /// Routes and their next hop.
    Reach,
    /// Withdrawn routes.
    Unreach,
    /// An AS path or an aggregator that a two-octet peer relays unchanged (RFC 6793).
    FourOctet,
    /// A value of unknown format.
    Opaque,
}

impl Form {
    /// Octets of one element, for values that are lists of fixed-size elements.
    #[must_use]
    #[inline]
    pub const fn width(self) -> Option<usize> {
        match self {
            Form::Identifiers | Form::Communities => Some(4),
            Form::ExtCommunities => Some(8),
            Form::LargeCommunities => Some(12),
            Form::Ipv6ExtCommunities => Some(20),
            Form::Origin
            | Form::AsPath
            | Form::NextHop
            | Form::Number
            | Form::Identifier
            | Form::Empty
            | Form::Aggregator
            | Form::Reach
            | Form::Unreach
            | Form::FourOctet
            | Form::Opaque => None,
        }
    }

    /// What is wrong with a value, as far as the value alone shows it (RFC 7606, section 7).
    #[must_use]
    #[inline]
    pub const fn check(self, value: &[u8]) -> Option<What> {
        let is_sound = match self {
            Form::Origin => match value {
                [0..=2] => true,
                [_] => return Some(What::Origin),
                _ => false,
            },
            Form::Number | Form::Identifier => value.len() == 4,
            Form::Empty => value.is_empty(),
            Form::Identifiers | Form::Communities => is_list(value, 4),
            Form::ExtCommunities => is_list(value, 8),
            Form::LargeCommunities => is_list(value, 12),
            Form::Ipv6ExtCommunities => is_list(value, 20),
            // The validity of these depends on the session or the routes; the decoder checks them.
            Form::AsPath
            | Form::NextHop
            | Form::Aggregator
            | Form::Reach
            | Form::Unreach
            | Form::FourOctet
            | Form::Opaque => true,
        };
        if is_sound { None } else { Some(What::Length) }
    }
}

const fn is_list(value: &[u8], width: usize) -> bool {
    !value.is_empty() && value.len().is_multiple_of(width)
}

/// When a message that announces routes must carry an attribute (RFC 4271, section 5; RFC 7606, section 3 (d)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mandatory {
    /// Never.
    No,
    /// Always.
    Always,
    /// When the message's own fields carry routes.
    InFields,
    /// From an internal peer.
    Internal,
}

/// One row of the table: everything known about a path attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Type code; see [`code`].
    pub code: u8,
    /// Name from the RFC.
    pub name: &'static str,
    /// The flags that it must have: [`flag::OPTIONAL`] and [`flag::TRANSITIVE`].
    pub flags: u8,
    /// The format of its value.
    pub form: Form,
    /// When a message must carry it.
    pub mandatory: Mandatory,
    /// Whether it is discarded if an external peer sends it.
    pub internal_only: bool,
    /// What RFC 7606 prescribes for a malformed value.
    pub on_error: Treatment,
    /// The section that prescribes it.
    pub source: &'static str,
}

impl Row {
    const fn new(
        code: u8,
        name: &'static str,
        flags: u8,
        form: Form,
        source: &'static str,
    ) -> Self {
        Row {
            code,
            name,
            flags,
            form,
            mandatory: Mandatory::No,
            internal_only: false,
            on_error: Treatment::TreatAsWithdraw,
            source,
        }
    }

    const fn mandatory(mut self, when: Mandatory) -> Self {
        self.mandatory = when;
        self
    }

    const fn internal_only(mut self) -> Self {
        self.internal_only = true;
        self
    }

    const fn on_error(mut self, treatment: Treatment) -> Self {
        self.on_error = treatment;
        self
    }

    /// Whether this implementation knows the attribute.
    #[must_use]
    #[inline]
    pub const fn is_known(&self) -> bool {
        !matches!(self.form, Form::Opaque)
    }

    /// The flags that a sent attribute may have. The Partial bit of a well-known or non-transitive attribute and the
    /// lower four bits are zero (RFC 4271, section 4.3); the receiver ignores them.
    #[must_use]
    #[inline]
    pub const fn sendable(&self) -> u8 {
        if self.flags == PASSED_ON || !self.is_known() {
            PASSED_ON | flag::PARTIAL | flag::EXTENDED
        } else {
            self.flags | flag::EXTENDED
        }
    }

    /// The value as shown to operators: text for known formats, hex digits otherwise.
    #[must_use]
    pub const fn show<'a>(&self, value: &'a [u8]) -> Shown<'a> {
        Shown {
            form: self.form,
            value,
        }
    }
}

const WELL_KNOWN: u8 = flag::WELL_KNOWN;
const OPTIONAL: u8 = flag::OPTIONAL;
const PASSED_ON: u8 = flag::OPTIONAL_TRANSITIVE;

/// The known attributes, by type code.
#[rustfmt::skip]
pub const ROWS: [Row; 18] = [
    Row::new(code::ORIGIN, "ORIGIN", WELL_KNOWN, Form::Origin, "RFC 7606, section 7.1").mandatory(Mandatory::Always),
    Row::new(code::AS_PATH, "AS_PATH", WELL_KNOWN, Form::AsPath, "RFC 7606, section 7.2").mandatory(Mandatory::Always),
    Row::new(code::NEXT_HOP, "NEXT_HOP", WELL_KNOWN, Form::NextHop, "RFC 7606, section 7.3").mandatory(Mandatory::InFields),
    Row::new(code::MED, "MULTI_EXIT_DISC", OPTIONAL, Form::Number, "RFC 7606, section 7.4"),
    Row::new(code::LOCAL_PREF, "LOCAL_PREF", WELL_KNOWN, Form::Number, "RFC 7606, section 7.5").mandatory(Mandatory::Internal).internal_only(),
    Row::new(code::ATOMIC_AGGREGATE, "ATOMIC_AGGREGATE", WELL_KNOWN, Form::Empty, "RFC 7606, section 7.6").on_error(Treatment::AttributeDiscard),
    Row::new(code::AGGREGATOR, "AGGREGATOR", PASSED_ON, Form::Aggregator, "RFC 7606, section 7.7").on_error(Treatment::AttributeDiscard),
    Row::new(code::COMMUNITIES, "COMMUNITIES", PASSED_ON, Form::Communities, "RFC 7606, section 7.8"),
    Row::new(code::ORIGINATOR_ID, "ORIGINATOR_ID", OPTIONAL, Form::Identifier, "RFC 7606, section 7.9").internal_only(),
    Row::new(code::CLUSTER_LIST, "CLUSTER_LIST", OPTIONAL, Form::Identifiers, "RFC 7606, section 7.10").internal_only(),
    Row::new(code::MP_REACH, "MP_REACH_NLRI", OPTIONAL, Form::Reach, "RFC 7606, section 7.11").on_error(Treatment::SessionReset),
    Row::new(code::MP_UNREACH, "MP_UNREACH_NLRI", OPTIONAL, Form::Unreach, "RFC 7606, section 7.12").on_error(Treatment::SessionReset),
    Row::new(code::EXT_COMMUNITIES, "EXTENDED COMMUNITIES", PASSED_ON, Form::ExtCommunities, "RFC 7606, section 7.14"),
    Row::new(code::AS4_PATH, "AS4_PATH", PASSED_ON, Form::FourOctet, "RFC 6793, section 6").on_error(Treatment::AttributeDiscard),
    Row::new(code::AS4_AGGREGATOR, "AS4_AGGREGATOR", PASSED_ON, Form::FourOctet, "RFC 6793, section 6").on_error(Treatment::AttributeDiscard),
    Row::new(code::IPV6_EXT_COMMUNITIES, "IPv6 EXTENDED COMMUNITIES", PASSED_ON, Form::Ipv6ExtCommunities, "RFC 7606, section 7.15"),
    Row::new(code::LARGE_COMMUNITIES, "LARGE_COMMUNITY", PASSED_ON, Form::LargeCommunities, "RFC 8092, section 6"),
    Row::new(code::OTC, "ONLY_TO_CUSTOMER", PASSED_ON, Form::Number, "RFC 9234, section 5"),
];

/// The row used for attributes without their own. An unknown well-known attribute resets the session (RFC 4271,
/// section 6.3); an unknown non-transitive one is dropped (section 5).
const UNKNOWN: Row = Row::new(0, "", OPTIONAL, Form::Opaque, "RFC 7606, section 7");

/// For each type code, an index into [`ROWS`]; out of bounds if the type is unknown.
static INDEX: [u8; 256] = {
    let mut index = [u8::MAX; 256];
    let mut at = 0;
    while at < ROWS.len() {
        index[ROWS[at].code as usize] = at as u8;
        at += 1;
    }
    index
};

static TABLE: [Row; ROWS.len()] = ROWS;
static DEFAULT: Row = UNKNOWN;

/// The attribute's row; the default row if it is unknown.
#[must_use]
#[inline]
pub fn row(code: u8) -> &'static Row {
    TABLE
        .get(usize::from(INDEX[usize::from(code)]))
        .unwrap_or(&DEFAULT)
}

/// A bit mask of the type codes (all below 64) that are mandatory in a case.
pub(in crate::bgp) const fn mandatory(when: Mandatory) -> u64 {
    let mut bits = 0;
    let mut at = 0;
    while at < ROWS.len() {
        if ROWS[at].mandatory as u8 == when as u8 {
            bits |= 1 << ROWS[at].code;
        }
        at += 1;
    }
    bits
}

/// A value as shown to operators.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    form: Form,
    value: &'a [u8],
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match (self.form, value) {
            (Form::Origin, &[origin]) => match Origin::from_number(origin) {
                Some(origin) => origin.fmt(f),
                None => hexadecimal(value, f),
            },
            (Form::AsPath, _) => AsPath::new(value).fmt(f),
            (Form::Number, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]).fmt(f),
            (Form::Identifier | Form::NextHop, &[a, b, c, d]) => Ipv4Addr::new(a, b, c, d).fmt(f),
            (Form::Aggregator, &[a, b, c, d, e, g, h, i]) => {
                let asn = u32::from_be_bytes([a, b, c, d]);
                write!(f, "{asn} {}", Ipv4Addr::new(e, g, h, i))
            }
            (Form::Identifiers, _) => list(value, Ipv4Addr::from, f),
            (Form::Communities, _) => list(value, |one| Community(u32::from_be_bytes(one)), f),
            (Form::ExtCommunities, _) => {
                list(value, |one| ExtCommunity(u64::from_be_bytes(one)), f)
            }
            (Form::LargeCommunities, _) => list(value, LargeCommunity::from_octets, f),
            (
                Form::Origin
                | Form::NextHop
                | Form::Number
                | Form::Identifier
                | Form::Empty
                | Form::Aggregator
                | Form::Ipv6ExtCommunities
                | Form::Reach
                | Form::Unreach
                | Form::FourOctet
                | Form::Opaque,
                _,
            ) => hexadecimal(value, f),
        }
    }
}

/// The elements of a list, separated by blanks.
fn list<const N: usize, T: fmt::Display>(
    value: &[u8],
    read: impl Fn([u8; N]) -> T,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (elements, rest) = value.as_chunks::<N>();
    if !rest.is_empty() {
        return hexadecimal(value, f);
    }
    for (at, element) in elements.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { " " })?;
        read(*element).fmt(f)?;
    }
    Ok(())
}

fn hexadecimal(value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    value.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
}

impl Attribute<'_> {
    /// The table row of its type.
    #[must_use]
    #[inline]
    pub fn row(&self) -> &'static Row {
        row(self.code)
    }

    /// Its value as shown to operators.
    #[must_use]
    pub fn show(&self) -> Shown<'_> {
        self.row().show(self.value)
    }
}

/// Appends an attribute with its row's flags. A value longer than [`VALUE_LEN_MAX`] octets is truncated.
#[inline]
pub fn put(code: u8, value: &[u8], out: &mut Vec<u8>) {
    debug_assert!(value.len() <= VALUE_LEN_MAX);
    super::emit(row(code).flags, code, value, out);
}

/// Like [`put`], for a value that `write` appends.
pub fn put_with(code: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    super::emit_with(row(code).flags, code, out, write);
}

/// Like [`put`], for a four-octet number.
#[inline]
pub fn put_number(code: u8, number: u32, out: &mut Vec<u8>) {
    put(code, &number.to_be_bytes(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_codes_and_are_found_by_them() {
        assert!(ROWS.is_sorted_by(|a, b| a.code < b.code));
        for known in ROWS {
            assert_eq!(*row(known.code), known);
            assert!(known.is_known() && known.code < 64);
        }
        let unknown = (0..=u8::MAX).filter(|&code| !row(code).is_known());
        assert_eq!(unknown.count(), 256 - ROWS.len());
    }

    #[test]
    fn a_list_has_elements_and_no_part_of_one() {
        for known in ROWS {
            let Some(width) = known.form.width() else {
                continue;
            };
            for len in 0..=3 * width {
                let is_list = len > 0 && len % width == 0;
                let fault = known.form.check(&vec![1; len]);
                assert_eq!(fault.is_none(), is_list, "{} of {len}", known.name);
            }
        }
    }

    #[test]
    fn a_value_is_shown_as_what_it_is() {
        let text = |code, value: &[u8]| row(code).show(value).to_string();
        assert_eq!(text(code::ORIGIN, &[1]), "EGP");
        assert_eq!(text(code::ORIGIN, &[9]), "09");
        assert_eq!(text(code::AS_PATH, &[2, 1, 0, 0, 0xfd, 0xe8]), "65000");
        assert_eq!(text(code::MED, &[0, 0, 1, 0]), "256");
        assert_eq!(text(code::MED, &[0, 1]), "0001");
        assert_eq!(text(code::NEXT_HOP, &[192, 0, 2, 1]), "192.0.2.1");
        assert_eq!(
            text(code::AGGREGATOR, &[0, 0, 0, 9, 192, 0, 2, 1]),
            "9 192.0.2.1"
        );
        assert_eq!(
            text(code::CLUSTER_LIST, &[1, 2, 3, 4, 5, 6, 7, 8]),
            "1.2.3.4 5.6.7.8"
        );
        assert_eq!(
            text(code::COMMUNITIES, &[0, 1, 0, 2, 0xff, 0xff, 0xff, 1]),
            "1:2 no-export"
        );
        assert_eq!(text(code::COMMUNITIES, &[0, 1, 0]), "000100");
        assert_eq!(text(code::ATOMIC_AGGREGATE, &[]), "");
        assert_eq!(text(99, &[0xca, 0xfe]), "cafe");
    }

    #[test]
    fn what_is_written_has_the_flags_that_are_asked_of_it() {
        for known in ROWS {
            let mut out = Vec::new();
            put(known.code, &[0; 4], &mut out);
            let attribute = super::super::find(&out, known.code).unwrap();
            assert_eq!(attribute.flags, known.flags);
        }
    }
}
