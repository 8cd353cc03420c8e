//! Many rules in a row that each name one IPv4 host, as a search in halves: 10,000 hosts take 14 comparisons.

use std::collections::BTreeMap;
use std::net::IpAddr;

use qos::classify::{FlowMatch, Match, Prefix};

use crate::answer::Chooser;
use crate::asm::{Label, Op, Reg, Test, Width};
use crate::frame::{DESTINATION, SOURCE};
use crate::rules::{HEADERS, Header};

/// The fewest rules that are searched.
const LEAST: usize = 8;
/// The most hosts of one tree: jumps across it must not be too far.
const TREE_MAX: usize = 2_048;
/// The most hosts that are compared one by one.
const ROW: usize = 3;

/// Hosts and their classes.
pub(crate) struct Hosts {
    header: usize,
    field: i16,
    classes: Vec<(u32, u32)>,
}

impl Hosts {
    /// The rules at the beginning that each name one host of the same header and field, if there are several, and the
    /// rules after them.
    pub(crate) fn first_of(rules: &[(Match, u32)]) -> Option<(Self, &[(Match, u32)])> {
        let (header, field, _) = host(&rules.first()?.0)?;
        let mut classes = BTreeMap::new();
        let mut count = 0;
        for (rule, class) in rules {
            match host(rule) {
                Some((own, at, address)) if (own, at) == (header, field) => {
                    // The first rule for a host counts.
                    classes.entry(address).or_insert(*class);
                    count += 1;
                }
                _ => break,
            }
        }
        let hosts = Self {
            header,
            field,
            classes: classes.into_iter().collect(),
        };
        (count >= LEAST).then(|| (hosts, &rules[count..]))
    }
}

/// Header, field and address of a rule that names one IPv4 host and nothing else.
fn host(rule: &Match) -> Option<(usize, i16, u32)> {
    let header = HEADERS
        .iter()
        .position(|header| !(header.of)(rule).is_empty())?;
    let asked = (HEADERS[header].of)(rule);
    let (field, prefix) = match (asked.src, asked.dst) {
        (Some(prefix), None) => (SOURCE, prefix),
        (None, Some(prefix)) => (DESTINATION, prefix),
        _ => return None,
    };
    let IpAddr::V4(address) = prefix.address() else {
        return None;
    };
    let alone = |prefix: Prefix| {
        let mut flow = FlowMatch::default();
        match field {
            SOURCE => flow.src = Some(prefix),
            _ => flow.dst = Some(prefix),
        }
        flow
    };
    let mut only = Match::default();
    *[&mut only.outer, &mut only.tunnel, &mut only.innermost][header] = alone(prefix);
    (prefix.is_single() && *rule == only).then(|| (header, field, address.to_bits()))
}

impl Chooser<'_> {
    /// Ends the program if the header's field is one of the hosts.
    pub(crate) fn search(&mut self, hosts: &Hosts) {
        let Header { base, at, .. } = HEADERS[hosts.header];
        let at = at + hosts.field;
        let mut miss = self.asm.label();
        self.asm.load_apart(Reg::R0, base, at);
        self.asm.load(Width::Double, Reg::R2, base, at + 8);
        self.asm.mov(Reg::R1, Reg::R2);
        self.asm.op_value(Op::Rsh, Reg::R1, 32);
        // An IPv4 address is stored as a mapped one.
        self.asm.op_value(Op::Xor, Reg::R1, 0xffff);
        self.asm.op(Op::Or, Reg::R0, Reg::R1);
        self.asm.jump_if(Test::Ne, Reg::R0, 0, miss);
        let mut trees = hosts.classes.chunks(TREE_MAX).peekable();
        while let Some(tree) = trees.next() {
            let next = self.asm.label();
            if let (Some((last, _)), true) = (tree.last(), trees.peek().is_some()) {
                self.asm.jump_if_word(Test::Gt, Reg::R2, *last, next);
            }
            self.tree(tree, miss);
            if trees.peek().is_some() {
                // A jump behind all trees would be too far.
                self.asm.bind(miss);
                miss = self.asm.label();
                self.asm.jump(miss);
            }
            self.asm.bind(next);
        }
        self.asm.bind(miss);
    }

    fn tree(&mut self, hosts: &[(u32, u32)], miss: Label) {
        if hosts.len() <= ROW {
            for &(address, class) in hosts {
                let next = self.asm.label();
                self.asm.jump_if_word(Test::Ne, Reg::R2, address, next);
                self.class(class);
                self.asm.bind(next);
            }
            self.asm.jump(miss);
            return;
        }
        let (low, high) = hosts.split_at(hosts.len() / 2);
        let right = self.asm.label();
        // A comparison of the address itself would tell the verifier a range. Between neighbouring hosts it would know the
        // address then, and no longer take the addresses that packets of different tunnels have for the same.
        self.asm.mov(Reg::R1, Reg::R2);
        self.asm.op_value(Op::Xor, Reg::R1, 0);
        self.asm.jump_if_word(Test::Ge, Reg::R1, high[0].0, right);
        self.tree(low, miss);
        self.asm.bind(right);
        self.tree(high, miss);
    }
}
