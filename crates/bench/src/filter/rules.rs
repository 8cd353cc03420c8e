//! Random rules of many kinds, and packets that match them.

use std::net::Ipv4Addr;

use filter::{Direction, Filter, FilterSet, Names};
use wire::ip::Header;

/// An endless pseudo-random sequence, the same every time.
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// An address in the range that rules use: 10.0.0.0 to 189.255.255.255.
    fn address(&mut self) -> u32 {
        (10 + self.below(180)) << 24 | self.below(1 << 24)
    }
}

/// The properties of a packet that matches a rule.
#[derive(Clone, Copy)]
struct Sample {
    is_v6: bool,
    protocol: u8,
    /// For IPv6, the third and fourth pair of octets of an address in 2001:db8::/32.
    source: u32,
    destination: u32,
    ports: [u16; 2],
    flags: u8,
}

/// The packets to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Each matches one of the rules, chosen at random; IPv4 only.
    V4,
    /// The same, with IPv6.
    Mixed,
    /// IPv4 packets that match no rule.
    Strange,
}

/// Rules, and packets for them.
pub(super) struct Course {
    text: String,
    samples: Vec<Sample>,
    random: Random,
}

/// Packets of a course.
pub(super) const PACKETS: usize = 1_024;
/// Size of a packet's buffer, in bytes.
const ROOM: usize = 128;

impl Course {
    /// Makes `rules` rules.
    pub(super) fn new(rules: usize) -> Self {
        let mut random = Random(2_004);
        let mut text = "filter x\nin\n".to_owned();
        let mut samples = Vec::with_capacity(rules);
        for kind in 0..rules {
            samples.push(add_rule(kind % 10, &mut random, &mut text));
        }
        Self {
            text,
            samples,
            random,
        }
    }

    /// The rules followed by `last`, as a set with one filter.
    pub(super) fn set(&self, last: &str) -> anyhow::Result<FilterSet> {
        let text = format!("{}{last}\n", self.text);
        match FilterSet::parse(&text, &Names::well_known()) {
            Ok((set, _)) => Ok(set),
            Err(remarks) => {
                anyhow::bail!("the benchmark's own rules: {:?}", remarks.faults.first())
            }
        }
    }

    /// The packets, one after another in one buffer.
    pub(super) fn packets(&mut self, traffic: Traffic) -> Packets {
        let strange = Sample {
            is_v6: false,
            protocol: 6,
            source: 0xc612_0000,
            destination: 0xc613_0000,
            ports: [600, 80],
            flags: 0x10,
        };
        let of_rules = self.samples.iter().filter(|sample| match traffic {
            Traffic::V4 => !sample.is_v6,
            Traffic::Mixed => true,
            Traffic::Strange => false,
        });
        let of_rules: Vec<Sample> = of_rules.copied().collect();
        let mut packets = Packets {
            octets: vec![0; PACKETS * ROOM],
            lengths: Vec::with_capacity(PACKETS),
        };
        for octets in packets.octets.chunks_exact_mut(ROOM) {
            let sample = match of_rules.len() {
                0 => Sample {
                    protocol: [6, 6, 17][self.random.below(3) as usize],
                    source: strange.source | self.random.below(1 << 16),
                    destination: strange.destination | self.random.below(1 << 16),
                    ports: [500 + self.random.below(500) as u16, 80],
                    ..strange
                },
                rules => of_rules[self.random.below(rules as u32) as usize],
            };
            packets.lengths.push(write_packet(&sample, octets));
        }
        packets
    }
}

/// The only filter of a set.
pub(super) fn only(set: &FilterSet) -> anyhow::Result<&Filter> {
    let first = set.iter().next();
    first
        .map(|(_, filter)| filter)
        .ok_or_else(|| anyhow::anyhow!("a course has a filter"))
}

/// Adds a rule of one of ten kinds, and returns a packet that matches it.
fn add_rule(kind: usize, random: &mut Random, text: &mut String) -> Sample {
    let mut sample = Sample {
        is_v6: matches!(kind, 7 | 8),
        protocol: [6, 17, 6, 6, 17, 6, 1, 17, 6, 47][kind],
        source: random.address(),
        destination: random.address(),
        ports: [0, 0].map(|_| 1_024 + random.below(60_000) as u16),
        flags: 0x10,
    };
    match kind {
        2 => sample.ports[1] = 443,
        8 => sample.flags = 2,
        _ => {}
    }
    text.push_str(&rule_text(kind, &sample));
    text.push('\n');
    sample
}

