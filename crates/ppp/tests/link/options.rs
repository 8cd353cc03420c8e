//! Options: every order, impossible values, and peers that insist on theirs.

use std::net::Ipv4Addr;

use ppp::{Authentication, Config, Event, Grant, Ipv4Offer, Ipv6Offer, LinkEnd, Side, State};
use wire::ppp::protocol;

use crate::harness::{
    DNS, End, NOW, PEER, accept, exchange, frame, grant, network, open_lcp, opened, send,
};

/// All orders of some options.
fn orders(options: &[&[u8]]) -> Vec<Vec<u8>> {
    if options.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 0..options.len() {
        let mut rest = options.to_vec();
        let head = rest.remove(first);
        all.extend(orders(&rest).iter().map(|tail| [head, tail].concat()));
    }
    all
}

/// The network's end in the network phase, with IPCP and IPv6CP requests in transit. The peer did not have to
/// authenticate.
fn granted(grant: &Grant) -> End {
    let mut end = network(&[], 1);
    open_lcp(&mut end, &[]);
    end.call(NOW, |link, ctx| link.accept(grant, b"", ctx));
    end
}

#[test]
fn options_of_lcp_are_agreed_to_in_every_order() {
    let options: [&[u8]; 5] = [
        &[1, 4, 5, 0xd4],
        &[2, 6, 0, 0, 0, 0],
        &[5, 6, 1, 2, 3, 4],
        &[7, 2],
        &[8, 2],
    ];
    for order in orders(&options) {
        let mut end = network(&[], 1);
        open_lcp(&mut end, &order);
        let peer = end.link.view().peer;
        assert_eq!((peer.mru, peer.magic), (1_492, 0x0102_0304));
        assert!(peer.compression.protocol && peer.compression.address);
    }
}

#[test]
fn options_of_ipcp_are_answered_in_every_order_each_in_its_place() {
    let options: [&[u8]; 3] = [
        &[3, 6, 0, 0, 0, 0],
        &[129, 6, 0, 0, 0, 0],
        &[2, 6, 0, 0x2d, 15, 1],
    ];
    for order in orders(&options) {
        let mut end = granted(&grant());
        let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 7, &order));
        // Header compression is rejected first, with its option copied unchanged.
        assert_eq!(packets[0].1, 4);
        assert_eq!(packets[0].3, options[2]);
        let rest: Vec<&[u8]> = order.chunks(6).filter(|option| option[0] != 2).collect();
        let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 8, &rest.concat()));
        assert_eq!(packets[0].1, 3);
        let kinds: Vec<u8> = packets[0].3.chunks(6).map(|option| option[0]).collect();
        let asked: Vec<u8> = rest.iter().map(|option| option[0]).collect();
        assert_eq!(kinds, asked);
        let packets = exchange(
            &mut end,
            &frame(protocol::IPCP, 1, 9, &packets[0].3.clone()),
        );
        assert_eq!(packets[0].1, 2);
    }
}

#[test]
fn addresses_in_the_form_of_rfc_1172_are_rejected() {
    let mut end = granted(&grant());
    let option = [&[1, 10][..], &[0; 8]].concat();
    let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 7, &option));
    assert_eq!((packets[0].1, &packets[0].3), (4, &option));
}

#[test]
fn naks_without_effect_turn_into_a_reject() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    // A magic number of zero, sent repeatedly (RFC 1661, sections 4.6 and 6.4).
    let request = frame(protocol::LCP, 1, 1, &[5, 6, 0, 0, 0, 0]);
    let codes: Vec<u8> = (0..7)
        .map(|_| exchange(&mut end, &request).remove(0).1)
        .collect();
    assert_eq!(codes, [3, 3, 3, 3, 3, 4, 4]);
}

