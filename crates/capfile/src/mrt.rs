//! MRT: BGP tables and messages, as route collectors store them (RFC 6396, RFC 8050).
//!
//! [`Reader`] detects the compression by content (gzip, zstd, bzip2, xz, lz4 or none) and returns one [`Record`] after the
//! other, which borrows from its buffer: TABLE_DUMP, TABLE_DUMP_V2, and BGP4MP with and without microseconds, with path
//! identifiers (RFC 8050). Records of other types are returned as bytes. A record that contradicts itself is a
//! [`Fault`] with its offset, and the next record is read. Only an impossible length ends the reading.
//!
//! [`Writer`] writes TABLE_DUMP_V2 and BGP4MP. To compress the file, pass a compressing writer.
//!
//! Left out: entries of RIB_GENERIC records (returned as bytes), geographic extensions (RFC 6397), OSPF and IS-IS, and
//! the types that RFC 6396 deprecates.

mod octets;
mod parse;
mod reader;
mod record;
mod writer;

#[cfg(test)]
mod tests;

pub use reader::{Fault, RECORD_LEN_MAX, Reader, What};
pub use record::{
    Body, Entries, Entry, Message, Peer, PeerIndexTable, Record, Rib, Session, StateChange,
    TableDump, Time,
};
pub use writer::{Writer, table_attributes};

/// Types (RFC 6396, section 4).
mod kind {
    pub(super) const TABLE_DUMP: u16 = 12;
    pub(super) const TABLE_DUMP_V2: u16 = 13;
    pub(super) const BGP4MP: u16 = 16;
    pub(super) const BGP4MP_ET: u16 = 17;
}

/// Subtypes of TABLE_DUMP_V2 (RFC 6396, section 4.3; RFC 8050, section 4).
mod table {
    pub(super) const PEER_INDEX_TABLE: u16 = 1;
    pub(super) const IPV4_UNICAST: u16 = 2;
    pub(super) const IPV4_MULTICAST: u16 = 3;
    pub(super) const IPV6_UNICAST: u16 = 4;
    pub(super) const IPV6_MULTICAST: u16 = 5;
    pub(super) const GENERIC: u16 = 6;
    pub(super) const IPV4_UNICAST_ADD_PATH: u16 = 8;
    pub(super) const IPV4_MULTICAST_ADD_PATH: u16 = 9;
    pub(super) const IPV6_UNICAST_ADD_PATH: u16 = 10;
    pub(super) const IPV6_MULTICAST_ADD_PATH: u16 = 11;
    pub(super) const GENERIC_ADD_PATH: u16 = 12;
}

/// Subtypes of BGP4MP (RFC 6396, section 4.4; RFC 8050, section 3).
mod bgp4mp {
    pub(super) const STATE_CHANGE: u16 = 0;
    pub(super) const MESSAGE: u16 = 1;
    pub(super) const MESSAGE_AS4: u16 = 4;
    pub(super) const STATE_CHANGE_AS4: u16 = 5;
    pub(super) const MESSAGE_LOCAL: u16 = 6;
    pub(super) const MESSAGE_AS4_LOCAL: u16 = 7;
    pub(super) const MESSAGE_ADD_PATH: u16 = 8;
    pub(super) const MESSAGE_AS4_ADD_PATH: u16 = 9;
    pub(super) const MESSAGE_LOCAL_ADD_PATH: u16 = 10;
    pub(super) const MESSAGE_AS4_LOCAL_ADD_PATH: u16 = 11;
}

/// Bytes of the common header (RFC 6396, section 2).
const HEADER_LEN: usize = 12;
