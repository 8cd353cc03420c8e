//! Policies: every condition and change, faults in written policies, and reloads.

use base::Duration;
use wire::bgp::attr::code;

use super::*;
use crate::policy::{Policies, Roa, Roas, Spec, TermSpec, Then, compile};

const P: &str = "10.1.0.0/16";

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

fn accept(term: TermSpec) -> TermSpec {
    TermSpec {
        then: Then::Accept,
        ..term
    }
}

fn compiled(terms: Vec<TermSpec>) -> Arc<Policy> {
    let spec = Spec {
        name: "x".to_owned(),
        term: terms,
    };
    compile(&[spec]).expect("compiles").get("x").expect("there")
}

/// Whether a route of peer 1 (AS 64501) passes an import policy with that term.
fn passes(term: TermSpec, said: &Said, prefix: &str) -> bool {
    let mut net = Net::new();
    let roa = Roa {
        prefix: p("10.1.0.0/16"),
        len_max: 20,
        asn: 7,
    };
    net.rib.set_policies([], Arc::new(Roas::from_iter([roa])));
    let mut traits = Net::traits(1, 64_501);
    traits.import = compiled(vec![accept(term)]);
    net.open_with(1, traits);
    net.say(1, said, &[prefix]);
    net.rib.best(p(prefix)).is_some()
}

// long: a table of cases
#[test]
fn each_condition_holds_for_what_it_says() {
    let term = TermSpec::default;
    let said = || Said::path(&[64_501, 9, 7]);
    let check = |term: TermSpec, said: &Said, prefix: &str, wanted: bool| {
        assert_eq!(
            passes(term.clone(), said, prefix),
            wanted,
            "{term:?} {prefix}"
        );
    };
    for (range, prefix, wanted) in [
        ("10.0.0.0/8", "10.0.0.0/8", true),
        ("10.0.0.0/8", "10.1.0.0/16", false),
        ("10.0.0.0/8 le 16", "10.1.0.0/16", true),
        ("10.0.0.0/8 le 16", "10.1.1.0/24", false),
        ("10.0.0.0/8 ge 17", "10.1.0.0/16", false),
        ("10.0.0.0/8 ge 17", "10.1.1.1/32", true),
        ("10.0.0.0/8 ge 16 le 16", "10.1.0.0/16", true),
        ("0.0.0.0/0 le 32", "10.1.0.0/16", true),
        ("11.0.0.0/8 le 32", "10.1.0.0/16", false),
    ] {
        check(
            TermSpec {
                prefix: one(range),
                ..term()
            },
            &said(),
            prefix,
            wanted,
        );
    }
    for (pattern, wanted) in [
        ("64501 9 7", true),
        ("64501 ? 7", true),
        ("64501 * 7", true),
        ("* 9 *", true),
        ("64501 9", false),
        ("* 9", false),
        ("? ? ? ?", false),
        ("* 64501 * 9 * 7 *", true),
    ] {
        check(
            TermSpec {
                as_path: one(pattern),
                ..term()
            },
            &said(),
            P,
            wanted,
        );
    }
    for (length, wanted) in [
        ("3", true),
        ("<= 2", false),
        (">= 3", true),
        ("1..2", false),
    ] {
        let as_path_length = Some(length.to_owned());
        check(
            TermSpec {
                as_path_length,
                ..term()
            },
            &said(),
            P,
            wanted,
        );
    }
    check(
        TermSpec {
            as_path_length: Some("3".into()),
            ..term()
        },
        &said(),
        P,
        true,
    );
    for (asn, [contains, origin, neighbour]) in [
        (64_501, [true, false, true]),
        (9, [true, false, false]),
        (7, [true, true, false]),
        (8, [false; 3]),
    ] {
        let list = || vec![1, asn];
        check(
            TermSpec {
                as_path_contains: list(),
                ..term()
            },
            &said(),
            P,
            contains,
        );
        check(
            TermSpec {
                origin_as: list(),
                ..term()
            },
            &said(),
            P,
            origin,
        );
        check(
            TermSpec {
                neighbour_as: list(),
                ..term()
            },
            &said(),
            P,
            neighbour,
        );
    }
    let tagged = said()
        .number(code::COMMUNITIES, 5 << 16 | 6)
        .with(code::EXT_COMMUNITIES, &[0, 2, 0, 5, 0, 0, 0, 6])
        .with(
            code::LARGE_COMMUNITIES,
            &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
        );
    for (text, wanted) in [
        ("5:6", true),
        ("5:*", true),
        ("5:7", false),
        ("no-export", false),
    ] {
        check(
            TermSpec {
                community: one(text),
                ..term()
            },
            &tagged,
            P,
            wanted,
        );
    }
    for (text, wanted) in [
        ("RT:5:6", true),
        ("SoO:5:6", false),
        ("0x0002000500000006", true),
    ] {
        check(
            TermSpec {
                ext_community: one(text),
                ..term()
            },
            &tagged,
            P,
            wanted,
        );
    }
    for (text, wanted) in [("1:2:3", true), ("1:*:3", true), ("1:2:4", false)] {
        check(
            TermSpec {
                large_community: one(text),
                ..term()
            },
            &tagged,
            P,
            wanted,
        );
    }
    for (text, wanted) in [("igp", true), ("egp", false), ("incomplete", false)] {
        check(
            TermSpec {
                origin: one(text),
                ..term()
            },
            &said(),
            P,
            wanted,
        );
    }
    for (text, wanted) in [
        ("64501", true),
        ("192.0.2.1", true),
        ("192.0.2.0/24", true),
        ("192.0.2.2", false),
        ("local", false),
    ] {
        check(
            TermSpec {
                neighbour: one(text),
                ..term()
            },
            &said(),
            P,
            wanted,
        );
    }
    for (text, wanted) in [("ipv4", true), ("ipv6", false)] {
        check(
            TermSpec {
                family: Some(text.to_owned()),
                ..term()
            },
            &said(),
            P,
            wanted,
        );
    }
    // RFC 6811: valid, too long, of another origin, not covered.
    let other = Said::path(&[64_501, 8]);
    for (said, prefix, validity) in [
        (&said(), "10.1.0.0/16", "valid"),
        (&said(), "10.1.16.0/20", "valid"),
        (&said(), "10.1.1.0/24", "invalid"),
        (&other, "10.1.0.0/16", "invalid"),
        (&said(), "10.2.0.0/16", "not-found"),
    ] {
        for text in ["valid", "invalid", "not-found"] {
            check(
                TermSpec {
                    rpki: one(text),
                    ..term()
                },
                said,
                prefix,
                text == validity,
            );
        }
    }
}

