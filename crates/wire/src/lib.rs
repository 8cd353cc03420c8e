//! Parses bytes into headers and messages, and writes them back. This crate has no state, I/O, clock or
//! randomness. Parsing borrows from the datagram and does not allocate; emitting appends to the caller's
//! buffer.
//!
//! - [`link`]: link-layer header types of captured frames.
//! - [`packet`]: finds the innermost IP packet of a captured frame, through tunnels.
//! - [`tcp`], [`udp`]: the segment or datagram in an IP packet.
//! - [`tls`]: the first messages of TLS, for names and versions.
//! - [`quic`]: QUIC packet headers, as far as they are not protected.
//! - [`icmp`]: echo requests and replies.
//! - [`ndp`]: neighbour discovery of IPv6: solicitations and advertisements.
//! - [`dhcpv6`]: messages between DHCPv6 clients and servers.
//! - [`dns`]: domain names as DHCPv6 and Router Advertisements carry them.
//! - [`ip`]: reads an IP packet's header for forwarding and filtering.
//! - [`checksum`]: verifies IP, TCP and UDP checksums.
//! - [`segment`]: splits frames that a local stack left for the network card to segment.
//! - [`ecn`]: marking a packet "congestion experienced".
//! - [`flow`]: flow keys for queues and filters, outside and inside tunnels.
//! - [`virtio`]: the header before a packet on a TUN device, for open checksums and segmentation offload.
//! - [`ipfix`]: IPFIX messages (RFC 7011).
//! - [`ppp`]: PPP frames (RFC 1661), control packets and their options, PAP and CHAP.
//! - [`pppoe`]: PPP over Ethernet (RFC 2516): Discovery packets, their tags, and the header of session data.
//! - [`radius`]: packets of RADIUS clients and servers (RFC 2865), and their authentication with the shared
//!   secret.
//! - [`bgp`]: BGP-4 messages (RFC 4271), with the error handling of RFC 7606.
//! - [`l2tp`]: L2TPv2 (RFC 2661) and L2TPv3 over UDP (RFC 3931).
//!
//! Start reading at the module of the protocol in question; its head lists the RFCs and what is left out.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod bgp;
pub mod checksum;
pub mod dhcpv6;
pub mod dns;
pub mod ecn;
pub mod flow;
pub mod icmp;
pub mod ip;
pub mod ipfix;
pub mod l2tp;
pub mod link;
pub mod ndp;
pub mod packet;
pub mod ppp;
pub mod pppoe;
pub mod quic;
pub mod radius;
pub mod segment;
pub mod tcp;
pub mod tls;
pub mod udp;
pub mod virtio;
