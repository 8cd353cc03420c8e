//! Peers that send invalid messages at any rate; users that change their name.

use std::net::Ipv4Addr;

use aaa::accounting::TerminateCause;
use base::Duration;
use edge::{Admission, Config, End, Entry, Phase};
use l2tp::SessionEnd;
use ppp::Authentication;
use wire::ppp::protocol;

use crate::authority::{SECRET, admission};
use crate::by_hand::{Client, Line, Table, config, frame};
use crate::chaos::udp;
use crate::state::used;

const CHAP: &[Authentication] = &[Authentication::ChapMd5];
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// Admits the first subscriber that asked.
fn admit(table: &mut Table, admission: Admission) -> bool {
    let question = table.questions.remove(0);
    let now = table.now;
    let done = table.lns.admit(question.subscriber, admission, b"", now);
    table.settle();
    done
}

fn refuse(table: &mut Table) -> bool {
    let question = table.questions.remove(0);
    let now = table.now;
    let done = table.lns.refuse(
        question.subscriber,
        (edge::Refusal::Rejected, "no"),
        b"",
        now,
    );
    table.settle();
    done
}

/// A connected client.
fn on_line(table: &mut Table, peer: usize, name: &str) -> Client {
    let line = table.line(peer);
    let mut client = Client::begin(table, line, name, SECRET);
    assert!(admit(table, Admission::default()));
    client.talk(table);
    assert!(client.address.is_some());
    client
}

fn assert_nothing_left(table: &Table) {
    let counts = table.lns.counts();
    assert_eq!((counts.subscribers, counts.routes), (0, 0));
    assert_eq!(table.lns.endpoint().counts().sessions, 0);
    assert_eq!(used(&table.lns), 0);
}

fn packet(address: Ipv4Addr) -> Vec<u8> {
    [&[0xff, 3, 0, 0x21][..], &udp(address, FAR)].concat()
}

#[test]
fn nobody_speaks_in_the_session_of_another() {
    let mut table = Table::new(config(CHAP));
    let (a, b) = (table.peer(), table.peer());
    let alice = on_line(&mut table, a, "alice");
    let bob = on_line(&mut table, b, "bob");
    let packet = packet(bob.address.unwrap());
    table.say(bob.line, &packet);
    assert_eq!(table.inside.0, 1);
    // The first peer sends the ids of the second one's session.
    let header = table.peers[b].endpoint.data_header(bob.line.session);
    let datagram = [header.unwrap().as_bytes(), &packet].concat();
    table.say_as(a, &datagram);
    let terminate = frame(protocol::LCP, 5, 1, b"");
    let header = table.peers[b].endpoint.data_header(bob.line.session);
    let datagram = [header.unwrap().as_bytes(), &terminate].concat();
    table.say_as(a, &datagram);
    assert_eq!(table.inside.0, 1, "nothing went on");
    assert!(table.ended.is_empty());
    // In its own session it sends from the second one's address, from an unassigned one, and from the LNS's.
    let addresses = [
        bob.address.unwrap(),
        Ipv4Addr::new(10, 0, 0, 99),
        Ipv4Addr::new(10, 255, 0, 1),
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::BROADCAST,
    ];
    for address in addresses {
        table.say(alice.line, &self::packet(address));
    }
    assert_eq!(table.inside.0, 1, "nothing went on");
}

#[test]
fn a_session_that_floods_costs_little_and_keeps_nobody_else_away() {
    let mut table = Table::new(config(CHAP));
    let (a, b) = (table.peer(), table.peer());
    let line = table.line(a);
    let mallory = Client::begin(&mut table, line, "mallory", SECRET);
    assert!(admit(&mut table, Admission::default()));
    let kinds: [(u16, u8, &[u8]); 6] = [
        (protocol::LCP, 1, &[5, 6, 1, 2, 3, 4]),
        (protocol::LCP, 9, &[0; 600]),
        (protocol::PAP, 1, b"\x05alice\x06sesame"),
        (protocol::CHAP, 2, &[16; 30]),
        (protocol::IPCP, 1, &[3, 6, 10, 0, 0, 1]),
        (0x4001, 1, &[0; 600]),
    ];
    table.sent = 0;
    for n in 0..30_000_u32 {
        let (protocol, code, data) = kinds[n as usize % kinds.len()];
        let octets = frame(protocol, code, n as u8, data);
        table.say(mallory.line, &octets);
        if n == 15_000 {
            let sent = table.sent;
            on_line(&mut table, b, "bob");
            table.sent = sent;
        }
    }
    assert!(table.sent <= 250, "{} answers in one second", table.sent);
    assert!(table.questions.len() <= 1);
}

