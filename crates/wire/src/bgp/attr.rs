//! Path attributes as bytes: iterating over them, reading known ones, writing one. RFC 4271, section 4.3.
//!
//! Start reading at [`ROWS`], the table of everything known about each attribute.
//!
//! The readers take *canonical* attributes, as [`Update`](super::Update) returns them: AS numbers have four octets.

mod table;

use std::fmt;
use std::net::Ipv4Addr;

use super::path::AsPath;

pub(super) use table::mandatory;
pub use table::{Form, Mandatory, ROWS, Row, Shown, put, put_number, put_with, row};

/// Attribute flags.
pub mod flag {
    /// Set on attributes that are not well-known.
    pub const OPTIONAL: u8 = 0x80;
    /// A speaker that does not recognise the attribute passes it on.
    pub const TRANSITIVE: u8 = 0x40;
    /// A speaker that did not recognise the attribute has passed it on.
    pub const PARTIAL: u8 = 0x20;
    /// The length field has two octets.
    pub const EXTENDED: u8 = 0x10;
    /// Flags of a well-known attribute.
    pub const WELL_KNOWN: u8 = TRANSITIVE;
    /// Flags of an optional transitive attribute.
    pub const OPTIONAL_TRANSITIVE: u8 = OPTIONAL | TRANSITIVE;
}

/// Type codes.
pub mod code {
    /// ORIGIN.
    pub const ORIGIN: u8 = 1;
    /// AS_PATH.
    pub const AS_PATH: u8 = 2;
    /// NEXT_HOP.
    pub const NEXT_HOP: u8 = 3;
    /// MULTI_EXIT_DISC.
    pub const MED: u8 = 4;
    /// LOCAL_PREF.
    pub const LOCAL_PREF: u8 = 5;
    /// ATOMIC_AGGREGATE.
    pub const ATOMIC_AGGREGATE: u8 = 6;
    /// AGGREGATOR.
    pub const AGGREGATOR: u8 = 7;
    /// COMMUNITIES.
    pub const COMMUNITIES: u8 = 8;
    /// ORIGINATOR_ID.
    pub const ORIGINATOR_ID: u8 = 9;
    /// CLUSTER_LIST.
    pub const CLUSTER_LIST: u8 = 10;
    /// MP_REACH_NLRI.
    pub const MP_REACH: u8 = 14;
    /// MP_UNREACH_NLRI.
    pub const MP_UNREACH: u8 = 15;
    /// Extended communities.
    pub const EXT_COMMUNITIES: u8 = 16;
    /// AS4_PATH.
    pub const AS4_PATH: u8 = 17;
    /// AS4_AGGREGATOR.
    pub const AS4_AGGREGATOR: u8 = 18;
    /// IPv6 address specific extended communities.
    pub const IPV6_EXT_COMMUNITIES: u8 = 25;
    /// Large communities.
    pub const LARGE_COMMUNITIES: u8 = 32;
    /// Only to customer.
    pub const OTC: u8 = 35;
}

/// One attribute as encoded in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Flags; see [`flag`].
    pub flags: u8,
    /// Type; see [`code`].
    pub code: u8,
    /// Its value.
    pub value: &'a [u8],
    /// The whole attribute: flags, type, length, value.
    pub octets: &'a [u8],
}

/// Iterates over attributes; stops at the first incomplete one.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

/// Iterates over attributes.
#[must_use]
#[inline]
pub const fn iter(octets: &[u8]) -> Attributes<'_> {
    Attributes { rest: octets }
}

impl<'a> Attributes<'a> {
    /// The bytes not yet visited; after the end, the bytes that form no complete attribute.
    #[must_use]
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    #[inline]
    fn next(&mut self) -> Option<Attribute<'a>> {
        let octets = self.rest;
        let &[flags, code, len] = octets.first_chunk::<3>()?;
        let (start, len) = if flags & flag::EXTENDED == 0 {
            (3, usize::from(len))
        } else {
            (4, usize::from(len) << 8 | usize::from(*octets.get(3)?))
        };
        let (octets, rest) = octets.split_at_checked(start + len)?;
        self.rest = rest;
        Some(Attribute {
            flags,
            code,
            value: &octets[start..],
            octets,
        })
    }
}

/// The first attribute of that type.
#[must_use]
#[inline]
pub fn find(attributes: &[u8], code: u8) -> Option<Attribute<'_>> {
    iter(attributes).find(|attribute| attribute.code == code)
}

/// A route's origin (RFC 4271, section 5.1.1); the decision process prefers the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Origin {
    /// Interior to the originating AS.
    Igp = 0,
    /// Learned by EGP.
    Egp = 1,
    /// Learned by other means.
    Incomplete = 2,
}

