//! Builds the queueing disciplines of a policy.

use wire::flow::Dscp;

use super::Policy;
use super::classes::{Class, First, share_of};
use super::shape::{Queue, home, is_same};
use crate::classify::{FlowMatch, Match, Ports};
use crate::fifo;
use crate::htb::{ClassOptions, burst_of};
use crate::queue::{Given, LimitBy};
use crate::tree::{Classifier, HtbSpec, Spec};

/// Class numbers: the link, the lowest number of a `[[first]]` class, the default class, and the lowest number of a
/// `[[class]]`.
const ROOT: u16 = 0x1;
const FIRST: u16 = 0x10;
pub(super) const REST: u16 = 0x20;
const CLASS: u16 = 0x30;
/// Maximum number of `[[first]]` sections with a share. Each of them gets a class of its own.
pub(super) const OWN_SHARES_MAX: usize = (REST - FIRST - 1) as usize;

/// DSCPs of calls and games, which the template "gamer" prioritises.
const LIVELY: [u8; 8] = [46, 44, 32, 40, 48, 34, 36, 38];

/// Builds the class tree of one direction.
struct Builder<'p> {
    policy: &'p Policy,
    is_up: bool,
    link_bps: u64,
    /// Length of the longest packet, in bytes on the line.
    mtu: u32,
    classes: Vec<ClassOptions>,
    leaves: Vec<(u16, Spec)>,
    rules: Vec<(Match, u32)>,
}

/// The disciplines for one direction of `policy`.
pub(super) fn spec(policy: &Policy, is_up: bool) -> Spec {
    let rate = if is_up {
        policy.up_bps()
    } else {
        policy.down_bps()
    };
    let rate = rate.filter(|_| !policy.shape.template.is_none());
    let Some(link_bps) = rate else {
        return Spec::Fifo(fifo::Limit::Packets(1_000));
    };
    let mut builder = Builder {
        policy,
        is_up,
        link_bps,
        mtu: policy.overhead().on_line(policy.mtu()),
        classes: Vec::new(),
        leaves: Vec::new(),
        rules: Vec::new(),
    };
    builder.add_class(ROOT, None, link_bps, link_bps, 0);
    builder.add_firsts();
    builder.add_explicit();
    let sure: u64 = builder.classes[1..]
        .iter()
        .filter(|class| class.parent == Some(ROOT))
        .map(|class| class.rate_bps)
        .sum();
    // The default class keeps at least 1 %, even if the guarantees add up to more than the link.
    let rest = link_bps.saturating_sub(sure).max(link_bps / 100);
    builder.add_class(REST, Some(ROOT), rest, link_bps, 3);
    let queue = builder.queue(policy.shape.queue(), None);
    builder.leaves.push((REST, queue));
    Spec::Htb(HtbSpec {
        mtu: builder.mtu,
        classes: builder.classes,
        leaves: builder.leaves,
        classifier: (!builder.rules.is_empty()).then_some(Classifier::Rules(builder.rules)),
        default: Some(REST),
        direct_limit: 0,
    })
}

/// The sum of the guaranteed rates of all `[[first]]` sections, in bits per second.
pub(super) fn firsts_bps(policy: &Policy, link_bps: u64) -> u64 {
    let shared = policy.firsts.iter().any(|first| first.share.is_none());
    let shared = shared || policy.shape.template.is_gamer();
    let own = policy.firsts.iter().filter_map(|first| first.share);
    let shares = own.chain(shared.then_some(policy.shape.first_share));
    shares.map(|share| share_of(link_bps, share)).sum()
}

/// The policy's name for the class with this number.
pub(super) fn name_of(policy: &Policy, minor: u16) -> Option<&str> {
    let mut own = policy.firsts.iter().filter(|first| first.share.is_some());
    match minor {
        ROOT => Some("link"),
        FIRST => Some("first"),
        REST => Some("rest"),
        0x11..REST => own
            .nth(usize::from(minor - FIRST - 1))
            .map(|first| first.name.as_str()),
        CLASS.. => policy
            .classes
            .get(usize::from(minor - CLASS))
            .map(|class| class.name.as_str()),
        _ => None,
    }
}

/// The name of the section of each rule, in the order of [`spec`].
pub(super) fn rule_names(policy: &Policy, is_up: bool) -> Vec<&str> {
    let count = |rules: &super::rules::Rules| match is_up {
        true => rules.up.len(),
        false => rules.down.len(),
    };
    let mut names = Vec::new();
    for First { name, rules, .. } in &policy.firsts {
        names.extend(core::iter::repeat_n(name.as_str(), count(rules)));
    }
    if policy.shape.template.is_gamer() {
        names.extend(core::iter::repeat_n("gamer", lively().len()));
    }
    let classes = policy.classes.iter();
    for class in classes.filter(|class| class.directions[usize::from(!is_up)]) {
        names.extend(core::iter::repeat_n(
            class.name.as_str(),
            count(&class.rules),
        ));
    }
    names
}

