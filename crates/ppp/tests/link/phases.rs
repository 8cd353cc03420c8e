//! Packets in the wrong phase, renegotiation, rejects and termination.

use base::{Duration, Instant};
use ppp::{Authentication, Config, Discard, Event, LinkEnd, Side, State};
use wire::ppp::{chap, protocol};

use crate::harness::{
    End, NOW, Pair, SECRET, Wire, accept, answer_lcp, claims, client, exchange, frame, network,
    open_lcp, opened, send,
};

const MAGIC: [u8; 6] = [5, 6, 1, 2, 3, 4];

#[test]
fn a_network_protocol_before_authentication_is_over_is_silently_discarded() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &MAGIC);
    let ipcp = frame(protocol::IPCP, 1, 1, &[3, 6, 0, 0, 0, 0]);
    let ipv6cp = frame(protocol::IPV6CP, 1, 1, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]);
    for octets in [&ipcp, &ipv6cp] {
        assert!(exchange(&mut end, octets).is_empty());
        assert_eq!(send(&mut end, octets), Err(Discard::Phase));
    }
    let alice = frame(protocol::PAP, 1, 1, b"\x05alice\x06sesame");
    send(&mut end, &alice).unwrap();
    assert!(exchange(&mut end, &ipcp).is_empty());
    assert!(accept(&mut end));
    assert_eq!(exchange(&mut end, &ipcp).remove(0).1, 3);
}

#[test]
fn what_a_peer_without_a_proof_asks_for_early_is_answered_once_it_is_let_in() {
    let mut end = network(&[], 1);
    open_lcp(&mut end, &MAGIC);
    let ipcp = |id, host| frame(protocol::IPCP, 1, id, &[3, 6, 10, 0, 0, host]);
    let ipv6cp = frame(protocol::IPV6CP, 1, 7, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]);
    end.sent.clear();
    for octets in [&ipcp(1, 8), &ipv6cp, &ipcp(2, 9)] {
        assert_eq!(send(&mut end, octets), Ok(()));
    }
    assert_eq!(end.link.early_wish(), Some([10, 0, 0, 9].into()));
    assert!(end.packets().is_empty());
    end.sent.clear();
    assert!(accept(&mut end));
    let answers = end.packets();
    let answers = answers.iter().filter(|packet| packet.1 != 1);
    let answers: Vec<_> = answers
        .map(|packet| (packet.0, packet.1, packet.2))
        .collect();
    // The latest request of each protocol: the address is not its own (Nak), the interface identifier is (Ack).
    let expected = vec![(protocol::IPCP, 3, 2), (protocol::IPV6CP, 2, 7)];
    assert_eq!(answers, expected);
    assert_eq!(end.link.early_wish(), None);
}

#[test]
fn only_requests_of_bounded_length_are_kept_and_new_lcp_forgets_them() {
    let mut end = network(&[], 1);
    open_lcp(&mut end, &MAGIC);
    let long = frame(protocol::IPCP, 1, 1, &[3; 200]);
    let ack = frame(protocol::IPCP, 2, 1, &[]);
    let packet = [&protocol::IPV4.to_be_bytes()[..], &[0x45; 60]].concat();
    for octets in [long, ack, packet] {
        assert_eq!(send(&mut end, &octets), Err(Discard::Phase));
    }
    let request = frame(protocol::IPCP, 1, 1, &[3, 6, 10, 0, 0, 9]);
    assert_eq!(send(&mut end, &request), Ok(()));
    assert_eq!(end.link.early_wish(), Some([10, 0, 0, 9].into()));
    // The peer begins LCP again (RFC 1661, section 4.1, Opened and RCR+): the link sends a request of its own.
    send(&mut end, &frame(protocol::LCP, 1, 2, &MAGIC)).expect("heeded");
    answer_lcp(&mut end, &MAGIC);
    assert_eq!(end.link.early_wish(), None);
    end.sent.clear();
    assert!(accept(&mut end));
    assert!(end.packets().iter().all(|packet| packet.1 == 1));
}

