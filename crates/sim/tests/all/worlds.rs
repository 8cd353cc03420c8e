//! Nodes, addresses, partitions, time: what a scenario does with a world.

use crate::toy::{Event, Stale, Toy};
use base::{Duration, Instant, Route};
use sim::{ADDRESS_A, ADDRESS_B, Fate, Link, Pair, Probe, World, addr};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn toys() -> Pair<Toy, Toy> {
    Pair::new(1, Link::CLEAN, Toy::sender(ADDRESS_B), Toy::echoer())
}

#[test]
fn a_partition_stops_everything_and_healing_lets_the_retry_through() {
    let mut pair = toys();
    pair.cut_link();
    pair.with_a(|a, now| a.send(1, now));
    pair.run_for(Duration::from_millis(3500));
    assert_eq!(pair.link_stats(pair.a, pair.b).cut, 4);
    assert!(pair.events_b().is_empty());
    pair.heal_link();
    assert!(pair.run_while(|w| w.now() < Instant::ZERO + MINUTE, MINUTE));
    assert_eq!(pair.events_a(), [Event::Acked(0)]);
    // The retry at 4 s and its echo.
    assert_eq!(pair.sent_by(pair.a).count(), 5);
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut pair = toys();
    let b = pair.b;
    pair.isolate(b);
    pair.with_a(|a, now| a.send(1, now));
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(
        pair.world.take_timed_events(pair.a),
        [(Instant::ZERO + SECOND.saturating_mul(10), Event::GaveUp(0))]
    );
    pair.rejoin(b);
    pair.with_a(|a, now| a.send(1, now));
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.events_a(), [Event::Acked(1)]);
}

#[test]
fn a_cut_loses_what_is_under_way() {
    let mut pair = toys();
    pair.with_a(|a, now| a.send(1, now));
    pair.run_for(Duration::from_millis(5));
    pair.cut_link();
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.log().next().unwrap().fate, Fate::Cut);
    assert!(pair.events_b().is_empty());
}

#[test]
fn a_thousand_idle_nodes_cost_no_steps() {
    let mut world = World::new(1);
    let idle: Vec<_> = (0..1000_u32)
        .map(|i| {
            let address = format!("10.0.{}.{}:1", i / 250, i % 250 + 1);
            let due = Some(Instant::ZERO + Duration::from_secs(3600));
            world.add(format!("idle{i}"), Toy::idle(due), [address.as_str()])
        })
        .collect();
    let polls = |world: &World| {
        idle.iter()
            .map(|node| world[*node].polls.get())
            .sum::<u32>()
    };
    assert_eq!(polls(&world), 1000);

    let echoer = world.add("echoer", Toy::echoer(), ["192.0.2.2:1"]);
    let sender = Toy::sender(world.address(echoer));
    let sender = world.add("sender", sender, ["192.0.2.1:1"]);
    world.with(sender, |m, now| m.send(10, now));
    world.run_for(Duration::from_secs(3599));
    assert_eq!(world[sender].waiting(), 0);
    // Ten messages, ten echoes; no idle node was asked for its deadline again.
    assert_eq!(world.steps(), 20);
    assert_eq!(polls(&world), 1000);

    world.run_for(SECOND);
    assert_eq!(world.steps(), 1020);
    assert!(world.run_until_idle(Duration::ZERO));
}

#[test]
fn time_jumps_to_what_is_next_and_no_further_than_asked() {
    let mut pair = toys();
    assert!(!pair.step());
    pair.run_for(SECOND);
    assert_eq!(pair.now(), Instant::ZERO + SECOND);
    pair.with_a(|a, now| a.send(1, now));
    assert_eq!(
        pair.next_wake_up(),
        Some(Instant::ZERO + Duration::from_millis(1010))
    );
    pair.run_for(Duration::from_millis(9));
    assert!(pair.events_b().is_empty());
    assert!(pair.step());
    assert_eq!(pair.events_b(), [Event::Echoed(0)]);
    assert!(!pair.run_until_idle(Duration::from_millis(9)));
    assert!(pair.run_until_idle(Duration::from_millis(10)));
    assert_eq!(pair.now(), Instant::ZERO + Duration::from_millis(1020));
}

#[test]
fn waiting_takes_the_event_that_is_wanted_and_leaves_the_others() {
    let mut pair = toys();
    pair.with_a(|a, now| a.send(3, now));
    let a = pair.a;
    assert_eq!(
        pair.wait_event(a, MINUTE, |e| *e == Event::Acked(1)),
        Some(Event::Acked(1))
    );
    assert_eq!(pair.now(), Instant::ZERO + Duration::from_millis(40));
    assert_eq!(
        pair.wait_event(a, SECOND, |e| matches!(e, Event::GaveUp(_))),
        None
    );
    assert_eq!(pair.now(), Instant::ZERO + Duration::from_millis(1040));
    assert_eq!(pair.events_a(), [Event::Acked(0), Event::Acked(2)]);
    pair.expect("nothing waits", Duration::ZERO, |world| {
        world[a].waiting() == 0
    });
}

#[test]
#[should_panic(expected = "not within 1s, by t=1.000000000s: an answer")]
fn expecting_in_vain_says_what_and_when() {
    let mut pair = toys();
    let a = pair.a;
    pair.cut_link();
    pair.with_a(|a, now| a.send(1, now));
    pair.expect("an answer", SECOND, |world| world[a].waiting() == 0);
}

#[test]
fn an_owner_can_answer_events_as_they_come() {
    let mut pair = toys();
    let a = pair.a;
    pair.on_event(a, |toy, event, now| {
        if *event == Event::Acked(0) {
            toy.send(1, now);
        }
    });
    pair.with_a(|a, now| a.send(1, now));
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.events_a(), [Event::Acked(0), Event::Acked(1)]);
}