#[test]
fn a_peer_that_insists_on_what_is_rejected_is_given_up() {
    let mut end = network(&[], 1);
    end.config.control_max_per_s = 0;
    end.call(NOW, |link, ctx| link.up(ctx));
    let request = frame(protocol::LCP, 1, 1, &[13, 3, 6]);
    let mut rejects = 0;
    while send(&mut end, &request).is_ok() {
        rejects += 1;
        assert!(rejects < 1_000, "it never ends");
    }
    assert_eq!(end.events, [Event::Ended(LinkEnd::Rejected)]);
}

#[test]
fn a_peer_that_agrees_to_all_and_never_asks_is_given_up() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    let mut now = NOW;
    while !matches!(end.events.last(), Some(Event::Ended(_))) {
        for (number, code, identifier, options) in end.packets() {
            if code == 1 {
                let ack = frame(number, 2, identifier, &options);
                let _ = end.call(now, |link, ctx| link.handle(&ack, ctx));
            }
        }
        assert!(now.as_nanos() < 300_000_000_000, "it never ends");
        if end.link.view().end.is_none() {
            now = end.link.timeout();
            end.call(now, |link, ctx| link.handle_timeout(ctx));
        }
    }
    assert_eq!(end.events, [Event::Ended(LinkEnd::Rejected)]);
}

#[test]
fn a_network_protocol_that_never_converges_is_given_up_alone() {
    let mut end = granted(&grant());
    end.config.control_max_per_s = 0;
    for identifier in 0..60 {
        // The peer insists on its own address, whatever address we suggest.
        exchange(
            &mut end,
            &frame(protocol::IPCP, 1, identifier, &[3, 6, 10, 0, 0, 1]),
        );
    }
    assert_eq!(end.link.states()[1], State::Stopped);
    assert_ne!(end.link.states()[2], State::Stopped);
    assert!(!end.link.is_open(false));
    // The peer finally requests the address that we suggested.
    let right = [&[3, 6][..], &PEER.octets()].concat();
    let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 99, &right));
    let codes: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
    assert_eq!(codes, [1, 2]);
}

#[test]
fn a_network_that_gives_up_after_it_agreed_tells_the_peer_so() {
    let mut end = granted(&grant());
    let right = [&[3, 6][..], &PEER.octets()].concat();
    send(&mut end, &frame(protocol::IPCP, 1, 1, &right)).unwrap();
    assert_eq!(end.link.states()[1], State::AckSent);
    let mut terminated = 0;
    while end.link.view().end.is_none() {
        end.sent.clear();
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        let is_terminate =
            |packet: &(u16, u8, u8, Vec<u8>)| packet.1 == 5 && packet.0 == protocol::IPCP;
        terminated += end.packets().into_iter().filter(is_terminate).count();
    }
    assert_eq!(terminated, 2);
}

#[test]
fn a_peer_takes_larger_or_smaller_packets_than_we_do() {
    for (mru, code) in [
        (9_000_u16, 2),
        (1_500, 2),
        (576, 2),
        (128, 2),
        (127, 3),
        (0, 3),
    ] {
        let mut end = network(&[], 1);
        end.call(NOW, |link, ctx| link.up(ctx));
        let option = [&[1, 4][..], &mru.to_be_bytes()].concat();
        let packets = exchange(&mut end, &frame(protocol::LCP, 1, 1, &option));
        assert_eq!(packets[0].1, code, "{mru}");
        match code {
            2 => assert_eq!(end.link.peer_mru(), mru),
            _ => assert_eq!(packets[0].3, [1, 4, 0, 128]),
        }
    }
}

#[test]
fn an_mru_of_ours_that_the_peer_finds_too_large_is_made_smaller_and_never_larger() {
    for (wanted, then) in [(1_300_u16, 1_300_u16), (9_000, 1_400), (5, 128)] {
        let config = Config {
            mru: 1_400,
            ..Config::default()
        };
        let mut end = End::new(Side::Network, config, 1);
        end.call(NOW, |link, ctx| link.up(ctx));
        let (_, _, identifier, options) = end.packets().remove(0);
        assert_eq!(options[..4], [1, 4, 5, 0x78]);
        let nak = [&[1, 4][..], &wanted.to_be_bytes()].concat();
        let packets = exchange(&mut end, &frame(protocol::LCP, 3, identifier, &nak));
        let option = [&[1, 4][..], &then.to_be_bytes()].concat();
        assert_eq!(packets[0].3[..4], option);
    }
}

