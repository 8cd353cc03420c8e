//! The same packets through Linux's flow classifier (tc-flow(8)) and through ours.

use crate::kernel::{self, Experiment, Outcome, Timed};
use crate::runner::Bench;
use anyhow::{Result, ensure};
use qos::classify::{Hash, Key, KeySet, Map};
use std::collections::HashMap;
use std::fmt::Write as _;
use wire::flow::Keys;

/// Classes in the guest; a packet's delay identifies its class.
const CLASSES: u32 = 16;

/// How much longer each class delays a packet than the previous one.
const STEP_MS: u32 = 4;

/// Packets of each kind for each filter.
const EACH: usize = 8;

/// Random numbers, the same in each run.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u32 {
        // Knuth's MMIX generator; the upper half of its state.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next().to_be_bytes()[3])
    }
}

/// Kinds of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Udp,
    Tcp,
    Udp6,
    Icmp,
    Protocol200,
    Fragment,
    IpIp,
    SixInFour,
    FourInSix,
    SixInSix,
    Gre,
    L2tp,
    L2tpInIpIp,
    Vxlan,
}

pub(super) const KINDS: [Kind; 14] = [
    Kind::Udp,
    Kind::Tcp,
    Kind::Udp6,
    Kind::Icmp,
    Kind::Protocol200,
    Kind::Fragment,
    Kind::IpIp,
    Kind::SixInFour,
    Kind::FourInSix,
    Kind::SixInSix,
    Kind::Gre,
    Kind::L2tp,
    Kind::L2tpInIpIp,
    Kind::Vxlan,
];

impl Kind {
    /// For a protocol without ports, Linux uses the address of a socket or a route instead, which changes with
    /// each boot.
    fn has_ports(self) -> bool {
        !matches!(self, Kind::Icmp | Kind::Protocol200 | Kind::Fragment)
    }

    /// The keys that the kernel should find. It does not look into VXLAN, nor into L2TP, even inside a tunnel that it does look
    /// into, where [`Keys::as_kernel`] uses the L2TP content.
    fn kernel_keys(self, packet: &[u8]) -> Keys {
        match self {
            Kind::L2tpInIpIp => Keys::read(&packet[20..]).as_kernel(),
            _ => Keys::read(packet).as_kernel(),
        }
    }

    pub(super) fn packet(self, chance: &mut Chance) -> Vec<u8> {
        let transport = ports(chance);
        match self {
            Kind::Udp => ipv4(chance, 17, 0, &transport),
            Kind::Tcp => ipv4(chance, 6, 0, &transport),
            Kind::Udp6 => ipv6(chance, 17, &transport),
            Kind::Icmp => ipv4(chance, 1, 0, &[8, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]),
            Kind::Protocol200 => ipv4(chance, 200, 0, &transport),
            // The second fragment of several.
            Kind::Fragment => ipv4(chance, 17, 0x2010, &transport),
            Kind::IpIp => {
                let inner = Kind::Udp.packet(chance);
                ipv4(chance, 4, 0, &inner)
            }
            Kind::SixInFour => {
                let inner = Kind::Udp6.packet(chance);
                ipv4(chance, 41, 0, &inner)
            }
            Kind::FourInSix => {
                let inner = Kind::Tcp.packet(chance);
                ipv6(chance, 4, &inner)
            }
            Kind::SixInSix => {
                let inner = Kind::Udp6.packet(chance);
                ipv6(chance, 41, &inner)
            }
            Kind::L2tp => {
                let inner = Kind::Udp.packet(chance);
                let length = u16::try_from(8 + 10 + inner.len()).unwrap_or(u16::MAX);
                let mut content = [1_701_u16, 1_701, length, 0, 2, 7, 8, 0xff03, 0x21]
                    .map(u16::to_be_bytes)
                    .concat();
                content.extend_from_slice(&inner);
                ipv4(chance, 17, 0, &content)
            }
            Kind::L2tpInIpIp => {
                let inner = Kind::L2tp.packet(chance);
                ipv4(chance, 4, 0, &inner)
            }
            Kind::Vxlan => {
                let inner = Kind::Udp.packet(chance);
                let length = u16::try_from(8 + 8 + 14 + inner.len()).unwrap_or(u16::MAX);
                let mut content = [50_000_u16, 4_789, length, 0, 0x0800, 0, 0, 0x100]
                    .map(u16::to_be_bytes)
                    .concat();
                content.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
                content.extend_from_slice(&inner);
                ipv4(chance, 17, 0, &content)
            }
            Kind::Gre => {
                let inner = Kind::Udp.packet(chance);
                ipv4(chance, 47, 0, &[&[0, 0, 8, 0], &inner[..]].concat())
            }
        }
    }
}