/// The text of a rule of that kind that matches a packet.
fn rule_text(kind: usize, sample: &Sample) -> String {
    let ip = |address: u32| Ipv4Addr::from_bits(address);
    let net = |address: u32, length: u32| {
        let host = 32 - length;
        format!("{}/{length}", ip(address >> host << host))
    };
    let net6 = |address: u32| format!("2001:db8:{:x}::/48", address >> 16);
    let (from, to) = (sample.source, sample.destination);
    let [sport, dport] = sample.ports;
    match kind {
        0 => format!("deny tcp from any to any port {dport}"),
        1 => format!("deny udp from {} to any", net(from, 24)),
        2 => {
            let (from, to) = (net(from, 16), ip(to));
            format!("accept tcp from {from} to {to} port 80,443 established")
        }
        3 => format!("deny ip from any to {}", ip(to)),
        4 => format!("accept udp from any port {sport} to {}", net(to, 20)),
        5 => {
            let last = dport.saturating_add(500);
            format!("deny tcp from {} to any port {dport}-{last}", ip(from))
        }
        6 => format!(
            "accept icmp from {} to any icmp-type 8,0,3/4",
            net(from, 24)
        ),
        7 => format!("deny udp from any to {} port {dport}", net6(to)),
        8 => format!("deny tcp from {} to any flags S/SA", net6(from)),
        _ => format!("deny gre from {} to {}", net(from, 24), ip(to)),
    }
}

/// Writes a packet to zeroed bytes; returns its length.
fn write_packet(sample: &Sample, octets: &mut [u8]) -> u8 {
    let content: u8 = 24;
    let start = if sample.is_v6 {
        octets[0] = 0x60;
        octets[5] = content;
        octets[6..8].copy_from_slice(&[sample.protocol, 64]);
        for (at, address) in [(8, sample.source), (24, sample.destination)] {
            octets[at..at + 4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            octets[at + 4..at + 8].copy_from_slice(&address.to_be_bytes());
        }
        40
    } else {
        octets[..4].copy_from_slice(&[0x45, 0, 0, 20 + content]);
        octets[8..10].copy_from_slice(&[64, sample.protocol]);
        octets[12..16].copy_from_slice(&sample.source.to_be_bytes());
        octets[16..20].copy_from_slice(&sample.destination.to_be_bytes());
        20
    };
    let upper = &mut octets[start..];
    if sample.protocol == 1 {
        upper[0] = 8;
    } else {
        upper[..2].copy_from_slice(&sample.ports[0].to_be_bytes());
        upper[2..4].copy_from_slice(&sample.ports[1].to_be_bytes());
        upper[13] = sample.flags;
    }
    start as u8 + content
}

/// Packets in buffers of equal size, one after another.
pub(super) struct Packets {
    octets: Vec<u8>,
    lengths: Vec<u8>,
}

impl Packets {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let buffers = self.octets.chunks_exact(ROOM).zip(&self.lengths);
        buffers.map(|(octets, &length)| &octets[..usize::from(length)])
    }

    /// How many packets each rule decides, in the order of the rules, the default last.
    pub(super) fn decided(&self, filter: &Filter) -> Vec<usize> {
        let mut decided = vec![0; filter.rules(Direction::In).len() + 1];
        for packet in self.iter().flat_map(Header::read) {
            decided[filter.matches(&packet, Direction::In).rule as usize] += 1;
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_for_the_rules_and_strange_ones_for_none() {
        let mut course = Course::new(200);
        let set = course.set("default accept").expect("rules");
        let filter = only(&set).expect("one");
        for traffic in [Traffic::V4, Traffic::Mixed] {
            let decided = course.packets(traffic).decided(filter);
            assert_eq!(decided[200], 0, "each is for a rule");
            let busy = decided.iter().filter(|count| **count > 0).count();
            assert!(busy > 100, "{busy} of 200 rules decide");
        }
        let decided = course.packets(Traffic::Strange).decided(filter);
        assert_eq!(decided[200], PACKETS);
    }
}
