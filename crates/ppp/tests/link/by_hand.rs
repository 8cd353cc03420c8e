//! Tests single packets against the behaviour that the RFCs require.

use base::{Duration, Instant};
use ppp::{Authentication, Discard, Event, LinkEnd, State};
use wire::ppp::protocol;

use crate::harness::{NOW, Pair, SECRET, Wire, client, frame, network, opened, send};
use crate::twins::RENEWED;

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn a_request_is_sent_again_every_three_seconds_ten_times() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let mut now = NOW;
    let mut requests = end.packets().len();
    while end.link.timeout() != Instant::FAR_FUTURE {
        let next = end.link.timeout();
        assert_eq!(next.since(now), SECONDS(3));
        now = next;
        end.call(now, |link, ctx| link.handle_timeout(ctx));
        requests += end.packets().len();
    }
    assert_eq!(requests, 10);
    assert_eq!(end.events, [Event::Ended(LinkEnd::NoAnswer)]);
}

#[test]
fn an_acknowledgement_counts_only_with_the_exact_identifier_and_options() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, options) = end.packets().remove(0);
    let wrong_id = frame(protocol::LCP, 2, identifier.wrapping_add(1), &options);
    assert_eq!(send(&mut end, &wrong_id), Err(Discard::Stray));
    let mut changed = options.clone();
    *changed.last_mut().unwrap() ^= 1;
    let changed = frame(protocol::LCP, 2, identifier, &changed);
    assert_eq!(send(&mut end, &changed), Err(Discard::Stray));
    assert_eq!(end.link.states()[0], State::ReqSent);
    let right = frame(protocol::LCP, 2, identifier, &options);
    assert_eq!(send(&mut end, &right), Ok(()));
    assert_eq!(end.link.states()[0], State::AckRcvd);
    // The wire duplicated the acknowledgement.
    assert_eq!(send(&mut end, &right), Err(Discard::Stray));
    assert_eq!(end.link.states()[0], State::AckRcvd);
}

#[test]
fn a_request_whose_acknowledgement_was_lost_is_acknowledged_again_and_another_renegotiates() {
    let mut end = opened();
    end.packets();
    end.events.clear();
    let offer = [3, 6, 198, 51, 100, 7];
    // A request with other options renegotiates: IPCP goes down, and we send a Configure-Request.
    assert_eq!(
        send(&mut end, &frame(protocol::IPCP, 1, 40, &offer)),
        Ok(())
    );
    assert_eq!(end.events.pop(), Some(Event::Ipv4Down));
    let packets = end.packets();
    let request = packets.iter().find(|packet| packet.1 == 1).unwrap();
    let ack = frame(protocol::IPCP, 2, request.2, &request.3);
    assert_eq!(send(&mut end, &ack), Ok(()));
    assert!(matches!(end.events.pop(), Some(Event::Ipv4Up(_))));
    for _ in 0..10 {
        assert_eq!(
            send(&mut end, &frame(protocol::IPCP, 1, 40, &offer)),
            Ok(())
        );
        let packets = end.packets();
        assert_eq!(packets, [(protocol::IPCP, 2, 40, offer.to_vec())]);
        assert!(end.events.is_empty());
    }
    assert_eq!(
        send(&mut end, &frame(protocol::IPCP, 1, 40, &offer)),
        Ok(())
    );
    assert_eq!(end.events.pop(), Some(Event::Ipv4Down));
}

