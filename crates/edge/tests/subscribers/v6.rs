//! IPv6 on a subscriber's link: what a host or a router there sends, and gets from the edge.

use core::net::Ipv6Addr;
use std::sync::Arc;

use aaa::prefixes::PrefixSpec;
use aaa::{Ipv6, Prefix, Profile};
use base::Duration;
use edge::v6::{Settings, V6Count, link_local};
use edge::{Config, Discard, Entry, SubscriberKey};
use wire::dhcpv6::{self, Association, Kind, Lease, Writer, code};
use wire::ip::Header;
use wire::ndp::{self, ALL_NODES, ALL_ROUTERS, Message};

use crate::stage::{LAC, Stage, lns_config, route};

pub(crate) fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

fn spec(name: &str, range: &str, length: u8) -> PrefixSpec {
    PrefixSpec {
        name: name.into(),
        ranges: vec![prefix(range)],
        length,
        excluded: Vec::new(),
        sticky: true,
    }
}

fn config() -> Config {
    Config {
        tells_networks: true,
        v6: Arc::new(Settings {
            pool: Some("links".into()),
            delegated_pool: Some("homes".into()),
            dns: vec!["2001:db8::53".parse().unwrap()],
            interim_on_change: true,
            ..Settings::default()
        }),
        ..lns_config()
    }
}

pub(crate) fn stage() -> Stage {
    let mut stage = Stage::new(config());
    let specs = vec![
        spec("links", "2001:db8:1::/62", 64),
        spec("homes", "2001:db8:8000::/54", 56),
    ];
    stage.lns.prefixes_mut().reload(specs).unwrap();
    stage
}

/// The client's side of one link, without an edge of ours.
struct Host {
    key: SubscriberKey,
    /// The edge's link-local address, and the host's.
    local: Ipv6Addr,
    own: Ipv6Addr,
}

impl Host {
    fn of(stage: &Stage, key: SubscriberKey) -> Self {
        let [local, own] = stage
            .lns
            .subscriber(key)
            .unwrap()
            .ipv6
            .unwrap()
            .map(link_local);
        Self { key, local, own }
    }

    /// Puts an IPv6 packet into the session, and returns the IPv6 packets that the edge sends then.
    fn send(&self, stage: &mut Stage, packet: &[u8]) -> Vec<Vec<u8>> {
        // The client is the twin of the subscriber at the other end.
        let place = stage.lns.subscriber(self.key).unwrap().place;
        let mut cursor = 0;
        let session = loop {
            let (next, view) = stage.lac.next_subscriber(cursor).unwrap();
            if stage
                .lac
                .endpoint()
                .session(view.session)
                .unwrap()
                .remote_id
                == place.session_id
            {
                break view.session;
            }
            cursor = next;
        };
        let header = stage.lac.endpoint_mut().data_header(session).unwrap();
        let datagram = [header.as_bytes(), &[0xff, 3, 0, 0x57], packet].concat();
        let now = stage.now;
        stage
            .lns
            .receive(route(LAC), &datagram, now, &mut stage.inside);
        taken(stage)
    }

    fn dhcp(&self, stage: &mut Stage, content: &[u8]) -> Vec<Vec<u8>> {
        let to = dhcpv6::ALL_SERVERS;
        let mut packet = Vec::new();
        ndp::write_packet([self.own, to], (17, 6, 1), &mut packet, |out| {
            for word in [546, 547, content.len() as u16 + 8, 0] {
                out.extend_from_slice(&u16::to_be_bytes(word));
            }
            out.extend_from_slice(content);
        });
        self.send(stage, &packet)
    }

