//! Thousands of simultaneous requests, and more tunnels than there are ids.

use base::{Duration, Route};
use l2tp::{Endpoint, OpenTunnel};
use sim::{Link, NodeHandle, World};
use wire::l2tp::Version;

use crate::common::{LNS, counter, describe, lac_config, lns_config};

/// One LAC with a separate address for each tunnel, so that the LNS sees as many peers.
fn open_from_everywhere(world: &mut World, lac: NodeHandle<Endpoint>, tunnels: u32) {
    let version = |n: u32| [Version::V2, Version::V3][n as usize % 2];
    world.with(lac, |lac, now| {
        for n in 0..tunnels {
            let route = Route {
                peer: sim::addr(LNS),
                local: Some([10, 0, (n >> 8) as u8, n as u8].into()),
                socket: 0,
            };
            let version = version(n);
            lac.open_tunnel(OpenTunnel { route, version }, now)
                .expect("nothing is full");
        }
    });
}

fn storm(link: Link, tunnels: u32) -> (World, NodeHandle<Endpoint>, NodeHandle<Endpoint>) {
    let mut world = World::new(26);
    world.set_decoder(describe);
    world.set_log_limit(64);
    world.set_default_link(link);
    let lac = world.add(
        "lac",
        Endpoint::new(lac_config(), [1; 32]),
        ["10.0.0.0/8:1701"],
    );
    let lns = world.add("lns", Endpoint::new(lns_config(), [2; 32]), [LNS]);
    open_from_everywhere(&mut world, lac, tunnels);
    (world, lac, lns)
}

#[test]
fn b26_a_storm_of_10_000_sccrqs_at_once_brings_all_tunnels_up_without_a_retransmission() {
    let (mut world, lac, lns) = storm(Link::CLEAN, 10_000);
    world.run_for(Duration::from_millis(100));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(counter(&world[end], "retransmissions"), 0);
        assert_eq!(counter(&world[end], "duplicates"), 0);
        assert_eq!(world[end].counts().messages, 0);
    }
    assert_eq!(world[lns].counts().peers, 10_000);
    assert_eq!(world[lns].counts().half_open, 0);
    world.with(lac, |lac, now| lac.shut_down(now));
    world.run_for(Duration::from_secs(40));
    for end in [lac, lns] {
        assert_eq!(world[end].counts(), Default::default());
    }
}

/// A message delayed in a full buffer by less than the first interval is not retransmitted.
#[test]
fn b26_a_storm_through_a_slow_queue_is_late_but_not_repeated() {
    let link = Link {
        rate_bps: Some(50_000_000),
        queue_limit: 100_000,
        ..Link::CLEAN
    };
    let (mut world, lac, lns) = storm(link, 10_000);
    world.run_for(Duration::from_secs(1));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(counter(&world[end], "retransmissions"), 0);
    }
}

/// Lost messages are retransmitted until all arrive.
#[test]
fn b26_a_storm_over_a_lossy_link_brings_all_tunnels_up() {
    let link = Link {
        loss: 0.05,
        ..Link::CLEAN
    };
    let (mut world, lac, lns) = storm(link, 10_000);
    world.run_for(Duration::from_secs(62));
    for end in [lac, lns] {
        assert_eq!(world[end].counts().established, 10_000);
        assert_eq!(world[end].counts().tunnels, 10_000);
    }
    assert!(counter(&world[lac], "retransmissions") > 500);
}
