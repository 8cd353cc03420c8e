//! Datagrams through real sockets on loopback.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use reactor::{Call, Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind, SysCounts};
use reactor::{UdpOptions, UdpSocket};

fn socket(address: &str, options: UdpOptions) -> UdpSocket {
    UdpSocket::bind(address.parse().unwrap(), &options).unwrap()
}

/// Waits until the socket has something and receives it.
fn receive(socket: &mut UdpSocket, batch: &mut RecvBatch) -> usize {
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
    reactor.add(&*socket, "test", 0, Interest::READ).unwrap();
    reactor.wait(None).unwrap();
    socket.recv(batch).unwrap()
}

/// Asks a server bound to the wildcard at `asked` and checks where the reply is from.
fn reply_comes_from_the_address_asked(wildcard: &str, client: &str, asked: &str) {
    let mut server = socket(wildcard, UdpOptions::default());
    let asked = SocketAddr::new(asked.parse().unwrap(), server.local_addr().port());
    let mut client = socket(client, UdpOptions::default());
    let (mut inbox, mut outbox) = (RecvBatch::new(8), SendBatch::new(8));

    outbox.push(b"who are you?", asked, None);
    assert_eq!(client.send(&mut outbox).sent, 1);
    assert_eq!(receive(&mut server, &mut inbox), 1);
    let question = inbox.iter().next().unwrap();
    assert_eq!(question.bytes, b"who are you?");
    assert_eq!(question.peer, client.local_addr());
    assert_eq!(question.local, Some(asked.ip()));

    outbox.push(b"the one you asked", question.peer, question.local);
    assert_eq!(server.send(&mut outbox).sent, 1);
    assert_eq!(receive(&mut client, &mut inbox), 1);
    let answer = inbox.iter().next().unwrap();
    assert_eq!(
        (answer.peer, answer.bytes),
        (asked, &b"the one you asked"[..])
    );
}

#[test]
fn ipv4_replies_leave_from_the_address_that_was_asked() {
    reply_comes_from_the_address_asked("0.0.0.0:0", "127.0.0.1:0", "127.0.0.5");
}

#[test]
fn ipv6_replies_leave_from_the_address_that_was_asked() {
    reply_comes_from_the_address_asked("[::]:0", "[::1]:0", "::1");
}

#[test]
fn a_socket_bound_to_one_address_knows_it_as_local() {
    let mut server = socket("127.0.0.7:0", UdpOptions::default());
    let mut client = socket("127.0.0.1:0", UdpOptions::default());
    let (mut inbox, mut outbox) = (RecvBatch::new(8), SendBatch::new(8));
    outbox.push(b"x", server.local_addr(), None);
    client.send(&mut outbox);
    receive(&mut server, &mut inbox);
    let local: IpAddr = "127.0.0.7".parse().unwrap();
    assert_eq!(inbox.iter().next().unwrap().local, Some(local));
}

/// A datagram of a generated script: to which peer, from which of the server's
/// addresses, how long.
type Step = (usize, bool, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Runs of one size to one peer, which are merged, cut by other sizes and peers.
    let length = prop_oneof![
        4 => prop_oneof![Just(0_usize), Just(1), Just(12), Just(100), Just(1_200)],
        2 => 0..1_500_usize,
        1 => 1_500..20_000_usize,
    ];
    let run = (
        (0..3_usize, any::<bool>(), length),
        1..70_usize,
        0..200_usize,
    );
    prop::collection::vec(run, 1..8).prop_map(|runs| {
        let repeat =
            |((peer, local, length), times, last): ((usize, bool, usize), usize, usize)| {
                let tail = (peer, local, last.min(length));
                std::iter::repeat_n((peer, local, length), times).chain([tail])
            };
        runs.into_iter().flat_map(repeat).collect()
    })
}

/// The payload of a step: tells every datagram from every other.
fn payload(index: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|offset| (index * 31 + offset) as u8)
        .collect()
}

/// Sends the script's datagrams and checks that each peer gets its own, whole, in
/// order and from the right address.
fn every_datagram_arrives_with_its_boundaries(steps: &[Step], gso: bool, gro: bool) {
    let mut server = socket("0.0.0.0:0", UdpOptions::default());
    if !gso {
        server.disable_gso();
    }
    let options = UdpOptions {
        gro,
        ..UdpOptions::default()
    };
    let mut peers: Vec<_> = (0..3).map(|_| socket("127.0.0.1:0", options)).collect();
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(4_096));
    let local = |second: bool| IpAddr::from([127, 0, 0, if second { 9 } else { 8 }]);

    let mut expected = vec![Vec::new(); peers.len()];
    let mut got = vec![Vec::new(); peers.len()];
    // In portions that the default receive buffer holds.
    let mut portion = 0;
    for (index, &(peer, second, length)) in steps.iter().enumerate() {
        let bytes = payload(index, length);
        outbox.push(&bytes, peers[peer].local_addr(), Some(local(second)));
        expected[peer].push((local(second), bytes));
        portion += length;
        let next = steps.get(index + 1).map(|step| step.2);
        let pending = outbox.pending();
        if next.is_some_and(|next| portion + next < 30_000) && pending < 100 {
            continue;
        }
        portion = 0;
        let outcome = server.send(&mut outbox);
        assert_eq!(
            (outcome.sent, outcome.dropped, outcome.blocked),
            (pending, 0, false)
        );
        for (peer, got) in peers.iter_mut().zip(&mut got) {
            while peer.recv(&mut inbox).unwrap() > 0 {
                got.extend(inbox.iter().map(|d| (d.peer.ip(), d.bytes.to_vec())));
            }
        }
    }
    assert!(got == expected, "datagrams differ");
    assert_eq!(server.uses_gso(), gso);
    let received: u64 = peers.iter().map(|peer| peer.stats().received).sum();
    assert_eq!(received, steps.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merged_or_not_every_datagram_arrives_with_its_boundaries(
        steps in steps(),
        gso in any::<bool>(),
        gro in any::<bool>(),
    ) {
        every_datagram_arrives_with_its_boundaries(&steps, gso, gro);
    }
}

#[test]
fn a_run_to_one_peer_takes_one_call_and_one_message_each_way() {
    let mut sender = socket("127.0.0.1:0", UdpOptions::default());
    let mut receiver = socket(
        "127.0.0.1:0",
        UdpOptions {
            gro: true,
            ..UdpOptions::default()
        },
    );
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(100));
    for _ in 0..64 {
        outbox.push(&[1; 100], receiver.local_addr(), None);
    }
    let before = SysCounts::of_this_thread();
    assert_eq!(sender.send(&mut outbox).sent, 64);
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 64);
    let made = SysCounts::of_this_thread().since(&before);
    assert_eq!(
        (
            made.get(Call::Sendmmsg),
            made.get(Call::Recvmmsg),
            made.total()
        ),
        (1, 1, 2)
    );
    assert_eq!((sender.stats().merged, receiver.stats().joined), (1, 1));
    assert_eq!(inbox.iter().count(), 64);
}
