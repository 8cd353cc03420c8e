//! Rates, templates and links of subscribers.

use std::sync::Arc;

use aaa::queue::Way;
use aaa::{Change, Queue};
use edge::queue::{Defaults, Line};
use edge::{ChangeRefusal, Config, End, Queues, Source, SubscriberKey};
use hqos::spec::{Node, NodeId, Plan, Rates, Template};

use crate::stage::{Stage, lns_config};

const MBIT: u64 = 1_000_000;

/// A template `gold` and a link below another; `strict` as given.
fn queues(all: Queue, strict: bool) -> Arc<Queues> {
    let gold = Template {
        name: "gold".to_owned(),
        ..Template::default()
    };
    let node = |name: &str, parent, down| Node {
        name: name.to_owned(),
        parent,
        rates: Rates { down, up: 0 },
        weight: 1,
    };
    let plan = Plan {
        templates: vec![gold],
        nodes: vec![
            node("access", Some(NodeId(1)), 100 * MBIT),
            node("uplink", None, 1_000 * MBIT),
        ],
    };
    let lines = vec![Line {
        host_name: Some("lac".into()),
        queue: rates(None, Some(3 * MBIT)),
        ..Line::default()
    }];
    let pools = [("home".into(), rates(Some(9 * MBIT), None))].into();
    let defaults = Defaults {
        all,
        pools,
        lines,
        strict,
    };
    let rates = vec![[Some(50 * MBIT), None]];
    Arc::new(Queues::new(plan, rates, defaults).expect("a plan without faults"))
}

fn rates(down: Option<u64>, up: Option<u64>) -> Queue {
    Queue {
        rates_bps: [down, up],
        ..Queue::default()
    }
}

fn named(template: &str, link: Option<&str>) -> Queue {
    Queue {
        link: link.map(Into::into),
        ..Queue::default().with_template(Some(template))
    }
}

fn config(queues: Arc<Queues>) -> Config {
    Config {
        queues,
        ..lns_config()
    }
}

/// A command that changes queues.
fn set(
    stage: &mut Stage,
    key: SubscriberKey,
    queue: &Queue,
    reset_queue: bool,
) -> Result<(), ChangeRefusal> {
    let change = Change {
        queue: queue.clone(),
        reset_queue,
        ..Change::default()
    };
    stage.lns.change_sessions(&[key], &change, stage.now)
}

fn rates_of(stage: &Stage, key: SubscriberKey) -> [Option<u64>; 2] {
    let view = stage.lns.subscriber(key).expect("a subscriber");
    let queue = view.queue.expect("queues");
    Way::ALL.map(|way| queue.rate_bps(way))
}

#[test]
fn pool_line_and_default_decide_for_one_without_rates_of_its_own() {
    let all = Queue {
        link: Some("access".into()),
        ..rates(Some(1), Some(1))
    };
    let mut stage = Stage::new(config(queues(all, false)));
    stage.dial("alice", "sesame");
    let queue = stage.lns.subscriber(stage.up[0]).unwrap().queue.unwrap();
    assert_eq!(stage.lns.shape(stage.up[0]), Some(queue.shape));
    assert_eq!(queue.rate_sources[0], Some(Source::Pool));
    assert_eq!(queue.rate_bps(Way::Down), Some(9 * MBIT));
    assert_eq!(queue.rate_sources[1], Some(Source::Line));
    assert_eq!(queue.rate_bps(Way::Up), Some(3 * MBIT));
    assert_eq!(queue.link_source, Some(Source::Default));
}

#[test]
fn a_filter_id_that_names_no_filter_may_name_a_template() {
    let mut stage = Stage::new(config(queues(Queue::default(), true)));
    stage.profile.filter = Some("gold".into());
    stage.dial("alice", "sesame");
    let view = stage.lns.subscriber(stage.up[0]).unwrap();
    assert_eq!(&*view.queue.unwrap().template, "gold");
    assert_eq!(rates_of(&stage, stage.up[0])[0], Some(50 * MBIT));
    stage.profile.filter = Some("platinum".into());
    stage.dial("bob", "sesame");
    let reason = stage.ended.pop().unwrap().1;
    assert_eq!(reason, End::Refused("there is no filter platinum".into()));
}