#[test]
fn a_client_is_up_at_once_however_long_the_network_looks_it_up() {
    let mut pair = Pair::new(network(&[], 1), client(SECRET, 2), Wire::default(), 3);
    pair.answers_after = Duration::from_millis(2_500);
    pair.up();
    let is_up = |pair: &Pair| pair.ends.iter().all(|end| end.link.is_open(false));
    assert!(pair.run_until(Duration::from_millis(2_900), is_up));
}

#[test]
fn unknown_protocols_are_rejected_during_authentication_too() {
    for number in [protocol::CCP, 0x8053, 0x0041, 0x80cf] {
        let mut end = network(&[Authentication::Pap], 1);
        open_lcp(&mut end, &MAGIC);
        let unknown = frame(number, 1, 1, &[]);
        let packets = exchange(&mut end, &unknown);
        assert_eq!((packets[0].0, packets[0].1), (protocol::LCP, 8));
        assert_eq!(packets[0].3, unknown);
    }
}

#[test]
fn a_rejected_packet_is_sent_back_as_it_came_but_cut() {
    let mut end = opened();
    let long = frame(protocol::LCP, 77, 4, &[9; 900]);
    let packets = exchange(&mut end, &long);
    assert_eq!(packets[0].1, 7);
    assert_eq!(packets[0].3, long[2..][..packets[0].3.len()]);
    assert!(packets[0].3.len() < 128);
}

#[test]
fn lcp_that_begins_anew_in_the_network_phase_takes_all_down_and_up_again() {
    let mut pair = Pair::new(
        network(&[Authentication::ChapMd5], 1),
        client(SECRET, 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    // The client's end restarts, as after a crash.
    pair.ends[1] = client(SECRET, 9);
    pair.ends[0].events.clear();
    let now = pair.now;
    pair.ends[1].call(now, |link, ctx| link.up(ctx));
    pair.run(Duration::from_secs(20));
    let events = &pair.ends[0].events;
    assert_eq!(events[..2], [Event::Ipv4Down, Event::Ipv6Down]);
    assert_eq!(events[2], Event::LcpUp);
    for end in &pair.ends {
        assert_eq!(end.link.states(), [State::Opened; 3]);
    }
    assert_eq!(pair.ends[0].link.claims(), 2);
}

#[test]
fn an_owner_s_late_answer_to_a_claim_before_a_renegotiation_is_told_apart() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &MAGIC);
    let alice = frame(protocol::PAP, 1, 1, b"\x05alice\x06sesame");
    send(&mut end, &alice).unwrap();
    let first = end.link.claims();
    // LCP restarts while the owner is still checking the claim.
    send(&mut end, &frame(protocol::LCP, 1, 2, &[5, 6, 9, 9, 9, 9])).unwrap();
    assert_eq!(end.link.states()[0], State::AckSent);
    assert!(!accept(&mut end), "nobody waits for it now");
    end.packets();
    end.call(NOW + Duration::from_secs(3), |link, ctx| {
        link.handle_timeout(ctx);
    });
    answer_lcp(&mut end, &MAGIC);
    assert!(!accept(&mut end), "nobody has made a claim yet");
    let bob = frame(protocol::PAP, 1, 1, b"\x03bob\x06sesame");
    send(&mut end, &bob).unwrap();
    assert_ne!(end.link.claims(), first);
    assert_eq!(claims(&end), 2);
    assert!(accept(&mut end));
}

#[test]
fn late_packets_of_an_earlier_negotiation_change_nothing() {
    let mut end = opened();
    let (lcp, ipcp) = (end.link.view().local, end.link.view().ipv4);
    let before = end.events.len();
    for identifier in 0..=255 {
        for code in [2, 3, 4] {
            let options = [3, 6, 10, 0, 0, 1];
            for number in [protocol::LCP, protocol::IPCP, protocol::IPV6CP] {
                end.config.control_max_per_s = 0;
                let late = frame(number, code, identifier, &options);
                assert_eq!(send(&mut end, &late), Err(Discard::Stray));
            }
        }
        for number in [protocol::PAP, protocol::CHAP] {
            let late = frame(number, 3, identifier, &[]);
            assert_eq!(send(&mut end, &late), Err(Discard::Phase));
        }
    }
    let now = end.link.view();
    assert_eq!((now.local, now.ipv4), (lcp, ipcp));
    assert_eq!(end.events.len(), before);
}

