//! Rows of the translation of addresses. The translations of all threads answer each question, within a turn or two.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use base::Instant;
use edge::{Asked, NatSubscribers, Owner, SubscriberKey};
use nat::{Discard, Forward, Protocol};

use super::{Rows, Step, seconds};
use crate::core::Core;
use crate::served::Edge;
use control::rows;

/// Forwarded ports of a question.
const FORWARDS: usize = 256;
/// Subscribers of a question.
const SUBSCRIBERS: usize = 64;

/// Why there is no answer.
enum Unanswered {
    /// There is no NAT, or nothing is left to ask for.
    End,
    /// Not all threads have answered yet.
    Wait,
}

impl From<Unanswered> for Step {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::End => Self::End,
            Unanswered::Wait => Self::Wait,
        }
    }
}

/// A question, while it waits for its answer.
struct Waiting<T>(Option<Asked<T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Waiting<T> {
    /// The answer, if there is one.
    fn ask(
        &mut self,
        core: &mut Core,
        ask: impl FnOnce(&mut Edge, Instant) -> Option<Asked<T>>,
    ) -> Result<T, Unanswered> {
        let asked = self.0.take().or_else(|| ask(&mut core.edge, core.now));
        let asked = asked.ok_or(Unanswered::End)?;
        match asked.answer() {
            Some(answer) => Ok(answer),
            None => {
                self.0 = Some(asked);
                Err(Unanswered::Wait)
            }
        }
    }
}

/// The row about the whole.
#[derive(Default)]
pub(crate) struct Totals(Waiting<edge::NatTotals>);

impl Totals {
    pub(super) fn next(&mut self, core: &mut Core, out: &mut Rows) -> Step {
        match self.0.ask(core, Edge::nat_totals) {
            Ok(totals) => {
                row(core, &totals, out);
                Step::End
            }
            Err(why) => why.into(),
        }
    }
}

fn row(core: &Core, totals: &edge::NatTotals, out: &mut Rows) {
    let (Some(config), Some(translation)) = (core.edge.nat_config(), &core.translation) else {
        return;
    };
    let counters = totals.counters;
    let [free, held, all] = totals.blocks;
    let dropped = Discard::ALL.iter().zip(counters.discards);
    let dropped: Vec<(String, u64)> = dropped
        .filter(|(_, count)| *count > 0)
        .map(|(why, count)| (why.to_string(), count))
        .collect();
    let dropped: BTreeMap<&str, u64> = dropped
        .iter()
        .map(|(why, count)| (&**why, *count))
        .collect();
    let log = translation.log.counts();
    let store = translation
        .log
        .store
        .as_ref()
        .map(|path| path.to_string_lossy());
    out.push(&rows::Nat {
        schema: rows::Nat::SCHEMA,
        mode: match config.deterministic {
            Some(_) => "deterministic",
            None => "dynamic",
        },
        external_addresses: config.externals.iter().map(nat::Range::len).sum(),
        blocks: all,
        blocks_used: all.saturating_sub(free + held),
        blocks_held: held,
        blocks_free: free,
        blocks_allocated: counters.blocks_allocated,
        subscribers: counters.subscribers,
        mappings: counters.mappings,
        mappings_max: config.limits.mappings_max,
        mappings_made: counters.mappings_made,
        sessions: counters.sessions,
        forwards: totals.forwards,
        outbound: counters.outbound,
        inbound: counters.inbound,
        hairpinned: counters.hairpinned,
        untouched: counters.untouched,
        ftp_controls: counters.ftp_controls,
        ftp_rewritten: counters.ftp_rewritten,
        ftp_left: counters.ftp_left,
        ftp_untracked: counters.ftp_untracked,
        dropped,
        log: rows::NatLog {
            store: store.as_deref(),
            log_stored: log.stored,
            log_unstored: log.unstored,
            log_store_lost: log.store_lost,
            log_lost: log.lost,
            ipfix_messages: log.ipfix_messages,
            ipfix_failed: log.ipfix_failed,
            syslog_lines: log.syslog_lines,
            syslog_failed: log.syslog_failed,
        },
    });
}

/// The name of the subscriber that the translation knows by this number.
fn name(core: &Core, tag: u64) -> Option<String> {
    let view = core.edge.subscriber(SubscriberKey::from_token(tag))?;
    Some(String::from_utf8_lossy(view.name).into_owned())
}

/// The rows of subscribers.
#[derive(Default)]
pub(crate) struct Subscribers {
    /// The thread and the cursor that are next.
    at: (u8, u32),
    waiting: Waiting<NatSubscribers>,
}

impl Subscribers {
    pub(super) fn next(&mut self, core: &mut Core, out: &mut Rows) -> Step {
        let at = self.at;
        let ask = |edge: &mut Edge, now| edge.nat_subscribers(at, SUBSCRIBERS, now);
        let (views, next) = match self.waiting.ask(core, ask) {
            Ok(answer) => answer,
            Err(why) => return why.into(),
        };
        let Some(limits) = core.edge.nat_config().map(|config| config.limits) else {
            return Step::End;
        };
        for view in views {
            out.push(&rows::NatSubscriber {
                schema: rows::NatSubscriber::SCHEMA,
                name: &name(core, view.tag).unwrap_or_default(),
                inside: view.inside,
                external: view.external,
                blocks: view.blocks,
                blocks_max: limits.blocks_per_subscriber,
                mappings: view.mappings,
                mappings_max: limits.mappings_per_subscriber,
            });
        }
        let Some(next) = next else { return Step::End };
        self.at = next;
        Step::From(0)
    }
}

/// The rows of forwarded ports, in the order of their external ends.
#[derive(Default)]
pub(crate) struct Forwards {
    last: Option<Forward>,
    waiting: Waiting<Vec<Forward>>,
}

impl Forwards {
    pub(super) fn next(&mut self, core: &mut Core, out: &mut Rows) -> Step {
        let last = self.last;
        let ask = |edge: &mut Edge, now| edge.nat_forwards(last.as_ref(), FORWARDS, now);
        let forwards = match self.waiting.ask(core, ask) {
            Ok(answer) => answer,
            Err(why) => return why.into(),
        };
        for forward in &forwards {
            push_forward(core, forward, out);
        }
        self.last = forwards.last().copied();
        match forwards.len() {
            FORWARDS => Step::From(0),
            _ => Step::End,
        }
    }
}

/// A forwarded port.
pub(in super::super) fn push_forward(core: &Core, forward: &nat::Forward, out: &mut Rows) {
    out.push(&rows::NatForward {
        schema: rows::NatForward::SCHEMA,
        protocol: protocol(forward.protocol),
        external: SocketAddrV4::new(forward.external, forward.external_port),
        inside: SocketAddrV4::new(forward.inside, forward.inside_port),
        name: (forward.tag != 0)
            .then(|| name(core, forward.tag))
            .flatten()
            .as_deref(),
        lifetime_s: forward.until.map(|until| seconds(until.since(core.now))),
    });
}

const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
    }
}

