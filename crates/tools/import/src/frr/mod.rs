//! FRR: the BGP parts of `frr.conf` or `bgpd.conf`.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | every command and what becomes of it |
//! | `peers` | the commands of `router bgp`, and neighbours with their groups |
//! | `policy` | prefix lists, other lists and route-maps |

mod peers;
mod policy;
mod rules;

use std::collections::BTreeMap;

use crate::files::Files;
use crate::pattern;
use crate::report::{Fate, Place};
use crate::{Import, Rule};

/// Where the main file is on a host that runs FRR.
pub const USUAL: &[&str] = &["/etc/frr/frr.conf", "/etc/frr/bgpd.conf"];

/// The commands outside of blocks, in `router bgp`, and in a route-map.
pub const RULES: [&[Rule]; 3] = [rules::TOP, rules::BGP, rules::MAP];

const COMMENTS: &[u8] = b"!#";

/// The block that a line is in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Top,
    Bgp,
    /// An address family of BGP: `ipv4` or `ipv6`.
    Family(&'static str),
    /// The number of an entry of a route-map.
    Map(usize),
    /// An address family that headend does not have.
    LostFamily,
    /// A block whose lines all have one fate, and why.
    Other(Fate, &'static str),
}

/// The import while it is made.
struct Work {
    import: Import,
    block: Block,
    asn: Option<(i64, Place)>,
    default_ipv4: bool,
    needs_policy: bool,
    peers: Vec<peers::Peer>,
    ranges: Vec<(String, String, Place)>,
    prefix_lists: BTreeMap<String, Vec<policy::Entry>>,
    as_path_lists: BTreeMap<String, Vec<policy::Entry>>,
    community_lists: BTreeMap<String, Vec<policy::Entry>>,
    maps: Vec<policy::MapEntry>,
}

/// Reads the files one after the other, as if they were one.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given
        .first()
        .map_or("nothing", |main| &main.name)
        .to_owned();
    let mut work = Work {
        import: Import::new("frr", &name),
        block: Block::Top,
        asn: None,
        default_ipv4: true,
        needs_policy: true,
        peers: Vec::new(),
        ranges: Vec::new(),
        prefix_lists: BTreeMap::new(),
        as_path_lists: BTreeMap::new(),
        community_lists: BTreeMap::new(),
        maps: Vec::new(),
    };
    for file in &given {
        work.block = Block::Top;
        file.report_bad_lines(&mut work.import.report);
        for (number, line) in file.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words
                .first()
                .is_some_and(|word| !word.starts_with(['!', '#']))
            {
                work.line(&words, line.starts_with([' ', '\t']), &file.at(number));
            }
        }
    }
    work.finish();
    work.import
}

impl Work {
    fn line(&mut self, words: &[&str], is_indented: bool, at: &Place) {
        if self.block == Block::LostFamily && self.lost_family(words, is_indented, at) {
            return;
        }
        let rules = match self.block {
            Block::Top | Block::LostFamily => return self.top(words, at),
            Block::Bgp | Block::Family(_) => rules::BGP,
            Block::Map(_) => rules::MAP,
            Block::Other(fate, why) => {
                let is_end = matches!(words, ["exit" | "end" | "exit-vrf"]);
                if is_end || is_indented || pattern::find(rules::TOP, words).is_none() {
                    self.import.report.line(at, "", fate, why);
                    if is_end {
                        self.block = Block::Top;
                    }
                    return;
                }
                return self.top(words, at);
            }
        };
        // A line that is not indented may start a block of its own.
        let plain = if let ["no", rest @ ..] = words {
            rest
        } else {
            words
        };
        let literal = |rules| {
            let whole = pattern::find(rules, words).map(|found| found.literal);
            whole.or_else(|| pattern::find(rules, plain).map(|found| found.literal))
        };
        if !is_indented && literal(rules::TOP) > literal(rules) {
            return self.top(words, at);
        }
        let Some(found) = pattern::settle(rules, words, at, &mut self.import.report) else {
            self.settled(words, at);
            return;
        };
        match self.block {
            Block::Map(entry) => self.maps[entry].lines.push(policy::MapLine {
                words: words.iter().map(|&word| word.to_owned()).collect(),
                at: at.clone(),
            }),
            _ if found.rest.len() < found.rule.words
                && found.rule.words < 2
                && found.rule.name != "neighbor PEER allowas-in"
                && found.rule.name != "neighbor PEER ebgp-multihop" =>
            {
                self.import
                    .report
                    .unknown(at, found.rule.name, "the value is missing");
            }
            _ => self.bgp(&found, at),
        }
    }

