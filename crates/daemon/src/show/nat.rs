//! Rows of the translation of addresses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use edge::SubscriberKey;
use nat::{Discard, Nat, Protocol};

use super::{Rows, Step, seconds};
use crate::core::Core;
use control::rows;

/// Forwarded ports per step. Continuing costs a walk over those before.
const FORWARDS: usize = 256;

/// The row about the whole.
pub(super) fn row(core: &Core, out: &mut Rows) {
    let (Some(nat), Some(translation)) = (core.edge.nat(), &core.translation) else {
        return;
    };
    let counters = nat.counters();
    let (free, held, all) = nat.blocks();
    let dropped = Discard::ALL.iter().zip(counters.discards);
    let dropped: Vec<(String, u64)> = dropped
        .filter(|(_, count)| *count > 0)
        .map(|(why, count)| (why.to_string(), count))
        .collect();
    let dropped: BTreeMap<&str, u64> = dropped
        .iter()
        .map(|(why, count)| (&**why, *count))
        .collect();
    let config = nat.config();
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
        forwards: nat.forwards().len() as u32,
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

/// The subscriber at the cursor.
pub(super) fn subscribers(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let nat = core.edge.nat();
    let Some((nat, (next, view))) = nat.and_then(|nat| Some((nat, nat.next_subscriber(cursor)?)))
    else {
        return Step::End;
    };
    let limits = &nat.config().limits;
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
    Step::From(next)
}

/// Forwarded ports from the cursor on.
pub(super) fn forwards(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let Some(nat) = core.edge.nat() else {
        return Step::End;
    };
    let before = out.count;
    for forward in nat.forwards().skip(cursor as usize).take(FORWARDS) {
        push_forward(core, forward, out);
    }
    match (out.count - before) as usize {
        FORWARDS => Step::From(cursor + FORWARDS as u32),
        _ => Step::End,
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
    nat: &Nat,
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
    let is_it = |one: &&nat::Forward| one.external == address && one.external_port == port;
    for forward in nat.forwards().filter(is_it) {
        let subscriber = core.edge.subscriber_at(forward.inside);
        found.push(rows::NatWho {
            name: subscriber.and_then(|key| name(core, key.to_token())),
            protocol: Some(protocol(forward.protocol).to_owned()),
            ..owned("forward", forward.inside, (port, port))
        });
    }
    if let Some(block) = nat.owner_of(address, port) {
        let by = match nat.deterministic_inside(address, port) {
            Some(_) => "share",
            None => "block",
        };
        found.push(rows::NatWho {
            name: name(core, block.tag),
            ..owned(by, block.inside, (block.first, block.last))
        });
    } else if let Some(inside) = nat.deterministic_inside(address, port)
        && let Some((_, first, last)) = nat.deterministic_ports(inside)
    {
        found.push(owned("share", inside, (first, last)));
    }
    if found.is_empty() {
        found.push(nobody());
    }
    found
}
