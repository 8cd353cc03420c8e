//! Packets that are joined, and split again as the kernel or a card would: every packet comes out unchanged,
//! those of a flow in order.
//!
//! An input is an octet that chooses the joiner, then steps: an octet of `How`, two octets of length, and a
//! packet of that length.

use forward::join::{Joiner, Options, PACKET_MAX};
use wire::ip::Header;
use wire::packet::Fragment;

use super::forward_checks::{cut, is_right, normal, places, repair_checksums, repair_lengths};

/// Packets of a run.
const COUNTS: [usize; 16] = [1, 1, 1, 2, 2, 3, 4, 5, 8, 12, 17, 31, 47, 64, 65, 100];

/// How to use a packet, from one octet of the input.
struct How(u8);

impl How {
    /// Whether it ends a batch.
    fn ends_batch(&self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether it is used unchanged; otherwise its lengths and checksums are corrected.
    fn is_raw(&self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether its checksums stay unchanged even so.
    fn keeps_checksums(&self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether IPv4's identification stays constant within a run.
    fn stands_still(&self) -> bool {
        self.0 & 8 != 0
    }

    /// The length of the run of packets that starts with it.
    fn count(&self) -> usize {
        COUNTS[usize::from(self.0 >> 4)]
    }
}

/// Takes an input as described above.
///
/// # Panics
/// If a packet is lost, duplicated, changed, or overtaken by another one of its flow.
pub fn target(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else {
        return;
    };
    let options = Options {
        lanes: 1 + usize::from(choice & 3),
        udp: choice & 4 == 0,
    };
    let mut live = Live {
        joiner: Joiner::new(options),
        came: Vec::new(),
        emitted: Vec::new(),
    };
    while let [how, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (packet, after) = after.split_at(length.min(after.len()));
        live.take(&How(*how), packet);
        rest = after;
    }
    live.flush();
    live.check();
}

struct Live {
    joiner: Joiner,
    came: Vec<Vec<u8>>,
    emitted: Vec<Vec<u8>>,
}

impl Live {
    fn take(&mut self, how: &How, packet: &[u8]) {
        let mut packet = packet.to_vec();
        for n in 0..how.count() {
            if n > 0 && !go_on(&mut packet, how) {
                break;
            }
            if !how.is_raw() {
                repair_lengths(&mut packet);
                if !how.keeps_checksums() {
                    repair_checksums(&mut packet);
                }
            }
            self.came.push(packet.clone());
            let emitted = &mut self.emitted;
            self.joiner
                .push(&packet, &mut |octets| emitted.push(octets.to_vec()));
        }
        if how.ends_batch() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let emitted = &mut self.emitted;
        self.joiner
            .flush(&mut |octets| emitted.push(octets.to_vec()));
    }

    fn check(&self) {
        let normals: Vec<Vec<u8>> = self.came.iter().map(|packet| normal(packet)).collect();
        let mut left: Vec<usize> = (0..self.came.len()).collect();
        let mut order = Vec::new();
        let mut joined = 0;
        for octets in &self.emitted {
            assert!(octets.len() <= wire::virtio::LENGTH + PACKET_MAX);
            let (pieces, was_joined) = cut(octets);
            assert!(!was_joined || pieces.len() > 1);
            joined += if was_joined { pieces.len() } else { 0 };
            for piece in pieces {
                assert!(!was_joined || is_right(&piece));
                let of = |&came: &usize| match was_joined {
                    true => normals[came] == normal(&piece),
                    false => self.came[came] == piece,
                };
                let at = left.iter().position(of);
                let at = at.unwrap_or_else(|| panic!("nobody sent {piece:02x?}"));
                order.push(left.remove(at));
            }
        }
        assert!(left.is_empty(), "{} are lost", left.len());
        self.check_order(&order);
        let stats = self.joiner.stats();
        let count = |counted: u64| counted as usize;
        assert_eq!(count(stats.packets), self.came.len());
        assert_eq!(count(stats.emitted), self.emitted.len());
        assert_eq!((count(stats.joined), stats.too_long), (joined, 0));
    }

    fn check_order(&self, order: &[usize]) {
        let flows: Vec<_> = self.came.iter().map(|packet| Flow::of(packet)).collect();
        for (n, &later) in order.iter().enumerate() {
            for &earlier in &order[n + 1..] {
                let overtook = earlier < later && flows[earlier].is_one_with(&flows[later]);
                assert!(!overtook, "{later} overtook {earlier}");
            }
        }
    }
}

/// Turns a packet into the next one of its run; `false` if it has none.
fn go_on(packet: &mut [u8], how: &How) -> bool {
    let Some(places) = places(packet) else {
        return false;
    };
    if places.is_tcp() {
        let at = places.transport + 4;
        let sequence = u32::from_be_bytes(std::array::from_fn(|n| packet[at + n]));
        let sequence = sequence.wrapping_add((packet.len() - places.payload) as u32);
        packet[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
    }
    if packet[0] >> 4 == 4 && !how.stands_still() {
        let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(1);
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
    }
    true
}

/// The key of a packet's flow.
#[derive(PartialEq)]
struct Flow {
    version: u8,
    addresses: (u128, u128),
    protocol: u8,
    /// `None` for a fragment, which may belong to any flow of its addresses and protocol.
    ports: Option<(u16, u16)>,
}

impl Flow {
    /// `None` for bytes that are not a packet.
    fn of(packet: &[u8]) -> Option<Self> {
        let header = Header::read(packet).ok()?;
        let is_whole = header.fragment == Fragment::Whole;
        Some(Self {
            version: header.version,
            addresses: (header.source, header.destination),
            protocol: header.protocol,
            ports: is_whole.then_some((header.source_port, header.destination_port)),
        })
    }
}

trait Related {
    fn is_one_with(&self, other: &Self) -> bool;
}

impl Related for Option<Flow> {
    fn is_one_with(&self, other: &Self) -> bool {
        let (Some(a), Some(b)) = (self, other) else {
            return false;
        };
        (a.version, a.addresses, a.protocol) == (b.version, b.addresses, b.protocol)
            && (a.ports == b.ports || a.ports.is_none() || b.ports.is_none())
    }
}