/// Who has an external port now: forwarded ports, then the owner of its block.
pub(in super::super) fn who(
    core: &Core,
    owner: &Owner,
    external: SocketAddrV4,
    at_s: f64,
) -> Vec<rows::NatWho> {
    let translation = core.translation.as_ref();
    let store = translation.and_then(|translation| translation.log.store.as_ref());
    let nobody = || rows::NatWho {
        schema: rows::NatWho::SCHEMA.into(),
        external,
        by: None,
        name: None,
        inside: None,
        protocol: None,
        first_port: None,
        last_port: None,
        at_s,
        since_s: None,
        store: store.map(|path| path.to_string_lossy().into_owned()),
    };
    let owned = |by: &str, inside: Ipv4Addr, (first, last)| rows::NatWho {
        by: Some(by.to_owned()),
        inside: Some(inside),
        first_port: Some(first),
        last_port: Some(last),
        ..nobody()
    };
    let (address, port) = (*external.ip(), external.port());
    let mut found = Vec::new();
    let share = core
        .edge
        .nat()
        .and_then(|nat| nat.deterministic_inside(address, port));
    for forward in &owner.forwards {
        let subscriber = core.edge.subscriber_at(forward.inside);
        found.push(rows::NatWho {
            name: subscriber.and_then(|key| name(core, key.to_token())),
            protocol: Some(protocol(forward.protocol).to_owned()),
            ..owned("forward", forward.inside, (port, port))
        });
    }
    if let Some(block) = owner.block {
        let by = match share {
            Some(_) => "share",
            None => "block",
        };
        found.push(rows::NatWho {
            name: name(core, block.tag),
            ..owned(by, block.inside, (block.first, block.last))
        });
    } else if let Some(inside) = share
        && let Some(nat) = core.edge.nat()
        && let Some((_, first, last)) = nat.deterministic_ports(inside)
    {
        found.push(owned("share", inside, (first, last)));
    }
    if found.is_empty() {
        found.push(nobody());
    }
    found
}