#[test]
fn an_unknown_template_is_left_out_or_refuses_if_the_configuration_is_strict() {
    for strict in [false, true] {
        let mut stage = Stage::new(config(queues(Queue::default(), strict)));
        stage.profile.queue = named("platinum", None);
        stage.dial("alice", "sesame");
        assert_eq!(stage.up.len(), usize::from(!strict));
        let faults = stage.lns.counts().queue_faults;
        assert_eq!(faults, u64::from(!strict));
        if strict {
            let reason = stage.ended.pop().unwrap().1.to_string();
            assert!(
                reason.contains("there is no template \"platinum\""),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_command_replaces_what_it_names_and_a_reset_forgets_it() {
    let mut stage = Stage::new(config(queues(named("gold", Some("access")), false)));
    stage.dial("alice", "sesame");
    let key = stage.up[0];
    assert_eq!(rates_of(&stage, key)[0], Some(9 * MBIT));
    set(&mut stage, key, &rates(Some(60 * MBIT), None), false).expect("a change");
    assert_eq!(rates_of(&stage, key)[0], Some(60 * MBIT));
    // A second command keeps what the first one set.
    let up = rates(None, Some(MBIT));
    set(&mut stage, key, &up, false).expect("a change");
    assert_eq!(rates_of(&stage, key), [Some(60 * MBIT), Some(MBIT)]);
    let shape = stage.lns.shape(key).expect("a shape");
    assert_eq!((shape.rates.down, shape.rates.up), (60 * MBIT, MBIT));
    let none = Queue::default();
    set(&mut stage, key, &none, true).expect("a change");
    assert_eq!(rates_of(&stage, key)[0], Some(9 * MBIT));
}

#[test]
fn a_rate_above_the_link_is_refused_with_what_the_link_has() {
    let mut stage = Stage::new(config(queues(named("gold", Some("access")), false)));
    stage.dial("alice", "sesame");
    stage.dial("bob", "sesame");
    let key = stage.up[0];
    let refused = set(&mut stage, key, &rates(Some(101 * MBIT), None), false);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "link access has 100 Mbit/s down, of which 2 subscribers may use 18 Mbit/s: 101 Mbit/s is more than the whole link"
    );
    assert_eq!(rates_of(&stage, key)[0], Some(9 * MBIT));
    // On the uplink it fits.
    let uplink = Queue {
        link: Some("uplink".into()),
        ..rates(Some(101 * MBIT), None)
    };
    set(&mut stage, key, &uplink, false).expect("a change");
    // One who has gone is on no link.
    let second = stage.up[1];
    stage
        .lns
        .drop_subscriber(second, End::Administrator, stage.now);
    stage.pass(base::Duration::from_secs(10));
    let back = named("gold", Some("access"));
    let refused = set(&mut stage, key, &back, false).unwrap_err().to_string();
    assert_eq!(
        refused,
        "link access has 100 Mbit/s down: 101 Mbit/s is more than the whole link"
    );
}

#[test]
fn a_new_configuration_reaches_connected_subscribers() {
    let mut stage = Stage::new(config(queues(named("gold", Some("access")), false)));
    stage.profile.queue = rates(None, Some(2 * MBIT));
    stage.dial("alice", "sesame");
    let key = stage.up[0];
    let faster = rates(Some(70 * MBIT), None);
    set(&mut stage, key, &faster, false).expect("a change");
    let plan = Plan {
        templates: vec![Template {
            name: "silver".to_owned(),
            ..Template::default()
        }],
        nodes: Vec::new(),
    };
    let defaults = Defaults {
        all: named("silver", None),
        ..Defaults::default()
    };
    let new = Queues::new(plan, Vec::new(), defaults).expect("a plan without faults");
    stage.lns.set_config(config(Arc::new(new)), stage.now);
    stage.pass(base::Duration::from_secs(1));
    let queue = stage.lns.subscriber(key).unwrap().queue.unwrap().clone();
    assert_eq!((&*queue.template, queue.link), ("silver", None));
    assert_eq!(rates_of(&stage, key), [Some(70 * MBIT), Some(2 * MBIT)]);
    let shape = stage.lns.shape(key).expect("a shape");
    assert_eq!((shape.rates.down, shape.node), (70 * MBIT, None));
    let template = usize::from(shape.template.0);
    assert_eq!(stage.lns.plan().templates[template].name, "silver");
}

#[test]
fn a_subscriber_that_nothing_is_said_about_has_no_queues() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let view = stage.lns.subscriber(stage.up[0]).unwrap();
    assert_eq!(view.queue, None);
    assert_eq!(stage.lns.shape(stage.up[0]), None);
}
