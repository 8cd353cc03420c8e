//! The `tc` line of a change, for `--dry-run`: it does what the message does.

use core::fmt::Write;

use crate::change::Change;
use crate::encode::Verb;
use crate::object::{
    Action, Cake, Class, ClassKind, CodelKind, Filter, FilterKind, FlowKeys, Handle, Key, Object,
    Qdisc, QdiscKind, Speed,
};

/// The line for an interface. `name_of` names the interface with an index.
#[must_use]
pub fn line(change: &Change, interface: &str, name_of: impl Fn(u32) -> String) -> String {
    let verb = match change.verb {
        Verb::Add => "add",
        Verb::Change => "change",
        Verb::Delete => "del",
    };
    let is_new = change.verb != Verb::Delete;
    match &change.object {
        Object::Qdisc(one) => {
            let mut text = qdisc(one, is_new);
            if change.verb == Verb::Change
                && let QdiscKind::FqCodel(options) = &one.kind
            {
                // tc refuses this in a change, even if it is the same.
                text = text.replace(&format!(" flows {}", options.flows), "");
            }
            format!("tc qdisc {verb} dev {interface} {text}")
        }
        Object::Class(one) => format!("tc class {verb} dev {interface} {}", class(one, is_new)),
        Object::Filter(one) => {
            // tc cannot load the program from a line.
            let comment = match (&one.kind, is_new) {
                (FilterKind::Bpf(_), true) => "# ",
                _ => "",
            };
            format!(
                "{comment}tc filter {verb} dev {interface} {}",
                filter(one, is_new, name_of)
            )
        }
    }
}

fn parent(handle: Handle) -> String {
    match handle {
        Handle::ROOT => "root".to_owned(),
        handle => format!("parent {handle}"),
    }
}

fn other(kind: &str) -> String {
    format!("{kind} [options as they were]")
}

fn qdisc(qdisc: &Qdisc, is_new: bool) -> String {
    if qdisc.parent == Handle::INGRESS_PARENT {
        return qdisc.kind.name().to_owned();
    }
    let place = format!("{} handle {}", parent(qdisc.parent), qdisc.handle);
    if !is_new {
        return place;
    }
    let added = qdisc
        .added
        .map(|added| format!(" stab linklayer ethernet overhead {added}"))
        .unwrap_or_default();
    let options = match &qdisc.kind {
        QdiscKind::Htb { default } => format!("htb default {default:#x}"),
        QdiscKind::Pfifo { limit } => format!("pfifo limit {limit}"),
        QdiscKind::Bfifo { limit } => format!("bfifo limit {limit}"),
        QdiscKind::FqCodel(options) => format!(
            "fq_codel {} flows {} quantum {} memory_limit {}",
            codel(options),
            options.flows,
            options.quantum,
            options.memory
        ),
        QdiscKind::Codel(options) => format!("codel {}", codel(options)),
        QdiscKind::Sfq {
            quantum,
            limit,
            perturb_s,
        } => format!("sfq quantum {quantum} limit {limit} perturb {perturb_s}"),
        QdiscKind::Drr => "drr".to_owned(),
        QdiscKind::Ets { bands, quantum } => {
            let quanta = vec![quantum.to_string(); usize::from(*bands)].join(" ");
            format!("ets bands {bands} quanta {quanta}")
        }
        QdiscKind::Cake(options) => cake(options),
        QdiscKind::Ingress => "ingress".to_owned(),
        QdiscKind::Other { kind, .. } => other(kind),
    };
    format!("{place}{added} {options}")
}

fn codel(options: &CodelKind) -> String {
    let CodelKind {
        limit,
        target_us,
        interval_us,
        ecn,
        ..
    } = options;
    let ecn = if *ecn { "ecn" } else { "noecn" };
    format!("limit {limit} target {target_us}us interval {interval_us}us {ecn}")
}

