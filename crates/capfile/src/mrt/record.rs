//! The contents of a record.

use std::net::IpAddr;

use wire::bgp::{AfiSafi, FamilyId, PeerKind, Prefix, UpdateContext};

use super::octets::Octets;

/// When something was: since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds.
    pub s: u32,
    /// Microseconds of it, where they were written (BGP4MP_ET).
    pub us: Option<u32>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset in the file, in bytes after decompression.
    pub offset: u64,
    /// Its time stamp.
    pub time: Time,
    /// Its contents.
    pub body: Body<'a>,
}

/// What a record holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// PEER_INDEX_TABLE: the peers that the [`Rib`]s behind it mean (RFC 6396, section 4.3.1).
    PeerIndexTable(PeerIndexTable<'a>),
    /// The routes of a prefix (section 4.3.2).
    Rib(Rib<'a>),
    /// RIB_GENERIC and RIB_GENERIC_ADDPATH (section 4.3.3): routes of any family.
    RibGeneric {
        /// Sequence number.
        sequence: u32,
        /// The family.
        family: AfiSafi,
        /// The prefix has a path identifier (RFC 8050, section 4.2).
        add_path: bool,
        /// The prefix, the number of entries, the entries.
        octets: &'a [u8],
    },
    /// TABLE_DUMP: one route of one peer (section 4.2).
    TableDump(TableDump<'a>),
    /// A message of BGP4MP (section 4.4.2).
    Message(Message<'a>),
    /// A change of state (section 4.4.1).
    StateChange(StateChange),
    /// Anything else.
    Unknown {
        /// Type.
        kind: u16,
        /// Subtype.
        subtype: u16,
        /// What follows the header.
        octets: &'a [u8],
    },
}

/// PEER_INDEX_TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIndexTable<'a> {
    /// The collector's BGP Identifier.
    pub collector_id: u32,
    /// The view's name, UTF-8 if its writer kept to that; often empty.
    pub view: &'a [u8],
    /// The peers, by index.
    pub peers: Vec<Peer>,
}

/// A peer in a PEER_INDEX_TABLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// BGP Identifier.
    pub router_id: u32,
    /// Address.
    pub address: IpAddr,
    /// AS number.
    pub asn: u32,
}

/// The routes of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rib<'a> {
    /// Sequence number.
    pub sequence: u32,
    /// The prefix.
    pub prefix: Prefix,
    /// Of a multicast table, not of the unicast one.
    pub is_multicast: bool,
    /// The entries have path identifiers (RFC 8050, section 4.1).
    pub add_path: bool,
    /// How many there are.
    pub(super) count: u16,
    /// The entries, checked.
    pub(super) octets: &'a [u8],
}

impl<'a> Rib<'a> {
    /// The routes.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries {
            rest: Octets(self.octets),
            add_path: self.add_path,
        }
    }

    /// How many routes there are.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        usize::from(self.count)
    }
}

/// A route in a [`Rib`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Index of the peer in the [`PeerIndexTable`].
    pub peer_index: u16,
    /// When it was originated, in seconds since 1970.
    pub originated_s: u32,
    /// Path identifier; 0 without [`Rib::add_path`].
    pub path_id: u32,
    /// Path attributes, for [`Update::read_table_entry`](wire::bgp::Update::read_table_entry): AS
    /// numbers have four octets, and MP_REACH_NLRI is a next hop alone (some writers include all of
    /// it).
    pub attributes: &'a [u8],
}

/// Walks over the routes of a [`Rib`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    pub(super) rest: Octets<'a>,
    pub(super) add_path: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let mut octets = self.rest;
        let entry = Entry {
            peer_index: octets.u16()?,
            originated_s: octets.u32()?,
            path_id: if self.add_path { octets.u32()? } else { 0 },
            attributes: {
                let len = octets.u16()?;
                octets.slice(usize::from(len))?
            },
        };
        self.rest = octets;
        Some(entry)
    }
}

/// A route of TABLE_DUMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDump<'a> {
    /// View number.
    pub view: u16,
    /// Sequence number.
    pub sequence: u16,
    /// The prefix.
    pub prefix: Prefix,
    /// When it was originated, in seconds since 1970.
    pub originated_s: u32,
    /// The peer's address.
    pub peer: IpAddr,
    /// The peer's AS number, of two octets.
    pub peer_asn: u16,
    /// Path attributes, with AS numbers of two octets.
    pub attributes: &'a [u8],
}

/// Whose message or change of state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session {
    /// The peer's AS number; 0 where it was not known.
    pub peer_asn: u32,
    /// The collector's AS number.
    pub local_asn: u32,
    /// Interface index; 0 if it is not given.
    pub interface: u16,
    /// The peer's address.
    pub peer: IpAddr,
    /// The collector's address, of the same family.
    pub local: IpAddr,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The two peers.
    pub session: Session,
    /// AS numbers in it have four octets (MESSAGE_AS4).
    pub four_octet: bool,
    /// Prefixes in it have path identifiers (RFC 8050, section 3).
    pub add_path: bool,
    /// The collector sent it (MESSAGE_LOCAL).
    pub is_local: bool,
    /// The message whole, header and all. It is not looked at here: [`frame`](wire::bgp::frame) does that.
    pub octets: &'a [u8],
}

impl Message<'_> {
    /// What an UPDATE is read with. As it was received: path identifiers are taken to be in the family that has them,
    /// which the record does not say.
    #[must_use]
    pub fn context(&self) -> UpdateContext {
        UpdateContext {
            four_octet: self.four_octet,
            peer: if self.session.peer_asn == self.session.local_asn {
                PeerKind::Internal
            } else {
                PeerKind::External
            },
            add_path: [self.add_path; FamilyId::ALL.len()],
            ..UpdateContext::default()
        }
    }
}

/// A change of state: 1 Idle, 2 Connect, 3 Active, 4 OpenSent, 5 OpenConfirm, 6 Established (RFC 6396, section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateChange {
    /// Of which session.
    pub session: Session,
    /// AS numbers have four octets in the file (STATE_CHANGE_AS4).
    pub four_octet: bool,
    /// The state before.
    pub old: u16,
    /// The state after.
    pub new: u16,
}