#[test]
fn a_machine_lent_out_is_drained_when_it_comes_back() {
    let mut pair = toys();
    let (a, now) = (pair.a, pair.now());
    pair.get_mut(a).send(1, now);
    assert_eq!(pair.log().len(), 1);
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.events_a(), [Event::Acked(0)]);
}

#[test]
fn discards_are_kept_with_their_type_and_shown_in_the_log() {
    let mut pair = toys();
    pair.inject(ADDRESS_B, ADDRESS_A, &7_u32.to_be_bytes());
    assert!(pair.run_until_idle(MINUTE));
    let a = pair.a;
    assert_eq!(pair.take_discards(a), [Stale(7)]);
    let reason = "number 7 is not awaited".to_owned();
    assert_eq!(
        pair.log().next().unwrap().fate,
        Fate::Discarded {
            at: Instant::ZERO,
            reason
        }
    );
}

#[test]
fn a_node_answers_for_a_prefix_from_the_address_that_was_asked() {
    let mut world = World::new(1);
    let binds = ["10.0.0.0/8:1701", "[2001:db8::/32]:1701"];
    let edge = world.add("edge", Toy::echoer(), binds);
    let four = world.add("four", Probe::default(), ["192.0.2.1:5"]);
    let six = world.add("six", Probe::default(), ["[2001:db9::1]:5"]);
    world.with(four, |p, _| p.send(addr("10.9.8.7:1701"), &[0, 0, 0, 1]));
    world.with(six, |p, _| {
        p.send(addr("[2001:db8::77]:1701"), &[0, 0, 0, 2])
    });
    assert!(world.run_until_idle(MINUTE));
    assert_eq!(world.take_events(four)[0].from(), addr("10.9.8.7:1701"));
    let heard = world.take_events(six);
    assert_eq!(heard[0].from(), addr("[2001:db8::77]:1701"));
    assert_eq!(heard[0].route.local, Some(addr("[2001:db9::1]:5").ip()));
    // The edge's socket 1 is its IPv6 one.
    assert_eq!(
        world.take_events(edge),
        [Event::Echoed(1), Event::Echoed(2)]
    );
}

#[test]
fn sockets_come_go_and_move() {
    let mut world = World::new(1);
    let lns = world.add("lns", Probe::default(), ["192.0.2.1:1701"]);
    let lac = world.add("lac", Probe::default(), ["192.0.2.2:1701"]);
    let (lns_address, lac_address) = (world.address(lns), world.address(lac));
    let socket_after = |world: &mut World, from| {
        world.with(lac, |p, _| {
            p.send_along(
                Route {
                    peer: lns_address,
                    local: None,
                    socket: from,
                },
                b"x",
            )
        });
        assert!(world.run_until_idle(MINUTE));
        world
            .take_events(lns)
            .pop()
            .map(|heard| (heard.route.socket, heard.route.peer.port()))
    };
    assert_eq!(socket_after(&mut world, 0), Some((0, 1701)));
    let connected = world.connect(lns, lns_address, lac_address);
    assert_eq!(socket_after(&mut world, 0), Some((connected, 1701)));
    let second = world.bind(lac, "192.0.2.2:2000");
    assert_eq!(socket_after(&mut world, second), Some((0, 2000)));
    world.close(lns, connected);
    assert_eq!(socket_after(&mut world, 0), Some((0, 1701)));
    world.rebind(lac, 0, "192.0.2.2:3000");
    assert_eq!(socket_after(&mut world, 0), Some((0, 3000)));
    world.close(lns, 0);
    assert_eq!(socket_after(&mut world, 0), None);
    assert_eq!(world.unrouted(), 1);
}

#[test]
fn a_datagram_to_an_address_that_goes_meanwhile_is_counted() {
    let mut pair = toys();
    pair.with_a(|a, now| a.send(1, now));
    let b = pair.b;
    pair.close(b, 0);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.link_stats(pair.a, pair.b).gone, 1);
    assert_eq!(pair.log().next().unwrap().fate, Fate::NoSuchAddress);
}

#[test]
fn a_replaced_machine_starts_afresh_at_the_same_address() {
    let mut pair = toys();
    pair.with_a(|a, now| a.send(2, now));
    pair.run_for(Duration::from_millis(5));
    let a = pair.a;
    let old = pair.replace(a, Toy::sender(ADDRESS_B));
    assert_eq!(old.waiting(), 2);
    // The echo to the machine that is gone comes to one that awaits nothing; its deadline
    // went with it.
    assert!(pair.run_until_idle(MINUTE));
    assert_eq!(pair.take_discards(a), [Stale(0)]);
    assert_eq!(pair.now(), Instant::ZERO + Duration::from_millis(20));
}

#[test]
#[should_panic(expected = "stuck does not clear its deadline")]
fn a_deadline_that_firing_does_not_clear_is_a_fault_that_is_named() {
    struct Stuck;
    impl base::Machine for Stuck {
        type Input<'a> = base::Datagram<'a>;
        type Transmit = Route;
        type Event = ();
        type Discard = Stale;
        fn handle(&mut self, _: base::Datagram<'_>, _: Instant) -> Result<(), Stale> {
            Ok(())
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Route> {
            None
        }
        fn poll_event(&mut self) -> Option<()> {
            None
        }
        fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
            Some((Instant::ZERO, "stuck"))
        }
    }
    let mut world = World::new(1);
    world.add("stuck", Stuck, ["192.0.2.1:1"]);
    world.run_for(SECOND);
}
