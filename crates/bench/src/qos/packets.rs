//! Packets of many hosts and flows, in several encapsulations.

use wire::flow::Keys;

/// Number of hosts; flows are assigned to them in turn.
pub(super) const HOSTS: u32 = 16;

/// Size of a header buffer in bytes, with room for a tunnel's headers.
pub(super) const HEADERS: usize = 128;

/// The encapsulation of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// UDP in IPv4.
    Udp4,
    /// TCP in IPv4.
    Tcp4,
    /// UDP in IPv6.
    Udp6,
    /// IPv4 in IPv4 (RFC 2003).
    Ipip,
    /// IPv6 in IPv4 (RFC 4213).
    SixInFour,
    /// IPv4 in GRE (RFC 2784).
    Gre,
    /// IPv4 in PPP in L2TP (RFC 2661).
    L2tp,
    /// IPv4 in Ethernet in VXLAN (RFC 7348).
    Vxlan,
}

/// An endless pseudo-random sequence, the same every time.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * bound as u64) >> 32) as usize
    }
}

/// Appends to a slice.
struct Writer<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        self.octets[self.at..self.at + octets.len()].copy_from_slice(octets);
        self.at += octets.len();
    }

    /// An IPv4 header of a packet of `length` bytes in total.
    fn ipv4(&mut self, length: usize, protocol: u8, source: u32, destination: u32) {
        let [high, low] = (length as u16).to_be_bytes();
        self.put(&[0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
        self.put(&source.to_be_bytes());
        self.put(&destination.to_be_bytes());
    }

    fn ipv6(&mut self, content: usize, protocol: u8, host: u32) {
        let [high, low] = (content as u16).to_be_bytes();
        self.put(&[0x60, 0, 0, 0, high, low, protocol, 64]);
        for last in [host, 0x0808_0808] {
            self.put(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
            self.put(&last.to_be_bytes());
        }
    }

    fn ports(&mut self, source: u16, destination: u16) {
        self.put(&source.to_be_bytes());
        self.put(&destination.to_be_bytes());
    }

    /// UDP in IPv4, 48 octets.
    fn udp4(&mut self, host: u32, port: u16) {
        self.ipv4(48, 17, host, SERVER);
        self.ports(port, 443);
        self.put(&[0, 28, 0, 0]);
        self.put(&[0; 20]);
    }

    /// UDP in IPv6, 68 octets.
    fn udp6(&mut self, host: u32, port: u16) {
        self.ipv6(28, 17, host);
        self.ports(port, 443);
        self.put(&[0, 28, 0, 0]);
        self.put(&[0; 20]);
    }
}

const SERVER: u32 = 0x0808_0808;
const TUNNEL: (u32, u32) = (0xc000_0201, 0xc633_6401);

/// Writes the packet of a flow to the start of `octets`, which has room for [`HEADERS`]; returns
/// its length.
pub(super) fn write(kind: Kind, flow: u32, octets: &mut [u8]) -> usize {
    let host = 0x0a00_0000 | (flow % HOSTS);
    let port = 1024 + (flow / HOSTS) as u16;
    let (near, far) = TUNNEL;
    let mut to = Writer { octets, at: 0 };
    match kind {
        Kind::Udp4 => to.udp4(host, port),
        Kind::Tcp4 => {
            to.ipv4(52, 6, host, SERVER);
            to.ports(port, 443);
            to.put(&[0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
            to.put(&[0; 12]);
        }
        Kind::Udp6 => to.udp6(host, port),
        Kind::Ipip => {
            to.ipv4(68, 4, near, far);
            to.udp4(host, port);
        }
        Kind::SixInFour => {
            to.ipv4(88, 41, near, far);
            to.udp6(host, port);
        }
        Kind::Gre => {
            to.ipv4(72, 47, near, far);
            to.put(&[0, 0, 0x08, 0x00]);
            to.udp4(host, port);
        }
        Kind::L2tp => {
            to.ipv4(86, 17, near, far);
            to.ports(1701, 1701);
            to.put(&[0, 66, 0, 0]);
            // An L2TP data message without a length (RFC 2661 3.1), PPP's address and control, and
            // IPv4.
            to.put(&[0, 2, 0, 1, 0, 1, 0xff, 0x03, 0, 0x21]);
            to.udp4(host, port);
        }
        Kind::Vxlan => {
            to.ipv4(98, 17, near, far);
            to.ports(50_000 + port % 8_192, 4_789);
            to.put(&[0, 78, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
            to.put(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
            to.udp4(host, port);
        }
    }
    to.at
}

/// The keys of TCP packets of that many flows.
pub(super) fn keys(flows: u32) -> Vec<Keys> {
    let mut octets = [0; HEADERS];
    let of = |flow| {
        let length = write(Kind::Tcp4, flow, &mut octets);
        Keys::read(&octets[..length])
    };
    (0..flows).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_is_found_in_every_kind() {
        use Kind::*;
        for kind in [Udp4, Tcp4, Udp6, Ipip, SixInFour, Gre, L2tp, Vxlan] {
            let mut octets = [0; HEADERS];
            let length = write(kind, 16 * 7 + 5, &mut octets);
            let keys = Keys::read(&octets[..length]);
            let flow = keys.innermost();
            assert_eq!(
                keys.is_tunnel(),
                !matches!(kind, Udp4 | Tcp4 | Udp6),
                "{kind:?}"
            );
            assert_eq!(flow.source[15], 5, "{kind:?}");
            assert_eq!(
                (flow.source_port, flow.destination_port),
                (1024 + 7, 443),
                "{kind:?}"
            );
            let protocol = if kind == Tcp4 { 6 } else { 17 };
            assert_eq!(flow.protocol, protocol, "{kind:?}");
        }
    }

    #[test]
    fn no_two_flows_have_the_same_keys() {
        let mut seen = std::collections::HashSet::new();
        assert!(keys(16_384).into_iter().all(|keys| seen.insert(keys)));
    }
}
