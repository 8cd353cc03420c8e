//! Runs over many seeds.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base::Duration;
use sim::Link;
use wire::radius::attribute::status;

use crate::check::{assert_nobody, assert_still, check};
use crate::desk::BOOT;
use crate::node::VLANS;
use crate::radius::Mood;
use crate::street::{Street, nat_config};

const CHANCES: u32 = 24;

/// How often each kind of event happened in all runs.
type Happened = RefCell<BTreeMap<String, u64>>;

fn run(seed: u64, happened: &Happened) {
    let mut street = Street::new(seed);
    street.dial_all();
    for _ in 0..CHANCES {
        street.chance();
        street.pause();
        check_all(&mut street);
    }
    heal(&mut street);
    serve_again(&mut street);
    everybody_goes(&mut street);
    for owner in street.owners() {
        let name = street.world.name(owner).to_owned();
        assert_nobody(&mut street.world.get_mut(owner), &name);
    }
    assert_accounted(&street);
    note(&street, &mut happened.borrow_mut());
    for node in street.owners() {
        street
            .world
            .with(node, |node, now| node.edge.shut_down(now));
    }
    street.world.run_for(Duration::from_secs(300));
    for owner in street.owners() {
        assert_still(&street.world[owner], street.world.name(owner));
    }
}

fn check_all(street: &mut Street) {
    for owner in street.owners() {
        check(&mut street.world.get_mut(owner));
    }
}

/// Links, servers and interfaces work again.
fn heal(street: &mut Street) {
    street.world.set_default_link(Link::CLEAN);
    for host in street.hosts.clone() {
        street.world.heal(host, street.edge);
    }
    for server in street.servers.clone() {
        street
            .world
            .with(server, |server, _| server.mood = Mood::GOOD);
    }
    street.world.with(street.edge, |node, _| {
        node.has_vlan = [true; VLANS as usize];
        let endpoint = node.edge.endpoint_mut().pppoe_mut();
        endpoint.add_port(0, pppoe::PortConfig::default());
        let taken = node.edge.reconfigure_nat(nat_config(2));
        taken.expect("the same tables");
    });
    for _ in 0..5 {
        street.world.run_for(Duration::from_secs(20));
        check_all(street);
    }
}

/// A host that calls again is served: nothing was used up for good.
fn serve_again(street: &mut Street) {
    street.dial_all();
    street.world.run_for(Duration::from_secs(20));
    check_all(street);
    for host in street.hosts.clone() {
        street.world.with(host, |node, now| node.talk(2_000, now));
    }
    street.world.run_for(Duration::from_secs(5));
    check_all(street);
}

/// Everybody hangs up, or loses power.
fn everybody_goes(street: &mut Street) {
    for node in [street.hosts.clone(), vec![street.lac]].concat() {
        street
            .world
            .with(node, |node, now| node.edge.shut_down(now));
    }
    for host in street.eap.clone() {
        street.world.with(host, |host, now| host.close(now));
    }
    for _ in 0..6 {
        street.world.run_for(Duration::from_secs(40));
        check_all(street);
    }
    for host in &street.eap {
        assert!(street.world[*host].is_quiet());
    }
}

/// Every record reached a server: a Start and a Stop of each session.
fn assert_accounted(street: &Street) {
    let edge = &street.world[street.edge];
    let desk = edge.desk.servers();
    assert!(
        desk.open.is_empty(),
        "records without an outcome: {:?}",
        desk.open
    );
    let totals = desk.client.totals();
    assert_eq!((totals.outstanding, totals.waiting), (0, 0));
    let sessions = edge.books.closed();
    for kind in [status::START, status::STOP] {
        let mut known = std::collections::BTreeSet::new();
        for server in &street.servers {
            let records = &street.world[*server].records;
            let of_kind = records.keys().filter(|(_, one)| *one == kind);
            known.extend(of_kind.map(|(session, _)| session.clone()));
        }
        let lost = desk.given_up as usize;
        assert!(
            known.len() <= sessions && known.len() + lost >= sessions,
            "kind {kind}"
        );
        let boot = format!("{BOOT:08x}");
        assert!(known.iter().all(|name| name.starts_with(boot.as_bytes())));
    }
}

