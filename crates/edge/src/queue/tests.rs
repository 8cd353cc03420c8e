use super::*;
use hqos::spec::Node;

fn template(name: &str) -> Template {
    Template {
        name: name.to_owned(),
        ..Template::default()
    }
}

fn node(name: &str, parent: Option<u32>, down: u64, up: u64) -> Node {
    Node {
        name: name.to_owned(),
        parent: parent.map(NodeId),
        rates: Rates { down, up },
        weight: 1,
    }
}

/// Two templates, of which gold has rates, and a link below another.
fn queues() -> Queues {
    let plan = Plan {
        templates: vec![template("gold"), template("slow")],
        nodes: vec![
            node("access-7", Some(1), 100, 50),
            node("uplink", None, 80, 0),
        ],
    };
    let rates = vec![[Some(40), Some(20)], [Some(1), None]];
    Queues::new(plan, rates, Defaults::default()).expect("a plan without faults")
}

fn rates(down: Option<u64>, up: Option<u64>) -> Queue {
    Queue {
        rates_bps: [down, up],
        ..Queue::default()
    }
}

fn named(template: &str) -> Queue {
    Queue::default().with_template(Some(template))
}

fn on(link: &str) -> Queue {
    Queue {
        link: Some(link.into()),
        ..Queue::default()
    }
}

#[test]
fn the_strongest_source_decides_each_part_of_its_own() {
    let (command, radius) = (rates(Some(7), None), rates(Some(9), Some(8)));
    let (pool, all) = (named("slow"), on("access-7"));
    let (setting, faults) = queues().resolve(&[
        (Source::Command, &command),
        (Source::Radius, &radius),
        (Source::Pool, &pool),
        (Source::Default, &all),
    ]);
    let setting = setting.expect("a setting");
    assert_eq!(faults, []);
    assert_eq!(setting.shape.rates, Rates { down: 7, up: 8 });
    assert_eq!(
        (&*setting.template, setting.link.as_deref()),
        ("slow", Some("access-7"))
    );
    assert_eq!(
        setting.rate_sources,
        [Some(Source::Command), Some(Source::Radius)]
    );
    assert_eq!(setting.template_source, Some(Source::Pool));
    assert_eq!(setting.link_source, Some(Source::Default));
    assert_eq!(setting.needed(), Some(setting.shape));
}

#[test]
fn the_rates_of_a_template_count_as_those_of_the_source_that_names_it() {
    let queues = queues();
    let resolve = |first: &Queue, second: &Queue| {
        let sources = [(Source::Radius, first), (Source::Default, second)];
        queues.resolve(&sources).0.expect("a setting")
    };
    let setting = resolve(&named("gold"), &rates(Some(5), Some(5)));
    assert_eq!(setting.shape.rates, Rates { down: 40, up: 20 });
    let setting = resolve(&rates(Some(5), None), &named("gold"));
    assert_eq!(setting.shape.rates, Rates { down: 5, up: 20 });
    // A template without a rate up leaves it to the next source.
    let setting = resolve(&named("slow"), &named("gold"));
    assert_eq!(setting.shape.rates, Rates { down: 1, up: 20 });
    assert_eq!(&*setting.template, "slow");
}

#[test]
fn a_template_for_each_direction_gives_the_rate_of_that_direction() {
    let queue = Queue {
        templates: [Some("slow".into()), Some("gold".into())],
        ..Queue::default()
    };
    let (setting, faults) = queues().resolve(&[(Source::Radius, &queue)]);
    let setting = setting.expect("a setting");
    assert_eq!(
        (setting.shape.rates, &*setting.template, faults.len()),
        (Rates { down: 1, up: 20 }, "slow", 0)
    );
}

#[test]
fn no_limit_is_a_decision_too() {
    let (none, all) = (rates(Some(0), None), rates(Some(9), None));
    let sources = [(Source::User, &none), (Source::Default, &all)];
    let setting = queues().resolve(&sources).0.expect("a setting");
    assert_eq!(setting.rate_bps(Way::Down), None);
    assert_eq!(setting.rate_sources, [Some(Source::User), None]);
    assert_eq!((setting.needed(), &*setting.template), (None, "default"));
}

#[test]
fn names_that_do_not_exist_leave_the_decision_to_the_next_source() {
    let first = Queue {
        link: Some("nowhere".into()),
        ..named("platinum")
    };
    let second = Queue {
        link: Some("uplink".into()),
        ..named("slow")
    };
    let sources = [(Source::Radius, &first), (Source::Default, &second)];
    let (setting, faults) = queues().resolve(&sources);
    let setting = setting.expect("a setting");
    assert_eq!(
        (&*setting.template, setting.link.as_deref()),
        ("slow", Some("uplink"))
    );
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "there is no template \"platinum\" (radius)",
            "there is no link \"nowhere\" (radius)"
        ]
    );
    assert_eq!(queues().resolve(&[(Source::Radius, &first)]).0, None);
}

#[test]
fn a_rate_above_that_of_a_link_or_of_one_above_it_is_told() {
    let queue = Queue {
        link: Some("access-7".into()),
        ..rates(Some(90), Some(51))
    };
    let (_, faults) = queues().resolve(&[(Source::Radius, &queue)]);
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "link uplink has 80 bit/s down: 90 bit/s is more than the whole link",
            "link access-7 has 50 bit/s up: 51 bit/s is more than the whole link"
        ]
    );
}

#[test]
fn what_is_promised_counts_the_links_below() {
    let one = |subscribers, down| LinkUse {
        subscribers,
        rates_bps: [down, 0],
    };
    let uses = [("access-7", one(3, 30)), ("uplink", one(1, 5))];
    let uses: HashMap<Arc<str>, LinkUse> = uses.map(|(name, one)| (name.into(), one)).into();
    let promised = |link| queues().promised(link, Way::Down, &uses);
    assert_eq!(
        (promised("access-7"), promised("uplink")),
        ((3, 30), (4, 35))
    );
}

#[test]
fn a_line_is_of_the_sessions_that_fulfil_all_of_its_conditions() {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let peer = Peer {
        name: b"lac-7",
        own_name: b"lns",
        addresses: Some((address("192.0.2.7"), address("198.51.100.1"))),
    };
    let line = Line {
        local: Some(address("198.51.100.1")),
        peer: Prefix::new(address("192.0.2.0"), 24),
        host_name: Some("lac-7".into()),
        queue: Queue::default(),
    };
    assert!(line.is_of(&peer));
    assert!(
        Line {
            local: None,
            peer: None,
            ..line.clone()
        }
        .is_of(&peer)
    );
    for other in [
        Line {
            local: Some(address("198.51.100.2")),
            ..line.clone()
        },
        Line {
            peer: Prefix::new(address("192.0.3.0"), 24),
            ..line.clone()
        },
        Line {
            host_name: Some("lac-8".into()),
            ..line.clone()
        },
    ] {
        assert!(!other.is_of(&peer), "{other:?}");
    }
    assert!(!line.is_of(&Peer {
        addresses: None,
        ..peer
    }));
}