impl Origin {
    /// The origin with that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Origin::Igp),
            1 => Some(Origin::Egp),
            2 => Some(Origin::Incomplete),
            _ => None,
        }
    }

    /// The letter shown in tables: `i`, `e` or `?`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Origin::Igp => 'i',
            Origin::Egp => 'e',
            Origin::Incomplete => '?',
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Origin::Igp => "IGP",
            Origin::Egp => "EGP",
            Origin::Incomplete => "incomplete",
        })
    }
}

/// ORIGIN; [`Origin::Incomplete`] if absent.
#[must_use]
pub fn origin(attributes: &[u8]) -> Origin {
    match find(attributes, code::ORIGIN).map(|attribute| attribute.value) {
        Some(&[origin]) => Origin::from_number(origin).unwrap_or(Origin::Incomplete),
        _ => Origin::Incomplete,
    }
}

/// AS_PATH; an empty path if absent.
#[must_use]
pub fn as_path(attributes: &[u8]) -> AsPath<'_> {
    AsPath::new(find(attributes, code::AS_PATH).map_or(&[], |attribute| attribute.value))
}

/// The value of an attribute that is one four-octet number.
#[must_use]
#[inline]
pub fn number(attributes: &[u8], code: u8) -> Option<u32> {
    let value = find(attributes, code)?.value;
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

/// NEXT_HOP, of IPv4 routes.
#[must_use]
pub fn next_hop(attributes: &[u8]) -> Option<Ipv4Addr> {
    number(attributes, code::NEXT_HOP).map(Ipv4Addr::from_bits)
}

/// MULTI_EXIT_DISC.
#[must_use]
pub fn med(attributes: &[u8]) -> Option<u32> {
    number(attributes, code::MED)
}

/// LOCAL_PREF.
#[must_use]
pub fn local_pref(attributes: &[u8]) -> Option<u32> {
    number(attributes, code::LOCAL_PREF)
}

/// ORIGINATOR_ID.
#[must_use]
pub fn originator_id(attributes: &[u8]) -> Option<u32> {
    number(attributes, code::ORIGINATOR_ID)
}

/// OTC: the AS number.
#[must_use]
pub fn otc(attributes: &[u8]) -> Option<u32> {
    number(attributes, code::OTC)
}

/// AGGREGATOR: AS number and address.
#[must_use]
pub fn aggregator(attributes: &[u8]) -> Option<(u32, Ipv4Addr)> {
    let &[a, b, c, d, ref address @ ..] = find(attributes, code::AGGREGATOR)?.value else {
        return None;
    };
    let address: [u8; 4] = address.try_into().ok()?;
    Some((u32::from_be_bytes([a, b, c, d]), address.into()))
}

/// The `N`-octet records in the attribute of that type.
#[inline]
fn records<const N: usize>(attributes: &[u8], code: u8) -> &[[u8; N]] {
    find(attributes, code).map_or(&[], |attribute| attribute.value.as_chunks().0)
}

/// CLUSTER_LIST.
pub fn cluster_list(attributes: &[u8]) -> impl ExactSizeIterator<Item = u32> + Clone {
    records(attributes, code::CLUSTER_LIST)
        .iter()
        .map(|&id| u32::from_be_bytes(id))
}

/// Communities.
pub fn communities(attributes: &[u8]) -> impl ExactSizeIterator<Item = Community> + Clone {
    records(attributes, code::COMMUNITIES)
        .iter()
        .map(|&community| Community(u32::from_be_bytes(community)))
}

/// Extended communities.
pub fn ext_communities(attributes: &[u8]) -> impl ExactSizeIterator<Item = ExtCommunity> + Clone {
    records(attributes, code::EXT_COMMUNITIES)
        .iter()
        .map(|&community| ExtCommunity(u64::from_be_bytes(community)))
}

/// Large communities.
pub fn large_communities(
    attributes: &[u8],
) -> impl ExactSizeIterator<Item = LargeCommunity> + Clone {
    records(attributes, code::LARGE_COMMUNITIES)
        .iter()
        .map(|&octets| LargeCommunity::from_octets(octets))
}

/// A community (RFC 1997).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Community(pub u32);

impl Community {
    /// GRACEFUL_SHUTDOWN (RFC 8326).
    pub const GRACEFUL_SHUTDOWN: Community = Community(0xffff_0000);
    /// BLACKHOLE (RFC 7999).
    pub const BLACKHOLE: Community = Community(0xffff_029a);
    /// NO_EXPORT: do not advertise outside the AS or confederation.
    pub const NO_EXPORT: Community = Community(0xffff_ff01);
    /// NO_ADVERTISE: do not advertise to any peer.
    pub const NO_ADVERTISE: Community = Community(0xffff_ff02);
    /// NO_EXPORT_SUBCONFED: do not advertise to external peers, not even within the confederation.
    pub const NO_EXPORT_SUBCONFED: Community = Community(0xffff_ff03);
    /// NOPEER (RFC 3765).
    pub const NO_PEER: Community = Community(0xffff_ff04);

    const NAMES: [(Community, &'static str); 6] = [
        (Community::GRACEFUL_SHUTDOWN, "graceful-shutdown"),
        (Community::BLACKHOLE, "blackhole"),
        (Community::NO_EXPORT, "no-export"),
        (Community::NO_ADVERTISE, "no-advertise"),
        (Community::NO_EXPORT_SUBCONFED, "local-AS"),
        (Community::NO_PEER, "no-peer"),
    ];
}

impl fmt::Display for Community {
    /// `64496:14`, or the name of a well-known one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(community, _)| community == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}:{}", self.0 >> 16, self.0 & 0xffff),
        }
    }
}