    /// What a command that is no key still changes.
    fn settled(&mut self, words: &[&str], at: &Place) {
        if matches!(words, ["exit" | "exit-address-family"]) {
            self.block = match self.block {
                Block::Family(_) => Block::Bgp,
                _ => Block::Top,
            };
        }
        if let [
            "neighbor",
            peer,
            "distribute-list" | "filter-list",
            ..,
            direction,
        ] = words
        {
            self.close(peer, direction, at);
        }
    }

    /// A line of an address family that headend does not have; returns whether that is all.
    fn lost_family(&mut self, words: &[&str], is_indented: bool, at: &Place) -> bool {
        let is_top = !is_indented && pattern::find(rules::TOP, words).is_some();
        match words[0] {
            "address-family" => {
                self.block = Block::Bgp;
                return false;
            }
            "exit" | "exit-address-family" => {
                let why = "the end of a block";
                self.import.report.line(at, words[0], Fate::Kept, why);
                self.block = Block::Bgp;
            }
            _ if is_top => self.top(words, at),
            _ => self.import.report.lost(at, "", peers::FAMILIES),
        }
        true
    }

    fn top(&mut self, words: &[&str], at: &Place) {
        const NO_BGP: &str = "in a block that is not part of BGP";
        self.block = Block::Top;
        let Some(found) = pattern::settle(rules::TOP, words, at, &mut self.import.report) else {
            self.block = match words {
                ["rpki", ..] => Block::Other(Fate::NotSupported, "see bgp.roas"),
                [
                    "interface" | "router" | "vrf" | "line" | "key" | "nexthop-group" | "pbr-map",
                    ..,
                ] => Block::Other(Fate::NoEffect, NO_BGP),
                _ => Block::Top,
            };
            return;
        };
        let name = found.names.first().copied().unwrap_or_default();
        match found.rule.name {
            "router bgp" => self.router(found.rest, at),
            "route-map NAME" => self.map(name, found.rest, at),
            "ip prefix-list NAME" | "ipv6 prefix-list NAME" => {
                Self::list(
                    &mut self.import,
                    &mut self.prefix_lists,
                    name,
                    found.rest,
                    at,
                    found.rule.name,
                );
            }
            "bgp as-path access-list NAME" | "ip as-path access-list NAME" => {
                Self::list(
                    &mut self.import,
                    &mut self.as_path_lists,
                    name,
                    found.rest,
                    at,
                    found.rule.name,
                );
            }
            option => {
                let rest = match found.rest {
                    ["standard" | "expanded", rest @ ..] => rest,
                    rest => rest,
                };
                let Some((name, entry)) = rest.split_first() else {
                    return self
                        .import
                        .report
                        .unknown(at, option, "the list has no name");
                };
                Self::list(
                    &mut self.import,
                    &mut self.community_lists,
                    name,
                    entry,
                    at,
                    option,
                );
            }
        }
    }

    fn router(&mut self, rest: &[&str], at: &Place) {
        let lost = "headend has one routing table; only the first router bgp is imported";
        match rest {
            [asn] | [asn, "as-notation", _] => {
                let asn = asn.parse::<u32>().ok().map(i64::from);
                match (asn, &self.asn) {
                    (Some(asn), None) => {
                        self.asn = Some((asn, at.clone()));
                        self.import.config.set("bgp", "asn", asn, at);
                        self.import.report.key(at, "router bgp", &["bgp.asn"], "");
                        let note = "zebra installs routes in the kernel";
                        self.import.config.note("bgp", "install", true, note);
                        self.block = Block::Bgp;
                    }
                    (Some(asn), Some((known, _))) if asn == *known => {
                        self.import.report.key(at, "router bgp", &["bgp.asn"], "");
                        self.block = Block::Bgp;
                    }
                    (Some(_), Some(_)) => {
                        self.import.report.lost(at, "router bgp", lost);
                        self.block = Block::Other(Fate::NotSupported, lost);
                    }
                    (None, _) => {
                        self.import
                            .report
                            .unknown(at, "router bgp", "not the number of an AS");
                        self.block = Block::Other(Fate::NotSupported, "in a block without an AS");
                    }
                }
            }
            _ => {
                self.import.report.lost(at, "router bgp", lost);
                self.block = Block::Other(Fate::NotSupported, lost);
            }
        }
    }

    fn finish(&mut self) {
        let Some((_, place)) = self.asn.clone() else {
            return self.unused_policies();
        };
        self.finish_peers();
        self.unused_policies();
        crate::bgp::router_id(&mut self.import, &place, "router bgp");
    }
}
