//! Labels of streams and results in plots, in words.

use std::path::{Component, Path};

use base::Duration;
use ping::{Outcome, Protocol, StreamPlan};
use wire::flow::Dscp;

/// The label of each stream of each result, which has the name of its file: the host and what tells its streams apart,
/// in words, after the file where there are several.
pub(super) fn labels(outcomes: &[(&str, &Outcome)]) -> Vec<Vec<String>> {
    let names: Vec<&str> = outcomes.iter().map(|(name, _)| *name).collect();
    let files = file_names(&names);
    let labels = outcomes.iter().zip(files).map(|((_, outcome), file)| {
        let plans: Vec<&StreamPlan> = outcome.streams.iter().map(|stream| &stream.plan).collect();
        let label = |plan: &&StreamPlan| match outcomes.len() {
            1 => stream(plan, &plans),
            _ => format!("{file}: {}", stream(plan, &plans)),
        };
        plans.iter().map(label).collect()
    });
    labels.collect()
}

/// A stream's given name, otherwise its host and how it differs from other streams to that host.
fn stream(plan: &StreamPlan, all: &[&StreamPlan]) -> String {
    let Some(rest) = plan.name.strip_prefix(&plan.host) else {
        return plan.name.clone();
    };
    if !rest.is_empty() && !rest.starts_with([',', '#']) {
        return plan.name.clone();
    }
    let differs = |of: fn(&StreamPlan) -> u64| {
        let mut same_host = all.iter().filter(|other| other.host == plan.host);
        same_host.any(|other| of(other) != of(plan))
    };
    let mut label = plan.host.clone();
    let mut add = |words: String| label = format!("{label}, {words}");
    if differs(|plan| port(plan).into()) {
        add(protocol(plan));
    }
    if differs(|plan| plan.tos.into()) {
        add(class(plan.tos));
    }
    if differs(|plan| plan.size.into()) {
        add(format!("{} octets", plan.size));
    }
    if differs(|plan| plan.interval.as_nanos()) {
        add(format!("every {}", span(plan.interval)));
    }
    if let Some((_, number)) = rest.rsplit_once('#') {
        label = format!("{label} #{number}");
    }
    label
}

/// A sentence with the settings that all streams of all results share; empty if there are none.
pub(super) fn common(outcomes: &[(&str, &Outcome)]) -> String {
    let plans = || {
        let streams = outcomes.iter().flat_map(|(_, outcome)| &outcome.streams);
        streams.map(|stream| &stream.plan)
    };
    let Some(first) = plans().next() else {
        return String::new();
    };
    let same = |of: fn(&StreamPlan) -> u64| plans().all(|plan| of(plan) == of(first));
    let mut words = Vec::new();
    if same(|plan| port(plan).into()) {
        words.push(protocol(first));
    }
    if first.tos != 0 && same(|plan| plan.tos.into()) {
        words.push(class(first.tos));
    }
    if same(|plan| plan.size.into()) {
        words.push(format!("{} octets of data", first.size));
    }
    if same(|plan| plan.interval.as_nanos()) {
        words.push(format!("a packet every {}", span(first.interval)));
    }
    let mut sentence = words.join(", ");
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
        sentence.push('.');
    }
    sentence
}

/// When a result was started; `None` if the time is outside the calendar.
pub(super) fn began(outcome: &Outcome) -> Option<String> {
    let at = jiff::Timestamp::from_nanosecond(outcome.started_unix_ns.into()).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// 0 for ICMP, otherwise the UDP port plus one.
fn port(plan: &StreamPlan) -> u32 {
    match plan.protocol {
        Protocol::Icmp => 0,
        Protocol::Udp { port } => u32::from(port) + 1,
    }
}

fn protocol(plan: &StreamPlan) -> String {
    match plan.protocol {
        Protocol::Icmp => "ICMP".to_owned(),
        Protocol::Udp { port } => format!("UDP port {port}"),
    }
}

/// A TOS octet in words.
fn class(tos: u8) -> String {
    match Dscp::of(tos).name() {
        Some(_) if tos == 0 => "best effort".to_owned(),
        Some(name) if tos & 3 == 0 => format!("DSCP {}", name.to_ascii_uppercase()),
        _ => format!("TOS 0x{tos:02x}"),
    }
}

/// A duration in the unit that needs the fewest digits.
fn span(span: Duration) -> String {
    let ns = span.as_nanos();
    let (number, unit) = match ns {
        1_000_000_000.. => (ns as f64 / 1e9, "s"),
        1_000_000.. => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e3, "\u{b5}s"),
    };
    let number = format!("{number:.3}");
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {unit}")
}