impl std::str::FromStr for Community {
    type Err = CommunityError;

    /// Reads the format that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, CommunityError> {
        if let Some((community, _)) = Self::NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(*community);
        }
        let [high, low] = numbers::<2>(text)?;
        let half = |number: u32| u16::try_from(number).map_err(|_| CommunityError);
        Ok(Community(
            u32::from(half(high)?) << 16 | u32::from(half(low)?),
        ))
    }
}

/// An extended community (RFC 4360).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtCommunity(pub u64);

impl fmt::Display for ExtCommunity {
    /// `RT:64496:14` and `SoO:192.0.2.1:14` for route targets and route origins, sixteen hex digits otherwise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kind, subtype, value @ ..] = self.0.to_be_bytes();
        let name = match subtype {
            2 => "RT",
            3 => "SoO",
            _ => return write!(f, "0x{:016x}", self.0),
        };
        let [a, b, c, d, e, g] = value;
        match kind & 0xbf {
            // Two-octet AS, IPv4 address, four-octet AS (RFC 4360, section 3; RFC 5668).
            0 => write!(
                f,
                "{name}:{}:{}",
                u16::from_be_bytes([a, b]),
                u32::from_be_bytes([c, d, e, g])
            ),
            1 => write!(
                f,
                "{name}:{}:{}",
                Ipv4Addr::new(a, b, c, d),
                u16::from_be_bytes([e, g])
            ),
            2 => write!(
                f,
                "{name}:{}:{}",
                u32::from_be_bytes([a, b, c, d]),
                u16::from_be_bytes([e, g])
            ),
            _ => write!(f, "0x{:016x}", self.0),
        }
    }
}

/// A large community (RFC 8092): global administrator, local data 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeCommunity(pub [u32; 3]);

impl LargeCommunity {
    /// Reads a twelve-octet large community.
    fn from_octets(octets: [u8; 12]) -> Self {
        let mut words = [0; 3];
        for (word, octets) in words.iter_mut().zip(octets.as_chunks().0) {
            *word = u32::from_be_bytes(*octets);
        }
        LargeCommunity(words)
    }
}

impl fmt::Display for LargeCommunity {
    /// `64496:4294967295:2` (section 5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.0;
        write!(f, "{a}:{b}:{c}")
    }
}

impl std::str::FromStr for LargeCommunity {
    type Err = CommunityError;

    /// Reads the format that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, CommunityError> {
        numbers::<3>(text).map(LargeCommunity)
    }
}

/// The text is not a community.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a community: numbers with : between them, or a well-known name")]
pub struct CommunityError;

fn numbers<const N: usize>(text: &str) -> Result<[u32; N], CommunityError> {
    let mut numbers = [0; N];
    let mut parts = text.split(':');
    for number in &mut numbers {
        let part = parts.next().ok_or(CommunityError)?;
        if !part.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(CommunityError);
        }
        *number = part.parse().map_err(|_| CommunityError)?;
    }
    match parts.next() {
        None => Ok(numbers),
        Some(_) => Err(CommunityError),
    }
}

/// The longest value, in octets.
pub const VALUE_LEN_MAX: usize = 65_535;

/// Appends one attribute. The length field has two octets if the value needs it, whatever `flags` has set. A
/// value longer than [`VALUE_LEN_MAX`] octets is truncated.
#[inline]
pub fn emit(flags: u8, code: u8, value: &[u8], out: &mut Vec<u8>) {
    emit_with(flags, code, out, |out| out.extend_from_slice(value));
}

/// Like [`emit`], for a value that `write` appends.
pub fn emit_with(flags: u8, code: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[flags & !flag::EXTENDED, code, 0]);
    write(out);
    let len = (out.len() - start - 3).min(VALUE_LEN_MAX);
    out.truncate(start + 3 + len);
    if let Ok(len) = u8::try_from(len) {
        out[start + 2] = len;
        return;
    }
    let [high, low] = (len as u16).to_be_bytes();
    out[start] |= flag::EXTENDED;
    out[start + 2] = high;
    out.insert(start + 3, low);
}

/// Appends an attribute unchanged, but sets the Partial bit if this speaker passes it on without recognising it
/// (RFC 4271, section 5).
#[inline]
pub fn pass_on(attribute: &Attribute<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(attribute.octets);
    if !attribute.row().is_known() && attribute.flags & flag::TRANSITIVE != 0 {
        out[start] |= flag::PARTIAL;
    }
}