    /// Asks for a prefix, and returns that of the reply.
    fn ask(&self, stage: &mut Stage, kind: Kind, wish: Option<Prefix>) -> Option<Prefix> {
        let duid = Settings::default().duid;
        let to_us = matches!(kind, Kind::Request | Kind::Renew | Kind::Release);
        let mut content = Vec::new();
        let mut out = Writer::new(kind, [1, 2, 3], &mut content);
        out.option(code::CLIENT_ID, &[&[0, 3, 0, 1, 2, 0, 0, 0, 0, 7]]);
        if to_us {
            out.option(code::SERVER_ID, &[&duid]);
        }
        out.association(code::IA_PD, [1, 0, 0], |out| {
            if let Some(wish) = wish
                && let std::net::IpAddr::V6(address) = wish.address()
            {
                let lease = Lease {
                    address,
                    length: Some(wish.length()),
                    preferred_s: 0,
                    valid_s: 0,
                };
                lease.write(out);
            }
        });
        let replies = self.dhcp(stage, &content);
        let [reply] = &replies[..] else {
            panic!("{replies:?}")
        };
        let header = Header::read(reply).unwrap();
        assert_eq!(Ipv6Addr::from_bits(header.source), self.local);
        assert_eq!(Ipv6Addr::from_bits(header.destination), self.own);
        assert_eq!((header.source_port, header.destination_port), (547, 546));
        let message = dhcpv6::Message::read(&reply[48..]).unwrap();
        let value = message.options.only(code::IA_PD).unwrap()?;
        let lease = Association::read(value).unwrap().leases().next()?;
        Prefix::new(lease.address.into(), lease.length?)
    }
}

/// The IPv6 packets that the edge sends, but for those to other sessions.
fn taken(stage: &mut Stage) -> Vec<Vec<u8>> {
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    while stage.lns.poll_transmit(stage.now, &mut bytes).is_some() {
        let at = bytes.windows(3).position(|part| part == [0, 0x57, 0x60]);
        if let Some(at) = at {
            all.push(bytes[at + 2..].to_vec());
        }
        bytes.clear();
    }
    all
}

fn dial(stage: &mut Stage, name: &str) -> Host {
    stage.dial(name, "sesame");
    let key = *stage.up.last().unwrap();
    Host::of(stage, key)
}

fn solicitation(host: &Host) -> Vec<u8> {
    let mut packet = Vec::new();
    ndp::write_solicitation(host.own, &mut packet);
    packet
}

/// RFC 4861, sections 6.2.3 and 6.2.6; RFC 4862, section 5.5.3.
#[test]
fn a_router_advertisement_has_the_link_s_prefix_and_answers_solicitations() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let sent = stage.lns.v6_counts().of(V6Count::Advertisements);
    assert_eq!(sent, 1, "at once");
    let replies = host.send(&mut stage, &solicitation(&host));
    let [reply] = &replies[..] else {
        panic!("{replies:?}")
    };
    let header = Header::read(reply).unwrap();
    assert_eq!(
        (header.source, header.destination),
        (host.local.to_bits(), host.own.to_bits())
    );
    let Ok(Message::RouterAdvertisement(router, options)) = Message::read(&header, reply) else {
        panic!("{reply:?}");
    };
    assert_eq!(
        (router.lifetime_s, router.managed, router.other),
        (1_800, false, true)
    );
    let options: Vec<_> = options.collect();
    let [
        ndp::Option::Mtu(mtu),
        ndp::Option::Prefix(prefix),
        ndp::Option::Servers(_, servers),
    ] = options[..]
    else {
        panic!("{options:?}");
    };
    let view = stage.lns.subscriber(host.key).unwrap();
    assert_eq!(mtu, u32::from(view.mtu));
    assert!(prefix.on_link && prefix.autonomous && prefix.length == 64);
    assert_eq!(
        Some(aaa::Prefix::new(prefix.address.into(), 64)),
        Some(view.leases.prefix)
    );
    assert_eq!(servers.len(), 1);
}

/// RFC 4861, section 6.2.4: three soon, then within the interval; none from an edge without prefixes.
#[test]
fn unsolicited_advertisements_come_at_first_sooner_and_a_subscriber_without_prefix_gets_none() {
    let mut stage = stage();
    dial(&mut stage, "alice");
    let count = |stage: &Stage| stage.lns.v6_counts().of(V6Count::Advertisements);
    stage.pass(Duration::from_secs(33));
    assert_eq!(count(&stage), 3);
    stage.pass(Duration::from_secs(3_600));
    let more = count(&stage) - 3;
    assert!((6..=18).contains(&more), "{more}");
    let mut plain = Stage::new(lns_config());
    let host = dial(&mut plain, "bob");
    plain.pass(Duration::from_secs(3_600));
    assert_eq!(count(&plain), 0);
    // It is answered nevertheless, as no default router.
    let reply = &host.send(&mut plain, &solicitation(&host))[0];
    let header = Header::read(reply).unwrap();
    let Ok(Message::RouterAdvertisement(router, _)) = Message::read(&header, reply) else {
        panic!("{reply:?}");
    };
    assert_eq!(router.lifetime_s, 0);
}

