//! Port forwarding: RFC 6888 REQ-9.

use super::*;
use crate::nat::testing::{SYN, ends, read, tcp, udp};
use crate::{Filtering, ForwardError, ForwardRequest, Protocol};

fn wish(external: Option<(&str, u16)>) -> ForwardRequest {
    ForwardRequest {
        protocol: Protocol::Tcp,
        inside: address(ANN),
        inside_port: 8080,
        external: external.map(|(text, port)| (address(text), port)),
        subscriber: None,
        lifetime: None,
    }
}

#[test]
fn a_forwarded_port_is_open_to_all_and_stays() {
    let mut config = config();
    config.filtering = Filtering::AddressDependent;
    let mut world = world(config);
    let made = world.nat.forward(&wish(Some(("192.0.2.2", 80))), world.now);
    assert_eq!(made.map(|made| made.external_port), Ok(80));
    assert!(matches!(world.events()[..], [Event::ForwardAdded(..)]));
    world.wait(1_000_000);
    let to = (address("192.0.2.2"), 80);
    let mut syn = tcp(between((address(WEB), 999), to), SYN);
    assert_eq!(world.back(&mut syn), Ok(Verdict::Translated));
    assert_eq!(read(&syn).to, (address(ANN), 8080));
    // The answer, and what else the endpoint sends, has that source.
    let external = world.source(tcp(ends((ANN, 8080), (WEB, 999)), SYN | 16));
    assert_eq!(external, to);
    // The connection ends; the port stays.
    world.wait(10_000);
    let mut syn = tcp(between((address(WEB), 998), to), SYN);
    assert_eq!(world.back(&mut syn), Ok(Verdict::Translated));
}

#[test]
fn a_subscriber_gets_the_address_that_its_ports_are_forwarded_from() {
    for address_text in ["192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let mut nat = Nat::new(config()).expect("good settings");
        let now = Instant::ZERO;
        nat.forward(&wish(Some((address_text, 443))), now)
            .expect("a free port");
        let ann = nat.join(1, address(ANN)).expect("room");
        let mut world = World {
            nat,
            now,
            ann,
            bob: ann,
        };
        let external = world.source(udp(ends((ANN, 5), (WEB, 80)), b"x"));
        assert_eq!(external.0, address(address_text));
    }
}

#[test]
fn a_subscriber_may_forward_its_own_ports_and_no_others() {
    let mut world = world(config());
    let own = ForwardRequest {
        subscriber: Some(world.ann),
        lifetime: Some(Duration::from_secs(600)),
        ..wish(None)
    };
    let made = world.nat.forward(&own, world.now).expect("a port");
    assert!(made.external_port >= 1024);
    assert_eq!(made.tag, 1);
    world.wait(500);
    // Asked again, it is the same port, for longer.
    let again = world.nat.forward(&own, world.now).expect("the same");
    assert_eq!(again.external_port, made.external_port);
    world.wait(599);
    assert_eq!(world.nat.forwards().count(), 1);
    world.wait(1);
    assert_eq!(world.nat.forwards().count(), 0);
    assert_eq!(world.nat.counters().mappings, 0);

    let made = world.nat.forward(&own, world.now).expect("a port");
    let of_bob = ForwardRequest {
        inside: address(BOB),
        subscriber: Some(world.bob),
        external: Some((made.external, made.external_port ^ 1)),
        ..own
    };
    let refused = world.nat.forward(&of_bob, world.now);
    assert!(matches!(refused, Err(ForwardError::NotOwned(_))));
    world.nat.leave(world.ann, world.now);
    assert_eq!(world.nat.forwards().count(), 0);
}

#[test]
fn wishes_that_cannot_be_met_change_nothing() {
    let mut world = world(config());
    let first = world.nat.forward(&wish(Some(("192.0.2.2", 80))), world.now);
    assert!(first.is_ok());
    world.events();
    let now = world.now;
    let other = ForwardRequest {
        inside_port: 1,
        ..wish(Some(("192.0.2.2", 80)))
    };
    let icmp = ForwardRequest {
        protocol: Protocol::Icmp,
        ..wish(None)
    };
    let nobody = ForwardRequest {
        inside_port: 2,
        ..wish(None)
    };
    let refusals = [
        (other, ForwardError::InUse(80)),
        (
            wish(Some(("192.0.2.2", 81))),
            ForwardError::Forwarded(address("192.0.2.2"), 80),
        ),
        (icmp, ForwardError::Protocol),
        (nobody, ForwardError::Nobody),
        (
            ForwardRequest {
                inside_port: 3,
                ..wish(Some(("192.0.2.9", 80)))
            },
            ForwardError::NotExternal(address("192.0.2.9")),
        ),
    ];
    for (wish, why) in refusals {
        assert_eq!(world.nat.forward(&wish, now), Err(why));
    }
    assert_eq!(world.nat.forwards().count(), 1);
    assert!(world.events().is_empty());
}

#[test]
fn a_mapping_becomes_a_forwarding_or_gives_way_to_one() {
    let mut world = world(config());
    let external = world.source(udp(ends((ANN, 8080), (WEB, 80)), b"x"));
    let udp_wish = ForwardRequest {
        protocol: Protocol::Udp,
        subscriber: Some(world.ann),
        ..wish(None)
    };
    let made = world.nat.forward(&udp_wish, world.now).expect("its own");
    assert_eq!((made.external, made.external_port), external);
    let gone = world
        .nat
        .unforward(Protocol::Udp, external.0, external.1, world.now);
    assert_eq!(gone, Some(made));
    world.source(udp(ends((ANN, 8080), (WEB, 80)), b"x"));
    let low = ForwardRequest {
        external: Some((address("192.0.2.3"), 8)),
        ..udp_wish
    };
    world.nat.forward(&low, world.now).expect("a free port");
    let external = world.source(udp(ends((ANN, 8080), (WEB, 80)), b"x"));
    assert_eq!(external, (address("192.0.2.3"), 8));
    assert_eq!(world.nat.counters().mappings, 1);
}
