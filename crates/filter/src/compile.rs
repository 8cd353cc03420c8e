//! Compiles rules into tables that match a packet against all rules at once. Start reading at
//! [`Compiled::first_match`].
//!
//! Each of five parts of a packet (protocol with TCP flags, source, destination, source port, destination port)
//! selects a row of bits, one bit per rule that the part could match. The rules that match are the bits common
//! to all rows, and the lowest such bit is the first match. A row starts with a summary that has one bit per
//! non-zero word (aggregated bit vectors, F. Baboescu and G. Varghese, SIGCOMM 2001), so that even with 4,096
//! rules only a few words are read. Up to 64 rules need one word, which is stored directly in place of the
//! row's index.
//!
//! A table omits rules that cannot match a packet of its IP version.

mod ranges;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use wire::ip::Header;
use wire::packet::Fragment;
use wire::tcp;

use crate::rule::{Addresses, Rule, Span};
use ranges::{Interval, Number, Ports, Ranges};

/// The table of one direction and one IP version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiled<A> {
    /// Words of a row after its summary; a single word has no summary.
    words: usize,
    /// All rows, deduplicated, if they have more than one word.
    rows: Box<[u64]>,
    /// The row that every rule's bit is set in.
    every: u64,
    /// Index into `kinds` by protocol; the second half, by TCP flags.
    by_kind: Box<[u16; 512]>,
    /// Index into `kinds` by protocol, for later fragments.
    by_fragment: Box<[u16; 256]>,
    /// The rows of kinds.
    kinds: Box<[u64]>,
    source: Ranges<A>,
    destination: Ranges<A>,
    source_port: Ports,
    destination_port: Ports,
    /// The rule for each bit; after the last rule, the value for no match.
    rules: Box<[u32]>,
}

/// The row of each part of a packet: its start, or the word itself if rows have one word.
#[derive(Clone, Copy)]
struct Part {
    kind: u64,
    source: u64,
    destination: u64,
    source_port: u64,
    destination_port: u64,
}

/// An address of one IP version, in the form that a table stores.
pub(crate) trait Address: Number {
    const VERSION: u8;
    fn of(number: u128) -> Self;
}

impl Address for u32 {
    const VERSION: u8 = 4;

    #[inline(always)]
    fn of(number: u128) -> Self {
        number as u32
    }
}

impl Address for u128 {
    const VERSION: u8 = 6;

    #[inline(always)]
    fn of(number: u128) -> Self {
        number
    }
}

impl<A: Address> Compiled<A> {
    /// The first matching rule, as an index into those given to [`Compiled::new`], or their count if none
    /// matches.
    #[inline]
    pub(crate) fn first_match(&self, packet: &Header) -> u32 {
        let source = self.source.find(A::of(packet.source));
        let destination = self.destination.find(A::of(packet.destination));
        let protocol = usize::from(packet.protocol);
        let rows = if packet.fragment == Fragment::Later {
            Part {
                kind: self.kinds[usize::from(self.by_fragment[protocol])],
                source,
                destination,
                source_port: self.every,
                destination_port: self.every,
            }
        } else {
            // Whether it is TCP is not branched on, to avoid mispredictions. No other protocol has flags.
            let is_tcp = usize::from(packet.protocol == tcp::PROTOCOL);
            let kind = protocol + is_tcp * (256 - usize::from(tcp::PROTOCOL));
            let kind = (kind + usize::from(packet.tcp_flags)) & 511;
            Part {
                kind: self.kinds[usize::from(self.by_kind[kind])],
                source,
                destination,
                source_port: self.source_port.find(packet.source_port),
                destination_port: self.destination_port.find(packet.destination_port),
            }
        };
        let bit = if self.words == 1 {
            let addresses = rows.source & rows.destination;
            let ports = rows.source_port & rows.destination_port;
            lowest(rows.kind & addresses & ports)
        } else {
            self.search(rows)
        };
        self.rules[bit]
    }

    /// The lowest bit set in all rows, or the one after the last.
    #[inline]
    fn search(&self, rows: Part) -> usize {
        let mut summary = self.common(rows, 0);
        while summary != 0 {
            let word = lowest(summary);
            let bits = self.common(rows, 1 + word);
            if bits != 0 {
                return word * 64 + lowest(bits);
            }
            summary &= summary - 1;
        }
        self.words * 64
    }