#[test]
fn packets_of_a_network_that_is_not_open_are_discarded() {
    let mut end = network(&[], 1);
    for number in [protocol::IPV4, protocol::IPV6] {
        let packet = [&number.to_be_bytes()[..], &[0x45; 40]].concat();
        assert_eq!(send(&mut end, &packet), Err(Discard::Phase));
    }
    open_lcp(&mut end, &MAGIC);
    let packet = [&[0x21][..], &[0x45; 40]].concat();
    assert!(exchange(&mut end, &packet).is_empty());
}

#[test]
fn a_rejected_network_protocol_ends_that_one_and_the_last_of_them_the_link() {
    let mut end = opened();
    let reject = |number: u16| frame(protocol::LCP, 8, 1, &number.to_be_bytes());
    assert_eq!(send(&mut end, &reject(protocol::IPV6CP)), Ok(()));
    assert_eq!(end.events.last(), Some(&Event::Ipv6Down));
    assert!(end.link.is_open(false) && !end.link.is_open(true));
    assert_eq!(send(&mut end, &reject(protocol::IPCP)), Ok(()));
    for _ in 0..8 {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        if due == Instant::FAR_FUTURE {
            break;
        }
    }
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::NoNetwork)));
}

#[test]
fn a_rejected_network_protocol_that_is_still_asking_stops_at_once() {
    let mut end = network(&[], 1);
    open_lcp(&mut end, &MAGIC);
    accept(&mut end);
    let reject = frame(protocol::LCP, 8, 1, &protocol::IPV6CP.to_be_bytes());
    assert_eq!(send(&mut end, &reject), Ok(()));
    assert_eq!(end.link.states()[2], State::Stopped);
    assert_eq!(end.link.states()[1], State::ReqSent);
}

#[test]
fn rejects_of_what_is_needed_end_the_link_and_others_do_not() {
    for (rejected, end_of_it) in [
        (frame(protocol::LCP, 8, 1, &[0xc0, 0x21]), true),
        (frame(protocol::LCP, 7, 1, &[1, 1, 0, 4]), true),
        (frame(protocol::LCP, 8, 1, &[0xc2, 0x23]), true),
        (frame(protocol::LCP, 8, 1, &[0x80, 0xfd]), false),
        (frame(protocol::LCP, 7, 1, &[9, 1, 0, 8]), false),
        (frame(protocol::LCP, 7, 1, &[200, 1, 0, 4]), false),
        (frame(protocol::LCP, 7, 1, &[]), false),
        (frame(protocol::LCP, 8, 1, &[0]), false),
    ] {
        let mut end = opened();
        let _ = send(&mut end, &rejected);
        let goes_on = end.link.states()[0] == State::Opened;
        assert_eq!(goes_on, !end_of_it, "{rejected:?}");
    }
}

#[test]
fn a_protocol_reject_counts_only_once_lcp_is_open() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let reject = frame(protocol::LCP, 8, 1, &[0xc0, 0x21]);
    assert_eq!(send(&mut end, &reject), Err(Discard::Phase));
}

#[test]
fn a_terminate_request_is_acknowledged_under_its_identifier_in_every_phase() {
    let terminate = frame(protocol::LCP, 5, 33, b"bye");
    let mut requesting = network(&[], 1);
    requesting.call(NOW, |link, ctx| link.up(ctx));
    let mut authenticating = network(&[Authentication::Pap], 1);
    open_lcp(&mut authenticating, &MAGIC);
    for (end, ends) in [
        (&mut requesting, false),
        (&mut authenticating, true),
        (&mut opened(), true),
    ] {
        let packets = exchange(end, &terminate);
        assert!(packets.contains(&(protocol::LCP, 6, 33, Vec::new())));
        let ended = Event::Ended(LinkEnd::PeerTerminated);
        assert_eq!(end.events.last() == Some(&ended), ends);
    }
}