/// Random ports, and the other fields that a valid transport header needs.
fn ports(chance: &mut Chance) -> Vec<u8> {
    let mut header = vec![0; 36];
    header[..4].copy_from_slice(&chance.octets::<4>());
    // UDP's length; in TCP, part of the sequence number.
    header[5] = 36;
    // TCP's header length and ACK.
    header[12] = 0x50;
    header[13] = 0x10;
    header
}

fn ipv4(chance: &mut Chance, protocol: u8, fragment: u16, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    let length = u16::try_from(20 + content.len()).unwrap_or(u16::MAX);
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[4..6].copy_from_slice(&chance.octets::<2>());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[8] = 64;
    packet[9] = protocol;
    let [a, b, c, d] = chance.octets();
    packet[12..16].copy_from_slice(&[10, 1, a, b]);
    packet[16..20].copy_from_slice(&[10, 9, c, d]);
    packet.extend_from_slice(content);
    packet
}

fn ipv6(chance: &mut Chance, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[6] = protocol;
    packet[7] = 64;
    for (at, subnet) in [(8, 1), (24, 9)] {
        packet[at] = 0xfd;
        packet[at + 1] = subnet;
        packet[at + 8..at + 16].copy_from_slice(&chance.octets::<8>());
    }
    packet.extend_from_slice(content);
    packet
}

/// Some packets of each kind. Each payload ends in zeros, the last four of which the sender replaces by a
/// number.
fn packets(chance: &mut Chance) -> (Vec<Kind>, Vec<Timed>) {
    let kinds: Vec<Kind> = KINDS.iter().flat_map(|&kind| [kind; EACH]).collect();
    let packets = (0..)
        .zip(&kinds)
        .map(|(number, kind)| Timed {
            at_us: 1_000 * number,
            packet: kind.packet(chance),
        })
        .collect();
    (kinds, packets)
}

/// Sixteen classes with different delays, behind one filter.
fn classes(filter: &str) -> String {
    let mut setup =
        String::from("tc -batch - <<END\nqdisc add dev a0 root handle 1: htb default 30\n");
    let one = |setup: &mut String, minor: u32, delay_ms: u32| {
        *setup += &format!(
            "class add dev a0 parent 1: classid 1:{minor:x} htb rate 1gbit quantum 60000\n\
             qdisc add dev a0 parent 1:{minor:x} netem delay {delay_ms}ms limit 1000\n"
        );
    };
    (1..=CLASSES).for_each(|minor| one(&mut setup, minor, minor * STEP_MS));
    one(&mut setup, 0x30, 2 * CLASSES * STEP_MS);
    setup + &format!("filter add dev a0 parent 1: handle 1 flow {filter}\nEND")
}

/// The class of each packet; 0 for none of the sixteen.
fn seen(outcome: &Outcome) -> Result<Vec<u32>> {
    let delay = |fate: &kernel::Fate| fate.arrived_ns.map(|at| at - fate.sent_ns);
    outcome
        .fates
        .iter()
        .map(|fate| {
            let delay = delay(fate).ok_or_else(|| anyhow::anyhow!("a packet did not arrive"))?;
            let class = u32::try_from(delay / (u64::from(STEP_MS) * 1_000_000))?;
            Ok(if class > CLASSES { 0 } else { class })
        })
        .collect()
}