#[test]
fn each_change_changes_what_it_says_at_export_and_import() {
    let changes = TermSpec {
        set_local_pref: Some(300),
        set_med: Some(44),
        set_origin: Some("incomplete".to_owned()),
        set_next_hop: Some("10.3.3.3".to_owned()),
        prepend: 2,
        add_community: vec!["1:1".to_owned(), "5:6".to_owned()],
        remove_community: one("7:7"),
        set_ext_community: Some(one("SoO:192.0.2.1:14")),
        add_large_community: one("1:2:3"),
        ..TermSpec::default()
    };
    let said = Said::path(&[64_501]).with(code::COMMUNITIES, &[0, 7, 0, 7, 0, 5, 0, 6]);
    for is_import in [false, true] {
        let mut net = Net::new();
        let policy = compiled(vec![accept(changes.clone())]);
        let (mut from, mut to) = (Net::traits(1, 64_501), Net::traits(2, ASN));
        if is_import {
            from.import = policy;
        } else {
            to.export = policy;
        }
        net.open_with(1, from);
        net.open_with(2, to);
        net.say(1, &said, &[P]);
        net.settle();
        let heard = net.ear(2).get(P).expect("told");
        let raw = &heard.attributes;
        assert_eq!(heard.path(), "65000 65000 64501");
        assert_eq!(
            (attr::local_pref(raw), attr::med(raw)),
            (Some(300), Some(44))
        );
        assert_eq!(attr::origin(raw), attr::Origin::Incomplete);
        assert_eq!(heard.next_hop, IpAddr::from([10, 3, 3, 3]));
        let texts: Vec<String> = attr::communities(raw).map(|c| c.to_string()).collect();
        assert_eq!(texts, ["5:6", "1:1"]);
        let texts: Vec<String> = attr::ext_communities(raw).map(|c| c.to_string()).collect();
        assert_eq!(texts, ["SoO:192.0.2.1:14"]);
        let texts: Vec<String> = attr::large_communities(raw)
            .map(|c| c.to_string())
            .collect();
        assert_eq!(texts, ["1:2:3"]);
        let codes: Vec<u8> = attr::iter(raw).map(|attribute| attribute.code).collect();
        assert!(codes.is_sorted(), "{codes:?}");
    }
}

