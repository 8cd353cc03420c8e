//! What happens when the kernel does not take a batch as it is.

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;

use super::*;
use crate::sys::socket::disable_checksums;

fn loopback() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap()
}

fn connected(peer: SocketAddr) -> UdpSocket {
    let options = UdpOptions {
        connect: Some(peer),
        ..UdpOptions::default()
    };
    UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
}

fn lengths(inbox: &RecvBatch) -> Vec<usize> {
    inbox.iter().map(|datagram| datagram.bytes.len()).collect()
}

#[test]
fn a_kernel_that_cannot_merge_gets_the_same_datagrams_one_by_one() {
    let (mut sender, mut receiver) = (loopback(), loopback());
    disable_checksums(&sender.fd).unwrap();
    assert!(sender.uses_gso());
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    for length in [50, 50, 50, 20, 60] {
        outbox.push(&vec![1; length], receiver.local_addr(), None);
    }
    let outcome = sender.send(&mut outbox);
    assert_eq!(
        outcome,
        SendOutcome {
            sent: 5,
            ..SendOutcome::default()
        }
    );
    assert!(!sender.uses_gso());
    assert_eq!(sender.stats().merged, 0);
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 5);
    assert_eq!(lengths(&inbox), [50, 50, 50, 20, 60]);
}

#[test]
fn a_refusal_that_is_not_about_merging_costs_its_datagrams_alone() {
    let options = UdpOptions::default();
    let mut sender = UdpSocket::bind("0.0.0.0:0".parse().unwrap(), &options).unwrap();
    let mut receiver = loopback();
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    let (good, no_port) = (receiver.local_addr(), SocketAddr::from(([127, 0, 0, 1], 0)));
    let foreign = Some("192.0.2.1".parse().unwrap());
    for (peer, local) in [(good, None), (no_port, None), (good, foreign), (good, None)] {
        outbox.push(&[1; 30], peer, local);
        outbox.push(&[1; 30], peer, local);
    }
    let outcome = sender.send(&mut outbox);
    assert_eq!(
        (outcome.sent, outcome.dropped, outcome.blocked),
        (4, 4, false)
    );
    assert!(outcome.last_error().is_some());
    assert!(sender.uses_gso());
    assert_eq!(sender.stats().merged, 2);
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 4);
    assert!(outbox.is_empty());
}

#[test]
fn a_datagram_too_large_to_exist_is_dropped_and_the_rest_goes() {
    let (mut sender, mut receiver) = (loopback(), loopback());
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    for length in [65_507, 65_508, 9] {
        outbox.push(&vec![1; length], receiver.local_addr(), None);
    }
    let outcome = sender.send(&mut outbox);
    assert_eq!(
        (outcome.sent, outcome.dropped, outcome.error),
        (2, 1, Some(libc::EMSGSIZE))
    );
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 2);
    assert_eq!(lengths(&inbox), [65_507, 9]);
}

#[test]
fn a_closed_port_at_the_peer_stops_neither_receiving_nor_sending() {
    let gone = loopback();
    let address = gone.local_addr();
    let mut sender = connected(address);
    drop(gone);
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    outbox.push(b"a", address, None);
    assert_eq!(sender.send(&mut outbox).sent, 1);
    // On loopback the refusal is there at once. It is collected by either call.
    assert_eq!(sender.recv(&mut inbox).unwrap(), 0);
    assert_eq!(sender.stats().receive_errors, 1);
    outbox.push(b"b", address, None);
    assert_eq!(sender.send(&mut outbox).sent, 1);
    outbox.push(b"c", address, None);
    let outcome = sender.send(&mut outbox);
    assert_eq!(
        (outcome.sent, outcome.dropped),
        (1, 0),
        "the error was about b, so c is sent"
    );
    assert!(outbox.is_empty());
}

#[test]
fn a_connected_socket_hears_its_peer_alone() {
    let (mut stranger, mut peer) = (loopback(), loopback());
    let mut socket = connected(peer.local_addr());
    assert_eq!(socket.peer_addr(), Some(peer.local_addr()));
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    outbox.push(b"stranger", socket.local_addr(), None);
    stranger.send(&mut outbox);
    outbox.push(b"peer", socket.local_addr(), None);
    peer.send(&mut outbox);
    assert_eq!(socket.recv(&mut inbox).unwrap(), 1);
    let received = inbox.iter().next().unwrap();
    assert_eq!(
        (received.bytes, received.peer),
        (&b"peer"[..], peer.local_addr())
    );
}