#[test]
fn unknown_protocols_are_rejected_whenever_they_come_once_lcp_is_open() {
    let mut end = opened();
    end.packets();
    let ccp = frame(protocol::CCP, 1, 9, &[17, 6, 0, 0, 0, 1]);
    assert_eq!(send(&mut end, &ccp), Err(Discard::UnknownProtocol));
    let (number, code, _, data) = end.packets().remove(0);
    assert_eq!((number, code), (protocol::LCP, 8));
    // The rejected protocol and its information (RFC 1661, section 5.7).
    assert_eq!(data, ccp);

    // Protocols are also rejected in the authentication phase, but not before LCP is open.
    let mut end = network(&[Authentication::ChapMd5], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    assert_eq!(send(&mut end, &ccp), Err(Discard::Phase));
    assert!(end.packets().is_empty());
}

#[test]
fn unknown_codes_are_rejected_with_the_packet() {
    let mut end = opened();
    end.packets();
    let unknown = frame(protocol::LCP, 77, 4, b"abc");
    assert_eq!(send(&mut end, &unknown), Ok(()));
    let (number, code, _, data) = end.packets().remove(0);
    assert_eq!((number, code), (protocol::LCP, 7));
    assert_eq!(data, unknown[2..]);
    assert_eq!(end.link.states()[0], State::Opened);
}

#[test]
fn echoes_are_answered_only_when_lcp_is_open() {
    let echo = frame(protocol::LCP, 9, 5, &[0, 0, 0, 9, 1, 2, 3]);
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    assert_eq!(send(&mut end, &echo), Err(Discard::Phase));
    assert!(end.packets().is_empty());

    let mut end = opened();
    end.packets();
    assert_eq!(send(&mut end, &echo), Ok(()));
    let (_, code, identifier, data) = end.packets().remove(0);
    assert_eq!((code, identifier, &data[4..]), (10, 5, &[1, 2, 3][..]));
    // RFC 1661, section 5.8: the reply has the sender's own magic number.
    assert_ne!(data[..4], [0, 0, 0, 9]);
}

#[test]
fn our_own_magic_number_that_comes_back_is_a_loop() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    for _ in 0..40 {
        for octets in std::mem::take(&mut end.sent) {
            let _ = send(&mut end, &octets);
        }
    }
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::Looped)));
}

#[test]
fn options_that_are_not_known_are_rejected_as_they_came_and_the_others_wait() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    // MRU 1400; callback; quality; an endpoint discriminator.
    let options = [
        &[1, 4, 5, 120][..],
        &[13, 3, 6],
        &[4, 8, 0xc0, 0x25, 0, 0, 0, 1],
        &[19, 3, 0],
    ];
    let request = frame(protocol::LCP, 1, 3, &options.concat());
    assert_eq!(send(&mut end, &request), Ok(()));
    let (_, code, identifier, data) = end.packets().remove(0);
    assert_eq!((code, identifier), (4, 3));
    assert_eq!(data, options[1..].concat());
    let request = frame(protocol::LCP, 1, 4, options[0]);
    assert_eq!(send(&mut end, &request), Ok(()));
    assert_eq!(end.packets().remove(0).1, 2);
    assert_eq!(end.link.peer_mru(), 1_400);
}

#[test]
fn a_peer_that_asks_the_network_for_a_proof_is_refused_that_option() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    let option = [3, 4, 0xc0, 0x23];
    assert_eq!(send(&mut end, &frame(protocol::LCP, 1, 1, &option)), Ok(()));
    let (_, code, _, data) = end.packets().remove(0);
    assert_eq!((code, &data[..]), (4, &option[..]));
}

#[test]
fn a_peer_that_will_not_prove_itself_is_not_let_in() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, _) = end.packets().remove(0);
    let reject = frame(protocol::LCP, 4, identifier, &[3, 5, 0xc2, 0x23, 5]);
    assert_eq!(send(&mut end, &reject), Ok(()));
    let ended = Event::Ended(LinkEnd::AuthenticationRejected);
    assert_eq!(end.events.last(), Some(&ended));
}

#[test]
fn a_peer_that_wants_another_proof_gets_it_if_it_is_one_of_ours() {
    let ways = [Authentication::ChapMd5, Authentication::Pap];
    let mut end = network(&ways, 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, _) = end.packets().remove(0);
    let nak = frame(protocol::LCP, 3, identifier, &[3, 4, 0xc0, 0x23]);
    assert_eq!(send(&mut end, &nak), Ok(()));
    let (_, code, _, data) = end.packets().remove(0);
    assert_eq!(code, 1);
    assert_eq!(data[..4], [3, 4, 0xc0, 0x23]);
}

#[test]
fn naks_without_end_end_the_link() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    for _ in 0..100 {
        let Some((_, 1, identifier, _)) = end.packets().pop() else {
            break;
        };
        let nak = frame(protocol::LCP, 3, identifier, &[3, 4, 0xc0, 0x23]);
        let _ = send(&mut end, &nak);
    }
    assert!(matches!(end.events.last(), Some(Event::Ended(_))));
}