/// RFC 4861, section 7.2.4; RFC 4443, section 4.2.
#[test]
fn our_link_local_address_answers_neighbour_solicitations_and_echo() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let mut packet = Vec::new();
    ndp::write_icmp([host.own, host.local], 255, &mut packet, |out| {
        out.extend_from_slice(&[ndp::NEIGHBOR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&host.local.octets());
    });
    let reply = &host.send(&mut stage, &packet)[0];
    let header = Header::read(reply).unwrap();
    let target = host.local;
    let flags = 0xe0;
    assert_eq!(
        Message::read(&header, reply),
        Ok(Message::NeighborAdvertisement { target, flags })
    );
    for to in [host.local, ALL_NODES, ALL_ROUTERS] {
        packet.clear();
        ndp::write_icmp([host.own, to], 64, &mut packet, |out| {
            out.extend_from_slice(&[128, 0, 0, 0, 0, 7, 0, 9, 1, 2, 3]);
        });
        let reply = &host.send(&mut stage, &packet)[0];
        let header = Header::read(reply).unwrap();
        assert_eq!(header.source, host.local.to_bits());
        let icmp = ndp::icmp(&header, reply).unwrap();
        assert_eq!((icmp[0], &icmp[4..]), (129, &[0, 7, 0, 9, 1, 2, 3][..]));
    }
    // An address that is not ours on the link, and another source.
    let beyond = Discard::Forward(forward::Discard::BeyondScope);
    packet.clear();
    ndp::write_icmp(
        [host.own, "fe80::dead".parse().unwrap()],
        64,
        &mut packet,
        |out| {
            out.extend_from_slice(&[128, 0, 0, 0, 0, 7, 0, 9]);
        },
    );
    assert!(host.send(&mut stage, &packet).is_empty());
    assert_eq!(stage.lns.discarded(beyond), 1);
    packet.clear();
    ndp::write_icmp(
        ["fe80::dead".parse().unwrap(), host.local],
        64,
        &mut packet,
        |out| {
            out.extend_from_slice(&[128, 0, 0, 0, 0, 7, 0, 9]);
        },
    );
    assert!(host.send(&mut stage, &packet).is_empty());
    assert_eq!(
        stage
            .lns
            .discarded(Discard::Forward(forward::Discard::Spoofed)),
        1
    );
}

#[test]
fn a_flood_on_the_link_is_answered_at_a_bounded_rate_and_counted() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let packet = solicitation(&host);
    let answers: usize = (0..1_000)
        .map(|_| host.send(&mut stage, &packet).len())
        .sum();
    assert_eq!(answers, 40);
    assert_eq!(stage.lns.discarded(Discard::LinkRate), 960);
    stage.pass(Duration::from_secs(1));
    assert_eq!(host.send(&mut stage, &packet).len(), 1);
}

