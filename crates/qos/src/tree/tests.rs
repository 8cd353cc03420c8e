use super::*;
use crate::classify::{FlowMatch, Match, Ports};
use crate::fifo::Limit;
use crate::htb::ClassOptions;
use crate::packet::Packet;
use crate::{fair, fq_codel, tbf};

fn class(minor: u16, parent: Option<u16>) -> ClassOptions {
    ClassOptions {
        minor,
        parent,
        rate_bps: 1_000_000,
        ceil_bps: 2_000_000,
        burst: 6_000,
        cburst: 6_000,
        priority: 1,
        quantum: None,
    }
}

fn home() -> Spec {
    let ssh = Match {
        innermost: FlowMatch {
            proto: Some(6),
            proto_dst: Some(Ports::one(22)),
            ..FlowMatch::default()
        },
        ..Match::default()
    };
    Spec::Htb(HtbSpec {
        mtu: 1_514,
        classes: vec![class(1, None), class(0x10, Some(1)), class(0x20, Some(1))],
        leaves: vec![
            (0x10, Spec::FqCodel(fq_codel::Options::default())),
            (0x20, Spec::Fair(fair::Options::default())),
        ],
        classifier: Some(Classifier::Rules(vec![(ssh, 0x10)])),
        default: Some(0x20),
        direct_limit: 10,
    })
}

#[test]
fn a_walk_meets_every_discipline_and_class_once_after_what_is_above_it() {
    let tree = Tree::new(&home(), 1, Instant::ZERO).expect("fits");
    let nodes = tree.walk();
    let shown: Vec<_> = nodes
        .iter()
        .map(|node| {
            (
                node.kind,
                node.is_class,
                node.handle.as_str(),
                node.parent.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("htb", false, "1:", None),
            ("htb", true, "1:1", Some("1:")),
            ("htb", true, "1:10", Some("1:1")),
            ("htb", true, "1:20", Some("1:1")),
            ("fq_codel", false, "10:", Some("1:10")),
            ("fair", false, "20:", Some("1:20")),
        ]
    );
    assert_eq!(nodes[0].options, "default 0x20 direct_qlen 10");
    assert_eq!(
        nodes[2].options,
        "prio 1 rate 1Mbit ceil 2Mbit burst 6000b cburst 6000b"
    );
    assert!(nodes[5].options.ends_with("target 5ms interval 100ms ecn"));
    let rules: Vec<_> = nodes[0]
        .rules
        .iter()
        .map(|rule| (rule.what.as_str(), rule.class.as_str()))
        .collect();
    assert_eq!(
        rules,
        [
            ("innermost-proto 6 innermost-proto-dst 22", "1:10"),
            ("else", "1:20")
        ]
    );
}

#[test]
fn a_number_that_is_taken_goes_to_nobody_else() {
    let leaf = || Spec::Fifo(Limit::Packets(1));
    let nested = Spec::Prio(PrioSpec {
        bands: vec![
            leaf(),
            leaf(),
            Spec::Prio(PrioSpec {
                bands: vec![leaf(), leaf()],
                classifier: None,
                priomap: crate::classify::Bands::DSCP,
            }),
        ],
        classifier: None,
        priomap: crate::classify::Bands::DSCP,
    });
    let tree = Tree::new(&nested, 1, Instant::ZERO).expect("fits");
    let mut handles: Vec<String> = tree.walk().into_iter().map(|node| node.handle).collect();
    let count = handles.len();
    handles.sort();
    handles.dedup();
    assert_eq!((handles.len(), count), (11, 11));
}

#[test]
fn what_was_counted_stays_with_its_place_and_kind() {
    let mut pool = Pool::new(10);
    let mut tree = Tree::new(&home(), 1, Instant::ZERO).expect("fits");
    let send = |tree: &mut Tree, pool: &mut Pool| {
        let packet = Packet {
            length: 100,
            ..Packet::default()
        };
        let id = pool.insert(packet).expect("room");
        tree.enqueue(pool, id, Instant::ZERO);
        let id = tree.dequeue(pool, Instant::ZERO).expect("within the burst");
        pool.take(id);
    };
    send(&mut tree, &mut pool);
    let mut other = home();
    if let Spec::Htb(htb) = &mut other {
        htb.leaves[1].1 = Spec::Fifo(Limit::Packets(10));
    }
    tree.change(&other, &mut pool, Instant::ZERO).expect("fits");
    send(&mut tree, &mut pool);
    tree.change(&home(), &mut pool, Instant::ZERO)
        .expect("fits");
    send(&mut tree, &mut pool);
    let sent = |handle: &str| {
        let mut nodes = tree.walk().into_iter();
        let node = nodes.find(|node| node.handle == handle);
        node.expect("there").statistics.sent_packets
    };
    assert_eq!(
        [sent("1:"), sent("1:1"), sent("1:20"), sent("1:10")],
        [3, 3, 3, 0]
    );
    assert_eq!(sent("20:"), 2, "a fifo sent the other");
    assert_eq!(tree.statistics().sent_packets, 3);
}

#[test]
fn a_shaper_in_a_new_place_starts_empty() {
    let mut pool = Pool::new(10);
    let fifo = Spec::Fifo(Limit::Packets(10));
    let mut tree = Tree::new(&fifo, 1, Instant::ZERO).expect("fits");
    let packet = Packet {
        length: 1_000,
        ..Packet::default()
    };
    let id = pool.insert(packet).expect("room");
    tree.enqueue(&mut pool, id, Instant::ZERO);
    let shaped = Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps: 8_000_000,
            burst: 2_000,
            peak: None,
        },
        child: Box::new(fifo),
    });
    tree.change(&shaped, &mut pool, Instant::ZERO)
        .expect("fits");
    assert_eq!(
        tree.next_time(Instant::ZERO),
        Some(Instant::from_nanos(1_000_000))
    );
}