#[test]
fn who_never_says_who_it_is_is_gone_in_time() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let line = table.line(peer);
    // LCP opens, and no authentication follows.
    table.say(line, &frame(protocol::LCP, 1, 1, &[]));
    let heard = table.peers[peer].heard.remove(0).1;
    table.say(line, &[&heard[..4], &[2], &heard[5..]].concat());
    table.pass(Duration::from_secs(60));
    assert_eq!(table.ended.len(), 1);
    assert_nothing_left(&table);
}

#[test]
fn who_begins_anew_for_ever_is_gone_in_time() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let line = table.line(peer);
    let mut lives = 0;
    while table.ended.is_empty() {
        lives += 1;
        assert!(lives < 20, "it goes on without end");
        Client::begin(&mut table, line, "mallory", b"guess");
        table.pass(Duration::from_secs(10));
    }
    assert_eq!(table.ended, [End::SetupTimeout]);
    assert_eq!(table.questions.len(), 1, "one question at a time");
    assert_nothing_left(&table);
}

#[test]
fn who_was_on_line_and_begins_anew_for_ever_is_gone_in_time() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let client = on_line(&mut table, peer, "alice");
    let mut lives = 0;
    while table.ended.is_empty() {
        lives += 1;
        assert!(lives < 20, "it goes on without end");
        Client::begin(&mut table, client.line, "alice", SECRET);
        table.pass(Duration::from_secs(10));
    }
    let stop = Entry::Stop(TerminateCause::LostCarrier);
    assert_eq!(table.accounts.last().unwrap().entry, stop);
    assert_nothing_left(&table);
}

#[test]
fn more_than_may_be_are_counted_and_closed() {
    let limits = Config {
        subscribers_max: 2,
        ..config(CHAP)
    };
    let mut table = Table::new(limits);
    let peer = table.peer();
    let lines: Vec<Line> = (0..5).map(|_| table.line(peer)).collect();
    assert_eq!(table.lns.counts().too_many, 3);
    assert_eq!(table.lns.endpoint().counts().sessions, 2);
    let left = |line: &&Line| table.peers[peer].endpoint.session(line.session).is_some();
    assert_eq!(lines.iter().filter(left).count(), 2);
}

#[test]
fn an_answer_is_for_the_claim_that_it_is_about() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let line = table.line(peer);
    Client::begin(&mut table, line, "mallory", SECRET);
    let mut client = Client::begin(&mut table, line, "admin", b"guess");
    assert_eq!(table.questions.len(), 1);
    assert!(!admit(&mut table, Admission::default()), "mallory has gone");
    client.talk(&mut table);
    assert_eq!(client.address, None);
    assert_eq!(used(&table.lns), 0);
    assert_eq!(table.questions.len(), 1, "now the next one is asked about");
    assert_eq!(*table.questions[0].claim.name, *b"admin");
    assert!(refuse(&mut table));
    client.talk(&mut table);
    assert_eq!(table.ended, [End::Refused("no".into())]);
    assert_nothing_left(&table);
}

#[test]
fn an_answer_after_the_last_claim_is_void_and_ends_nothing() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let line = table.line(peer);
    Client::begin(&mut table, line, "mallory", b"guess");
    // It renegotiates, and then sends nothing for now.
    table.say(line, &frame(protocol::LCP, 1, 77, &[5, 6, 9, 9, 9, 9]));
    table.peers[peer].heard.clear();
    assert!(!refuse(&mut table));
    assert!(table.ended.is_empty());
    let mut client = Client::begin(&mut table, line, "alice", SECRET);
    // It never received the requests from before it renegotiated.
    table.pass(Duration::from_secs(4));
    client.talk(&mut table);
    assert!(admit(&mut table, Admission::default()));
    client.talk(&mut table);
    assert!(client.address.is_some());
    assert_eq!(*table.accounts[0].name, *b"alice");
}