/// Counts what happened in a run.
fn note(street: &Street, happened: &mut BTreeMap<String, u64>) {
    let mut add = |name: String, count: u64| *happened.entry(name).or_default() += count;
    let node = &street.world[street.edge];
    for (reason, count) in &node.books.reasons {
        add(format!("end: {reason}"), *count);
    }
    for (answer, count) in &node.desk.servers().requests {
        add(format!("request: {answer}"), *count);
    }
    for (name, count) in node.edge.endpoint().pppoe().counters().rows() {
        add(format!("pppoe: {name}"), count);
    }
    let nat = node.edge.nat().expect("it translates").counters();
    for (why, count) in nat::Discard::ALL.iter().zip(nat.discards) {
        add(format!("nat: {why:?}"), count);
    }
    add("nat: blocks".into(), nat.blocks_allocated);
    add("nat: used up".into(), node.books.used_up);
    let switched = node.edge.switch_counts();
    add("handed over".into(), switched.taken);
    add("failed over".into(), switched.failed_over);
    add("own address".into(), switched.own_address);
    add("records".into(), node.desk.servers().records);
    add("too many subscribers".into(), node.edge.counts().too_many);
    add("routes refused".into(), node.edge.counts().routes_refused);
    let hosts = street.hosts.iter().chain([&street.lac]);
    let answers = hosts.map(|host| street.world[*host].answers).sum();
    add("answers".into(), answers);
    let eap = street.eap.iter().map(|host| street.world[*host].successes);
    add("eap".into(), eap.sum());
    let rogue = &street.world[street.rogue];
    add(
        "sessions at the second server".into(),
        rogue.edge.counts().up,
    );
}

/// What the storms are for must happen in them.
fn assert_happened(happened: &BTreeMap<String, u64>) {
    let list: Vec<_> = happened
        .iter()
        .map(|(name, count)| format!("{name}: {count}\n"))
        .collect();
    let list = list.concat();
    for name in [
        "answers",
        "eap",
        "end: a RADIUS server ended",
        "end: its time was over",
        "end: no address: all",
        "end: no data for too",
        "end: the LNS:",
        "failed over",
        "handed over",
        "nat: PoolUsedUp",
        "nat: SubscriberBlocks",
        "nat: used up",
        "own address",
        "pppoe: padrs_repeated",
        "pppoe: refused_sessions",
        "pppoe: replaced",
        "pppoe: setup_timeouts",
        "request: None",
        "request: Some(InvalidValue)",
        "request: Some(NotFound)",
        "routes refused",
        "sessions at the second server",
        "too many subscribers",
    ] {
        let count = happened
            .iter()
            .filter(|(one, _)| one.starts_with(name))
            .map(|(_, count)| count)
            .sum::<u64>();
        assert!(count > 0, "no run had {name:?}; they had\n{list}");
    }
}

fn run_all(seeds: u64, first: u64) {
    let (happened, runs) = (Happened::default(), RefCell::new(0));
    sim::seeds(seeds, |seed| {
        run(first + seed, &happened);
        *runs.borrow_mut() += 1;
    });
    // One seed alone need not have all.
    if *runs.borrow() >= seeds {
        assert_happened(&happened.borrow());
    }
}

#[test]
fn nothing_is_held_twice_and_nothing_stays() {
    run_all(300, 0);
}

/// As above, with more seeds: `cargo test -p headend-edge --test street -- --ignored thousand`.
#[test]
#[ignore = "takes minutes"]
fn nothing_stays_in_three_thousand_streets() {
    run_all(3_000, 1_000_000);
}