/// `map` with every key and random numbers, and `hash`.
pub(crate) fn classify_alike(bench: &Bench<'_>) -> Result<()> {
    let mut chance = Chance(1);
    let keys = [Key::Src, Key::Dst, Key::Proto, Key::ProtoSrc, Key::ProtoDst];
    let mut wanted = Vec::new();
    let mut experiments = Vec::new();
    for round in 0..2 {
        for key in keys {
            let bits = |chance: &mut Chance| chance.next() & 0xffff;
            let map = Map {
                mask: if round == 0 {
                    u32::MAX
                } else {
                    bits(&mut chance) | 0xff
                },
                xor: if round == 0 { 0 } else { bits(&mut chance) },
                rshift: if round == 0 { 0 } else { chance.next() % 5 },
                addend: if round == 0 { 0 } else { chance.next() % 1_000 },
                divisor: CLASSES,
                ..Map::new(key)
            };
            let filter = format!(
                "map key {key} and {:#x} xor {:#x} rshift {} addend {} divisor {CLASSES} baseclass 1:1",
                map.mask, map.xor, map.rshift, map.addend
            );
            let (kinds, packets) = packets(&mut chance);
            wanted.push((map, kinds));
            experiments.push(Experiment {
                setup: classes(&filter),
                packets,
                seconds: 1,
            });
        }
    }
    let (hashing, flows) = hash_experiment();
    experiments.push(hashing);
    let outcomes = kernel::run(bench, &experiments)?;
    let mut notes = String::new();
    for (((map, kinds), experiment), outcome) in wanted.iter().zip(&experiments).zip(&outcomes) {
        let port_key = matches!(map.key, Key::ProtoSrc | Key::ProtoDst);
        let (mut same, mut unlike) = (0, HashMap::new());
        for ((class, timed), &kind) in seen(outcome)?.iter().zip(&experiment.packets).zip(kinds) {
            let ours = map.class(&kind.kernel_keys(&timed.packet)) & 0xffff;
            if ours == *class {
                same += 1;
            } else if port_key && !kind.has_ports() {
                *unlike.entry(kind).or_insert(0) += 1;
            } else {
                anyhow::bail!(
                    "{map:?}: {kind:?}: the kernel says {class}, we {ours}: {:02x?}",
                    timed.packet
                );
            }
        }
        writeln!(
            notes,
            "{map:?}: the same class for {same}, for ports of what has none another: {unlike:?}"
        )?;
    }
    std::fs::write(bench.directory.join("compared.txt"), notes)?;
    let hashing = experiments.len() - 1;
    compare_hashes(&experiments[hashing].packets, &outcomes[hashing], flows)
}

/// `hash`: packets of one flow to the kernel are one flow to us, and vice versa.
fn hash_experiment() -> (Experiment, usize) {
    let mut chance = Chance(2);
    let flows: Vec<Vec<u8>> = (0..40).map(|_| Kind::Udp.packet(&mut chance)).collect();
    // Each flow five times, with different lengths, since those are not keys.
    let packets = (0..200_usize)
        .map(|number| Timed {
            at_us: 1_000 * number as u64,
            packet: [
                &flows[number % flows.len()][..],
                &vec![0; number / flows.len()],
            ]
            .concat(),
        })
        .collect();
    let setup = classes(&format!(
        "hash keys src,dst,proto,proto-src,proto-dst divisor {CLASSES} baseclass 1:1"
    ));
    let experiment = Experiment {
        setup,
        packets,
        seconds: 1,
    };
    (experiment, flows.len())
}

fn compare_hashes(packets: &[Timed], outcome: &Outcome, flows: usize) -> Result<()> {
    let keys: KeySet = "src,dst,proto,proto-src,proto-dst".parse()?;
    let hash = Hash::new(keys, CLASSES, 7, 1);
    let theirs = seen(outcome)?;
    let ours: Vec<u32> = packets
        .iter()
        .map(|timed| hash.class(&Keys::read(&timed.packet)))
        .collect();
    for (who, classes) in [("the kernel", &theirs), ("we", &ours)] {
        for (number, class) in classes.iter().enumerate() {
            ensure!(
                classes[number % flows] == *class && (1..=CLASSES).contains(class),
                "{who}: packets of flow {} are in classes {} and {class}",
                number % flows,
                classes[number % flows]
            );
        }
        let used = (1..=CLASSES)
            .filter(|class| classes.contains(class))
            .count();
        // Forty random flows leave more than seven of sixteen classes empty in fewer than one of a million
        // cases.
        ensure!(used >= 9, "{who}: forty flows are in {used} classes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known difference: once it disappears, [`Kind::kernel_keys`] has a superfluous line.
    #[test]
    fn ours_goes_on_into_l2tp_behind_a_tunnel() {
        let packet = Kind::L2tpInIpIp.packet(&mut Chance(3));
        let ours = Keys::read(&packet).as_kernel();
        assert_ne!(ours, Kind::L2tpInIpIp.kernel_keys(&packet));
        assert_eq!(
            Kind::L2tpInIpIp.kernel_keys(&packet).outer.source_port,
            1_701
        );
    }
}