/// RFC 8415, section 18.3; RFC 4818: the delegated prefix is routed to the subscriber while it is leased.
#[test]
fn a_delegated_prefix_is_leased_routed_sticky_and_released() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let routes = stage.lns.counts().routes;
    let offered = host.ask(&mut stage, Kind::Solicit, None).unwrap();
    assert_eq!(offered.length(), 56);
    let used = |stage: &Stage| stage.lns.prefixes().views().nth(1).unwrap().used;
    assert_eq!(
        (used(&stage), stage.lns.counts().routes),
        (0, routes),
        "nothing is reserved"
    );
    assert_eq!(
        host.ask(&mut stage, Kind::Request, Some(offered)),
        Some(offered)
    );
    assert_eq!((used(&stage), stage.lns.counts().routes), (1, routes + 1));
    assert_eq!(stage.lns.at_address(offered.address()), Some(host.key));
    assert_eq!(
        host.ask(&mut stage, Kind::Renew, Some(offered)),
        Some(offered)
    );
    // A packet from the prefix passes, one from another does not.
    let far = "2001:db8:ffff::1".parse().unwrap();
    let std::net::IpAddr::V6(inner) = offered.address() else {
        unreachable!()
    };
    let mut packet = Vec::new();
    ndp::write_icmp([inner, far], 64, &mut packet, |out| {
        out.extend_from_slice(&[128, 0, 0, 0])
    });
    host.send(&mut stage, &packet);
    assert_eq!(stage.inside.0.len(), 1);
    packet.clear();
    let other = "2001:db8:8000:200::1".parse().unwrap();
    ndp::write_icmp([other, far], 64, &mut packet, |out| {
        out.extend_from_slice(&[128, 0, 0, 0])
    });
    host.send(&mut stage, &packet);
    assert_eq!(stage.inside.0.len(), 1);
    host.ask(&mut stage, Kind::Release, Some(offered));
    assert_eq!((used(&stage), stage.lns.counts().routes), (0, routes));
    // Another subscriber gets another one, and alice hers again.
    let bob = dial(&mut stage, "bob");
    let of_bob = bob.ask(&mut stage, Kind::Request, None).unwrap();
    assert_ne!(of_bob, offered);
    assert_eq!(host.ask(&mut stage, Kind::Request, None), Some(offered));
    let interims = stage
        .accounts
        .iter()
        .filter(|one| one.entry == Entry::Interim);
    assert!(interims.count() >= 1, "interim on change");
}

/// RFC 3162, section 2.2.
#[test]
fn a_subscriber_gets_the_interface_identifier_of_its_profile() {
    let mut stage = stage();
    stage.profile.ipv6 = Some(Box::new(Ipv6 {
        interface: core::num::NonZeroU64::new(0x107),
        ..Ipv6::default()
    }));
    let host = dial(&mut stage, "alice");
    assert_eq!(host.own, "fe80::107".parse::<Ipv6Addr>().unwrap());
    assert_ne!(host.local, host.own);
}

/// A CoA-Request that lists the delegated prefix among the networks must not take it away later.
#[test]
fn a_change_of_networks_leaves_the_delegated_prefix_to_its_lease() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let offered = host.ask(&mut stage, Kind::Solicit, None);
    let delegated = host.ask(&mut stage, Kind::Request, offered).unwrap();
    let other = prefix("2001:db8:77::/48");
    let leads = |stage: &Stage, to: Prefix| stage.lns.at_prefix(to) == Some(host.key);
    for networks in [vec![delegated, other], vec![other], vec![]] {
        let change = aaa::Change {
            routes: [None, Some(networks.clone())],
            ..aaa::Change::default()
        };
        let changed = stage.lns.change_sessions(&[host.key], &change, stage.now);
        assert_eq!(changed, Ok(()));
        assert!(leads(&stage, delegated), "{networks:?}");
        assert_eq!(leads(&stage, other), networks.contains(&other));
        let routes = stage.lns.subscriber(host.key).unwrap().profile.unwrap();
        assert!(!routes.routes.contains(&delegated));
        // The same again has no further effect.
        let changed = stage.lns.change_sessions(&[host.key], &change, stage.now);
        assert_eq!(changed, Ok(()));
        assert!(leads(&stage, delegated));
    }
}

#[test]
fn a_lease_that_is_not_renewed_runs_out() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    host.ask(&mut stage, Kind::Request, None).unwrap();
    stage.pass(Duration::from_secs(86_399));
    assert_eq!(stage.lns.v6_counts().of(V6Count::Expiries), 0);
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.lns.v6_counts().of(V6Count::Expiries), 1);
    assert_eq!(stage.lns.prefixes().views().nth(1).unwrap().used, 0);
    assert_eq!(host.ask(&mut stage, Kind::Renew, None), None, "NoBinding");
}