#[test]
fn terms_follow_each_other_and_see_what_those_before_changed() {
    let terms = vec![
        TermSpec {
            add_community: one("1:1"),
            ..TermSpec::default()
        },
        TermSpec {
            community: one("1:1"),
            set_med: Some(1),
            ..TermSpec::default()
        },
        TermSpec {
            origin_as: vec![9],
            then: Then::Deny,
            ..TermSpec::default()
        },
        accept(TermSpec {
            prefix: one("10.0.0.0/8 le 32"),
            set_local_pref: Some(5),
            ..TermSpec::default()
        }),
    ];
    let mut net = Net::new();
    let mut traits = Net::traits(1, 64_501);
    traits.import = compiled(terms);
    net.open_with(1, traits);
    net.open(2, ASN);
    net.say(1, &Said::path(&[64_501]), &[P, "11.0.0.0/8"]);
    net.say(1, &Said::path(&[64_501, 9]), &["10.9.0.0/16"]);
    net.settle();
    assert_eq!(
        net.ear(2).prefixes(),
        [P],
        "what no term decides on is denied"
    );
    let raw = &net.ear(2).get(P).expect("told").attributes;
    assert_eq!((attr::med(raw), attr::local_pref(raw)), (Some(1), Some(5)));
}

// long: a list of cases
#[test]
fn faults_name_policy_term_and_key() {
    let fault = |term: TermSpec| {
        let spec = Spec {
            name: "p".to_owned(),
            term: vec![TermSpec::default(), term],
        };
        let faults = compile(&[spec]).expect_err("a fault");
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].to_string()
    };
    let wrong = fault(TermSpec {
        prefix: one("10.0.0.0/8 le 4"),
        ..TermSpec::default()
    });
    assert!(
        wrong.starts_with("policy \"p\", term 2, prefix: \"10.0.0.0/8 le 4\" is not"),
        "{wrong}"
    );
    for (term, key) in [
        (
            TermSpec {
                as_path: one("x"),
                ..TermSpec::default()
            },
            "as_path",
        ),
        (
            TermSpec {
                as_path_length: Some("a".into()),
                ..TermSpec::default()
            },
            "as_path_length",
        ),
        (
            TermSpec {
                community: one("1:99999"),
                ..TermSpec::default()
            },
            "community",
        ),
        (
            TermSpec {
                ext_community: one("RT:1"),
                ..TermSpec::default()
            },
            "ext_community",
        ),
        (
            TermSpec {
                large_community: one("1:2"),
                ..TermSpec::default()
            },
            "large_community",
        ),
        (
            TermSpec {
                origin: one("x"),
                ..TermSpec::default()
            },
            "origin",
        ),
        (
            TermSpec {
                neighbour: one("x"),
                ..TermSpec::default()
            },
            "neighbour",
        ),
        (
            TermSpec {
                rpki: one("x"),
                ..TermSpec::default()
            },
            "rpki",
        ),
        (
            TermSpec {
                family: Some("x".into()),
                ..TermSpec::default()
            },
            "family",
        ),
        (
            TermSpec {
                set_origin: Some("x".into()),
                ..TermSpec::default()
            },
            "set_origin",
        ),
        (
            TermSpec {
                set_next_hop: Some("x".into()),
                ..TermSpec::default()
            },
            "set_next_hop",
        ),
        (
            TermSpec {
                set_med: Some(1),
                remove_med: true,
                ..TermSpec::default()
            },
            "remove_med",
        ),
        (
            TermSpec {
                add_community: one("1:*"),
                ..TermSpec::default()
            },
            "add_community",
        ),
        (
            TermSpec {
                remove_ext_community: one("x"),
                ..TermSpec::default()
            },
            "remove_ext_community",
        ),
    ] {
        assert!(fault(term).contains(&format!("term 2, {key}: ")), "{key}");
    }
    for name in ["accept", "deny"] {
        let spec = Spec {
            name: name.to_owned(),
            term: Vec::new(),
        };
        assert_eq!(compile(&[spec]).expect_err("taken")[0].key, "name");
    }
    let resolve = |name, is_internal| {
        Policies::default()
            .resolve(name, is_internal)
            .map(|p| p.name().to_owned())
    };
    assert_eq!(resolve(None, false).as_deref(), Some("deny"), "RFC 8212");
    assert_eq!(resolve(None, true).as_deref(), Some("accept"));
    assert_eq!(resolve(Some("none"), true), None);
}