/// RFC 2516, section 7: "the MRU option MUST NOT be negotiated to a larger size than 1492"; FCS alternatives, ACFC and
/// ACCM are not requested and must be rejected, and PFC is not recommended.
#[test]
fn over_pppoe_no_mru_is_larger_than_a_frame_and_forbidden_options_are_rejected() {
    let config = Config {
        compress: true,
        ..Config::default()
    };
    let mut end = End::new(Side::Network, config, 1);
    end.link.set_ether(1_492);
    end.call(NOW, |link, ctx| link.up(ctx));
    let (_, _, identifier, options) = end.packets().remove(0);
    assert_eq!(options[..4], [1, 4, 0x05, 0xd4]);
    // Only MRU and Magic-Number.
    assert_eq!(options.len(), 4 + 6);
    // A suggestion that is too large changes nothing.
    let nak = [1, 4, 0x05, 0xdc];
    let packets = exchange(&mut end, &frame(protocol::LCP, 3, identifier, &nak));
    assert_eq!(packets[0].3[..4], [1, 4, 0x05, 0xd4]);
    for (option, code, answer) in [
        (&[1, 4, 0x05, 0xdc][..], 3, &[1, 4, 0x05, 0xd4][..]),
        (&[1, 4, 0x05, 0xd4], 2, &[1, 4, 0x05, 0xd4]),
        (&[2, 6, 0, 0, 0, 0], 4, &[2, 6, 0, 0, 0, 0]),
        (&[8, 2], 4, &[8, 2]),
        (&[9, 3, 1], 4, &[9, 3, 1]),
    ] {
        let packets = exchange(&mut end, &frame(protocol::LCP, 1, 7, option));
        assert_eq!(
            (packets[0].1, &packets[0].3[..]),
            (code, answer),
            "{option:?}"
        );
    }
}

#[test]
fn there_is_no_ipv6_on_a_link_that_carries_less_than_1280_octets() {
    let mut end = network(&[], 1);
    open_lcp(&mut end, &[1, 4, 4, 0xff]);
    accept(&mut end);
    assert!(end.link.view().ipv6.is_none());
    let identifier = [1, 10, 0, 0, 0, 0, 0, 0, 0, 7];
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 1, &identifier));
    assert_eq!((packets[0].0, packets[0].1), (protocol::LCP, 8));
    assert_eq!(packets[0].3[..2], protocol::IPV6CP.to_be_bytes());

    // A grant of IPv6 alone leaves this link without a network protocol.
    let mut end = network(&[], 1);
    open_lcp(&mut end, &[1, 4, 4, 0xff]);
    let alone = Grant {
        ipv4: None,
        ipv6: Some(Ipv6Offer::free(1)),
    };
    end.call(NOW, |link, ctx| link.accept(&alone, b"", ctx));
    end.call(end.link.timeout(), |link, ctx| link.handle_timeout(ctx));
    end.call(end.link.timeout(), |link, ctx| link.handle_timeout(ctx));
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::NoNetwork)));
}

#[test]
fn a_peer_that_names_no_address_whatever_it_is_told_has_the_one_that_it_gets() {
    let mut end = granted(&grant());
    let (_, _, identifier, options) = end
        .packets()
        .into_iter()
        .find(|packet| (packet.0, packet.1) == (protocol::IPCP, 1))
        .unwrap();
    for nth in 0..5 {
        let packets = exchange(&mut end, &frame(protocol::IPCP, 1, nth, &[]));
        assert_eq!(packets[0].1, 3);
    }
    let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 5, &[]));
    assert_eq!(packets[0].1, 2);
    send(&mut end, &frame(protocol::IPCP, 2, identifier, &options)).unwrap();
    let Some(Event::Ipv4Up(settings)) = end.events.last() else {
        panic!("{:?}", end.events);
    };
    assert_eq!((settings.peer, settings.dns), (PEER, [Some(DNS), None]));
}

