//! The flow keys of an IP packet, for its outer header and inside a tunnel: addresses, protocol, ports. Start
//! reading at [`Keys::read`].
//!
//! Reads IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200); inside IP in IP (RFC 2003, 2473, 4213), GRE
//! with IP, Ethernet or PPTP's PPP (RFC 2784, 2890, 2637), L2TPv2 (RFC 2661) and L2TPv3 (RFC 3931) over UDP
//! port 1701 and over IP, VXLAN over UDP port 4789 (RFC 7348). Frames, also inside tunnels: Ethernet II, VLAN tags
//! (802.1Q, 802.1ad), PPPoE sessions (RFC 2516).
//!
//! The keys come from the headers alone: no reassembly, no checksums, and nothing after the ports is read
//! unless it can be a tunnel. [`packet`](crate::packet) knows more link layers and tunnels and records each
//! layer; this module is the fast path, for every packet of a queue. Left out: IEEE 802.3 with LLC, MPLS, Geneve
//! and other tunnels over UDP, ESP without encryption.

mod dscp;
mod header;
#[cfg(test)]
mod tests;
mod tunnel;

pub use dscp::{Dscp, UnknownDscp};

use header::{End, be16};
use tunnel::Inside;

/// The deepest tunnel nesting that is followed.
pub const LEVELS_MAX: usize = 4;

/// Addresses, protocol and ports of one IP header. Unknown values are 0: ports of a protocol without ports, and
/// ports of every fragment including the first, so that all fragments of a datagram belong to one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C, align(8))]
pub struct Flow {
    /// Source address, IPv4 as `::ffff:a.b.c.d`; all zeros if there is no such header.
    pub source: [u8; 16],
    /// Destination address, likewise.
    pub destination: [u8; 16],
    /// Source port of TCP, UDP, SCTP, DCCP and UDP-Lite; otherwise 0.
    pub source_port: u16,
    /// Destination port, likewise.
    pub destination_port: u16,
    /// IP protocol number after IPv6 extension headers and AH; for a fragment, the protocol in its fragment
    /// header; 0 if there is no such header. 32 bits wide so that the struct has no padding and is copied in
    /// one go.
    pub protocol: u32,
}

impl Flow {
    /// Whether such a header exists.
    #[must_use]
    #[inline]
    pub fn exists(&self) -> bool {
        let [[a, b], [c, d]] = [self.destination, self.source].map(halves);
        b != 0 || a != 0 || c != 0 || d != 0
    }
}

/// The packet properties that a classifier can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Keys {
    /// Mark, set by the receiver of the packet.
    pub mark: u32,
    /// VLAN identifier of the frame's first tag, 0 if untagged. It is not in the IP packet, so the frame's
    /// reader fills it in, as [`Keys::read_frame`] does.
    pub vlan: u16,
    /// TOS octet or traffic class of the outer header: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The outermost IP header, which routers see.
    pub outer: Flow,
    /// The innermost header of a tunnel. All zeros if the packet is not tunnelled, is a fragment, or its
    /// content is truncated or nested deeper than [`LEVELS_MAX`].
    pub inner: Flow,
}

impl Keys {
    /// The keys of an IPv4 or IPv6 packet, starting at its IP header; all 0 if that header is truncated or
    /// invalid.
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

    /// Sets these to the keys of a packet, as [`Keys::read`] returns them. For keys that stay in place, since
    /// copying them takes longer than reading them.
    #[inline]
    pub fn replace(&mut self, packet: &[u8]) {
        self.clear();
        self.fill(packet);
    }

    /// Zeroes every field separately: assigning the whole struct copies it from a zeroed one elsewhere, which
    /// is slower.
    #[inline(always)]
    fn clear(&mut self) {
        self.mark = 0;
        self.vlan = 0;
        self.traffic_class = 0;
        self.outer = Flow::default();
        self.inner = Flow::default();
    }

    /// Reads a packet into zeroed keys.
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

    /// Reads any packet, tunnelled or not, into zeroed keys.
    #[inline(never)]
    fn fill_any(&mut self, packet: &[u8]) {
        let content = match packet.first().map_or(0, |first| first >> 4) {
            4 => header::ipv4(packet, &mut self.outer, &mut self.traffic_class),
            6 => header::ipv6(packet, &mut self.outer, &mut self.traffic_class),
            _ => return,
        };
        let Ok(content) = content else { return };
        if tunnel::may_be(&self.outer) {
            self.fill_inner(content);
        }
    }

    /// Reads the content of a tunnel. Separate, so that packets without one do not pay for its registers.
    #[inline(never)]
    fn fill_inner(&mut self, content: &[u8]) {
        let inside = tunnel::inside(&self.outer, content);
        if innermost(inside, &mut self.inner).is_err() {
            self.inner = Flow::default();
        }
    }

    /// Reads any frame into zeroed keys.
    #[inline(never)]
    fn fill_any_frame(&mut self, frame: &[u8]) {
        let mut vlan = None;
        if let Inside::Ipv4(packet) | Inside::Ipv6(packet) = tunnel::ethernet(frame, &mut vlan) {
            self.fill(packet);
        }
        self.vlan = vlan.unwrap_or(0);
    }

    /// Whether the packet is tunnelled and its content could be read.
    #[must_use]
    #[inline]
    pub fn is_tunnel(&self) -> bool {
        self.inner.exists()
    }

    /// The innermost header: the tunnelled one, otherwise the only one.
    #[must_use]
    #[inline]
    pub fn innermost(&self) -> &Flow {
        if self.is_tunnel() {
            &self.inner
        } else {
            &self.outer
        }
    }

    /// The keys as Linux's flow classifier computes them: for tunnels that it inspects (IP in IP, GRE), the
    /// inner keys replace the outer ones, and there are no tunnel keys.
    ///
    /// For L2TP inside such a tunnel, Linux stops at the L2TP datagram, and this does not.
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
#[inline]
fn innermost(inside: Inside<'_>, flow: &mut Flow) -> Result<(), End> {
    // Most tunnels carry such packets: one pass, as without a tunnel.
    if let Inside::Ipv4(packet) = inside
        && let Some(head) = packet.first_chunk()
        && header::is_plain(head)
    {
        header::plain(head, flow);
        return Ok(());
    }
    any_innermost(inside, flow)
}

/// As [`innermost`], for any content.
fn any_innermost(mut inside: Inside<'_>, flow: &mut Flow) -> Result<(), End> {
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

/// An address as two numbers, loaded with the width they were stored with.
#[inline(always)]
fn halves(address: [u8; 16]) -> [u64; 2] {
    let bits = u128::from_ne_bytes(address);
    [bits as u64, (bits >> 64) as u64]
}