#[test]
fn a_pool_that_is_used_up_is_told_once_and_counted_each_time() {
    let mut stage = stage();
    let hosts: Vec<Host> = ["a", "b", "c", "d", "e"]
        .map(|name| dial(&mut stage, name))
        .into();
    // Four links of the /62, so the fifth has none, and is connected nevertheless.
    let last = stage.lns.subscriber(hosts[4].key).unwrap();
    assert_eq!((last.leases.prefix, last.address.is_some()), (None, true));
    for host in &hosts[..4] {
        assert!(host.ask(&mut stage, Kind::Request, None).is_some());
    }
    for _ in 0..3 {
        assert_eq!(hosts[4].ask(&mut stage, Kind::Request, None), None);
    }
    let told = stage.told_no_prefix();
    assert_eq!(
        told.len(),
        2,
        "the link's pool and the homes' one, once each: {told:?}"
    );
    assert!(stage.lns.v6_counts().of(V6Count::Unavailable) >= 4);
}

/// RFC 3162, section 2.3; RFC 4818, section 3; RFC 6911, section 3.1.
#[test]
fn fixed_prefixes_of_a_profile_are_given_and_no_second_subscriber_gets_them() {
    let mut stage = stage();
    stage.profile = Profile {
        ipv6: Some(Box::new(Ipv6 {
            prefix: Some(prefix("2001:db8:7:7::/64")),
            delegated: Some(prefix("2001:db8:700::/48")),
            address: Some(prefix("2001:db8:7:8::9/128")),
            ..Ipv6::default()
        })),
        ..Profile::default()
    };
    let host = dial(&mut stage, "alice");
    let leases = stage.lns.subscriber(host.key).unwrap().leases;
    assert_eq!(leases.prefix, Some(prefix("2001:db8:7:7::/64")));
    // It is routed before a client asks, for routers without DHCPv6.
    assert_eq!(leases.delegated, Some(prefix("2001:db8:700::/48")));
    let inner = "2001:db8:700:1::1".parse().unwrap();
    assert_eq!(stage.lns.at_address(inner), Some(host.key));
    let given = host.ask(&mut stage, Kind::Request, None);
    assert_eq!(given, leases.delegated);
    host.ask(&mut stage, Kind::Release, given);
    assert_eq!(stage.lns.at_address(inner), Some(host.key), "still routed");
    let twin = dial(&mut stage, "bob");
    assert_eq!(
        stage.lns.subscriber(twin.key).unwrap().leases,
        Default::default()
    );
    assert_eq!(twin.ask(&mut stage, Kind::Request, None), None);
    // The first one ends: the second gets them with its next request.
    let reason = edge::End::Refused("by test".into());
    let now = stage.now;
    stage.lns.drop_subscriber(host.key, reason, now);
    stage.settle();
    assert_eq!(twin.ask(&mut stage, Kind::Request, None), given);
    let stop = stage
        .accounts
        .iter()
        .find(|one| matches!(one.entry, Entry::Stop(_)))
        .unwrap();
    assert_eq!(
        stop.ipv6, leases,
        "the last record has what the subscriber had"
    );
    assert!(stop.interface.is_some());
}

/// One family that fails leaves the other.
#[test]
fn without_an_ipv4_address_a_subscriber_with_prefixes_has_ipv6_alone() {
    let mut stage = stage();
    for number in 0..10 {
        stage.dial(&format!("user{number}"), "sesame");
    }
    let host = dial(&mut stage, "eleventh");
    let view = stage.lns.subscriber(host.key).unwrap();
    assert_eq!((view.address, view.phase), (None, edge::Phase::Up));
    assert_eq!(stage.lns.v6_counts().of(V6Count::WithoutIpv4), 1);
    assert!(!host.send(&mut stage, &solicitation(&host)).is_empty());
}

/// A Solicit that gets nothing is the last message of its client, so it is counted and reported as a Request would be.
#[test]
fn a_solicit_that_no_prefix_is_left_for_is_counted_and_told_once() {
    let mut stage = stage();
    let hosts: Vec<Host> = ["a", "b", "c", "d"]
        .map(|name| dial(&mut stage, name))
        .into();
    for host in &hosts {
        assert!(host.ask(&mut stage, Kind::Request, None).is_some());
    }
    let last = dial(&mut stage, "e");
    stage.told_no_prefix();
    let before = stage.lns.v6_counts().of(V6Count::Unavailable);
    for _ in 0..3 {
        assert_eq!(last.ask(&mut stage, Kind::Solicit, None), None);
    }
    let counted = stage.lns.v6_counts().of(V6Count::Unavailable) - before;
    assert_eq!(counted, 3);
    assert_eq!(stage.told_no_prefix(), [Some("homes".into())]);
}

