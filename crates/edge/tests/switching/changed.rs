//! Changes of a session that an LNS has, and its end by its LAC.

use aaa::{Change, Queue, Walled};
use base::Duration;
use edge::access::Either::First;
use edge::{ChangeRefusal, End, Entry};
use l2tp::SessionEnd;

use crate::handed::chain;
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);

/// A chain whose host is connected.
fn connected(seed: u64) -> World {
    let mut world = chain(seed);
    world.dial(0, "ann@isp", None);
    world.pass(SECOND);
    assert!(world.address_of(0).is_some());
    world
}

/// Changes the concentrator's only subscriber.
fn change(world: &mut World, change: &Change) -> Result<(), ChangeRefusal> {
    let edge = &mut world.nodes[1].edge;
    let (_, view) = edge.next_subscriber(0).unwrap();
    edge.change_sessions(&[view.key], change, world.now)
}

/// RFC 5176, section 3.5, 401: what has no effect is refused, and all of the request with it.
#[test]
fn parts_that_are_the_lns_s_are_refused_and_nothing_changes() {
    let mut world = connected(1);
    let network = aaa::Prefix::new("10.70.0.0".parse().unwrap(), 24).unwrap();
    let mut routes = Change::default();
    routes.route(network);
    let rates = Queue {
        rates_bps: [Some(10_000_000), None],
        link: Some("ring".into()),
        ..Queue::default()
    };
    let parts = [
        (
            "its queues",
            Change {
                queue: rates,
                ..Change::default()
            },
        ),
        (
            "its queues",
            Change {
                reset_queue: true,
                ..Change::default()
            },
        ),
        (
            "its walled garden",
            Change {
                garden: Some(Walled::Out),
                ..Change::default()
            },
        ),
        ("the networks behind it", routes),
    ];
    for (what, part) in parts {
        let both = Change {
            session_timeout: Some(Duration::from_secs(9)),
            ..part
        };
        let refused = Err(ChangeRefusal::Switched(what));
        assert_eq!(change(&mut world, &both), refused);
    }
    world.pass(Duration::from_secs(20));
    assert!(world.address_of(0).is_some(), "no time-out was set");
}

#[test]
fn times_and_class_have_effect() {
    let mut world = connected(2);
    let class: Box<[u8]> = b"gold"[..].into();
    let times = Change {
        session_timeout: Some(Duration::from_secs(30)),
        interim_interval: Some(Duration::from_secs(10)),
        class: Some(vec![class.clone()]),
        ..Change::default()
    };
    assert_eq!(change(&mut world, &times), Ok(()));
    world.pass(Duration::from_secs(25));
    assert!(world.address_of(0).is_some());
    world.pass(Duration::from_secs(30));
    for n in 0..3 {
        assert_eq!(world.sessions(n), (0, 0), "node {n}");
    }
    assert_eq!(world.nodes[1].ended, [End::SessionTimeout]);
    let accounts = &world.nodes[1].accounts;
    let interims = (accounts.iter()).filter(|one| one.entry == Entry::Interim);
    assert_eq!(interims.count(), 2);
    assert!(accounts[1..].iter().all(|one| one.class == [class.clone()]));
}

/// RFC 5176, section 2.1.
#[test]
fn a_disconnect_request_ends_both_halves() {
    let mut world = connected(3);
    let edge = &mut world.nodes[1].edge;
    let (_, view) = edge.next_subscriber(0).unwrap();
    assert!(edge.drop_subscriber(view.key, End::Disconnected, world.now));
    world.pass(Duration::from_secs(30));
    for n in 0..3 {
        assert_eq!(world.sessions(n), (0, 0), "node {n}");
    }
    assert_eq!(world.nodes[1].ended, [End::Disconnected]);
}

/// RFC 5515, section 4: new rates of a line reach the LNS that has its session.
#[test]
fn new_rates_are_reported_to_the_lns() {
    let mut world = connected(4);
    let rates = Change {
        queue: Queue {
            rates_bps: [Some(100_000_000), Some(40_000_000)],
            ..Queue::default()
        },
        ..Change::default()
    };
    assert_eq!(change(&mut world, &rates), Ok(()));
    world.pass(SECOND);
    let speeds = |world: &World, node: usize| {
        let endpoint = world.nodes[node].edge.endpoint().l2tp();
        let (_, session) = endpoint.next_session(0).unwrap();
        let details = session.details.unwrap();
        (details.tx_speed_bps, details.rx_speed_bps)
    };
    assert_eq!(speeds(&world, 2), (100_000_000, 40_000_000));
    assert_eq!(world.nodes[1].edge.switch_counts().speeds_reported, 1);
    // One direction alone keeps the other one's speed.
    let up = Change {
        queue: Queue {
            rates_bps: [None, Some(1_000_000)],
            ..Queue::default()
        },
        ..Change::default()
    };
    assert_eq!(change(&mut world, &up), Ok(()));
    world.pass(SECOND);
    assert_eq!(speeds(&world, 2), (100_000_000, 1_000_000));
}

/// RFC 3145: what an LNS says about the end of PPP is kept at the LAC; the LNS receives an administrator's reason.
#[test]
fn each_side_reads_why_ppp_ended() {
    // The LNS refuses the password.
    let mut world = chain(5);
    world.dial(0, "mallory@isp", None);
    world.pass(Duration::from_secs(30));
    let code = |end: &End<crate::world::Reason>| match end {
        End::Lns(First(SessionEnd::Peer(notice)))
        | End::Session(First(SessionEnd::Peer(notice))) => notice
            .cause
            .as_ref()
            .map(|cause| (cause.code, cause.direction)),
        _ => None,
    };
    assert_eq!(
        code(&world.nodes[1].ended[0]),
        Some((16, 1)),
        "{:?}",
        world.nodes[1].ended
    );
    // An operator ends it at the LNS, and then at the LAC.
    let mut world = connected(6);
    crate::handed::hang_up(&mut world, 2);
    world.pass(Duration::from_secs(30));
    assert_eq!(
        code(&world.nodes[1].ended[0]),
        Some((1, 0)),
        "{:?}",
        world.nodes[1].ended
    );
    let mut world = connected(7);
    crate::handed::hang_up(&mut world, 1);
    world.pass(Duration::from_secs(30));
    assert_eq!(
        code(&world.nodes[2].ended[0]),
        Some((1, 0)),
        "{:?}",
        world.nodes[2].ended
    );
}
