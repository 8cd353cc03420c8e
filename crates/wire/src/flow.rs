//! Who sends to whom: the keys of an IP packet's flow, outside of a tunnel and inside of it.
//!
//! IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200); behind IP in IP (RFC 2003, 2473, 4213), GRE with IP,
//! Ethernet or PPTP's PPP (RFC 2784, 2890, 2637), L2TPv2 (RFC 2661) and L2TPv3 (RFC 3931) over UDP port 1701 and over
//! IP. Frames: Ethernet II, VLAN tags (802.1Q, 802.1ad), PPPoE sessions (RFC 2516).
//!
//! The keys are those of the headers alone: nothing is reassembled, no checksum is computed, and what follows the ports
//! is not looked at unless it can be a tunnel. [`packet`](crate::packet) knows more link layers and tunnels and keeps
//! what it passes; this is the short way, for every packet of a queue. Left out: IEEE 802.3 with LLC, MPLS, VXLAN and
//! other tunnels over UDP, ESP without encryption.

mod dscp;
mod header;
#[cfg(test)]
mod tests;
mod tunnel;

pub use dscp::{Dscp, UnknownDscp};

use header::{End, be16};
use tunnel::Inside;

/// Tunnels that may be within one another; behind more, nothing is known.
pub const LEVELS_MAX: usize = 4;

/// Addresses, protocol and ports of one IP header. What is unknown is 0: ports of a protocol without ports, and of
/// every fragment, the first one included, so that all pieces of a datagram are one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C, align(8))]
pub struct Flow {
    /// Source address, an IPv4 one as `::ffff:a.b.c.d`; all zeros when there is no such header.
    pub source: [u8; 16],
    /// Destination address, likewise.
    pub destination: [u8; 16],
    /// Source port of TCP, UDP, SCTP, DCCP and UDP-Lite; else 0.
    pub source_port: u16,
    /// Destination port, likewise.
    pub destination_port: u16,
    /// IP protocol number after IPv6 extension headers and AH; of a fragment, what its header says comes next; 0 when
    /// there is no such header. As wide as it is so that a flow has no gaps, and is copied in one go.
    pub protocol: u32,
}

impl Flow {
    /// Whether there is such a header.
    #[must_use]
    #[inline]
    pub fn exists(&self) -> bool {
        let [[a, b], [c, d]] = [self.destination, self.source].map(halves);
        b != 0 || a != 0 || c != 0 || d != 0
    }
}

/// What a classifier may ask of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Keys {
    /// Mark, as set by whoever took the packet in.
    pub mark: u32,
    /// VLAN identifier of the frame's first tag, 0 when untagged. Not in the IP packet: whoever reads the frame fills
    /// it in, as [`Keys::read_frame`] does.
    pub vlan: u16,
    /// TOS octet or traffic class of the outer header: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The header that routers see.
    pub outer: Flow,
    /// The innermost header of a tunnel; all zeros when the packet is no tunnel's, or a fragment of one, or when what
    /// the tunnel carries is cut short or too deep in tunnels ([`LEVELS_MAX`]).
    pub inner: Flow,
}

impl Keys {
    /// The keys of an IPv4 or IPv6 packet, from its IP header on; all 0 when that header is cut or is none.
    #[must_use]
    #[inline]
    pub fn read(packet: &[u8]) -> Keys {
        match packet.first_chunk() {
            Some(head) if header::is_plain(head) => {
                let mut keys = Keys {
                    traffic_class: head[1],
                    ..Keys::default()
                };
                header::plain(head, &mut keys.outer);
                keys
            }
            _ => {
                let mut keys = Keys::default();
                keys.fill_any(packet);
                keys
            }
        }
    }

    /// The keys of an Ethernet frame's IP packet, and the identifier of its first VLAN tag.
    #[must_use]
    #[inline]
    pub fn read_frame(frame: &[u8]) -> Keys {
        match frame.split_first_chunk::<14>() {
            Some((head, packet)) if be16(head, 12) == tunnel::ETHERTYPE_IPV4 => Keys::read(packet),
            _ => {
                let mut keys = Keys::default();
                keys.fill_any_frame(frame);
                keys
            }
        }
    }

    /// Makes these the keys of a packet, as [`Keys::read`] has them: for keys that stay where they are, since to copy
    /// them takes longer than to read them.
    #[inline]
    pub fn replace(&mut self, packet: &[u8]) {
        self.clear();
        self.fill(packet);
    }