#[test]
fn an_account_has_one_name() {
    for (name, kept) in [("alice", true), ("bob", false)] {
        let mut table = Table::new(config(CHAP));
        let peer = table.peer();
        let client = on_line(&mut table, peer, "alice");
        let mut client = Client::begin(&mut table, client.line, name, SECRET);
        assert!(admit(&mut table, Admission::default()));
        client.talk(&mut table);
        assert_eq!(client.address.is_some(), kept);
        table.pass(Duration::from_secs(10));
        assert_eq!(table.ended.is_empty(), kept);
        assert!(table.accounts.iter().all(|one| *one.name == *b"alice"));
    }
}

/// Challenges a client again after 100 seconds.
fn challenged(admission: Admission) -> (Table, Client) {
    let mut config = config(CHAP);
    config.ppp.rechallenge_interval = Duration::from_secs(100);
    config.ppp.echo_interval = Duration::ZERO;
    let mut table = Table::new(config);
    let peer = table.peer();
    let line = table.line(peer);
    let mut client = Client::begin(&mut table, line, "alice", SECRET);
    assert!(admit(&mut table, admission));
    client.talk(&mut table);
    table.pass(Duration::from_secs(100));
    client.talk(&mut table);
    assert_eq!(table.questions.len(), 1);
    (table, client)
}

#[test]
fn who_is_challenged_once_more_keeps_what_it_has() {
    let (mut table, client) = challenged(admission(b"user4"));
    let key = table.up[0];
    assert_eq!(table.lns.subscriber(key).unwrap().phase, Phase::Up);
    assert_eq!(table.lns.counts().routes, 3);
    // Another profile, as from a server whose records have changed.
    assert!(admit(&mut table, admission(b"user1")));
    let view = table.lns.subscriber(key).unwrap();
    assert_eq!((view.phase, view.address), (Phase::Up, client.address));
    assert_eq!(table.lns.counts().routes, 3);
    table.say(client.line, &packet(client.address.unwrap()));
    assert_eq!(table.inside.0, 1);
    table
        .lns
        .drop_subscriber(key, End::Administrator, table.now);
    table.pass(Duration::from_secs(20));
    assert_nothing_left(&table);
}

#[test]
fn who_fails_a_later_challenge_is_gone_whatever_else_is_due() {
    let mut admission = Admission::default();
    admission.profile.session_timeout = Some(Duration::from_secs(101));
    admission.profile.idle_timeout = Some(Duration::from_secs(101));
    let (mut table, _) = challenged(admission);
    assert!(refuse(&mut table));
    table.pass(Duration::from_secs(30));
    assert_eq!(table.ended, [End::Refused("no".into())]);
    assert_nothing_left(&table);
}

#[test]
fn a_later_challenge_without_an_answer_from_the_authority_leaves_a_client_on_line() {
    let (mut table, client) = challenged(Admission::default());
    table.pass(Duration::from_secs(300));
    assert!(table.ended.is_empty());
    let key = table.up[0];
    assert_eq!(table.lns.subscriber(key).unwrap().phase, Phase::Up);
    let session = table.peers[0].endpoint.session(client.line.session);
    assert!(session.is_some());
}

#[test]
fn what_a_session_had_that_its_peer_closes_is_free() {
    let mut table = Table::new(config(CHAP));
    let peer = table.peer();
    let client = on_line(&mut table, peer, "alice");
    let now = table.now;
    let endpoint = &mut table.peers[peer].endpoint;
    assert!(endpoint.close_session(client.line.session, now));
    table.settle();
    let [End::Session(SessionEnd::Peer(_))] = &table.ended[..] else {
        panic!("{:?}", table.ended);
    };
    assert_nothing_left(&table);
}
