//! A link as a value: what is written is read back, and the second link lives as the first one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base::snapshot;
use base::{Duration, Redacted};
use ppp::{Authentication, Config, Credentials, Event, Ipv4Offer, Ipv6Offer, Link, Side, State};
use wire::ppp::protocol;

use crate::harness::{
    DNS, End, LOCAL, NOW, PEER, Pair, SECRET, Seeded, Wire, client, exchange, frame, network,
    open_lcp, opened,
};
use crate::simulation::{end_of, world};
use crate::twins::{CLOCK, OTHER_CLOCK, read, restored, written};

/// The numbers and names of all fields. A number is never changed or used again.
const FIELDS: &str = include_str!("snapshot_fields.txt");

pub(crate) fn credentials() -> Credentials {
    Credentials {
        name: b"alice"[..].into(),
        secret: Redacted::new(SECRET.into()),
    }
}

#[test]
fn fields_keep_their_numbers() {
    let mut found = String::new();
    for name in snapshot::names(&mut Link::blank(Some(credentials()))) {
        writeln!(found, "{} {} {}", name.part, name.number, name.field).unwrap();
    }
    assert_eq!(found, FIELDS);
}

/// A link's life: it comes up over a bad wire, is challenged again, and ends. `look` looks at it now and then.
pub(crate) fn live(pair: &mut Pair, random: &mut Seeded, mut look: impl FnMut(&mut Pair)) {
    pair.ends[0].config.rechallenge_interval = Duration::from_secs(random.next() % 3 * 40);
    pair.answers_after = Duration::from_millis(random.next() % 3 * 900);
    pair.up();
    for _ in 0..12 {
        pair.run_for(Duration::from_millis(1 + random.next() % 40_000));
        look(pair);
    }
    let (now, closing) = (pair.now, random.next() as usize % 2);
    pair.ends[closing].call(now, |link, ctx| link.close(ctx));
    look(pair);
    pair.run_for(Duration::from_secs(300));
    look(pair);
}

#[test]
fn a_twin_read_once_lives_and_dies_as_the_first_link() {
    let mut states = [(); 3].map(|()| BTreeSet::new());
    let mut ups = 0;
    for seed in 0..400 {
        let mut pair = world(seed).pair;
        let random = &mut Seeded(seed + 77);
        let mut looks_left = random.next() % 10;
        pair.ends.iter_mut().for_each(|end| end.renewed = None);
        live(&mut pair, random, |pair| {
            if looks_left == 0 {
                // Each has one twin, read now and never again.
                let ends = &mut pair.ends;
                ends.iter_mut().for_each(|end| end.renewed = Some(0));
            }
            looks_left = looks_left.wrapping_sub(1);
            for end in &pair.ends {
                for (states, state) in states.iter_mut().zip(end.link.states()) {
                    states.insert(state.name());
                }
            }
        });
        let is_up = |event: &Event| matches!(event, Event::Ipv4Up(_) | Event::Ipv6Up(_));
        for end in &pair.ends {
            assert!(end_of(end).is_some(), "seed {seed}");
            ups += usize::from(end.events.iter().any(is_up));
        }
    }
    assert!(ups > 400, "{ups}");
    let counts = states.map(|states| states.len());
    assert!(
        counts[0] >= 8 && counts[1] >= 5 && counts[2] >= 5,
        "{counts:?}"
    );
}

/// An end of a link that is up, and whose peer was asked to prove itself in this way.
fn up(way: Authentication) -> [End; 2] {
    let ends = [network(&[way], 1), client(SECRET, 2)];
    let [network, client] = ends;
    let mut pair = Pair::new(network, client, Wire::default(), 3);
    pair.up();
    pair.run_for(Duration::from_secs(200));
    for end in &pair.ends {
        assert_eq!(end.link.states(), [State::Opened; 3]);
        assert!(end.link.echo_rtt_us().is_some());
    }
    pair.ends
}

#[test]
fn a_link_that_is_up_takes_few_octets() {
    for (way, network_max, client_max) in [
        (Authentication::Pap, 110, 160),
        (Authentication::MsChapV2, 154, 260),
    ] {
        let [mut network, mut client] = up(way);
        let octets = written(&mut network.link, CLOCK).len();
        assert!(octets <= network_max, "{way:?}: {octets} octets");
        let octets = written(&mut client.link, CLOCK).len();
        assert!(octets <= client_max, "{way:?}: {octets} octets of a client");
    }
}

