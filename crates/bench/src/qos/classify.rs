//! The cost of reading a packet's keys and finding its class.

use std::hint::black_box;

use qos::classify::{Hash, Key, KeySet, Map};
use reactor::prefetch;
use wire::flow::Keys;

use super::packets::{self, HEADERS, Kind, Random};
use super::{Config, least};

/// Packets of one kind, or a mix of several.
pub(super) struct Mix {
    pub(super) name: &'static str,
    kinds: &'static [Kind],
    /// Nanoseconds that a packet may take.
    pub(super) reach_ns: f64,
}

const fn mix(name: &'static str, kinds: &'static [Kind], reach_ns: f64) -> Mix {
    Mix {
        name,
        kinds,
        reach_ns,
    }
}

const PLAIN_NS: f64 = 15.0;
const TUNNEL_NS: f64 = 30.0;

/// All mixes that are measured.
pub(super) const MIXES: [Mix; 10] = [
    mix("IPv4, UDP", &[Kind::Udp4], PLAIN_NS),
    mix("IPv4, TCP", &[Kind::Tcp4], PLAIN_NS),
    mix("IPv6, UDP", &[Kind::Udp6], PLAIN_NS),
    mix(
        "plain, mixed",
        &[Kind::Udp4, Kind::Tcp4, Kind::Udp6],
        PLAIN_NS,
    ),
    mix("IP in IP", &[Kind::Ipip], TUNNEL_NS),
    mix("IPv6 in IPv4", &[Kind::SixInFour], TUNNEL_NS),
    mix("GRE", &[Kind::Gre], TUNNEL_NS),
    mix("L2TP", &[Kind::L2tp], TUNNEL_NS),
    mix("VXLAN", &[Kind::Vxlan], TUNNEL_NS),
    mix(
        "tunnels, mixed",
        &[Kind::Ipip, Kind::SixInFour, Kind::Gre, Kind::L2tp],
        TUNNEL_NS,
    ),
];

/// The steps that are measured for each packet, the floor first.
pub(super) const STEPS: [&str; 4] = [
    "floor: its first 64 octets copied",
    "keys",
    "keys and map",
    "keys and hash",
];

/// Packets in buffers of equal size, one after another.
struct Buffers {
    octets: Vec<u8>,
    stride: usize,
    lengths: Vec<u8>,
}

impl Buffers {
    fn new(kinds: &[Kind], count: usize, flows: u32, stride: usize) -> Self {
        let mut random = Random::new(4);
        let mut buffers = Self {
            octets: vec![0; count * stride],
            stride,
            lengths: Vec::with_capacity(count),
        };
        for octets in buffers.octets.chunks_exact_mut(stride) {
            let kind = kinds[random.below(kinds.len())];
            let flow = random.below(flows as usize) as u32;
            let length = packets::write(kind, flow, octets);
            buffers.lengths.push(length as u8);
        }
        buffers
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let packets = self.octets.chunks_exact(self.stride).zip(&self.lengths);
        packets.map(|(octets, &length)| &octets[..usize::from(length)])
    }

    /// Reads each packet. With `AHEAD`, the headers of later ones are loaded meanwhile, as `headend qos run` does.
    #[inline(always)]
    fn each<const AHEAD: bool>(&self, mut then: impl FnMut(&[u8])) {
        let mut later = self.packets().skip(prefetch::PACKETS);
        for packet in self.packets() {
            if AHEAD && let Some(later) = later.next() {
                prefetch::headers(later);
            }
            then(packet);
        }
    }

    /// Nanoseconds per packet for each of [`STEPS`].
    fn measure<const AHEAD: bool>(&self, config: &Config) -> [f64; 4] {
        let map = Map::new(Key::InnermostSrc).and(15);
        let hash = Hash::new(KeySet::FLOW, 1024, 2005, 1);
        let mut copy = [0u8; 64];
        let mut keys = Keys::default();
        let count = self.lengths.len() as u64;
        [
            least(config, count, || {
                self.each::<AHEAD>(|packet| {
                    match packet.first_chunk() {
                        Some(first) => copy = *first,
                        None => copy[..48].copy_from_slice(&packet[..48]),
                    }
                    black_box(&copy);
                });
            }),
            least(config, count, || {
                self.each::<AHEAD>(|packet| {
                    keys.replace(packet);
                    black_box(&keys);
                });
            }),
            least(config, count, || {
                self.each::<AHEAD>(|packet| {
                    keys.replace(packet);
                    black_box(map.class(black_box(&keys)));
                });
            }),
            least(config, count, || {
                self.each::<AHEAD>(|packet| {
                    keys.replace(packet);
                    black_box(hash.class(black_box(&keys)));
                });
            }),
        ]
    }
}

/// Nanoseconds per packet for each of [`STEPS`]: for each number of flows, then for a ring of
/// buffers larger than the cache, with the headers of later packets loaded ahead and without.
pub(super) fn run(config: &Config, mix: &Mix) -> Vec<[f64; 4]> {
    let hot = config.flows.iter().map(|&flows| {
        let buffers = Buffers::new(mix.kinds, flows as usize, flows, HEADERS);
        buffers.measure::<false>(config)
    });
    let mut measured: Vec<_> = hot.collect();
    let flows = config.flows[config.flows.len() - 1];
    let ring = Buffers::new(mix.kinds, config.ring, flows, super::BUFFER);
    measured.push(ring.measure::<true>(config));
    measured.push(ring.measure::<false>(config));
    measured
}
