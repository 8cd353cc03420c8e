//! Subscribers with queues: rates, counters, numbered sessions, several paths, changes and removal.

use core::net::Ipv4Addr;

use base::{Duration, Instant};
use edge::{Discard, SubscriberKey, Taken};
use hqos::spec::{Depth, Node, NodeId, Rates, Template, TemplateId};
use hqos::{Fault, Plan, Shape};
use l2tp::Call;

use crate::packets::{FAR, udp};
use crate::stage::{Datagrams, LAC, LNS, Packets, Stage, from_tun, lns_config, route};

fn shape(down: u64, up: u64) -> Shape {
    Shape {
        rates: Rates { down, up },
        template: TemplateId(0),
        node: None,
    }
}

fn shaped(call: Call, shape: Shape) -> (Stage, SubscriberKey, Ipv4Addr) {
    let mut stage = Stage::new(lns_config());
    stage.shape = Some(shape);
    stage.dial_call("alice", "sesame", call);
    let key = stage.up[0];
    let address = stage.lns.subscriber(key).unwrap().address.unwrap();
    (stage, key, address)
}

/// Sends what may leave; returns the datagrams, which reach the client.
fn drain(stage: &mut Stage) -> usize {
    let mut outside = Datagrams::default();
    while stage.lns.drain(stage.now, &mut outside, &mut stage.inside) {}
    for datagram in &outside.sent {
        stage
            .lac
            .receive(route(LNS), datagram, stage.now, &mut stage.client_inside);
    }
    outside.sent.len()
}

/// Offers a packet down and one up every millisecond.
fn offer(stage: &mut Stage, address: Ipv4Addr, ms: u64) {
    for _ in 0..ms {
        for _ in 0..4 {
            stage.down_stream(&udp(FAR, address, 1_000, true));
            stage.up_stream(&udp(address, FAR, 1_000, true));
        }
        drain(stage);
        stage.now += Duration::from_millis(1);
    }
}

#[test]
fn a_shaped_subscriber_gets_its_rates() {
    for numbered in [false, true] {
        let call = Call {
            sequencing: numbered,
            ..Call::default()
        };
        let (mut stage, key, address) = shaped(call, shape(10_000_000, 2_000_000));
        offer(&mut stage, address, 2_000);
        let [down, up] = [&stage.client_inside, &stage.inside]
            .map(|packets| packets.0.iter().map(Vec::len).sum::<usize>() as f64 * 8.0 / 2.0);
        assert!((9.9e6..10.1e6).contains(&down), "{down}");
        assert!((1.98e6..2.05e6).contains(&up), "{up}");
        let traffic = stage.lns.subscriber(key).unwrap().traffic;
        assert_eq!(traffic.packets_out as usize, stage.client_inside.0.len());
        assert_eq!(traffic.packets_in as usize, stage.inside.0.len());
        assert_eq!(traffic.dropped, stage.lns.discarded(Discard::Queue));
        let views = stage.lns.queue(key, 4).unwrap();
        let dropped: u64 = views.iter().map(|view| view.counts.dropped).sum();
        let queued: u32 = views.iter().map(|view| view.packets).sum();
        assert_eq!(traffic.dropped, dropped);
        let offered = traffic.packets_in + traffic.packets_out + dropped + u64::from(queued);
        assert_eq!(offered, 16_000);
        assert_eq!(views.map(|view| view.hosts.len()), [1, 1]);
    }
}

#[test]
fn packets_below_the_rate_pass_at_once_and_leave_no_timer() {
    let (mut stage, key, address) = shaped(Call::default(), shape(10_000_000, 10_000_000));
    for _ in 0..100 {
        let packet = udp(FAR, address, 700, true);
        stage.down_stream(&packet);
        assert_eq!(stage.client_inside.0.pop(), Some(packet));
        assert_eq!(stage.lns.next_drain(), None);
        stage.now += Duration::from_millis(1);
    }
    let [down, _] = stage.lns.queue(key, 0).unwrap();
    assert_eq!((down.counts.passed, down.counts.queued), (100, 0));
}

/// With an edge of two paths, the first shaped subscriber is on the second one.
#[test]
fn a_path_hands_packets_to_the_one_with_the_queues() {
    let mut stage = Stage::new(edge::Config {
        paths: 2,
        ..lns_config()
    });
    let mut path = stage.lns.replica(1);
    stage.dial("alice", "sesame");
    let key = stage.up[0];
    let address = stage.lns.subscriber(key).unwrap().address.unwrap();
    let mut sent = Vec::new();
    for given in [None, Some(shape(1_000_000, 1_000_000)), None] {
        assert_eq!(stage.lns.set_shape(key, given, stage.now), Ok(true));
        assert_eq!(stage.lns.home(key), given.map(|_| 1));
        while let Some(change) = stage.lns.poll_change() {
            path.apply(change);
        }
        let (mut inside, mut outside) = (Packets::default(), Datagrams::default());
        stage.up_stream(&udp(address, FAR, 10, true));
        stage.down_stream(&udp(FAR, address, 10, true));
        let mut batches = Vec::new();
        stage.lns.poll_handovers(&mut batches);
        for (to, batch) in &batches {
            assert_eq!((*to, batch.len()), (1, 2));
            path.take_handover(batch, stage.now, &mut outside, &mut inside);
        }
        sent.push((batches.len(), inside.0.len(), outside.sent.len()));
        let up = stage.datagrams_up(&udp(address, FAR, 10, true)).remove(0);
        let mut down = from_tun(&udp(FAR, address, 10, true));
        let taken = path.receive(&route(LAC), &up, stage.now, &mut inside);
        assert_eq!(taken, Taken::Done);
        let taken = path.forward(&mut down, stage.now, &mut outside);
        assert_eq!(taken, Taken::Done);
        path.poll_handovers(&mut batches);
        assert_eq!(
            (inside.0.len(), outside.sent.len()),
            match given {
                None => (1, 1),
                Some(_) => (2, 2),
            }
        );
    }
    assert_eq!(sent, [(0, 0, 0), (1, 1, 1), (0, 0, 0)]);
    assert_eq!(stage.inside.0.len(), 2);
}

