//! Bytes to and from headers and messages, and nothing else: no state, no
//! I/O, no clock, no randomness. Parsing borrows from the datagram and does
//! not allocate; emitting appends to a buffer of the caller's.
//!
//! - [`link`]: what the first octet of a captured frame belongs to.
//! - [`packet`]: from a captured frame, through tunnels, to its innermost IP packet.
//! - [`tcp`], [`udp`]: the segment or datagram that is in there.
//! - [`icmp`]: echo requests and replies.
//! - [`ip`]: one reading of an IP packet's header, for those who pass packets on.
//! - [`checksum`]: whether it is undamaged.
//! - [`segment`]: frames that a local stack left for the network card to cut.
//! - [`ecn`]: marking a packet "congestion experienced".
//! - [`flow`]: whose packet it is, for queues and filters, in front of a tunnel and within.
//! - [`virtio`]: what stands before a packet on a TUN device: open checksums, packets that are several.
//! - [`ppp`]: PPP frames (RFC 1661), control packets and their options, PAP and CHAP.
//! - [`radius`]: packets of RADIUS clients and servers (RFC 2865), and what the secret proves of them.
//! - [`bgp`]: BGP-4 messages (RFC 4271), their errors handled by RFC 7606.
//! - [`l2tp`]: L2TPv2 (RFC 2661) and L2TPv3 over UDP (RFC 3931).
#![forbid(unsafe_code)]

pub mod bgp;
pub mod checksum;
pub mod ecn;
pub mod flow;
pub mod icmp;
pub mod ip;
pub mod l2tp;
pub mod link;
pub mod packet;
pub mod ppp;
pub mod radius;
pub mod segment;
pub mod tcp;
pub mod udp;
pub mod virtio;