#[test]
fn a_terminated_network_protocol_ends_alone_and_may_come_again() {
    let mut end = opened();
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 5, 9, &[]));
    assert_eq!(packets, [(protocol::IPV6CP, 6, 9, Vec::new())]);
    assert_eq!(end.events.last(), Some(&Event::Ipv6Down));
    let due = end.link.timeout();
    end.call(due, |link, ctx| link.handle_timeout(ctx));
    assert_eq!(end.link.states()[2], State::Stopped);
    assert!(end.link.is_open(false));
    let again = frame(protocol::IPV6CP, 1, 10, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]);
    let packets = exchange(&mut end, &again);
    let codes: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
    assert_eq!(codes, [1, 2]);
}

#[test]
fn a_link_that_has_ended_ignores_everything() {
    let mut end = opened();
    send(&mut end, &frame(protocol::LCP, 5, 1, &[])).unwrap();
    end.sent.clear();
    let echo = frame(protocol::LCP, 9, 1, &[0; 4]);
    assert_eq!(send(&mut end, &echo), Err(Discard::Ended));
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
    assert!(!accept(&mut end));
    end.call(NOW, |link, ctx| link.close(ctx));
    assert!(end.sent.is_empty());
}

#[test]
fn our_own_echo_that_comes_back_is_a_loop() {
    let mut end = opened();
    let due = end.link.timeout();
    end.sent.clear();
    end.call(due, |link, ctx| link.handle_timeout(ctx));
    let echo = end.sent.remove(0);
    assert_eq!(send(&mut end, &echo), Err(Discard::Stray));
    assert_eq!(end.link.view().end, Some(LinkEnd::Looped));
}

#[test]
fn two_ends_without_a_magic_number_are_no_loop() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, options) = end.packets().remove(0);
    exchange(&mut end, &frame(protocol::LCP, 4, identifier, &options));
    let mut end2 = network(&[], 1);
    end2.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, options) = end2.packets().remove(0);
    let packets = exchange(&mut end2, &frame(protocol::LCP, 4, identifier, &options));
    assert!(packets[0].3.is_empty());
    send(&mut end2, &frame(protocol::LCP, 2, packets[0].2, &[])).unwrap();
    send(&mut end2, &frame(protocol::LCP, 1, 1, &[])).unwrap();
    let packets = exchange(&mut end2, &frame(protocol::LCP, 9, 1, &[0; 4]));
    assert_eq!(packets.last().unwrap().1, 10);
}

#[test]
fn a_retransmission_under_another_identifier_converges() {
    // The peer's acknowledgement was lost. Its retransmission has another identifier, which RFC 1661, section 5.1,
    // permits. Our request goes out before our reply, so the peer stays in Ack-Sent and both ends open.
    let mut end = opened();
    let peers = [&[3, 6][..], &[198, 51, 100, 7]].concat();
    let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 211, &peers));
    let codes: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
    assert_eq!(codes, [1, 2]);
    let ack = frame(protocol::IPCP, 2, packets[0].2, &packets[0].3.clone());
    assert!(exchange(&mut end, &ack).is_empty());
    assert!(end.link.is_open(false));
}

#[test]
fn a_client_that_has_no_proof_says_so() {
    let mut pair = Pair::new(
        network(&[Authentication::ChapMd5], 1),
        End::new(
            Side::Client {
                credentials: None,
                ipv4: None,
                ipv6: None,
            },
            Config::default(),
            2,
        ),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    let last = |end: usize| pair.ends[end].events.last().cloned();
    assert_eq!(last(0), Some(Event::Ended(LinkEnd::AuthenticationRejected)));
    assert_eq!(last(1), Some(Event::Ended(LinkEnd::NoCredentials)));
}

#[test]
fn a_client_asked_for_an_unknown_way_offers_chap() {
    let mut end = client(SECRET, 2);
    end.call(NOW, |link, ctx| link.up(ctx));
    // MS-CHAP version 1.
    let packets = exchange(
        &mut end,
        &frame(protocol::LCP, 1, 1, &[3, 5, 0xc2, 0x23, 0x80]),
    );
    let offered = [3, 5, 0xc2, 0x23, chap::MD5];
    assert_eq!((packets[0].1, &packets[0].3[..]), (3, &offered[..]));
}