/// A rib with routes of peer 1 in 10/8 and 11/8. Peers 2 and 3 share a group; peer 4 has an advertisement interval.
fn loaded() -> Net {
    let mut net = Net::new();
    for n in 1..=3 {
        net.open(n, 64_500 + n);
    }
    let mut slow = Net::traits(4, 64_504);
    slow.advertisement_interval = Duration::from_secs(5);
    net.open_with(4, slow);
    for n in 0..200 {
        let prefixes = [format!("10.{n}.0.0/16"), format!("11.{n}.0.0/16")];
        net.say(
            1,
            &Said::path(&[64_501, 1 + n / 10]),
            &[&prefixes[0], &prefixes[1]],
        );
    }
    net.settle();
    net
}

fn set(net: &mut Net, peers: &[u32], import: &Arc<Policy>, export: &Arc<Policy>) {
    let all: Vec<_> = peers
        .iter()
        .map(|&n| (PeerId(n), Arc::clone(import), Arc::clone(export)))
        .collect();
    net.rib.set_policies(all, Arc::default());
}

#[test]
fn a_new_export_policy_tells_only_what_it_changes() {
    let mut net = loaded();
    let before = net.ear(2).updates;
    let marks = |med| {
        compiled(vec![
            accept(TermSpec {
                prefix: one("10.0.0.0/12 le 32"),
                set_med: Some(med),
                ..TermSpec::default()
            }),
            TermSpec {
                prefix: one("11.0.0.0/12 le 32"),
                then: Then::Deny,
                ..TermSpec::default()
            },
            accept(TermSpec::default()),
        ])
    };
    set(&mut net, &[2, 3], &Policy::accept(), &marks(3));
    net.settle();
    let with_med = |ear: &Ear| {
        ear.routes
            .values()
            .filter(|heard| attr::med(&heard.attributes) == Some(3))
            .count()
    };
    for n in [2, 3] {
        assert_eq!(
            (
                net.ear(n).routes.len(),
                with_med(net.ear(n)),
                net.ear(n).noise
            ),
            (384, 16, 0)
        );
    }
    // Two attribute sets in 10.0.0.0/12, and one message of withdrawals.
    assert_eq!(net.ear(2).updates, before + 3);
    // An equal policy that was compiled again changes nothing.
    set(&mut net, &[2, 3], &Policy::accept(), &marks(3));
    net.settle();
    assert_eq!(net.ear(2).updates, before + 3);
    // Only one of the two gets a new policy: it leaves the group.
    set(&mut net, &[3], &Policy::accept(), &Policy::accept());
    net.settle();
    assert_eq!((net.ear(3).routes.len(), with_med(net.ear(3))), (400, 0));
    assert_eq!(
        (net.ear(2).routes.len(), net.ear(2).updates),
        (384, before + 3)
    );
    assert_eq!(net.ear(3).updates, before + 3 + 2, "one for each set again");
    net.unsay(1, &["10.1.0.0/16"]);
    net.settle();
    assert_eq!([2, 3].map(|n| net.ear(n).routes.len()), [383, 399]);
    for n in [2, 3] {
        let counts = net.rib.peer_counts(PeerId(n), FamilyId::Ipv4Unicast);
        assert_eq!(counts.sent as usize, net.ear(n).routes.len());
    }
}

#[test]
fn a_new_import_policy_judges_what_was_received_again() {
    let mut net = loaded();
    let before = net.ear(2).updates;
    let policy = compiled(vec![accept(TermSpec {
        prefix: one("10.0.0.0/8 le 32"),
        ..TermSpec::default()
    })]);
    set(&mut net, &[1], &policy, &Policy::accept());
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 200);
    assert_eq!(
        net.rib.counts(FamilyId::Ipv4Unicast),
        (400, 400),
        "denied ones are kept"
    );
    assert_eq!(net.ear(2).updates, before + 1, "withdrawals only");
    set(&mut net, &[1], &Policy::accept(), &Policy::accept());
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 400);
}

#[test]
fn new_authorisations_judge_routes_again_where_a_policy_asks_them() {
    let mut net = loaded();
    let policy = compiled(vec![
        TermSpec {
            rpki: one("invalid"),
            then: Then::Deny,
            ..TermSpec::default()
        },
        accept(TermSpec::default()),
    ]);
    set(&mut net, &[1], &policy, &Policy::accept());
    net.settle();
    assert_eq!(net.ear(2).routes.len(), 400);
    let roa = Roa {
        prefix: p("10.0.0.0/8"),
        len_max: 16,
        asn: 3,
    };
    let all = [(PeerId(1), Arc::clone(&policy), Policy::accept())];
    net.rib.set_policies(all, Arc::new(Roas::from_iter([roa])));
    net.settle();
    assert_eq!(
        net.ear(2).routes.len(),
        210,
        "those of AS 3, and 11.0.0.0/8"
    );
}
