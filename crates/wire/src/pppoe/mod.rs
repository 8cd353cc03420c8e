//! PPP over Ethernet on the wire (RFC 2516): the header, the tags of Discovery packets, and addresses.
//!
//! Everything here starts at the PPPoE header. Ethernet's header and the VLAN tags belong to the caller, who takes the
//! EtherType from [`Code::ether_type`].
//!
//! On receipt, call [`parse`], then [`Discovery::parse`] for the tags of a packet whose code is not [`Code::DATA`]. To
//! send, use [`Writer`] for a Discovery packet. For session data, append [`header`] and the PPP frame, then call
//! [`complete`].
//!
//! Also here: PPP-Max-Payload (RFC 4638), and the line tags of the Broadband Forum's TR-101 ([`LineInfo`]) with their
//! forms in RADIUS (RFC 4679) and L2TP (RFC 5515).
//!
//! Left out: which tags a packet must have, and every rule that depends on earlier packets. Both are the protocol
//! machine's.

mod address;
mod lines;
mod packet;
mod tags;
mod writer;

pub use address::{Mac, NotAMac, Vlans};
pub use lines::{ADSL_FORUM, LINE_ID_MAX, LineAvp, LineInfo, line};
pub use packet::{
    CODE_NAMES, Code, ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION, HEADER_LEN, Packet, ParseError,
    SESSION_RESERVED, parse,
};
pub use tags::{Discovery, Fault, FaultKind, Tag, Tags, tag};
pub use writer::{Writer, complete, header};