#[test]
fn a_changed_rate_loses_nothing_and_without_a_shape_packets_pass() {
    let (mut stage, key, address) = shaped(Call::default(), shape(100_000, 0));
    for _ in 0..50 {
        stage.down_stream(&udp(FAR, address, 1_000, true));
    }
    let passed = stage.client_inside.0.len();
    assert_eq!(drain(&mut stage), 0);
    assert!(stage.lns.next_drain() > Some(Instant::ZERO));
    assert_eq!(
        stage.lns.set_shape(key, Some(shape(0, 0)), stage.now),
        Ok(true)
    );
    assert_eq!(stage.lns.next_drain(), Some(Instant::ZERO));
    assert_eq!(drain(&mut stage), 50 - passed);
    assert_eq!(stage.lns.set_shape(key, None, stage.now), Ok(true));
    assert_eq!(
        (stage.lns.shape(key), stage.lns.queue(key, 1)),
        (None, None)
    );
    stage.down_stream(&udp(FAR, address, 1_000, true));
    assert_eq!(stage.client_inside.0.len(), 51);
}

#[test]
fn a_subscriber_that_ends_takes_its_packets_with_it() {
    let (mut stage, key, address) = shaped(Call::default(), shape(1_000, 1_000));
    for _ in 0..50 {
        stage.down_stream(&udp(FAR, address, 1_000, true));
    }
    assert!(stage.lns.next_drain().is_some());
    assert!(
        stage
            .lns
            .drop_subscriber(key, edge::End::Administrator, stage.now)
    );
    stage.settle();
    stage.pass(Duration::from_secs(30));
    assert_eq!(stage.ended.len(), 1);
    assert_eq!((stage.lns.next_drain(), drain(&mut stage)), (None, 0));
    assert_eq!(
        stage.lns.set_shape(key, Some(shape(0, 0)), stage.now),
        Ok(false)
    );
}

#[test]
fn a_shape_of_an_unknown_link_is_refused_and_a_removed_link_is_left() {
    let (mut stage, key, _) = shaped(Call::default(), shape(5_000, 5_000));
    let node = |name: &str, down| Node {
        name: name.into(),
        parent: None,
        rates: Rates { down, up: 0 },
        weight: 1,
    };
    let template = Template {
        depth: Depth {
            packets: 10,
            octets: 20_000,
        },
        ..Template::default()
    };
    let plan = Plan {
        templates: vec![template],
        nodes: vec![node("olt-1", 1_000_000)],
    };
    stage.lns.set_plan(plan, stage.now).unwrap();
    let wanted = Shape {
        node: Some(NodeId(0)),
        ..shape(2_000_000, 0)
    };
    let above = stage.lns.plan().check_shape(&wanted);
    let limit = 1_000_000;
    assert!(matches!(above, Err(Fault::Exceeds { limit: found, .. }) if found == limit));
    let unknown = Shape {
        node: Some(NodeId(1)),
        ..wanted
    };
    let refused = stage.lns.set_shape(key, Some(unknown), stage.now);
    assert_eq!(refused, Err(Fault::NoNode(NodeId(1))));
    assert_eq!(stage.lns.shape(key), Some(shape(5_000, 5_000)));
    let fits = Shape {
        rates: Rates {
            down: 1_000_000,
            up: 0,
        },
        ..wanted
    };
    assert_eq!(stage.lns.set_shape(key, Some(fits), stage.now), Ok(true));
    // The link changes its place in the plan, and goes.
    let plan = |nodes| Plan {
        templates: vec![Template::default()],
        nodes,
    };
    let nodes = vec![node("uplink", 0), node("olt-1", 9_000)];
    stage.lns.set_plan(plan(nodes), stage.now).unwrap();
    assert_eq!(stage.lns.shape(key).unwrap().node, Some(NodeId(1)));
    assert_eq!(stage.lns.queue(key, 0).unwrap()[0].nodes, ["olt-1"]);
    stage.lns.set_plan(plan(Vec::new()), stage.now).unwrap();
    assert_eq!(stage.lns.shape(key).unwrap().node, None);
}
