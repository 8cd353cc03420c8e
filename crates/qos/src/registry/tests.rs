pub(super) mod pair;

use base::Instant;

use super::*;
use crate::Discipline;
use crate::classifier::Classifier;
use crate::packet::{Packet, Pool};
use crate::policy::Policy;
use crate::queue::{LimitBy, Settings, Takes};
use crate::tree::{Node, Tree};

const LINK: &str = "[link]\nup = \"10mbit\"\ndown = \"20mbit\"\n";

/// A policy with this template and one more line of `[shape]`.
fn text(template: &str, line: &str) -> String {
    format!("{LINK}[shape]\ntemplate = \"{template}\"\n{line}\n")
}

/// The nodes of the discipline behind the rate, up.
fn leaf(policy: &Policy) -> Node {
    let tree = Tree::new(&policy.up_spec(), 1, Instant::ZERO).expect("it fits together");
    tree.walk().pop().expect("a leaf")
}

/// Values that a setting takes, and values out of its range, as they are written.
fn values(setting: &Setting) -> ([String; 2], Vec<String>) {
    let strings = |values: [&str; 2]| values.map(str::to_owned);
    match setting.takes {
        Takes::Flag => (
            strings(["true", "false"]),
            vec!["1".into(), "\"yes\"".into()],
        ),
        Takes::Switch(on, off) => {
            let values = [on, off].map(|name| format!("\"{name}\""));
            (values, vec!["\"perhaps\"".into(), "true".into()])
        }
        Takes::Time(least, most) => {
            let ns = |ns: u64| format!("\"{ns}ns\"");
            let below = least.checked_sub(1).map(ns);
            let wrong = below.into_iter().chain([ns(most + 1), "\"soon\"".into()]);
            ([ns(least), ns(most)], wrong.collect())
        }
        Takes::Size(least, most) => {
            let size = |octets: u64| octets.to_string();
            let wrong = vec![size(least - 1), size(most + 1), "\"large\"".into()];
            ([size(least), size(most)], wrong)
        }
        Takes::Keys => (
            strings(["\"plain\"", "\"src,dst\""]),
            vec!["\"sources\"".into()],
        ),
    }
}

#[test]
fn every_queue_takes_its_settings_and_refuses_what_is_out_of_range() {
    for choice in choices() {
        let offer = choice.offer();
        for setting in offer.settings {
            let (right, wrong) = values(setting);
            for value in right {
                let line = format!("{} = {value}", setting.name);
                let (policy, advice) = Policy::parse(&text(offer.template, &line)).expect(&line);
                let is_cautioned = setting.caution.is_some() && value != "\"0ns\"";
                assert_eq!(advice.len(), usize::from(is_cautioned), "{advice:?}");
                assert!(entry(leaf(&policy).kind).is_some(), "{line}");
            }
            for value in wrong {
                let line = format!("{} = {value}", setting.name);
                let faults = Policy::parse(&text(offer.template, &line)).expect_err(&line);
                let fault = faults.iter().next().expect("a fault");
                assert_eq!(faults.len(), 1, "{line}: {faults}");
                assert_eq!(fault.key, format!("shape.{}", setting.name));
                assert_eq!(fault.place.expect("a place").line, 6);
                assert!(!fault.remedy.is_empty(), "{fault}");
            }
        }
    }
}

#[test]
fn a_setting_of_other_queues_is_advised_against() {
    for choice in choices() {
        for setting in settings() {
            let ([value, _], _) = values(setting);
            let line = format!("{} = {value}", setting.name);
            let (_, advice) = Policy::parse(&text(choice.offer().template, &line)).expect(&line);
            let is_useless = advice
                .iter()
                .any(|one| one.message.contains("has no effect"));
            assert_eq!(
                is_useless,
                !choice.offer().has(setting),
                "{line}: {advice:?}"
            );
        }
    }
}

