//! Packets built from the octets of an input, and the receivers of packets.

use core::net::IpAddr;

use base::Route;
use edge::{Inside, Outside};
use wire::virtio::{self, Gso};

use crate::targets::forward_checks::{open_checksum, repair_checksums, repair_lengths};

/// How to build a packet, from one octet of the input.
pub(super) struct Mend(pub(super) u8);

impl Mend {
    /// Whether it is used unchanged; otherwise its lengths, its checksums and one of its addresses are
    /// corrected.
    fn is_raw(&self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the addresses stay unchanged even so.
    fn keeps_addresses(&self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether it goes to, or comes from, the network behind a subscriber.
    pub(super) fn is_behind(&self) -> bool {
        self.0 & 4 != 0
    }

    /// Octets of payload per segment of a packet to be split; zero: it is not split.
    fn segment_size(&self) -> u16 {
        u16::from(self.0 >> 3) * 40
    }
}

/// A packet with this source.
pub(super) fn from(mend: &Mend, source: Option<IpAddr>, octets: &[u8]) -> Vec<u8> {
    let mut packet = octets.to_vec();
    if !mend.is_raw() {
        readdress(mend, &mut packet, source, [12, 8]);
        repair_lengths(&mut packet);
        repair_checksums(&mut packet);
    }
    packet
}

/// A packet to this destination in the form that a TUN device returns.
pub(super) fn tun(mend: &Mend, destination: Option<IpAddr>, octets: &[u8]) -> Vec<u8> {
    let mut packet = octets.to_vec();
    let mut header = virtio::Header::default();
    if !mend.is_raw() {
        readdress(mend, &mut packet, destination, [16, 24]);
        repair_lengths(&mut packet);
        repair_checksums(&mut packet);
        let size = mend.segment_size();
        if let Some(places) = (size > 0).then(|| open_checksum(&mut packet)).flatten() {
            let gso = match (places.is_tcp(), packet[0] >> 4) {
                (false, _) => Gso::Udp,
                (true, 4) => Gso::TcpV4,
                (true, _) => Gso::TcpV6,
            };
            header = virtio::Header {
                gso,
                segment_size: size,
                ..header
            };
            let offset = places.checksum - places.transport;
            header = header.with_open_checksum(places.transport as u16, offset as u16);
        }
    }
    [header.emit().to_vec(), packet].concat()
}

fn readdress(mend: &Mend, packet: &mut [u8], address: Option<IpAddr>, at: [usize; 2]) {
    match (packet.first().map(|octet| octet >> 4), address) {
        _ if mend.keeps_addresses() => {}
        (Some(4), Some(IpAddr::V4(address))) if packet.len() >= 20 => {
            packet[at[0]..at[0] + 4].copy_from_slice(&address.octets());
        }
        (Some(6), Some(IpAddr::V6(address))) if packet.len() >= 40 => {
            packet[at[1]..at[1] + 16].copy_from_slice(&address.octets());
        }
        _ => {}
    }
}

/// Packets that left tunnels.
#[derive(Default)]
pub(super) struct Packets(pub(super) Vec<Vec<u8>>);

impl Inside for Packets {
    fn packet(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }
}

/// Datagrams with packets in them.
#[derive(Default)]
pub(super) struct Datagrams {
    begun: Vec<u8>,
    pub(super) sent: Vec<(Route, Vec<u8>)>,
}

impl Outside for Datagrams {
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        self.begun.clear();
        // A batch has a limited size.
        (self.sent.len() < 64).then_some(&mut self.begun)
    }

    fn commit(&mut self, route: &Route) {
        self.sent.push((*route, core::mem::take(&mut self.begun)));
    }
}
