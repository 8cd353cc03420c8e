//! Counts packets by kind, by encapsulation, and by the reason for skipping them.

use std::collections::BTreeMap;
use std::fmt;

use wire::link::LinkType;
use wire::packet::{Fragment, Layer, Packet, Skip};
use wire::tcp::TcpError;

/// Name of the count of packets whose checksum the sender's network card was to fill in.
pub const PARTIAL_CHECKSUMS: &str = "checksums left to the network card";

/// Counts of the whole input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Records read.
    pub(crate) records: u64,
    /// Packets with an IP header, which are the ones that tcptrace numbers.
    pub(crate) packets: u64,
    /// TCP packets of all parts.
    pub(crate) tcp_seen: u64,
    /// TCP packets analysed: those of this part.
    pub(crate) tcp: u64,
    /// UDP datagrams.
    pub(crate) udp: u64,
    /// Packets of other protocols.
    pub(crate) other: u64,
    /// IP fragments: the first ones, and later ones.
    pub(crate) fragments: [u64; 2],
    /// TCP segments put together from fragments, incomplete ones, and those with overlapping fragments.
    pub(crate) joined: u64,
    pub(crate) incomplete: u64,
    pub(crate) overlapping: u64,
    /// Fragments of a length or at an offset that the RFCs do not allow.
    pub(crate) invalid: u64,
    /// Packets too short for their TCP or UDP header, or for their TCP options.
    pub(crate) too_short: u64,
    /// TCP headers that contradict themselves.
    pub(crate) bad_tcp: u64,
    /// Wrong checksums of IP, TCP and UDP, if they are verified.
    pub(crate) bad_checksums: [u64; 3],
    /// TCP and UDP packets whose checksum was left to the sender's network card, if checksums are verified.
    pub(crate) partial_checksums: u64,
    /// Packets whose time is before the previous packet's.
    pub(crate) backwards: u64,
    /// Frames without an IP packet, by [`Skip::kind`].
    pub(crate) skipped: [u64; Skip::KINDS],
    /// Frames of unsupported link types.
    pub(crate) links: BTreeMap<LinkType, u64>,
    /// Packets by their encapsulations.
    pub(crate) layers: Encapsulations,
    /// Time of the first and the last packet with an IP header.
    pub(crate) first_time: Option<i64>,
    pub(crate) last_time: i64,
}