    /// Makes these the keys of a frame, as [`Keys::read_frame`] has them.
    #[inline]
    pub fn replace_frame(&mut self, frame: &[u8]) {
        self.clear();
        match frame.split_first_chunk::<14>() {
            Some((head, packet)) if be16(head, 12) == tunnel::ETHERTYPE_IPV4 => self.fill(packet),
            _ => self.fill_any_frame(frame),
        }
    }

    /// Makes all of it 0, a field at a time: the whole at once is copied from a zero elsewhere.
    #[inline(always)]
    fn clear(&mut self) {
        self.mark = 0;
        self.vlan = 0;
        self.traffic_class = 0;
        self.outer = Flow::default();
        self.inner = Flow::default();
    }

    /// Reads a packet into keys that are all 0.
    #[inline(always)]
    fn fill(&mut self, packet: &[u8]) {
        match packet.first_chunk() {
            Some(head) if header::is_plain(head) => {
                self.traffic_class = head[1];
                header::plain(head, &mut self.outer);
            }
            _ => self.fill_any(packet),
        }
    }

    /// Reads any packet, be it a tunnel's or not, into keys that are all 0.
    #[inline(never)]
    fn fill_any(&mut self, packet: &[u8]) {
        let content = match packet.first().map_or(0, |first| first >> 4) {
            4 => header::ipv4(packet, &mut self.outer, &mut self.traffic_class),
            6 => header::ipv6(packet, &mut self.outer, &mut self.traffic_class),
            _ => return,
        };
        let Ok(content) = content else { return };
        if tunnel::may_be(&self.outer) {
            let inside = tunnel::inside(&self.outer, content);
            if innermost(inside, &mut self.inner).is_err() {
                self.inner = Flow::default();
            }
        }
    }

    /// Reads any frame into keys that are all 0.
    #[inline(never)]
    fn fill_any_frame(&mut self, frame: &[u8]) {
        let mut vlan = None;
        if let Inside::Ipv4(packet) | Inside::Ipv6(packet) = tunnel::ethernet(frame, &mut vlan) {
            self.fill(packet);
        }
        self.vlan = vlan.unwrap_or(0);
    }

    /// Whether the packet is a tunnel's, and what it carries could be read.
    #[must_use]
    #[inline]
    pub fn is_tunnel(&self) -> bool {
        self.inner.exists()
    }

    /// The innermost header: of what a tunnel carries, or else the only one.
    #[must_use]
    #[inline]
    pub fn innermost(&self) -> &Flow {
        if self.is_tunnel() {
            &self.inner
        } else {
            &self.outer
        }
    }

    /// The keys as Linux's flow classifier has them: of tunnels that it looks into (IP in IP, GRE) the inner ones in
    /// the place of the outer ones, which cannot be reached then, and no tunnel keys at all.
    ///
    /// Where L2TP is inside of such a tunnel, Linux stops in front of it, and this does not.
    #[must_use]
    pub fn as_kernel(mut self) -> Keys {
        if tunnel::kernel_looks_into(self.outer.protocol) && self.is_tunnel() {
            self.outer = self.inner;
        }
        self.inner = Flow::default();
        self
    }
}

/// Follows tunnels down to a header that is not a tunnel's.
fn innermost(mut inside: Inside<'_>, flow: &mut Flow) -> Result<(), End> {
    let mut ignored = 0;
    for _ in 0..LEVELS_MAX {
        let content = match inside {
            Inside::Ipv4(packet) => header::ipv4(packet, flow, &mut ignored),
            Inside::Ipv6(packet) => header::ipv6(packet, flow, &mut ignored),
            Inside::Cut => Err(End::Cut),
            Inside::Other => return Ok(()),
        };
        inside = match content {
            Ok(content) if tunnel::may_be(flow) => tunnel::inside(flow, content),
            Ok(_) | Err(End::Fragment) => return Ok(()),
            Err(End::Cut) => return Err(End::Cut),
        };
    }
    match inside {
        Inside::Other => Ok(()),
        _ => Err(End::Cut),
    }
}

/// An address in two numbers, which are read as they were written.
#[inline(always)]
fn halves(address: [u8; 16]) -> [u64; 2] {
    let bits = u128::from_ne_bytes(address);
    [bits as u64, (bits >> 64) as u64]
}