/// Loopback never blocks a sender, a Unix datagram socket does when nobody reads.
#[test]
fn what_does_not_fit_the_send_buffer_waits_in_the_batch_in_order() {
    const LIMIT: usize = 2_000;
    let (near, far) = UnixDatagram::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let anywhere = "127.0.0.1:1".parse().unwrap();
    let template = connected(anywhere);
    let mut socket = UdpSocket {
        fd: near.into(),
        gso: false,
        ..template
    };
    let mut outbox = SendBatch::new(LIMIT);
    let mut next = 0_u16;
    let mut push = |outbox: &mut SendBatch| {
        outbox.push(&next.to_be_bytes(), anywhere, None);
        next += 1;
    };
    (0..LIMIT).for_each(|_| push(&mut outbox));
    assert!(outbox.is_full());
    outbox.push(b"one too many", anywhere, None);
    assert_eq!((outbox.pending(), outbox.overflowed()), (LIMIT, 1));

    let mut arrived = Vec::new();
    let mut buffer = [0; 16];
    for turn in 0.. {
        let waiting = outbox.pending();
        let outcome = socket.send(&mut outbox);
        assert_eq!((outcome.dropped, outcome.blocked), (0, !outbox.is_empty()));
        assert_eq!(outbox.pending(), waiting - outcome.sent);
        // What is pushed meanwhile goes behind what waits.
        if turn < 5 && outcome.sent > 0 {
            push(&mut outbox);
        }
        if waiting == 0 {
            break;
        }
        // Reads a part, so that the rest keeps the sender waiting.
        while let Ok(length) = far.recv(&mut buffer) {
            arrived.push(u16::from_be_bytes(buffer[..length].try_into().unwrap()));
            if arrived.len() % 7 == 0 && outcome.blocked {
                break;
            }
        }
    }
    assert!(socket.stats().blocked > 0);
    assert!(arrived.len() > LIMIT);
    assert_eq!(arrived, (0..arrived.len() as u16).collect::<Vec<_>>());
    assert_eq!(socket.stats().sent, arrived.len() as u64);
}

#[test]
fn a_datagram_begun_and_not_committed_is_forgotten() {
    let mut receiver = loopback();
    let mut sender = loopback();
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    outbox.begin().extend_from_slice(b"never mind");
    outbox.begin().extend_from_slice(b"hello");
    outbox.commit(receiver.local_addr(), None);
    outbox.begin().extend_from_slice(b"never mind");
    assert_eq!(outbox.pending(), 1);
    assert_eq!(sender.send(&mut outbox).sent, 1);
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 1);
    assert_eq!(inbox.iter().next().unwrap().bytes, b"hello");
    outbox.push(b"x", receiver.local_addr(), None);
    assert_eq!(outbox.clear(), 1);
    assert_eq!(sender.send(&mut outbox), SendOutcome::default());
}

#[test]
fn a_full_batch_says_that_more_may_be_waiting() {
    let (mut sender, mut receiver) = (loopback(), loopback());
    let (mut inbox, mut outbox) = (RecvBatch::new(2), SendBatch::new(16));
    for n in 1..=3 {
        outbox.push(&[0; 9][..n], receiver.local_addr(), None);
    }
    sender.send(&mut outbox);
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 2);
    assert!(inbox.is_full());
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 1);
    assert!(!inbox.is_full());
    assert_eq!(receiver.recv(&mut inbox).unwrap(), 0);
    assert_eq!(receiver.stats().received, 3);
}