#[test]
fn a_peer_that_rejects_our_address_option_is_up_without() {
    let mut end = granted(&grant());
    let (_, _, identifier, options) = end
        .packets()
        .into_iter()
        .find(|packet| (packet.0, packet.1) == (protocol::IPCP, 1))
        .unwrap();
    let packets = exchange(&mut end, &frame(protocol::IPCP, 4, identifier, &options));
    assert_eq!((packets[0].1, packets[0].3.len()), (1, 0));
    let wish = frame(protocol::IPCP, 1, 1, &asks_for(PEER.octets()));
    exchange(&mut end, &wish);
    exchange(&mut end, &frame(protocol::IPCP, 2, packets[0].2, &[]));
    assert!(end.link.is_open(false));
}

#[test]
fn the_network_s_address_is_not_the_peer_s_to_say() {
    let mut end = granted(&grant());
    let (_, _, identifier, options) = end
        .packets()
        .into_iter()
        .find(|packet| (packet.0, packet.1) == (protocol::IPCP, 1))
        .unwrap();
    let nak = frame(protocol::IPCP, 3, identifier, &[3, 6, 10, 9, 8, 7]);
    let packets = exchange(&mut end, &nak);
    assert_eq!((packets[0].1, &packets[0].3), (1, &options));
}

/// The address option of a request, or of a reply.
fn asks_for(octets: [u8; 4]) -> Vec<u8> {
    [&[3, 6][..], &octets].concat()
}

#[test]
fn a_wish_that_is_granted_is_acknowledged_as_it_was_asked_for() {
    let mut end = granted(&grant());
    let wish = [10, 7, 7, 7];
    let request = frame(protocol::IPCP, 1, 7, &asks_for(wish));
    assert_eq!(end.link.wish(&request), Some(wish.into()));
    assert!(end.link.change_ipv4(wish.into()));
    let packets = exchange(&mut end, &request);
    assert_eq!((packets[0].1, &packets[0].3), (2, &asks_for(wish)));
    // The address is agreed.
    assert_eq!(end.link.wish(&request), None);
    assert!(!end.link.change_ipv4(PEER));
}

#[test]
fn a_wish_that_is_not_granted_is_answered_by_the_address_that_was() {
    let mut end = granted(&grant());
    let request = frame(protocol::IPCP, 1, 7, &asks_for([10, 7, 7, 7]));
    assert!(end.link.wish(&request).is_some());
    let packets = exchange(&mut end, &request);
    assert_eq!((packets[0].1, &packets[0].3), (3, &asks_for(PEER.octets())));
    // The peer was sent the granted address. If it insists, it is sent the same address again.
    assert_eq!(end.link.wish(&request), None);
    assert!(!end.link.change_ipv4([10, 7, 7, 7].into()));
}

#[test]
fn what_is_no_first_request_for_another_address_is_no_wish() {
    let end = granted(&grant());
    let wish = asks_for([10, 7, 7, 7]);
    let with = |options: &[u8]| frame(protocol::IPCP, 1, 7, options);
    for no_wish in [
        with(&[]),
        with(&asks_for([0; 4])),
        with(&asks_for(PEER.octets())),
        with(&wish[..5]),
        with(&[3, 5, 10, 7, 7]),
        frame(protocol::IPCP, 2, 7, &wish),
        frame(protocol::IPV6CP, 1, 7, &wish),
        vec![0x80],
    ] {
        assert_eq!(end.link.wish(&no_wish), None, "{no_wish:x?}");
    }
    // The address option may follow other options.
    let late = [&[2, 6, 0, 0x2d, 0, 0][..], &wish].concat();
    assert_eq!(end.link.wish(&with(&late)), Some([10, 7, 7, 7].into()));
}