fn cake(cake: &Cake) -> String {
    let word = |on: bool, yes: &'static str, no: &'static str| if on { yes } else { no };
    let diffserv = match cake.diffserv {
        1 => "diffserv4",
        _ => "besteffort",
    };
    let flows = match cake.flow_mode {
        5 => "dual-srchost",
        6 => "dual-dsthost",
        _ => "flows",
    };
    format!(
        "cake bandwidth {}bit {diffserv} {flows} {} {} {} rtt {}us overhead {} mpu {} {} memlimit {} {}",
        cake.rate.saturating_mul(8),
        word(cake.nat, "nat", "nonat"),
        word(cake.wash, "wash", "nowash"),
        word(cake.ack_filter, "ack-filter", "no-ack-filter"),
        cake.rtt_us,
        cake.overhead,
        cake.mpu,
        word(cake.atm, "atm", "noatm"),
        cake.memory,
        word(cake.ingress, "ingress", "egress"),
    )
}

fn class(class: &Class, is_new: bool) -> String {
    let place = format!("parent {} classid {}", class.parent, class.handle);
    if !is_new {
        return place;
    }
    let options = match &class.kind {
        ClassKind::Htb {
            rate,
            ceil,
            quantum,
            prio,
        } => format!(
            "htb rate {}bit burst {}b ceil {}bit cburst {}b prio {prio} quantum {quantum}{}",
            rate.rate.saturating_mul(8),
            rate.burst(),
            ceil.rate.saturating_mul(8),
            ceil.burst(),
            layer(rate)
        ),
        ClassKind::Drr { quantum } => format!("drr quantum {quantum}"),
        ClassKind::Other { kind, .. } => other(kind),
    };
    format!("{place} {options}")
}

fn layer(speed: &Speed) -> String {
    let mut text = String::new();
    for (name, value) in [("overhead", speed.overhead), ("mpu", speed.mpu)] {
        if value != 0 {
            let _ = write!(text, " {name} {value}");
        }
    }
    if speed.atm {
        text.push_str(" linklayer atm");
    }
    text
}

fn filter(filter: &Filter, is_new: bool, name_of: impl Fn(u32) -> String) -> String {
    let protocol = match filter.protocol {
        0x0800 => "ip".to_owned(),
        0x86dd => "ipv6".to_owned(),
        3 => "all".to_owned(),
        other => format!("{other:#x}"),
    };
    let place = match filter.parent {
        Handle::ARRIVING => "ingress".to_owned(),
        parent => format!("parent {parent}"),
    };
    let chain = match filter.chain {
        0 => String::new(),
        chain => format!(" chain {chain}"),
    };
    let place = format!(
        "{place} protocol {protocol} prio {}{chain}",
        filter.priority
    );
    if !is_new {
        return place;
    }
    let options = match &filter.kind {
        FilterKind::U32 { keys, mark, action } => u32_filter(keys, *mark, action, name_of),
        FilterKind::Flow {
            keys,
            divisor,
            base,
        } => {
            let key = match keys {
                FlowKeys::Source => "src",
                FlowKeys::Destination => "dst",
                FlowKeys::SourceBeforeNat => "nfct-src",
            };
            format!(
                "handle {:#x} flow map key {key} divisor {divisor} baseclass {base}",
                filter.handle
            )
        }
        FilterKind::Bpf(bpf) => {
            let class = bpf
                .class
                .map_or(String::new(), |class| format!(" classid {class}"));
            let direct = if bpf.is_direct { " direct-action" } else { "" };
            format!(
                "handle {:#x} bpf [program {}]{class}{direct}",
                filter.handle, bpf.name
            )
        }
        FilterKind::Other { kind, .. } => other(kind),
    };
    format!("{place} {options}")
}

fn u32_filter(
    keys: &[Key],
    mark: Option<(u32, u32)>,
    action: &Action,
    name_of: impl Fn(u32) -> String,
) -> String {
    let mut text = "u32".to_owned();
    for key in keys {
        let Key {
            offset,
            mask,
            value,
        } = key;
        let _ = write!(text, " match u32 {value:#x} {mask:#x} at {offset}");
    }
    if let Some((value, mask)) = mark {
        let _ = write!(text, " match mark {value:#x} {mask:#x}");
    }
    let _ = match action {
        Action::Class(class) => write!(text, " flowid {class}"),
        Action::Redirect(index) => write!(
            text,
            " action mirred egress redirect dev {}",
            name_of(*index)
        ),
    };
    text
}
