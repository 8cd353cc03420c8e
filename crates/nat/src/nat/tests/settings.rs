//! Changes of settings while the NAT works.

use super::*;
use crate::ConfigError;
use crate::nat::testing::{ends, udp};

fn packet(host: &str, port: u16) -> Vec<u8> {
    udp(ends((host, port), (WEB, 80)), b"x")
}

fn with_externals(text: &str) -> Config {
    let mut config = config();
    config.externals = text
        .split(' ')
        .map(|one| one.parse().expect("a range"))
        .collect();
    config
}

#[test]
fn a_removed_external_address_keeps_its_mappings_and_gets_no_new_ones() {
    let mut world = world(with_externals("192.0.2.1"));
    let (before, port) = world.source(packet(ANN, 1000));
    assert_eq!(before, address("192.0.2.1"));
    let (_, _, all) = world.nat.blocks();
    world
        .nat
        .reconfigure(with_externals("192.0.2.9-192.0.2.10"))
        .expect("good settings");
    assert_eq!(
        world.nat.blocks(),
        (2 * all, 0, 2 * all),
        "blocks of the new addresses alone count"
    );
    let owner = world.nat.owner_of(before, port).expect("its block");
    assert_eq!((owner.tag, owner.inside), (1, address(ANN)));
    assert!((owner.first..=owner.last).contains(&port));
    assert_eq!(world.nat.owner_of(before, 80), None);
    // The old mapping works in both directions.
    assert_eq!(world.source(packet(ANN, 1000)), (before, port));
    let mut answer = udp(between((address(WEB), 80), (before, port)), b"y");
    assert_eq!(world.back(&mut answer), Ok(Verdict::Translated));
    // A new one is made at a new address, and so is each that follows it.
    let (after, _) = world.source(packet(ANN, 1001));
    assert_ne!(after, before);
    assert_eq!(world.source(packet(ANN, 1002)).0, after);
    // The old block is freed after its time, and nobody gets it.
    world.wait(1000);
    let free = world.nat.blocks();
    world.wait(1000);
    assert_eq!(world.nat.blocks(), (2 * all, 0, 2 * all), "{free:?}");
    // Once the settings have the address again, its blocks are used again.
    world
        .nat
        .reconfigure(with_externals("192.0.2.1"))
        .expect("good settings");
    assert_eq!(world.source(packet(BOB, 1)).0, before);
    assert!(
        world.nat.owns(address("192.0.2.9")),
        "mappings may still exist"
    );
}

#[test]
fn a_pool_can_grow_while_it_is_used_up() {
    let mut config = with_externals("192.0.2.1");
    config.block_ports = 32_768;
    let mut world = world(config.clone());
    world.source(packet(ANN, 1));
    assert_eq!(
        world.out(world.bob, &mut packet(BOB, 1)),
        Err(Discard::PoolUsedUp)
    );
    let told = |event: &&Event| matches!(event, Event::PoolUsedUp { tag: 2, .. });
    assert_eq!(world.events().iter().filter(told).count(), 1);
    config
        .externals
        .push("192.0.2.7".parse().expect("an address"));
    world.nat.reconfigure(config).expect("good settings");
    let mut second = packet(BOB, 1);
    assert_eq!(world.out(world.bob, &mut second), Ok(Verdict::Translated));
    assert_eq!(read(&second).from.0, address("192.0.2.7"));
}

#[test]
fn limits_and_time_outs_change_and_what_tables_depend_on_does_not() {
    let mut world = world(config());
    world.source(packet(ANN, 1));
    let mut new = config();
    new.limits.mappings_per_subscriber = 1;
    new.timeouts.udp = Duration::from_secs(120);
    world.nat.reconfigure(new).expect("good settings");
    let over = world.out(world.ann, &mut packet(ANN, 2));
    assert_eq!(over, Err(Discard::SubscriberMappings));
    for change in [
        |config: &mut Config| config.block_ports = 256,
        |config: &mut Config| config.port_first = 2048,
        |config: &mut Config| config.limits.mappings_max = 4000,
    ] {
        let mut new = config();
        change(&mut new);
        assert_eq!(world.nat.reconfigure(new), Err(ConfigError::Fixed));
    }
    assert_eq!(world.nat.config().limits.mappings_per_subscriber, 1);
}

#[test]
fn hairpinning_can_be_forbidden() {
    let mut config = config();
    config.hairpinning = false;
    let mut world = world(config);
    let (external, port) = world.source(packet(ANN, 1));
    let mut to_ann = udp(between((address(BOB), 5), (external, port)), b"x");
    assert_eq!(world.out(world.bob, &mut to_ann), Err(Discard::Hairpinning));
}