#[test]
fn before_it_is_let_in_nobody_has_a_wish() {
    let end = network(&[Authentication::Pap], 1);
    let request = frame(protocol::IPCP, 1, 7, &asks_for([10, 7, 7, 7]));
    assert_eq!(end.link.wish(&request), None);
}

#[test]
fn name_servers_that_there_are_none_of_are_rejected() {
    let mut none = grant();
    none.ipv4 = none.ipv4.map(|ipv4| Ipv4Offer {
        dns: [None; 2],
        ..ipv4
    });
    let mut end = granted(&none);
    let options = [&[3, 6][..], &PEER.octets(), &[129, 6, 0, 0, 0, 0]].concat();
    let packets = exchange(&mut end, &frame(protocol::IPCP, 1, 7, &options));
    assert_eq!((packets[0].1, &packets[0].3[..]), (4, &options[6..]));
}

#[test]
fn a_peer_without_an_interface_identifier_is_told_one_once() {
    let mut end = granted(&grant());
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 7, &[]));
    assert_eq!(packets[0].1, 3);
    assert_eq!(packets[0].3[..2], [1, 10]);
    // RFC 5072, section 4.1: the identifier is not suggested a second time.
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 8, &[]));
    assert_eq!(packets[0].1, 2);
}

#[test]
fn two_interface_identifiers_of_zero_are_rejected() {
    let mut end = granted(&Grant {
        ipv4: None,
        ipv6: Some(Ipv6Offer::free(0)),
    });
    let zero = [1, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 7, &zero));
    assert_eq!((packets[0].1, &packets[0].3[..]), (4, &zero[..]));
}

#[test]
fn an_interface_identifier_that_both_were_told_is_chosen_anew() {
    let mut end = granted(&grant());
    let packets = end.packets();
    let (_, _, identifier, _) = packets
        .iter()
        .find(|packet| packet.0 == protocol::IPV6CP)
        .unwrap();
    let peers = [1, 10, 0, 0, 0, 0, 0, 0, 0, 7];
    exchange(&mut end, &frame(protocol::IPV6CP, 1, 1, &peers));
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 3, *identifier, &peers));
    assert_eq!(packets[0].1, 1);
    assert_ne!(packets[0].3, peers);
    assert_ne!(packets[0].3[2..], [0; 8]);
    // A different identifier is accepted.
    let other = [1, 10, 0, 0, 0, 0, 0, 0, 0, 9];
    let nak = frame(protocol::IPV6CP, 3, packets[0].2, &other);
    assert_eq!(exchange(&mut end, &nak).remove(0).3, other);
}

#[test]
fn an_interface_identifier_that_must_be_is_insisted_on() {
    let mut end = granted(&Grant {
        ipv4: None,
        ipv6: Some(Ipv6Offer {
            local: 1,
            peer: 0x42,
            peer_must: true,
        }),
    });
    let own = [1, 10, 0, 0, 0, 0, 0, 0, 0, 7];
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 1, &own));
    let told = [1, 10, 0, 0, 0, 0, 0, 0, 0, 0x42];
    assert_eq!((packets[0].1, &packets[0].3[..]), (3, &told[..]));
    let packets = exchange(&mut end, &frame(protocol::IPV6CP, 1, 2, &told));
    assert_eq!(packets[0].1, 2);
}

