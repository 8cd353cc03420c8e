//! Qdiscs and classes in the format of `tc -s`.

use std::fmt::Write;

use qos::units::Rate;

use crate::printable;
use crate::rates::{bits, count, words};
use crate::rows::ways;
use cli::table::age;
use control::rows::{QosLane, QosNode, QosPort, QosRun, QosSums, QosWay};

/// Renders the whole output.
pub(super) fn text(run: &QosRun) -> String {
    let mut out = String::new();
    heading(run, &mut out);
    for (name, way, from, to) in ways(run) {
        let _ = writeln!(out, "\n{}", way_line(name, way, from, to));
        for node in &way.nodes {
            one(node, &way.nodes, &mut out);
        }
        let _ = writeln!(out, "{}", lane(&way.lane));
    }
    out.push('\n');
    for port in [&run.lan, &run.wan] {
        let _ = writeln!(out, "{}", interface(port));
    }
    let _ = writeln!(out, "frames {} of {}", run.frames, run.frames_max);
    out
}

/// The interfaces, the policy, and the time since it was loaded.
pub(super) fn heading(run: &QosRun, out: &mut String) {
    let (lan, wan) = (&run.lan.name, &run.wan.name);
    let (policy, pid) = (printable(&run.policy), run.pid);
    let (up, since) = (age(run.uptime_s), age(run.policy_age_s));
    let _ = write!(
        out,
        "{lan} <-> {wan}, pid {pid}, up {up}, {policy} since {since}"
    );
    if run.reloads > 0 {
        let _ = write!(out, " ({} reloads)", run.reloads);
    }
    out.push('\n');
}

/// "up: lan0 -> wan0, rate 2300Kbit, now 1.20 Mbit/s".
pub(super) fn way_line(name: &str, way: &QosWay, from: &str, to: &str) -> String {
    let rate = way.rate_bps.map_or("not shaped".to_owned(), |rate| {
        format!("rate {}", Rate(rate))
    });
    let now = way
        .sums
        .rates
        .map_or(String::new(), |rates| format!(", now {}", words(&rates)));
    format!("{name}: {from} -> {to}, {rate}{now}")
}

fn one(node: &QosNode, all: &[QosNode], out: &mut String) {
    let what = if node.is_class { "class" } else { "qdisc" };
    let _ = write!(out, "{what} {} {}", node.kind, node.handle);
    match &node.parent {
        // A class directly below its discipline.
        Some(parent) if node.is_class && parent.ends_with(':') => out.push_str(" root"),
        Some(parent) => {
            let _ = write!(out, " parent {parent}");
        }
        None => out.push_str(" root"),
    }
    let leaf = all
        .iter()
        .find(|below| !below.is_class && below.parent.as_ref() == Some(&node.handle));
    if let Some(leaf) = leaf.filter(|_| node.is_class) {
        let _ = write!(out, " leaf {}", leaf.handle);
    }
    if let Some(name) = &node.name {
        let _ = write!(out, " \"{}\"", printable(name));
    }
    if !node.options.is_empty() {
        let _ = write!(out, " {}", node.options);
    }
    out.push('\n');
    sums(&node.sums, out);
    if !node.details.is_empty() {
        let details = node.details.iter();
        let words: Vec<String> = details
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let _ = writeln!(out, "  {}", words.join(" "));
    }
}

fn sums(sums: &QosSums, out: &mut String) {
    let QosSums {
        bytes,
        packets,
        drops,
        overlimits,
        requeues,
        ..
    } = sums;
    let _ = writeln!(
        out,
        " Sent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} requeues {requeues})"
    );
    let rate = sums.rates.map_or(String::new(), |rates| {
        format!("rate {} {}pps ", bits(rates.bps), count(rates.pps))
    });
    let _ = writeln!(
        out,
        " {rate}backlog {}b {}p requeues {requeues} ecn_mark {}",
        sums.backlog, sums.qlen, sums.ecn_mark
    );
}

fn lane(lane: &QosLane) -> String {
    let QosLane {
        packets,
        past,
        cut,
        too_long,
        full,
        overlimit,
        late,
        unclassified,
        no_room,
        marked,
        down,
    } = lane;
    format!(
        "lane packets {packets} past {past} cut {cut} too_long {too_long} full {full} overlimit {overlimit} \
         late {late} unclassified {unclassified} no_room {no_room} marked {marked} down {down}"
    )
}

fn interface(port: &QosPort) -> String {
    let QosPort {
        name,
        received,
        received_bytes,
        received_large,
        missed,
        no_room,
        sent,
        sent_bytes,
        refused,
        blocked,
        downs,
        faults,
    } = port;
    format!(
        "port {name} received {received} received_bytes {received_bytes} received_large {received_large} \
         missed {missed} no_room {no_room} sent {sent} sent_bytes {sent_bytes} refused {refused} \
         blocked {blocked} downs {downs} faults {faults}"
    )
}
