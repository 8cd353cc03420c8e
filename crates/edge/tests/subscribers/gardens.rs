//! Walled gardens: a browser in one sees the portal, names are resolved, and everything else is refused.

use core::net::Ipv4Addr;
use std::sync::Arc;

use aaa::{Change, Walled};
use base::Duration;
use edge::{Config, Discard, End, Garden, SubscriberKey};
use filter::FilterSet;
use wire::checksum;
use wire::ip::Header;

use crate::packets::{FAR, udp};
use crate::stage::{LNS, Stage, lns_config, route};

const RESOLVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
const PORTAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 80);
const LOCATION: &str = "http://192.0.2.80:8080/pay";

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn garden(name: &str, filter: Option<&str>) -> Arc<Garden> {
    let resolvers = vec![RESOLVER.into()];
    Arc::new(Garden::new(name, filter, LOCATION, resolvers).unwrap())
}

fn config(gardens: &[Arc<Garden>]) -> Config {
    Config {
        gardens: gardens.into(),
        ..lns_config()
    }
}

fn stage(filter: Option<&str>) -> Stage {
    let mut stage = Stage::new(config(&[garden("unpaid", filter)]));
    let text = "filter mail\nin\naccept tcp to any port 25\ndeny ip\n";
    let (set, _) = FilterSet::parse(text, &filter::Names::well_known()).unwrap();
    stage.lns.filters_mut().replace(set);
    stage
}

fn put(stage: &mut Stage, key: SubscriberKey, garden: Walled) {
    let change = Change {
        garden: Some(garden),
        ..Change::default()
    };
    let now = stage.now;
    stage.lns.change_sessions(&[key], &change, now).unwrap();
}