#[test]
fn a_request_of_hundreds_of_options_has_no_longer_an_answer() {
    let mut end = network(&[], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    // Magic number options without a value. The reply to each could be three times as long.
    let request = frame(protocol::LCP, 1, 1, &[5, 2].repeat(700));
    let packets = exchange(&mut end, &request);
    assert_eq!(packets[0].1, 3);
    assert!(packets[0].3.len() < 200);
}

#[test]
fn padding_is_ignored_and_heads_may_be_shortened_whatever_was_agreed() {
    let options = [1, 4, 5, 0xd4];
    let packet = frame(protocol::LCP, 1, 1, &options);
    for head in [&[][..], &[0xff, 3]] {
        for padding in [0, 1, 40] {
            let mut end = network(&[], 1);
            end.call(NOW, |link, ctx| link.up(ctx));
            let octets = [head, &packet, &vec![0xa5; padding]].concat();
            let packets = exchange(&mut end, &octets);
            assert_eq!((packets[0].1, &packets[0].3[..]), (2, &options[..]));
        }
    }
}

#[test]
fn a_client_without_an_address_anywhere_does_not_come_up() {
    // The peer assigns our address, but rejects the option.
    let side = Side::Client {
        credentials: None,
        ipv4: Some(Ipv4Offer::ASK),
        ipv6: None,
    };
    let mut end = End::new(side, Config::default(), 1);
    open_lcp(&mut end, &[]);
    let packets = end.packets();
    let (_, _, identifier, options) = packets.last().unwrap();
    assert_eq!(options[..6], [3, 6, 0, 0, 0, 0]);
    let reject = frame(protocol::IPCP, 4, *identifier, &options[..6]);
    exchange(&mut end, &reject);
    assert_eq!(end.link.view().end, Some(LinkEnd::NoNetwork));
}

#[test]
fn a_client_whose_lack_of_an_address_is_agreed_to_does_not_come_up() {
    let side = Side::Client {
        credentials: None,
        ipv4: Some(Ipv4Offer::ASK),
        ipv6: Some(Ipv6Offer::free(0)),
    };
    let mut end = End::new(side, Config::default(), 1);
    open_lcp(&mut end, &[]);
    for (number, _, identifier, options) in end.packets() {
        if number != protocol::LCP {
            send(&mut end, &frame(number, 2, identifier, &options)).unwrap();
        }
    }
    assert_eq!(end.link.view().end, Some(LinkEnd::NoNetwork));
    let is_up = |event: &Event| matches!(event, Event::Ipv4Up(_) | Event::Ipv6Up(_));
    assert!(!end.events.iter().any(is_up));
}

#[test]
fn a_client_takes_name_servers_or_goes_without() {
    let side = Side::Client {
        credentials: None,
        ipv4: Some(Ipv4Offer::ASK),
        ipv6: None,
    };
    let mut end = End::new(side, Config::default(), 1);
    open_lcp(&mut end, &[]);
    let packets = end.packets();
    let (_, _, identifier, _) = packets.last().unwrap();
    let reject = frame(protocol::IPCP, 4, *identifier, &[131, 6, 0, 0, 0, 0]);
    let packets = exchange(&mut end, &reject);
    let told = [3, 6, 198, 51, 100, 7, 129, 6, 192, 0, 2, 53];
    let nak = frame(protocol::IPCP, 3, packets[0].2, &told);
    let packets = exchange(&mut end, &nak);
    assert_eq!(packets[0].3, told);
    send(&mut end, &frame(protocol::IPCP, 2, packets[0].2, &told)).unwrap();
    send(
        &mut end,
        &frame(protocol::IPCP, 1, 1, &[3, 6, 192, 0, 2, 1]),
    )
    .unwrap();
    let (_, settings) = end.link.view().ipv4.unwrap();
    assert_eq!(settings.peer, Ipv4Addr::new(192, 0, 2, 1));
    assert_eq!((settings.local, settings.dns), (PEER, [Some(DNS), None]));
}

#[test]
fn what_was_agreed_is_in_the_view() {
    let end = opened();
    let view = end.link.view();
    assert_eq!([view.lcp, view.ipv4.unwrap().0], [State::Opened; 2]);
    assert_eq!(view.local.authentication, Some(Authentication::ChapMd5));
    assert_ne!(view.local.magic, view.peer.magic);
    assert!(view.peer.compression.protocol && !view.local.compression.protocol);
    assert_eq!(view.ipv4.unwrap().1.peer, PEER);
    assert_eq!(view.ipv6.unwrap().1.local, 1);
    assert!(view.is_authenticated);
    assert_eq!(
        (view.claims, view.echoes_unanswered, view.end),
        (1, 0, None)
    );
}