/// LCP starts again, and the client asks for what it asked for at first.
#[test]
fn a_client_keeps_its_wish() {
    let side = Side::Client {
        credentials: None,
        ipv4: Some(Ipv4Offer {
            local: PEER,
            peer: LOCAL,
            dns: [Some(DNS), Some(LOCAL)],
            ask_dns: false,
        }),
        ipv6: Some(Ipv6Offer {
            local: 7,
            peer: 9,
            peer_must: true,
        }),
    };
    let mut end = End::new(side, Config::default(), 1);
    let networks = |packets: Vec<(u16, u8, u8, Vec<u8>)>| -> Vec<_> {
        let is_network = |packet: &&(u16, u8, u8, Vec<u8>)| packet.0 != protocol::LCP;
        let asked = packets.iter().filter(is_network);
        asked.map(|packet| (packet.0, packet.3.clone())).collect()
    };
    open_lcp(&mut end, &[]);
    let first = networks(end.packets());
    assert_eq!(first.len(), 2);
    let view = end.link.view();
    for restarts in 2..4 {
        let ours = exchange(
            &mut end,
            &frame(protocol::LCP, 1, restarts, &[5, 6, 1, 1, 1, restarts]),
        );
        let ours = ours
            .into_iter()
            .find(|one| (one.0, one.1) == (protocol::LCP, 1));
        let (_, _, identifier, data) = ours.expect("a request");
        let again = exchange(&mut end, &frame(protocol::LCP, 2, identifier, &data));
        assert_eq!(networks(again), first);
        let now = end.link.view();
        assert_eq!((now.ipv4, now.ipv6), (view.ipv4, view.ipv6));
        for (number, options) in [
            (
                protocol::IPCP,
                &[3, 6, 0, 0, 0, 0, 129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0][..],
            ),
            (protocol::IPV6CP, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 5]),
        ] {
            let nak = exchange(&mut end, &frame(number, 1, 1, options)).remove(0);
            let named: &[u8] = match number {
                protocol::IPCP => &[
                    3, 6, 192, 0, 2, 1, 129, 6, 192, 0, 2, 53, 131, 6, 192, 0, 2, 1,
                ],
                _ => &[1, 10, 0, 0, 0, 0, 0, 0, 0, 9],
            };
            assert_eq!((nak.1, &nak.3[..]), (3, named));
        }
    }
}

/// RFC 1877: name servers come from the side that has them.
#[test]
fn a_client_does_not_assign_the_name_servers_that_it_was_given() {
    let [_, mut client] = up(Authentication::Pap);
    let options = [129, 6, 0, 0, 0, 0];
    client.sent.clear();
    let replies = exchange(&mut client, &frame(protocol::IPCP, 1, 99, &options));
    let reply = replies.iter().find(|one| one.2 == 99).expect("a reply");
    assert_eq!((reply.1, &reply.3[..]), (4, &options[..]));
}

#[test]
fn passwords_are_not_written() {
    for way in [Authentication::Pap, Authentication::ChapMd5] {
        for end in &mut up(way) {
            let octets = written(&mut end.link, CLOCK);
            let holds = |text: &[u8]| octets.windows(text.len()).any(|part| part == text);
            assert!(!holds(SECRET) && !holds(b"alice"));
        }
    }
}

#[test]
fn a_client_uses_the_credentials_that_its_reader_gives() {
    let [_, mut client] = up(Authentication::ChapMd5);
    let octets = written(&mut client.link, CLOCK);
    let refused = read(&octets, CLOCK, None).unwrap_err();
    assert_eq!(refused.part, "client");
    assert_eq!(refused.fault, snapshot::Fault::Value("applicant"));

    let new = Credentials {
        name: b"bob"[..].into(),
        ..credentials()
    };
    client.link = restored(&octets, Some(new.clone()));
    client.twin = None;
    client.credentials = Some(new);
    client.sent.clear();
    let challenge = frame(protocol::CHAP, 1, 9, b"\x04abcdserver");
    client
        .call(NOW, |link, ctx| link.handle(&challenge, ctx))
        .unwrap();
    assert!(client.packets()[0].3.ends_with(b"bob"));
}

#[test]
fn a_network_s_link_needs_no_credentials_and_heeds_none() {
    let [mut network, _] = up(Authentication::MsChapV2);
    let octets = written(&mut network.link, CLOCK);
    for given in [None, Some(credentials())] {
        let link = restored(&octets, given);
        assert_eq!(link.view(), network.link.view());
    }
}

#[test]
fn an_echo_is_measured_across_processes() {
    let mut end = opened();
    let sent_at = end.link.timeout();
    end.sent.clear();
    end.call(sent_at, |link, ctx| link.handle_timeout(ctx));
    let (_, _, identifier, _) = end.packets().remove(0);
    let octets = written(&mut end.link, CLOCK);

    // The same moment on the other process's clock.
    end.link = read(&octets, OTHER_CLOCK, None).unwrap().unwrap();
    end.renewed = None;
    let sent_at = OTHER_CLOCK.at(CLOCK.of(sent_at));
    let reply = frame(protocol::LCP, 10, identifier, &[9; 4]);
    let now = sent_at + Duration::from_millis(25);
    end.call(now, |link, ctx| link.handle(&reply, ctx)).unwrap();
    let rtt_us = end.link.echo_rtt_us().expect("an answer");
    assert_eq!(rtt_us, 25_000);
}