/// A TCP segment from `from`, port 40,000.
fn tcp(from: Ipv4Addr, to: (Ipv4Addr, u16), flags: u8, numbers: [u32; 2], data: &[u8]) -> Vec<u8> {
    let mut packet = udp(from, to.0, 12 + data.len(), true);
    packet[9] = 6;
    packet[10..12].fill(0);
    let sum = !checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let segment = &mut packet[20..];
    segment[..2].copy_from_slice(&40_000_u16.to_be_bytes());
    segment[2..4].copy_from_slice(&to.1.to_be_bytes());
    segment[4..8].copy_from_slice(&numbers[0].to_be_bytes());
    segment[8..12].copy_from_slice(&numbers[1].to_be_bytes());
    segment[12..16].copy_from_slice(&[0x50, flags, 0x10, 0]);
    segment[16..20].fill(0);
    segment[20..].copy_from_slice(data);
    let pseudo = checksum::pseudo_sum(&packet[12..20], 6, packet.len() - 20);
    let sum = u64::from(pseudo) + u64::from(checksum::sum(&packet[20..]));
    let sum = !checksum::fold(sum);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Sends a packet of the client and returns the replies to it.
fn ask(stage: &mut Stage, packet: &[u8]) -> Vec<Vec<u8>> {
    stage.up_stream(packet);
    let mut datagram = Vec::new();
    while stage.lns.poll_transmit(stage.now, &mut datagram).is_some() {
        stage
            .lac
            .receive(route(LNS), &datagram, stage.now, &mut stage.client_inside);
        datagram.clear();
    }
    core::mem::take(&mut stage.client_inside.0)
}

/// The flags and numbers of a TCP reply, and its data.
fn segment(packet: &[u8]) -> (u8, u32, u32, &[u8]) {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    (packet[33], word(24), word(28), &packet[40..])
}

#[test]
fn a_browser_is_redirected_names_are_resolved_and_the_rest_is_refused() {
    for filter in [None, Some("mail")] {
        let mut stage = stage(filter);
        stage.dial("alice", "sesame");
        let alice = stage.up[0];
        let me = stage.lns.subscriber(alice).unwrap().address.unwrap();
        let passes = |stage: &mut Stage, packet: &[u8]| {
            let replies = ask(stage, packet);
            assert!(replies.is_empty());
            core::mem::take(&mut stage.inside.0) == [packet]
        };
        let web = (FAR, 80);
        let syn = tcp(me, web, SYN, [100, 0], b"");
        assert!(passes(&mut stage, &syn), "outside of the garden");
        put(&mut stage, alice, Walled::In("unpaid".into()));

        let replies = ask(&mut stage, &syn);
        let (flags, first, acknowledged, _) = segment(&replies[0]);
        assert_eq!((flags, acknowledged), (SYN | ACK, 101));
        let header = Header::read(&replies[0]).unwrap();
        assert_eq!(header.source as u32, FAR.to_bits());
        let get = b"GET / HTTP/1.1\r\n\r\n";
        let numbers = [101, first.wrapping_add(1)];
        let replies = ask(&mut stage, &tcp(me, web, ACK, numbers, get));
        let (flags, _, acknowledged, data) = segment(&replies[0]);
        assert_eq!(flags & (FIN | ACK), FIN | ACK);
        assert_eq!(acknowledged, 101 + get.len() as u32);
        let text = String::from_utf8(data.to_vec()).unwrap();
        assert!(
            text.contains(&format!("Location: {LOCATION}\r\n")),
            "{text}"
        );
        let walled: u64 = stage.lns.path_counts().map(|one| one.walled).sum();
        assert_eq!(walled, 2);

        // The name server (`udp` is to port 53), the portal, and what the filter allows.
        assert!(passes(&mut stage, &udp(me, RESOLVER, 10, true)));
        assert!(passes(
            &mut stage,
            &tcp(me, (PORTAL, 8_080), SYN, [1, 0], b"")
        ));
        let mail = tcp(me, (FAR, 25), SYN, [1, 0], b"");
        if filter.is_some() {
            assert!(passes(&mut stage, &mail));
        } else {
            let replies = ask(&mut stage, &mail);
            // Type 3, code 13: communication administratively prohibited (RFC 1812, section 5.2.7.1).
            assert_eq!(replies[0][20..22], [3, 13]);
        }
        // Other name servers; TLS.
        let replies = ask(&mut stage, &udp(me, FAR, 10, true));
        assert_eq!(replies[0][20..22], [3, 13]);
        let replies = ask(&mut stage, &tcp(me, (FAR, 443), SYN, [100, 0], b""));
        assert_eq!(segment(&replies[0]).0, RST | ACK);
        assert!(stage.inside.0.is_empty());

        put(&mut stage, alice, Walled::Out);
        assert!(passes(&mut stage, &syn), "outside of it again");
    }
}

#[test]
fn packets_to_a_subscriber_in_a_garden_come_from_there_alone() {
    let mut stage = stage(None);
    stage.profile.garden = Some("unpaid".into());
    stage.dial("alice", "sesame");
    let alice = stage.up[0];
    let me = stage.lns.subscriber(alice).unwrap().address.unwrap();
    let mut reply = udp(RESOLVER, me, 10, true);
    reply[20..24].copy_from_slice(&[0, 53, 0x30, 0x39]);
    stage.down_stream(&reply);
    assert_eq!(core::mem::take(&mut stage.client_inside.0), [reply]);
    stage.down_stream(&udp(FAR, me, 10, true));
    assert!(stage.client_inside.0.is_empty());
    assert_eq!(stage.lns.discarded(Discard::Filtered), 1);
}

/// A flood of requests gets no more answers than the rate.
#[test]
fn answers_have_a_rate_that_other_refused_packets_do_not_use_up() {
    let mut stage = stage(None);
    stage.profile.garden = Some("unpaid".into());
    stage.dial("alice", "sesame");
    let alice = stage.up[0];
    let me = stage.lns.subscriber(alice).unwrap().address.unwrap();
    let syn = tcp(me, (FAR, 80), SYN, [100, 0], b"");
    for n in 0..2_000_u64 {
        stage.up_stream(&udp(me, FAR, 10, true));
        if n % 10 == 0 {
            stage.up_stream(&syn);
        }
        stage.now += Duration::from_millis(1);
    }
    let walled = |stage: &Stage| stage.lns.path_counts().map(|one| one.walled).sum::<u64>();
    assert_eq!(walled(&stage), 200, "all 100 a second");
    for _ in 0..10_000 {
        stage.up_stream(&syn);
    }
    assert!((200..=600).contains(&walled(&stage)), "{}", walled(&stage));
    stage.now += Duration::from_secs(1);
    let before = walled(&stage);
    for _ in 0..10_000 {
        stage.up_stream(&syn);
    }
    assert_eq!(walled(&stage) - before, 200);
}

#[test]
fn a_garden_that_does_not_exist_admits_nobody() {
    let mut stage = stage(None);
    stage.profile.garden = Some("nowhere".into());
    stage.dial("alice", "sesame");
    let reason = stage.ended.pop().unwrap().1;
    assert_eq!(reason, End::Refused("there is no garden nowhere".into()));
    // A Filter-Id that names no filter may name a garden.
    stage.profile.garden = None;
    stage.profile.filter = Some("unpaid".into());
    stage.dial("bob", "sesame");
    let profile = stage.lns.subscriber(stage.up[0]).unwrap().profile;
    assert_eq!(profile.unwrap().garden.as_deref(), Some("unpaid"));
}

#[test]
fn a_new_configuration_reaches_those_in_a_garden() {
    let mut stage = stage(None);
    stage.profile.garden = Some("unpaid".into());
    stage.dial("alice", "sesame");
    let me = stage.lns.subscriber(stage.up[0]).unwrap().address.unwrap();
    let syn = tcp(me, (FAR, 25), SYN, [100, 0], b"");
    let passes = |stage: &mut Stage| {
        let now = stage.now;
        stage.lns.handle_timeout(now);
        stage.up_stream(&syn);
        !core::mem::take(&mut stage.inside.0).is_empty()
    };
    assert!(!passes(&mut stage));
    for (gardens, expected) in [
        (
            vec![garden("other", None), garden("unpaid", Some("mail"))],
            true,
        ),
        (vec![garden("unpaid", None)], false),
        (vec![garden("other", None)], true),
        (vec![garden("unpaid", None)], false),
    ] {
        let now = stage.now;
        stage.lns.set_config(config(&gardens), now);
        assert_eq!(passes(&mut stage), expected, "{gardens:?}");
    }
}
