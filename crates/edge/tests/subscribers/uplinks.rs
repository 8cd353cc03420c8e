//! IPv6 of our own client, against our own edge: its router, its address and its delegated prefix.

use core::net::{IpAddr, Ipv6Addr};

use base::Duration;
use edge::v6::{PrefixWish, UplinkView};
use edge::{Config, SubscriberKey};
use wire::ndp;

use crate::stage::Stage;
use crate::v6;

/// A stage whose client asks for a prefix, after a second in which it got one.
fn stage() -> (Stage, SubscriberKey) {
    let mut stage = v6::stage();
    let wish = PrefixWish {
        duid: edge::v6::duid([1, 2, 3, 4]),
        iaid: 1,
        length: Some(56),
        rapid_commit: true,
    };
    let config = Config {
        terminate: false,
        uplink: Some(wish),
        ..Config::default()
    };
    stage.lac.set_config(config, stage.now);
    stage.dial("alice", "sesame");
    stage.pass(Duration::from_secs(3));
    let (_, client) = stage.lac.next_subscriber(0).unwrap();
    let key = client.key;
    (stage, key)
}

fn uplink(stage: &Stage, key: SubscriberKey) -> UplinkView {
    stage.lac.uplink(key).unwrap()
}

fn udp(from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut packet = Vec::new();
    ndp::write_packet([from, to], (17, 6, 64), &mut packet, |out| {
        out.extend_from_slice(&[0, 9, 0, 9, 0, 8, 0, 0]);
    });
    packet
}

fn v6_of(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(_) => panic!("{address}"),
    }
}

/// RFC 4861, section 6.3.4; RFC 4862, section 5.5.3; RFC 8415, section 18.2.10.1.
#[test]
fn our_client_has_a_router_an_address_and_a_prefix_and_its_packets_pass() {
    let (mut stage, key) = stage();
    let view = uplink(&stage, key);
    assert!(view.is_default);
    assert_eq!(view.state, "bound");
    let dns: Ipv6Addr = "2001:db8::53".parse().unwrap();
    assert_eq!(view.dns, [dns]);
    let delegated = view.delegated.unwrap().prefix;
    let subscriber = *stage.up.last().unwrap();
    let there = stage.lns.subscriber(subscriber).unwrap();
    assert_eq!(there.leases.delegated, Some(delegated));
    let [_, peer] = there.ipv6.unwrap();
    let link = v6_of(there.leases.prefix.unwrap().address());
    let own = Ipv6Addr::from_bits(link.to_bits() | u128::from(peer));
    assert_eq!(view.addresses.first().unwrap().address, own);
    let client = stage.lac.subscriber(key).unwrap().leases;
    assert_eq!(client.delegated, Some(delegated));
    // Packets from the address and from the prefix go into the session, and others do not.
    let far: Ipv6Addr = "2001:db8:ffff::1".parse().unwrap();
    let behind = Ipv6Addr::from_bits(v6_of(delegated.address()).to_bits() | 0x42);
    for from in [own, behind] {
        stage.inside.0.clear();
        stage.up_stream(&udp(from, far));
        assert_eq!(stage.inside.0, [udp(from, far)], "{from}");
        stage.client_inside.0.clear();
        stage.down_stream(&udp(far, from));
        assert_eq!(stage.client_inside.0.len(), 1, "{from}");
    }
    assert_eq!(stage.datagrams_up(&udp(far, far)), Vec::<Vec<u8>>::new());
}

#[test]
fn the_prefix_is_renewed_for_days_and_given_back_at_the_end() {
    let (mut stage, key) = stage();
    let before = uplink(&stage, key).delegated.unwrap();
    stage.pass(Duration::from_secs(300_000));
    let after = uplink(&stage, key).delegated.unwrap();
    assert_eq!(after.prefix, before.prefix);
    assert!(after.valid_until > before.valid_until);
    assert!(uplink(&stage, key).is_default);
    let used = |stage: &Stage| stage.lns.prefixes().views().nth(1).unwrap().used;
    assert_eq!(used(&stage), 1);
    stage.lac.shut_down(stage.now);
    stage.settle();
    assert_eq!(used(&stage), 0);
    assert_eq!(stage.lac.uplink(key), None);
}

#[test]
fn a_client_that_is_not_configured_so_asks_for_nothing() {
    let mut stage = v6::stage();
    stage.dial("alice", "sesame");
    stage.pass(Duration::from_secs(60));
    let (_, client) = stage.lac.next_subscriber(0).unwrap();
    assert_eq!(stage.lac.uplink(client.key), None);
    assert_eq!(client.leases.delegated, None);
    assert_eq!(stage.lns.v6_counts().of(edge::v6::V6Count::DhcpAnswers), 0);
}