#[test]
fn an_address_of_its_own_is_answered_by_the_one_it_gets() {
    let mut end = opened();
    end.packets();
    let wrong = [3, 6, 10, 0, 0, 1, 129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0];
    let request = frame(protocol::IPCP, 1, 200, &wrong);
    assert_eq!(send(&mut end, &request), Ok(()));
    let packets = end.packets();
    // No second DNS server is configured, so its option is rejected first (RFC 1661, section 5.4).
    let reply = packets.iter().find(|packet| packet.2 == 200).unwrap();
    assert_eq!((reply.1, &reply.3[..]), (4, &wrong[12..]));
    let request = frame(protocol::IPCP, 1, 201, &wrong[..12]);
    assert_eq!(send(&mut end, &request), Ok(()));
    let packets = end.packets();
    let reply = packets.iter().find(|packet| packet.2 == 201).unwrap();
    let right = [3, 6, 198, 51, 100, 7, 129, 6, 192, 0, 2, 53];
    assert_eq!((reply.1, &reply.3[..]), (3, &right[..]));
}

#[test]
fn a_peer_that_names_no_address_is_told_it() {
    let mut end = opened();
    end.packets();
    assert_eq!(send(&mut end, &frame(protocol::IPCP, 1, 9, &[])), Ok(()));
    let packets = end.packets();
    let reply = packets.iter().find(|packet| packet.2 == 9).unwrap();
    assert_eq!((reply.1, &reply.3[..]), (3, &[3, 6, 198, 51, 100, 7][..]));
}

#[test]
fn interface_identifiers_that_are_zero_or_ours_are_answered_by_others() {
    let mut end = opened();
    for identifier in [0_u64, 1] {
        end.packets();
        let option = [&[1, 10][..], &identifier.to_be_bytes()].concat();
        let request = frame(protocol::IPV6CP, 1, 77, &option);
        assert_eq!(send(&mut end, &request), Ok(()));
        let packets = end.packets();
        let reply = packets.iter().find(|packet| packet.2 == 77).unwrap();
        assert_eq!(reply.1, 3);
        let suggested = u64::from_be_bytes(reply.3[2..].try_into().unwrap());
        assert!(suggested > 1);
        // RFC 5072, section 4.1: the "u" bit is zero.
        assert_eq!(reply.3[2] & 2, 0);
    }
}

#[test]
fn a_stale_challenge_s_response_is_ignored() {
    let mut pair = Pair::new(
        network(&[Authentication::ChapMd5], 1),
        client(SECRET, 2),
        Wire::default(),
        3,
    );
    pair.up();
    let mut end = pair.ends.into_iter().next().unwrap();
    let (_, _, identifier, options) = end.packets().remove(0);
    send(&mut end, &frame(protocol::LCP, 1, 1, &[])).unwrap();
    send(&mut end, &frame(protocol::LCP, 2, identifier, &options)).unwrap();
    let packets = end.packets();
    let challenge = packets.iter().find(|packet| packet.0 == protocol::CHAP);
    let (_, _, id, _) = challenge.unwrap().clone();
    let response = [&[16][..], &[7; 16], b"alice"].concat();
    let stale = frame(protocol::CHAP, 2, id.wrapping_sub(1), &response);
    assert_eq!(send(&mut end, &stale), Err(Discard::Stray));
    let right = frame(protocol::CHAP, 2, id, &response);
    assert_eq!(send(&mut end, &right), Ok(()));
    assert!(matches!(end.events.last(), Some(Event::Authenticate(_))));
}

#[test]
fn no_octets_panic() {
    let mut end = opened();
    end.config.control_max_per_s = 0;
    end.renewed = Some(RENEWED);
    let mut random = crate::harness::Seeded(5);
    for _ in 0..200_000 {
        let numbers = [
            protocol::LCP,
            protocol::IPCP,
            protocol::IPV6CP,
            protocol::PAP,
            protocol::CHAP,
            protocol::CCP,
        ];
        let mut octets = numbers[random.next() as usize % 6].to_be_bytes().to_vec();
        let length = random.next() as usize % 24;
        octets.extend([1 + random.next() as u8 % 12, random.next() as u8 % 8]);
        octets.extend((length as u16 + 4).to_be_bytes());
        octets.extend((0..length).map(|_| random.next() as u8 % 8));
        let _ = send(&mut end, &octets);
        if matches!(end.events.last(), Some(Event::Ended(_))) {
            end = opened();
            end.config.control_max_per_s = 0;
            end.renewed = Some(RENEWED);
        }
        end.sent.clear();
        end.events.clear();
    }
}