fn entry(kind: &str) -> Option<Entry> {
    let mut entries = entries().into_iter();
    entries.find(|entry| entry.kinds.contains(&kind))
}

/// Every queue that a policy can choose, and each discipline that holds others above one of them.
fn specs() -> Vec<Spec> {
    let settings = Settings::default();
    let queues = choices().into_iter().map(|choice| {
        choice.spec(&Given {
            settings: &settings,
            limit: choice.offer().limit,
            link_bps: 10_000_000,
            mtu: 1_514,
            is_up: true,
            quantum: 1_514,
        })
    });
    let mut specs: Vec<Spec> = queues.collect();
    let below = || Spec::Fifo(fifo::Limit::Packets(10));
    specs.push(Spec::Fifo(fifo::Limit::Bytes(10_000)));
    specs.push(Spec::Prio(PrioSpec {
        bands: vec![below(), below()],
        classifier: None,
        priomap: crate::classify::Bands::DSCP,
    }));
    specs.push(Spec::Drr(DrrSpec {
        classes: vec![DrrClass {
            minor: 1,
            quantum: 1_514,
            child: below(),
        }],
        classifier: Classifier::Bands(crate::classify::Bands::new([0; 64])),
    }));
    specs.push(Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps: 1_000_000,
            burst: 10_000,
            peak: None,
        },
        child: Box::new(below()),
    }));
    let (policy, _) = Policy::parse(LINK).expect("a policy");
    specs.push(policy.up_spec());
    specs
}

#[test]
fn every_discipline_is_built_holds_a_packet_and_is_shown_under_its_name() {
    let mut met: Vec<&str> = Vec::new();
    for spec in specs() {
        let mut tree = Tree::new(&spec, 1, Instant::ZERO).expect("it fits together");
        let mut pool = Pool::new(16);
        let packet = Packet {
            length: 100,
            ..Packet::default()
        };
        let id = pool.insert(packet).expect("room");
        assert!(tree.enqueue(&mut pool, id, Instant::ZERO), "{spec:?}");
        assert!(spec.packets_max() > 0, "{spec:?}");
        let node = tree.walk().swap_remove(0);
        assert_eq!(node.kind, spec.kind());
        assert_eq!(node.backlog.packets, 1, "{spec:?}");
        assert_eq!(node.options, spec.plan().options());
        assert_eq!(tree.dequeue(&mut pool, Instant::ZERO), Some(id), "{spec:?}");
        assert!(picture(node.kind).is_some(), "{spec:?}");
        met.push(node.kind);
    }
    let listed: Vec<&str> = entries()
        .into_iter()
        .flat_map(|entry| entry.kinds)
        .copied()
        .collect();
    for kind in &listed {
        assert!(
            met.contains(kind),
            "{kind} is listed, and no spec has this kind"
        );
    }
    let mut once = listed.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), listed.len(), "{listed:?}");
}