impl Builder<'_> {
    fn add_class(&mut self, minor: u16, parent: Option<u16>, rate: u64, ceil: u64, priority: u8) {
        let burst = self.policy.shape.burst.map(|burst| burst.value as u32);
        let at_once = |bps| burst.unwrap_or(burst_of(bps, self.mtu)).max(self.mtu);
        // Packets of other classes may already be on the line. The guarantee must cover the time that they take.
        let sure = burst_of(rate.saturating_mul(10), self.mtu * 5);
        self.classes.push(ClassOptions {
            minor,
            parent,
            rate_bps: rate.max(1),
            ceil_bps: ceil.max(rate).max(1),
            burst: sure.max(at_once(rate)),
            cburst: at_once(ceil),
            priority,
            quantum: None,
        });
    }

    fn matches<'f>(&self, rules: &'f super::rules::Rules) -> &'f [Match] {
        if self.is_up { &rules.up } else { &rules.down }
    }

    fn add_rules(&mut self, matches: &[Match], minor: u16) {
        let rules = matches.iter().map(|rule| (*rule, u32::from(minor)));
        self.rules.extend(rules);
    }

    fn add_firsts(&mut self) {
        let policy = self.policy;
        let mut own = FIRST;
        let mut shared = policy.shape.template.is_gamer();
        for First { share, rules, .. } in &policy.firsts {
            let minor = if let Some(share) = share {
                own += 1;
                self.add_first(own, *share);
                own
            } else {
                shared = true;
                FIRST
            };
            self.add_rules(self.matches(rules), minor);
        }
        if shared {
            self.add_first(FIRST, policy.shape.first_share);
        }
        if policy.shape.template.is_gamer() {
            self.add_rules(&lively(), FIRST);
        }
    }

    fn add_first(&mut self, minor: u16, share: u32) {
        let rate = share_of(self.link_bps, share);
        self.add_class(minor, Some(ROOT), rate, self.link_bps, 0);
        let queue = self.queue(home(), None);
        self.leaves.push((minor, queue));
    }

    fn add_explicit(&mut self) {
        let policy = self.policy;
        let is_here = |class: &Class| class.directions[usize::from(!self.is_up)];
        let here: Vec<bool> = policy.classes.iter().map(is_here).collect();
        let mut is_parent = vec![false; here.len()];
        for (class, here) in policy.classes.iter().zip(&here) {
            if let Some(parent) = class.parent.filter(|_| *here) {
                is_parent[parent] = true;
            }
        }
        for (place, class) in policy.classes.iter().enumerate() {
            let minor = CLASS + place as u16;
            // If a class's parent is absent in this direction, the class moves up to the grandparent.
            let mut parent = class.parent;
            while let Some(above) = parent.filter(|above| !here[*above]) {
                parent = policy.classes[above].parent;
            }
            if !here[place] {
                continue;
            }
            let parent = parent.map_or(ROOT, |parent| CLASS + parent as u16);
            let rate = class.rate.value.of(self.link_bps).min(self.link_bps);
            let ceil = class
                .ceil
                .map_or(self.link_bps, |ceil| ceil.value.of(self.link_bps));
            let ceil = ceil.min(self.link_bps);
            self.add_class(minor, Some(parent), rate, ceil, class.priority);
            if !is_parent[place] {
                let kind = class.queue.unwrap_or(policy.shape.queue());
                let queue = self.queue(kind, class.limit.map(|limit| limit.value));
                self.leaves.push((minor, queue));
            }
            self.add_rules(self.matches(&class.rules), minor);
        }
    }

    fn queue(&self, queue: Queue, limit: Option<LimitBy>) -> Spec {
        let shape = &self.policy.shape;
        // The limit of `[shape]` applies only to queues of its own template.
        let own = shape.limit.filter(|_| is_same(queue, shape.queue()));
        let limit = limit.or(own.map(|limit| limit.value));
        queue.spec(&Given {
            settings: &shape.settings,
            limit: limit.unwrap_or(queue.offer().limit),
            link_bps: self.link_bps,
            mtu: self.mtu,
            is_up: self.is_up,
            quantum: match shape.template.is_gamer() {
                true => 300,
                false => self.mtu,
            },
        })
    }
}

/// The packets that the template "gamer" sends first: DNS, pings, calls and games.
fn lively() -> Vec<Match> {
    let flow = |flow: FlowMatch| Match {
        innermost: flow,
        ..Match::default()
    };
    let mut matches: Vec<Match> = LIVELY
        .into_iter()
        .map(|code| Match {
            dscp: Dscp::new(code),
            ..Match::default()
        })
        .collect();
    for proto in [1, 58] {
        matches.push(flow(FlowMatch {
            proto: Some(proto),
            ..FlowMatch::default()
        }));
    }
    for (proto_src, proto_dst) in [(Some(Ports::one(53)), None), (None, Some(Ports::one(53)))] {
        matches.push(flow(FlowMatch {
            proto_src,
            proto_dst,
            ..FlowMatch::default()
        }));
    }
    matches
}