    /// The bits common to all rows in one of their words.
    #[inline(always)]
    fn common(&self, rows: Part, word: usize) -> u64 {
        let of = |row: u64| self.rows[row as usize + word];
        let addresses = of(rows.source) & of(rows.destination);
        let ports = of(rows.source_port) & of(rows.destination_port);
        of(rows.kind) & addresses & ports
    }

    /// Builds the table of the rules that can match packets of this version.
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let here: Vec<(u32, &Rule)> = (0..)
            .zip(rules)
            .filter(|(_, rule)| rule.has_version(A::VERSION))
            .collect();
        let mut rows = Rows::new(here.len());
        let mut kinds = Vec::new();
        let mut kind = |has: &dyn Fn(&Rule) -> bool| {
            let row = rows.add_bits(here.iter().map(|(_, rule)| has(rule)));
            let known = kinds.iter().position(|known| *known == row);
            known.unwrap_or_else(|| {
                kinds.push(row);
                kinds.len() - 1
            }) as u16
        };
        let mut by_kind = Box::new([0; 512]);
        let mut by_fragment = Box::new([0; 256]);
        for number in 0..=u8::MAX {
            let at = usize::from(number);
            by_kind[at] = kind(&|rule| !rule.fragment && rule.has_protocol(number));
            by_kind[256 + at] = kind(&|rule| !rule.fragment && rule.has_tcp(number));
            by_fragment[at] = kind(&|rule| rule.has_later_fragments() && rule.has_protocol(number));
        }
        let addresses = |list: &[Addresses]| -> Vec<Interval<A>> {
            let here = list.iter().filter(|one| one.version == A::VERSION);
            here.map(|one| (A::of(one.first), A::of(one.last)))
                .collect()
        };
        let ports = |list: &[Span]| list.to_vec();
        // ICMP types and codes take the place of a destination port: no rule has both.
        let second = |rule: &Rule| match rule.icmp.is_empty() {
            true => ports(&rule.destination_ports),
            false => ports(&rule.icmp),
        };
        let each = || here.iter().map(|(_, rule)| *rule);
        Self {
            words: rows.words,
            every: rows.add_bits(here.iter().map(|_| true)),
            by_kind,
            by_fragment,
            kinds: kinds.into(),
            source: Ranges::new(each().map(|rule| addresses(&rule.source)), &mut rows),
            destination: Ranges::new(each().map(|rule| addresses(&rule.destination)), &mut rows),
            source_port: Ports::new(each().map(|rule| ports(&rule.source_ports)), &mut rows),
            destination_port: Ports::new(each().map(second), &mut rows),
            rules: here
                .iter()
                .map(|(index, _)| *index)
                .chain(std::iter::repeat(rules.len() as u32))
                .take(rows.words * 64 + 1)
                .collect(),
            rows: rows.all.into(),
        }
    }

    /// Its size in bytes.
    pub(crate) fn octets(&self) -> usize {
        size_of_val(&*self.rows)
            + size_of_val(&*self.rules)
            + size_of_val(&*self.by_kind)
            + size_of_val(&*self.by_fragment)
            + size_of_val(&*self.kinds)
            + self.source.octets()
            + self.destination.octets()
            + self.source_port.octets()
            + self.destination_port.octets()
    }
}

#[inline(always)]
fn lowest(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}

/// Rows while a table is built.
struct Rows {
    words: usize,
    all: Vec<u64>,
    /// Where a row with these bits is stored.
    known: HashMap<Box<[u64]>, u64>,
}

impl Rows {
    fn new(rules: usize) -> Self {
        Self {
            words: rules.div_ceil(64).max(1),
            all: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Adds a row with these bits, one per rule.
    fn add_bits(&mut self, bits: impl Iterator<Item = bool>) -> u64 {
        let mut words = vec![0_u64; self.words];
        for (rule, bit) in bits.enumerate() {
            words[rule / 64] |= u64::from(bit) << (rule % 64);
        }
        self.add(&words)
    }

    /// Adds a row with these words; returns its position, or the only word.
    fn add(&mut self, words: &[u64]) -> u64 {
        if let [bits] = *words {
            return bits;
        }
        if let Some(&row) = self.known.get(words) {
            return row;
        }
        let row = self.all.len() as u64;
        let bits = words.iter().zip(0..);
        let summary = bits.map(|(&word, at)| u64::from(word != 0) << at);
        self.all.push(summary.fold(0, |all, bit| all | bit));
        self.all.extend_from_slice(words);
        self.known.insert(words.into(), row);
        row
    }
}