/// A value as docs/qos-policy.md writes it.
fn in_docs(takes: Takes) -> String {
    let scaled = |value: u64, units: &[(u64, &str)]| {
        let whole = |unit: &&(u64, &str)| value >= unit.0 && value.is_multiple_of(unit.0);
        match units.iter().find(whole) {
            Some((unit, name)) => format!("{} {name}", value / unit),
            None => value.to_string(),
        }
    };
    let time = |ns| {
        let units = [
            (3_600_000_000_000, "h"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ];
        scaled(ns, &units)
    };
    let size = |bytes: u64| {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let text = scaled(bytes, &units);
        match bytes < 1 << 10 {
            true => format!("{text} bytes"),
            false => text,
        }
    };
    match takes {
        Takes::Flag => "true, false".to_owned(),
        Takes::Switch(on, off) => format!("`\"{on}\"`, `\"{off}\"`"),
        Takes::Time(0, most) => format!("time, up to {}", time(most)),
        Takes::Time(least, most) => format!("time, {} to {}", time(least), time(most)),
        Takes::Size(least, most) => format!("size, {} to {}", size(least), size(most)),
        Takes::Keys => "keys".to_owned(),
    }
}

#[test]
fn the_policy_s_page_lists_every_queue_limit_key_and_range() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/qos-policy.md");
    let page = std::fs::read_to_string(page).expect("the page");
    // The discipline of these tests is in no page.
    let choices = choices()
        .into_iter()
        .filter(|choice| choice.offer().name != "pair");
    let queue = page.lines().find(|line| line.starts_with("| `queue` |"));
    for choice in choices {
        let offer = choice.offer();
        let quoted = format!("`{}`", offer.name);
        assert!(
            queue.is_some_and(|row| row.contains(&quoted)),
            "queue = {quoted}"
        );
        let limit = match offer.limit {
            LimitBy::Packets(packets) => format!("| {packets} packets"),
            LimitBy::Octets(octets) => format!("| {octets}"),
            LimitBy::Time(time) => format!("| {} ms", time.as_nanos() / 1_000_000),
        };
        let start = format!("| `{}` | ", offer.template);
        let mut rows = page.lines().filter(|line| line.starts_with(&start));
        assert!(rows.any(|row| row.contains(&limit)), "{start}...{limit}");
        for setting in offer.settings {
            let start = format!("| `{}` | {} | ", setting.name, in_docs(setting.takes));
            let row = page.lines().find(|line| line.starts_with(&start));
            assert!(row.is_some(), "no row starts with {start:?}");
        }
    }
}

#[test]
fn a_discipline_that_only_tests_have_plugs_in_by_its_line() {
    let (policy, advice) = Policy::parse(&text("pair", "second = true")).expect("a policy");
    assert!(advice.is_empty(), "{advice}");
    let node = leaf(&policy);
    assert_eq!((node.kind, node.options.as_str()), ("pair", "packets 2"));
    let class = format!("{LINK}[[class]]\nrate = \"10%\"\nport = 1\nqueue = \"pair\"\n");
    let (policy, _) = Policy::parse(&class).expect("a policy");
    let tree = Tree::new(&policy.up_spec(), 1, Instant::ZERO).expect("it fits together");
    let kinds: Vec<_> = tree.walk().into_iter().map(|node| node.kind).collect();
    assert!(kinds.contains(&"pair"), "{kinds:?}");
    let faults = Policy::parse(&text("pairs", "")).expect_err("no template");
    let misspelt = faults.iter().next().expect("a fault");
    assert!(
        misspelt.to_string().contains("did you mean \"pair\"?"),
        "{misspelt}"
    );
}

#[test]
fn the_longest_packet_takes_a_millisecond_in_the_slowest_class() {
    let class = |minor, rate_bps| htb::ClassOptions {
        minor,
        parent: None,
        rate_bps,
        ceil_bps: 1_000_000_000,
        burst: 125_000,
        cburst: 125_000,
        priority: 0,
        quantum: None,
    };
    let leaf = |limit| Spec::Fifo(fifo::Limit::Bytes(limit));
    let htb = |limit| {
        Spec::Htb(HtbSpec {
            mtu: 1_514,
            classes: vec![class(1, 1_000_000_000), class(2, 80_000_000)],
            leaves: vec![(1, leaf(limit)), (2, leaf(1_000_000))],
            classifier: None,
            default: Some(1),
            direct_limit: 0,
        })
    };
    assert_eq!(htb(1_000_000).longest(), 10_000);
    assert_eq!(htb(40_000).longest(), 5_000);
    let tbf = Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps: 1_000_000_000,
            burst: 3_000,
            peak: None,
        },
        child: Box::new(leaf(1_000_000)),
    });
    assert_eq!(tbf.longest(), 3_000);
    assert_eq!(Spec::Fifo(fifo::Limit::Packets(10)).longest(), u32::MAX);
}