/// Shortens file names to the part of the path that distinguishes them, without the suffix of results.
fn file_names(paths: &[&str]) -> Vec<String> {
    let tail = |path: &str, parts: usize| {
        let all: Vec<String> = Path::new(path)
            .components()
            .filter(|part| !matches!(part, Component::CurDir | Component::RootDir))
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        let tail = all[all.len().saturating_sub(parts)..].join("/");
        let tail = [".gz", ".zst", ".json"]
            .into_iter()
            .fold(tail, |tail, end| {
                let short = tail.strip_suffix(end).map(str::to_owned);
                short.filter(|short| !short.is_empty()).unwrap_or(tail)
            });
        (tail, parts >= all.len())
    };
    let names = paths.iter().enumerate().map(|(place, path)| {
        for parts in 1.. {
            let (name, is_whole) = tail(path, parts);
            let mut others = paths.iter().enumerate().filter(|other| other.0 != place);
            if !others.any(|(_, other)| tail(other, parts).0 == name) {
                return name;
            }
            if is_whole {
                break;
            }
        }
        // Two names that differ only in the suffix, or the same file twice.
        match paths[..place].iter().filter(|other| *other == path).count() {
            0 => (*path).to_owned(),
            before => format!("{path} #{}", before + 1),
        }
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ping::{Experiment, Plan};

    fn plan(name: &str, tos: u8, size: u16, protocol: Protocol) -> StreamPlan {
        StreamPlan {
            name: name.into(),
            host: "192.0.2.1".into(),
            address: [192, 0, 2, 1].into(),
            protocol,
            tos,
            size,
            interval: Duration::from_millis(10),
            offset: Duration::ZERO,
            count: None,
        }
    }

    fn outcome(streams: Vec<StreamPlan>) -> Outcome {
        let plan = Plan::spread(streams, Duration::from_secs(1));
        Experiment::new(plan, base::Instant::ZERO).finish(1_700_000_000_000_000_000, false)
    }

    #[test]
    fn streams_are_called_by_words_and_those_with_names_by_their_names() {
        let udp = Protocol::Udp { port: 7 };
        let streams = vec![
            plan("192.0.2.1,icmp,ef,56", 184, 56, Protocol::Icmp),
            plan("192.0.2.1,icmp,be,56#2", 0, 56, Protocol::Icmp),
            plan("192.0.2.1,udp=7,0x02,99", 2, 99, udp),
            plan("voice", 0, 56, Protocol::Icmp),
            plan("192.0.2.10", 0, 56, Protocol::Icmp),
        ];
        let result = outcome(streams);
        let expected = [
            "192.0.2.1, ICMP, DSCP EF, 56 octets",
            "192.0.2.1, ICMP, best effort, 56 octets #2",
            "192.0.2.1, UDP port 7, TOS 0x02, 99 octets",
            "voice",
            "192.0.2.10",
        ];
        assert_eq!(labels(&[("x", &result)]), [expected]);
        assert_eq!(common(&[("x", &result)]), "A packet every 10 ms.");
        assert_eq!(began(&result).unwrap(), "2023-11-14 22:13:20 UTC");
        let one = outcome(vec![plan("192.0.2.1", 184, 56, Protocol::Icmp)]);
        let both = [("a/one.json", &one), ("two.json.gz", &one)];
        assert_eq!(
            labels(&both),
            [["one: 192.0.2.1"], ["two: 192.0.2.1"]].map(|label| label.map(str::to_owned).to_vec())
        );
        let said = "ICMP, DSCP EF, 56 octets of data, a packet every 10 ms.";
        assert_eq!(common(&both), said);
    }

    #[test]
    fn files_are_told_apart_by_as_little_as_does() {
        for (paths, names) in [
            (&["a.json", "b.json.zst"][..], &["a", "b"][..]),
            (&["x/a.json", "y/a.json", "b"], &["x/a", "y/a", "b"]),
            (&["a.json", "a.json.gz"], &["a.json", "a.json.gz"]),
            (&["a.json", "a.json"], &["a.json", "a.json #2"]),
            (&["/x/a.json", "a.json"], &["x/a", "a.json"]),
            (&[".json", "b"], &[".json", "b"]),
            (&["only"], &["only"]),
        ] {
            assert_eq!(file_names(paths), names);
        }
    }

    #[test]
    fn spans_have_few_digits() {
        for (ns, text) in [
            (10_000_000, "10 ms"),
            (1_000_000_000, "1 s"),
            (2_500_000, "2.5 ms"),
            (20_000, "20 \u{b5}s"),
            (1_333_333, "1.333 ms"),
        ] {
            assert_eq!(span(Duration::from_nanos(ns)), text);
        }
    }
}