impl Tally {
    /// Adds the counts of another thread. The caller sets the times of the first and the last packet.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.records += other.records;
        self.packets += other.packets;
        self.tcp_seen += other.tcp_seen;
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.other += other.other;
        self.joined += other.joined;
        self.incomplete += other.incomplete;
        self.overlapping += other.overlapping;
        self.invalid += other.invalid;
        self.too_short += other.too_short;
        self.bad_tcp += other.bad_tcp;
        self.partial_checksums += other.partial_checksums;
        self.backwards += other.backwards;
        let pairs = self.fragments.iter_mut().zip(other.fragments);
        let pairs = pairs.chain(self.bad_checksums.iter_mut().zip(other.bad_checksums));
        for (own, others) in pairs.chain(self.skipped.iter_mut().zip(other.skipped)) {
            *own += others;
        }
        for (&link, &count) in &other.links {
            *self.links.entry(link).or_default() += count;
        }
        for &(stack, count) in &other.layers.counts {
            self.layers.add_stack(stack, count);
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn skip(&mut self, skip: Skip) {
        self.skipped[skip.kind()] += 1;
        if let Skip::UnknownLink(link) = skip
            && (self.links.len() < 64 || self.links.contains_key(&link))
        {
            *self.links.entry(link).or_default() += 1;
        }
    }

    /// A packet that is not a TCP segment to be analysed.
    #[inline(never)]
    pub(crate) fn not_tcp(&mut self, packet: &Packet<'_>, error: TcpError) {
        match error {
            TcpError::NotTcp if packet.protocol == wire::udp::PROTOCOL => self.udp += 1,
            TcpError::NotTcp => self.other += 1,
            TcpError::LaterFragment => {}
            TcpError::Truncated => self.too_short += 1,
            TcpError::BadOffset => self.bad_tcp += 1,
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn fragment(&mut self, fragment: Fragment) {
        match fragment {
            Fragment::Whole => {}
            Fragment::First => self.fragments[0] += 1,
            Fragment::Later => self.fragments[1] += 1,
        }
    }

    /// The counts that are not 0, with their names.
    pub(crate) fn lines(&self) -> Vec<(String, u64)> {
        let mut lines: Vec<(String, u64)> = vec![
            ("frames".into(), self.records),
            ("IP packets".into(), self.packets),
            ("TCP packets".into(), self.tcp_seen),
            ("UDP packets".into(), self.udp),
            ("packets of other protocols".into(), self.other),
            ("first fragments".into(), self.fragments[0]),
            ("later fragments".into(), self.fragments[1]),
            ("TCP segments put together".into(), self.joined),
            ("incomplete TCP segments".into(), self.incomplete),
            (
                "TCP segments with overlapping fragments".into(),
                self.overlapping,
            ),
            ("invalid fragments".into(), self.invalid),
            ("packets too short for their headers".into(), self.too_short),
            ("bad TCP headers".into(), self.bad_tcp),
            ("bad IP checksums".into(), self.bad_checksums[0]),
            ("bad TCP checksums".into(), self.bad_checksums[1]),
            ("bad UDP checksums".into(), self.bad_checksums[2]),
            (PARTIAL_CHECKSUMS.into(), self.partial_checksums),
            (
                "packets before their predecessor in time".into(),
                self.backwards,
            ),
        ];
        for (name, &count) in Skip::NAMES.iter().zip(&self.skipped) {
            lines.push((format!("frames skipped, {name}"), count));
        }
        for (link, &count) in &self.links {
            lines.push((format!("frames of link type {link}"), count));
        }
        for (path, count) in self.layers.iter() {
            lines.push((format!("packets in {path}"), count));
        }
        lines.retain(|&(_, count)| count > 0);
        lines
    }
}

/// Counts by stack of encapsulations, without identifiers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Encapsulations {
    counts: Vec<(Stack, u64)>,
    recent: usize,
}

/// Kinds of layers, four bits each, the outermost highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stack(u64);

/// Limit of distinct stacks.
const STACKS_MAX: usize = 256;

impl Encapsulations {
    /// Counts a packet.
    #[inline(never)]
    pub(crate) fn add(&mut self, layers: &[Layer]) {
        let stack = layers
            .iter()
            .fold(0, |stack, layer| stack << 4 | u64::from(kind(layer)));
        self.add_stack(Stack(stack), 1);
    }

    fn add_stack(&mut self, stack: Stack, count: u64) {
        if self
            .counts
            .get(self.recent)
            .is_none_or(|&(known, _)| known != stack)
        {
            let found = self.counts.iter().position(|&(known, _)| known == stack);
            self.recent = match found {
                Some(at) => at,
                None if self.counts.len() < STACKS_MAX => {
                    self.counts.push((stack, 0));
                    self.counts.len() - 1
                }
                None => STACKS_MAX - 1,
            };
        }
        self.counts[self.recent].1 += count;
    }

    /// Each stack as a number, and its packets.
    pub(crate) fn to_parts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts
            .iter()
            .map(|&(Stack(stack), count)| (stack, count))
    }

    /// Adds a pair of [`Encapsulations::to_parts`].
    pub(crate) fn add_part(&mut self, (stack, count): (u64, u64)) {
        self.add_stack(Stack(stack), count);
    }

    /// The stacks and their packets, the most frequent first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let mut counts = self.counts.clone();
        counts.sort_by_key(|&(stack, count)| (std::cmp::Reverse(count), stack.0));
        counts
            .into_iter()
            .map(|(stack, count)| (stack.to_string(), count))
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = (0..16).rev().map(|at| self.0 >> (4 * at) & 15);
        for (index, kind) in kinds.filter(|&kind| kind > 0).enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(KINDS.get(kind as usize - 1).unwrap_or(&"?"))?;
        }
        Ok(())
    }
}

const KINDS: [&str; 14] = [
    "vlan", "mpls", "pppoe", "ppp", "ipv4", "ipv6", "gre", "pptp", "vxlan", "geneve", "l2tp",
    "l2tpv3", "gtp", "etherip",
];

/// The place of a layer's name in [`KINDS`], from 1.
fn kind(layer: &Layer) -> u8 {
    match layer {
        Layer::Vlan { .. } => 1,
        Layer::Mpls { .. } => 2,
        Layer::Pppoe { .. } => 3,
        Layer::Ppp => 4,
        Layer::Ipv4 { .. } => 5,
        Layer::Ipv6 { .. } => 6,
        Layer::Gre { .. } => 7,
        Layer::Pptp { .. } => 8,
        Layer::Vxlan { .. } => 9,
        Layer::Geneve { .. } => 10,
        Layer::L2tp { version: 2, .. } => 11,
        Layer::L2tp { .. } => 12,
        Layer::Gtp { .. } => 13,
        Layer::EtherIp => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_what_they_came_in() {
        let mut layers = Encapsulations::default();
        let vlan = Layer::Vlan {
            id: 7,
            tpid: 0x8100,
        };
        let pppoe = Layer::Pppoe { session: 3 };
        layers.add(&[vlan, pppoe]);
        layers.add(&[vlan]);
        layers.add(&[vlan, Layer::Pppoe { session: 4 }]);
        let counts: Vec<_> = layers.iter().collect();
        assert_eq!(counts, [("vlan, pppoe".into(), 2), ("vlan".into(), 1)]);
    }

    #[test]
    fn kinds_past_the_limit_share_a_count() {
        let mut layers = Encapsulations::default();
        let all = [Layer::Ppp, Layer::EtherIp, Layer::Gre { key: None }];
        for number in 0..1000usize {
            let stack: Vec<Layer> = (0..7).map(|at| all[number / 3usize.pow(at) % 3]).collect();
            layers.add(&stack);
        }
        assert_eq!(layers.iter().count(), STACKS_MAX);
        assert_eq!(layers.iter().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}