#[test]
fn two_sockets_share_an_address_only_if_both_say_so() {
    let reuse = UdpOptions {
        reuse_port: true,
        ..UdpOptions::default()
    };
    let first = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &reuse).unwrap();
    assert!(UdpSocket::bind(first.local_addr(), &reuse).is_ok());
    let error = UdpSocket::bind(first.local_addr(), &UdpOptions::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn ipv6_sockets_leave_the_port_free_for_ipv4() {
    let options = UdpOptions::default();
    let six = UdpSocket::bind("[::]:0".parse().unwrap(), &options).unwrap();
    let port = six.local_addr().port();
    UdpSocket::bind(SocketAddr::new("0.0.0.0".parse().unwrap(), port), &options).unwrap();
}

#[test]
fn what_goes_to_one_peer_leaves_together_and_in_order() {
    let mut sender = loopback();
    let mut receivers: Vec<UdpSocket> = (0..40).map(|_| loopback()).collect();
    let (mut inbox, mut outbox) = (RecvBatch::new(64), SendBatch::new(1_024));
    let sizes = [40, 20, 30, 30, 9, 9];
    for (turn, size) in sizes.into_iter().enumerate() {
        for (number, receiver) in receivers.iter().enumerate() {
            // Not every one has something each time.
            if (number + turn) % 7 > 0 {
                let mut bytes = vec![number as u8; size];
                bytes[1] = turn as u8;
                outbox.push(&bytes, receiver.local_addr(), None);
            }
        }
    }
    let pending = outbox.pending();
    assert_eq!(sender.send(&mut outbox).sent, pending);
    assert!(sender.stats().merged > 40, "{:?}", sender.stats());
    for (number, receiver) in receivers.iter_mut().enumerate() {
        receiver.recv(&mut inbox).unwrap();
        let came: Vec<(usize, u8, u8)> = inbox
            .iter()
            .map(|one| (one.bytes.len(), one.bytes[0], one.bytes[1]))
            .collect();
        let expected = sizes.into_iter().enumerate();
        let expected = expected.filter(|(turn, _)| (number + turn) % 7 > 0);
        let expected: Vec<(usize, u8, u8)> = expected
            .map(|(turn, size)| (size, number as u8, turn as u8))
            .collect();
        assert_eq!(came, expected);
    }
}

#[test]
fn what_waited_goes_before_what_came_later_to_the_same_peer() {
    let (mut sender, mut one, mut other) = (loopback(), loopback(), loopback());
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    outbox.push(b"first", one.local_addr(), None);
    outbox.push(b"other", other.local_addr(), None);
    outbox.begin().extend_from_slice(b"second");
    outbox.commit(one.local_addr(), None);
    outbox.push(b"third", one.local_addr(), None);
    assert_eq!(sender.send(&mut outbox).sent, 4);
    assert_eq!(one.recv(&mut inbox).unwrap(), 3);
    let came: Vec<&[u8]> = inbox.iter().map(|one| one.bytes).collect();
    assert_eq!(came, [&b"first"[..], b"second", b"third"]);
    assert_eq!(other.recv(&mut inbox).unwrap(), 1);
}

#[test]
fn a_late_datagram_ends_the_run_of_its_peer() {
    // Two peers whose ports share a place in the table of the latest datagrams keep the order in which they were pushed.
    let seen: Vec<(bool, bool)> = (0..8).map(|_| send_a_late_datagram()).collect();
    let is_last = seen.iter().any(|(is_last, _)| *is_last);
    let uses_gso = seen.iter().any(|(_, uses_gso)| *uses_gso);
    assert_eq!(is_last, uses_gso, "{seen:?}");
}

/// Whether a late datagram to a peer left after those that were pushed later, and whether the kernel cuts messages.
fn send_a_late_datagram() -> (bool, bool) {
    let (mut sender, mut one, mut other) = (loopback(), loopback(), loopback());
    let (mut inbox, mut outbox) = (RecvBatch::new(16), SendBatch::new(16));
    outbox.push_late(b"short", one.local_addr(), None);
    outbox.push_late(b"alone", other.local_addr(), None);
    outbox.push(b"longer 1", one.local_addr(), None);
    outbox.push(b"longer 2", one.local_addr(), None);
    assert_eq!(sender.send(&mut outbox).sent, 4);
    // One message is of several datagrams, unless the kernel refuses to cut messages.
    assert_eq!(sender.stats().merged, u64::from(sender.uses_gso()));
    assert_eq!(one.recv(&mut inbox).unwrap(), 3);
    let came: Vec<&[u8]> = inbox.iter().map(|one| one.bytes).collect();
    let (late, early): ([&[u8]; 3], [&[u8]; 3]) = (
        [b"longer 1", b"longer 2", b"short"],
        [b"short", b"longer 1", b"longer 2"],
    );
    assert!(came == late || came == early, "{came:?}");
    let is_last = came == late;
    assert_eq!(other.recv(&mut inbox).unwrap(), 1);
    (is_last, sender.uses_gso())
}