/// RFC 8415, section 18.2.12: a router whose link was down rebinds its prefix, and goes on with it.
#[test]
fn a_router_that_reconnects_keeps_its_prefix_by_a_rebind() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    let prefix = host.ask(&mut stage, Kind::Request, None);
    let now = stage.now;
    let reason = edge::End::Refused("by test".into());
    stage.lns.drop_subscriber(host.key, reason, now);
    stage.settle();
    let again = dial(&mut stage, "alice");
    assert_eq!(again.ask(&mut stage, Kind::Rebind, prefix), prefix);
    let inner = prefix.unwrap().address();
    assert_eq!(stage.lns.at_address(inner), Some(again.key));
    // A prefix that another subscriber has is withdrawn.
    let bob = dial(&mut stage, "bob");
    let withdrawn = bob.ask(&mut stage, Kind::Rebind, prefix);
    assert_eq!(withdrawn, prefix, "with lifetimes of 0");
    assert_eq!(stage.lns.at_address(inner), Some(again.key));
    assert_eq!(
        stage.lns.subscriber(bob.key).unwrap().leases.delegated,
        None
    );
}

/// RFC 4861, sections 6.2.4 and 6.2.5.
#[test]
fn a_changed_configuration_is_advertised_soon_and_the_end_of_advertisements_too() {
    let mut stage = stage();
    let host = dial(&mut stage, "alice");
    stage.pass(Duration::from_secs(120));
    taken(&mut stage);
    let lifetimes = |stage: &mut Stage| -> Vec<(u16, bool)> {
        let mut all = Vec::new();
        for _ in 0..30 {
            stage.now += Duration::from_secs(1);
            stage.lns.handle_timeout(stage.now);
            for packet in taken(stage) {
                let header = Header::read(&packet).unwrap();
                if let Ok(Message::RouterAdvertisement(router, options)) =
                    Message::read(&header, &packet)
                {
                    let new: Ipv6Addr = "2001:db8::54".parse().unwrap();
                    let has = |one| matches!(one, ndp::Option::Servers(_, all) if all.contains(&new.octets()));
                    all.push((router.lifetime_s, { options }.any(has)));
                }
            }
        }
        all
    };
    let change = |stage: &mut Stage, advertise| {
        let settings = Settings {
            advertise,
            dns: vec!["2001:db8::54".parse().unwrap()],
            ..Settings::clone(&stage.lns.config().v6)
        };
        let config = Config {
            v6: Arc::new(settings),
            ..stage.lns.config().clone()
        };
        stage.lns.set_config(config, stage.now);
    };
    change(&mut stage, true);
    let sent = lifetimes(&mut stage);
    assert!((1..=3).contains(&sent.len()), "{sent:?}");
    assert!(sent.iter().all(|one| *one == (1_800, true)), "{sent:?}");
    change(&mut stage, false);
    let sent = lifetimes(&mut stage);
    assert_eq!(sent.iter().map(|one| one.0).collect::<Vec<_>>(), [0]);
    assert!(host.send(&mut stage, &solicitation(&host)).is_empty());
}

#[test]
fn subscribers_are_counted_by_the_versions_of_ip_that_are_open() {
    let versions = |stage: &Stage| {
        let counts = stage.lns.counts().versions;
        [counts.ipv4, counts.ipv6, counts.both]
    };
    let mut stage = stage();
    let first = dial(&mut stage, "alice");
    assert_eq!(versions(&stage), [0, 0, 1]);
    for number in 0..9 {
        stage.dial(&format!("user{number}"), "sesame");
    }
    dial(&mut stage, "eleventh");
    assert_eq!(versions(&stage), [0, 1, 10], "the last has no IPv4 address");
    let now = stage.now;
    let reason = edge::End::Refused("by test".into());
    stage.lns.drop_subscriber(first.key, reason, now);
    stage.settle();
    assert_eq!(versions(&stage), [0, 1, 9]);
}
