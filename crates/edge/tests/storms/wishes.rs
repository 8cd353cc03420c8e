//! Subscribers that may choose their address (Framed-IP-Address 255.255.255.255; RFC 2865, section 5.8).

use std::net::Ipv4Addr;

use aaa::{Address, Profile};
use edge::{Admission, SubscriberKey};
use ppp::{Ipv6Offer, Side};
use wire::ppp::control::{Control, code};
use wire::ppp::{Frame, protocol};

use crate::authority::SECRET;
use crate::by_hand::{Client, Line, Table, config, frame};
use crate::state::used;

/// In the pool, which starts at 10.0.0.1.
const WISH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 50);

fn request(options: &[u8]) -> Vec<u8> {
    frame(protocol::IPCP, code::CONFIGURE_REQUEST, 1, options)
}

fn asking_for(address: Ipv4Addr) -> Vec<u8> {
    request(&[&[3, 6][..], &address.octets()].concat())
}

/// A subscriber admitted with this profile address that has not requested an address yet.
fn let_in(table: &mut Table, peer: usize, address: Address) -> (Line, SubscriberKey) {
    let line = table.line(peer);
    let side = Side::Client {
        credentials: None,
        ipv4: None,
        ipv6: Some(Ipv6Offer::free(1)),
    };
    let client = Client::begin_as(table, line, side);
    let subscriber = admit(table, address);
    table.peers[peer].heard.clear();
    (client.line, subscriber)
}

/// Admits the subscriber that waits, with this profile address.
fn admit(table: &mut Table, address: Address) -> SubscriberKey {
    let question = table.questions.remove(0);
    let profile = Profile {
        address,
        ..Profile::default()
    };
    let admission = Admission {
        profile,
        ..Admission::default()
    };
    let subscriber = question.subscriber;
    assert!(table.lns.admit(subscriber, admission, b"", table.now));
    table.settle();
    subscriber
}

/// Sends a request and returns the code of the answer and the address in it.
fn answer(table: &mut Table, line: Line, request: &[u8]) -> (u8, Ipv4Addr) {
    table.say(line, request);
    heard_answer(table, line)
}

/// The code of the latest answer of IPCP and the address in it.
fn heard_answer(table: &mut Table, line: Line) -> (u8, Ipv4Addr) {
    let heard = core::mem::take(&mut table.peers[line.peer].heard);
    let mut packets = heard.iter().filter_map(|(_, octets)| {
        let frame = Frame::parse(octets).ok()?;
        let packet = Control::parse(frame.information).ok()?;
        let is_reply = packet.code != code::CONFIGURE_REQUEST;
        (frame.protocol == protocol::IPCP && is_reply).then_some((packet.code, packet.data))
    });
    let (code, data) = packets.next_back().expect("an answer");
    let octets: [u8; 4] = data[2..6].try_into().expect("an address");
    (code, octets.into())
}

fn held(table: &Table, subscriber: SubscriberKey) -> Ipv4Addr {
    let view = table.lns.subscriber(subscriber).expect("it is there");
    view.address.expect("it has one")
}

#[test]
fn a_free_address_of_the_pool_is_had_for_the_asking() {
    let mut table = Table::new(config(&[]));
    let peer = table.peer();
    let (line, subscriber) = let_in(&mut table, peer, Address::ItsOwn);
    assert_ne!(held(&table, subscriber), WISH);
    let acknowledged = (code::CONFIGURE_ACK, WISH);
    assert_eq!(answer(&mut table, line, &asking_for(WISH)), acknowledged);
    assert_eq!((held(&table, subscriber), used(&table.lns)), (WISH, 1));
    // It keeps that address, whatever it requests next.
    let other = asking_for(Ipv4Addr::new(10, 0, 0, 60));
    assert_eq!(
        answer(&mut table, line, &other),
        (code::CONFIGURE_NAK, WISH)
    );
    assert_eq!((held(&table, subscriber), used(&table.lns)), (WISH, 1));
}

#[test]
fn an_address_asked_for_before_admission_is_had_as_well() {
    let mut table = Table::new(config(&[]));
    let peer = table.peer();
    let line = table.line(peer);
    Client::begin(&mut table, line, "alice", SECRET);
    table.say(line, &asking_for(WISH));
    table.peers[peer].heard.clear();
    let subscriber = admit(&mut table, Address::ItsOwn);
    let acknowledged = (code::CONFIGURE_ACK, WISH);
    assert_eq!(heard_answer(&mut table, line), acknowledged);
    assert_eq!((held(&table, subscriber), used(&table.lns)), (WISH, 1));
    // One that may not choose is answered by the address that it gets.
    let line = table.line(peer);
    Client::begin(&mut table, line, "bob", SECRET);
    table.say(line, &asking_for(Ipv4Addr::new(10, 0, 0, 60)));
    table.peers[peer].heard.clear();
    let subscriber = admit(&mut table, Address::FromPool);
    let named = (code::CONFIGURE_NAK, held(&table, subscriber));
    assert_eq!(heard_answer(&mut table, line), named);
}

#[test]
fn what_is_not_free_or_not_of_the_pool_is_answered_by_an_address_that_is() {
    let mut table = Table::new(config(&[]));
    let peer = table.peer();
    let (_, other) = let_in(&mut table, peer, Address::FromPool);
    let taken = held(&table, other);
    for wish in [
        taken,
        Ipv4Addr::new(10, 255, 0, 1),
        Ipv4Addr::new(192, 0, 2, 1),
        Ipv4Addr::new(127, 0, 0, 1),
        Ipv4Addr::BROADCAST,
        Ipv4Addr::UNSPECIFIED,
    ] {
        let (line, subscriber) = let_in(&mut table, peer, Address::ItsOwn);
        let own = held(&table, subscriber);
        let told = answer(&mut table, line, &asking_for(wish));
        assert_eq!(told, (code::CONFIGURE_NAK, own), "{wish}");
        assert_eq!(held(&table, subscriber), own);
        let agreed = answer(&mut table, line, &asking_for(own));
        assert_eq!(agreed, (code::CONFIGURE_ACK, own), "{wish}");
    }
    assert_eq!((held(&table, other), used(&table.lns)), (taken, 7));
}

#[test]
fn who_may_not_choose_has_what_was_chosen() {
    let mut table = Table::new(config(&[]));
    let peer = table.peer();
    for address in [Address::FromPool, Address::Fixed([192, 0, 2, 9].into())] {
        let (line, subscriber) = let_in(&mut table, peer, address);
        let own = held(&table, subscriber);
        let told = answer(&mut table, line, &asking_for(WISH));
        assert_eq!(told, (code::CONFIGURE_NAK, own));
    }
}
