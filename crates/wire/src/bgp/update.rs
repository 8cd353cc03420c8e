//! UPDATE messages: RFC 4271, section 4.3, read with the error handling of RFC 7606.

mod fault;
mod read;

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::attr;
use super::family::{FAMILIES, Families, FamilyId, Place};
use super::nlri::{Block, Nlris};
use super::{Notification, notification};

pub use fault::{FAULTS_MAX, Fault, Treatment, What};

/// A peer's relation to our AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerKind {
    /// In another AS.
    External,
    /// In another member of our confederation (RFC 5065).
    Confederation,
    /// In our AS.
    Internal,
}

/// What the reader must know of a session to read its UPDATE messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateContext {
    /// AS numbers have four octets: both sides announced the capability (RFC 6793).
    pub four_octet: bool,
    /// The peer's relation to our AS.
    pub peer: PeerKind,
    /// Received prefixes have path identifiers (RFC 7911), by [`FamilyId::index`].
    pub add_path: [bool; FAMILIES],
    /// The negotiated families; others are skipped.
    pub families: Families,
    /// The AS with which every path must begin, if that is checked (RFC 4271, section 6.3); for
    /// [`PeerKind::External`] only.
    pub first_as: Option<u32>,
}

impl Default for UpdateContext {
    /// An external peer with four-octet AS numbers and both families, without path identifiers.
    fn default() -> Self {
        UpdateContext {
            four_octet: true,
            peer: PeerKind::External,
            add_path: [false; FAMILIES],
            families: Families::ALL,
            first_as: None,
        }
    }
}

/// The next hop of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// A global IPv6 address, and the link-local address if there is one (RFC 2545, section 3).
    V6(Ipv6Addr, Option<Ipv6Addr>),
}

impl NextHop {
    /// The address; the global one if there are two.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        match self {
            NextHop::V4(address) => IpAddr::V4(address),
            NextHop::V6(global, _) => IpAddr::V6(global),
        }
    }

    /// Appends the address, or both addresses.
    #[inline]
    pub fn emit(self, out: &mut Vec<u8>) {
        match self {
            NextHop::V4(address) => out.extend_from_slice(&address.octets()),
            NextHop::V6(global, link_local) => {
                out.extend_from_slice(&global.octets());
                if let Some(link_local) = link_local {
                    out.extend_from_slice(&link_local.octets());
                }
            }
        }
    }

    /// How many octets [`emit`](Self::emit) appends.
    #[must_use]
    #[inline]
    pub const fn encoded_len(self) -> usize {
        match self {
            NextHop::V4(_) => 4,
            NextHop::V6(_, None) => 16,
            NextHop::V6(_, Some(_)) => 32,
        }
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

impl From<IpAddr> for NextHop {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => NextHop::V4(address),
            IpAddr::V6(address) => NextHop::V6(address, None),
        }
    }
}

/// How the routes that a message announces are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// They are accepted.
    Accept,
    /// They are treated as withdrawn (RFC 7606, section 2).
    TreatAsWithdraw,
}

/// An UPDATE message.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// Withdrawn Routes, MP_UNREACH_NLRI.
    withdrawn: [Block<'a>; 2],
    /// Network Layer Reachability Information, MP_REACH_NLRI.
    announced: [Block<'a>; 2],
    attributes: Cow<'a, [u8]>,
    /// The next hop in MP_REACH_NLRI, and its family.
    mp_next_hop: Option<(FamilyId, NextHop)>,
    verdict: Verdict,
    end_of_rib: Option<FamilyId>,
    faults: Vec<Fault<'a>>,
    fault_count: usize,
}

impl<'a> Update<'a> {
    /// Reads the bytes after the header.
    ///
    /// Allocates only if attributes must change or a fault is found.
    ///
    /// # Errors
    /// The faults that reset the session (RFC 7606, sections 3, 5 and 7.11).
    pub fn read(body: &'a [u8], context: &UpdateContext) -> Result<Self, Notification> {
        read::message(body, context)
    }

    /// Reads the attributes of a route in a table dump (RFC 6396, section 4.3.4), where MP_REACH_NLRI may hold
    /// only a next hop. The result has no routes; attributes, next hop, verdict and faults are those of a
    /// message that announces a route of that family.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub fn read_table_entry(
        attributes: &'a [u8],
        family: FamilyId,
        context: &UpdateContext,
    ) -> Result<Self, Notification> {
        read::table_entry(attributes, family, context)
    }

    /// The announced routes; none if they are treated as withdrawn.
    #[must_use]
    #[inline]
    pub fn announced(&self) -> Nlris<'a> {
        match self.verdict {
            Verdict::Accept => Nlris::new(&[self.announced[1], self.announced[0]]),
            Verdict::TreatAsWithdraw => Nlris::new(&[]),
        }
    }

    /// The withdrawn routes, including announced ones that are treated as withdrawn.
    #[must_use]
    #[inline]
    pub fn withdrawn(&self) -> Nlris<'a> {
        let [field, multiprotocol] = self.withdrawn;
        match self.verdict {
            Verdict::Accept => Nlris::new(&[multiprotocol, field]),
            Verdict::TreatAsWithdraw => {
                Nlris::new(&[self.announced[1], self.announced[0], multiprotocol, field])
            }
        }
    }

    /// The canonical attributes: as received, in their order and with their flags, but
    /// - without MP_REACH_NLRI and MP_UNREACH_NLRI, and without NEXT_HOP where no IPv4 route is announced,
    /// - with AS numbers of four octets in AS_PATH and AGGREGATOR, and without AS4_PATH and AS4_AGGREGATOR,
    /// - without those that RFC 7606 discards, and without unrecognised non-transitive ones.
    ///
    /// They may be malformed if the routes are treated as withdrawn.
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> &[u8] {
        &self.attributes
    }

    /// The next hop of a family's routes.
    #[must_use]
    #[inline]
    pub fn next_hop(&self, family: FamilyId) -> Option<NextHop> {
        match family.place() {
            Place::Fields => attr::next_hop(&self.attributes).map(NextHop::V4),
            Place::Multiprotocol => {
                let (of, next_hop) = self.mp_next_hop?;
                (of == family).then_some(next_hop)
            }
        }
    }

    /// How the announced routes are treated.
    #[must_use]
    #[inline]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The family of an End-of-RIB marker (RFC 4724, section 2).
    #[must_use]
    #[inline]
    pub fn end_of_rib(&self) -> Option<FamilyId> {
        self.end_of_rib
    }

    /// The message's faults, up to the first [`FAULTS_MAX`].
    #[must_use]
    pub fn faults(&self) -> &[Fault<'a>] {
        &self.faults
    }

    /// How many faults the message has.
    #[must_use]
    pub fn fault_count(&self) -> usize {
        self.fault_count
    }
}
