//! Runs over many seeds.

use base::Duration;
use sim::Link;
use wire::radius::attribute::status;

use crate::check::{assert_nobody, assert_still, check};
use crate::desk::BOOT;
use crate::node::VLANS;
use crate::radius::Mood;
use crate::street::{Street, nat_config};

const CHANCES: u32 = 50;

fn run(seed: u64) {
    let mut street = Street::new(seed);
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
        let nat = node.edge.nat_mut().expect("it translates");
        nat.reconfigure(nat_config(2)).expect("the same tables");
    });
    for _ in 0..8 {
        street.world.run_for(Duration::from_secs(20));
        check_all(street);
    }
}

/// A host that calls again is served: nothing was used up for good.
fn serve_again(street: &mut Street) {
    for host in street.hosts.clone() {
        street.dial(host);
    }
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
    for _ in 0..10 {
        street.world.run_for(Duration::from_secs(30));
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

#[test]
fn nothing_is_held_twice_and_nothing_stays() {
    sim::seeds(300, run);
}

/// As above, with more seeds: `cargo test -p headend-edge --test street -- --ignored thousand`.
#[test]
#[ignore = "takes minutes"]
fn nothing_stays_in_a_thousand_streets() {
    sim::seeds(3_000, |seed| run(1_000_000 + seed));
}
