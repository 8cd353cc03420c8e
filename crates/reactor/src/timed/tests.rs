use super::*;
use base::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until something can be read, an error's presence included; fails after 5 s.
fn wait(socket: &TimedSocket) {
    let limit = Timespec {
        tv_sec: 5,
        tv_nsec: 0,
    };
    let ready = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "nothing came");
}

/// The first packet to come, as (bytes, from, arrived, hop limit, traffic class).
fn receive(socket: &mut TimedSocket) -> (Vec<u8>, SocketAddr, Stamp, Option<u8>, Option<u8>) {
    let mut batch = TimedBatch::new(4, 2048);
    while socket.recv(&mut batch).unwrap() == 0 {
        socket.send_times(&mut Vec::new()).unwrap();
        wait(socket);
    }
    let packet = batch.iter().next().unwrap();
    assert_eq!(packet.bytes.len(), packet.length);
    (
        packet.bytes.to_vec(),
        packet.from,
        packet.arrived,
        packet.hop_limit,
        packet.traffic_class,
    )
}

/// Reads the error queue until there are `count` times.
fn times(socket: &mut TimedSocket, count: usize) -> Vec<(u32, Stamp)> {
    let mut times = Vec::new();
    while times.len() < count {
        wait(socket);
        socket.send_times(&mut times).unwrap();
    }
    times
}

fn udp(address: &str) -> TimedSocket {
    TimedSocket::udp(address.parse().unwrap(), &TimedOptions::default()).unwrap()
}

fn a_datagram_is_stamped_on_both_sides(address: &str) {
    let (mut a, mut b) = (udp(address), udp(address));
    let mut worst = None;
    for n in 0..20 {
        let sent = a.send(&[n; 100], b.local_addr(), 0xb9).unwrap();
        assert_eq!(sent.id, u32::from(n));
        let left = times(&mut a, 1);
        let (bytes, from, arrived, hops, class) = receive(&mut b);
        assert_eq!(bytes, [n; 100]);
        assert_eq!(from, a.local_addr());
        assert_eq!((hops, class), (Some(64), Some(0xb9)));
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].0, sent.id);
        assert!(left[0].1.by_kernel);
        assert!(left[0].1.at + Duration::from_micros(100) >= sent.called.at);
        assert!(arrived.since(&left[0].1) < Duration::from_secs(5));
        worst = worst.max(Some(arrived.since(&left[0].1)));
    }
    assert!(worst.is_some());
    assert_eq!((a.stats().sent, a.stats().sent_stamped), (20, 20));
    let stats = b.stats();
    assert_eq!(stats.received, 20);
    // A kernel thread switches stamps on after the first socket asks for them. On a busy machine, that takes a while.
    for n in 0..2_000 {
        if b.stats().received_stamped > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5).into());
        a.send(&[n as u8; 100], b.local_addr(), 0).unwrap();
        times(&mut a, 1);
        receive(&mut b);
    }
    panic!("no datagram was stamped on arrival");
}

#[test]
fn a_datagram_is_stamped_on_both_sides_of_ipv4() {
    a_datagram_is_stamped_on_both_sides("127.0.0.1:0");
}

#[test]
fn a_datagram_is_stamped_on_both_sides_of_ipv6() {
    a_datagram_is_stamped_on_both_sides("[::1]:0");
}

#[test]
fn a_batch_is_numbered_in_its_order_and_each_keeps_its_class() {
    let (mut a, mut b) = (udp("127.0.0.1:0"), udp("127.0.0.1:0"));
    let payloads: Vec<[u8; 2]> = (0..100_u8).map(|n| [n, 7]).collect();
    let packets: Vec<_> = payloads
        .iter()
        .map(|bytes| Outgoing {
            bytes,
            to: b.local_addr(),
            from: Some("127.0.0.1".parse().unwrap()),
            traffic_class: bytes[0],
        })
        .collect();
    let mut results = Vec::new();
    a.send_many(&packets, &mut results);
    let ids: Vec<u32> = results.into_iter().map(|sent| sent.unwrap().id).collect();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());
    let mut left = times(&mut a, 100);
    assert!(left.is_sorted_by_key(|(_, stamp)| stamp.real_ns));
    left.sort_by_key(|&(id, _)| id);
    assert!(left.iter().map(|&(id, _)| id).eq(0..100));
    let mut batch = TimedBatch::new(128, 2048);
    assert_eq!(b.recv(&mut batch).unwrap(), 100);
    for (packet, bytes) in batch.iter().zip(&payloads) {
        assert_eq!(packet.bytes, bytes);
        assert_eq!(packet.traffic_class, Some(bytes[0]));
        assert_eq!(packet.to, Some("127.0.0.1".parse().unwrap()));
    }
}

#[test]
fn without_numbers_from_us_the_kernels_own_count_says_the_same() {
    let (mut a, b) = (udp("127.0.0.1:0"), udp("127.0.0.1:0"));
    a.numbers = false;
    let big = vec![0; 70_000];
    for round in 0..3 {
        let sent = a.send(&[1; 10], b.local_addr(), 0).unwrap();
        assert_eq!(times(&mut a, 1)[0].0, sent.id);
        // Refused: it has no number, and those after it are right still.
        assert!(a.send(&big, b.local_addr(), 0).is_err());
        let sent = a.send(&[1; 10], b.local_addr(), 0).unwrap();
        assert_eq!(sent.id, round * 2 + 1);
        assert_eq!(times(&mut a, 1)[0].0, sent.id);
    }
}

fn a_closed_port_is_an_error_as_a_value(address: &str, kind: u8, code: u8) {
    let mut a = udp(address);
    let closed = udp(address).local_addr();
    for n in 0..3 {
        a.send(&[n; 24], closed, 0).unwrap();
        let mut found = Vec::new();
        while found.is_empty() {
            wait(&a);
            a.send_times(&mut Vec::new()).unwrap();
            found.extend(a.errors());
        }
        assert_eq!(found[0].source, ErrorSource::Icmp { kind, code });
        assert_eq!(found[0].to, Some(closed));
        assert_eq!(found[0].from, Some(closed.ip()));
        assert_eq!(found[0].quote(), [n; 24]);
        assert_eq!(found[0].errno, libc::ECONNREFUSED);
        let mut batch = TimedBatch::new(4, 64);
        assert_eq!(a.recv(&mut batch).unwrap(), 0);
    }
    assert_eq!(a.stats().errors, 3);
}

#[test]
fn a_closed_port_is_an_error_as_a_value_on_ipv4() {
    a_closed_port_is_an_error_as_a_value("127.0.0.1:0", 3, 3);
}

#[test]
fn a_closed_port_is_an_error_as_a_value_on_ipv6() {
    a_closed_port_is_an_error_as_a_value("[::1]:0", 1, 4);
}

#[test]
fn a_packet_longer_than_its_slot_says_its_length() {
    let (mut a, mut b) = (udp("127.0.0.1:0"), udp("127.0.0.1:0"));
    a.send(&[9; 1000], b.local_addr(), 0).unwrap();
    wait(&b);
    let mut batch = TimedBatch::new(1, 100);
    assert_eq!(b.recv(&mut batch).unwrap(), 1);
    let packet = batch.iter().next().unwrap();
    assert_eq!((packet.bytes, packet.length), (&[9; 100][..], 1000));
    assert!(batch.is_full());
}

#[test]
fn an_unknown_interface_is_refused_in_words() {
    let options = TimedOptions {
        interface: Some("no-such-if0".to_owned()),
        ..TimedOptions::default()
    };
    let error = TimedSocket::udp("127.0.0.1:0".parse().unwrap(), &options).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
}

/// An echo request with the checksum that RFC 792 asks for; ICMPv6's is left to the kernel.
fn request(family: Family, identifier: u16, sequence: u16) -> Vec<u8> {
    let kind = if family == Family::V4 { 8 } else { 128 };
    let mut message = vec![kind, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend([0x5a; 56]);
    if family == Family::V4 {
        let words = message
            .chunks(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        let sum = (sum >> 16) + (sum & 0xffff);
        message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
    message
}

/// One echo there and back; also that another socket's replies are not ours.
fn echo(mut socket: TimedSocket, target: IpAddr, other: Option<TimedSocket>) {
    let family = socket.family();
    let to = SocketAddr::new(target, 0);
    let mut other = other;
    // Numbers are ours where the kernel takes them.
    socket.next = 1_000;
    socket.base = 1_000;
    for sequence in 0..3 {
        if let Some(other) = &mut other {
            let noise = request(family, other.identifier(), 99);
            other.send(&noise, to, 0).unwrap();
        }
        let message = request(family, socket.identifier(), sequence);
        let sent = socket.send(&message, to, 0x28).unwrap();
        assert_eq!(times(&mut socket, 1)[0].0, sent.id);
        let (bytes, from, arrived, hops, class) = receive(&mut socket);
        assert_eq!(bytes[0], if family == Family::V4 { 0 } else { 129 });
        assert_eq!(bytes[4..6], socket.identifier().to_be_bytes());
        assert_eq!(bytes[6..8], sequence.to_be_bytes());
        assert_eq!(bytes[8..], [0x5a; 56]);
        assert_eq!((from.ip(), hops), (target, Some(64)));
        // Linux answers with the class it was asked with.
        assert_eq!(class, Some(0x28));
        assert!(arrived.at + Duration::from_millis(1) >= sent.called.at);
    }
    assert_eq!(socket.stats().sent_stamped, 3);
}

/// Raw sockets need a privilege; where there is none this asserts that the error says so.
fn raw(family: Family) -> Option<TimedSocket> {
    match TimedSocket::icmp_raw(family, &TimedOptions::default()) {
        Ok(socket) => Some(socket),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            None
        }
    }
}

#[test]
fn what_arrives_before_the_filter_is_discarded() {
    let Some(mut other) = raw(Family::V4) else {
        return;
    };
    let fd = open(Family::V4, SocketType::RAW, Some(icmp_protocol(Family::V4)));
    let fd = fd.unwrap();
    let noise = request(Family::V4, other.identifier(), 1);
    other
        .send(&noise, "127.0.0.1:0".parse().unwrap(), 0)
        .unwrap();
    // On loopback, the reply has arrived at every raw socket when it is here.
    receive(&mut other);
    let options = TimedOptions::default();
    let mut socket = TimedSocket::icmp_on(fd, SocketKind::Raw, Family::V4, &options).unwrap();
    assert_eq!(socket.recv(&mut TimedBatch::new(4, 2048)).unwrap(), 0);
}

#[test]
fn either_kind_of_icmp_socket_is_answered() {
    for (family, target) in [(Family::V4, "127.0.0.1"), (Family::V6, "::1")] {
        match TimedSocket::icmp(family, &TimedOptions::default()) {
            Ok(socket) => echo(socket, target.parse().unwrap(), None),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}

#[test]
fn a_raw_socket_hears_its_own_replies_alone() {
    for (family, target) in [(Family::V4, "127.0.0.1"), (Family::V6, "::1")] {
        if let Some(socket) = raw(family) {
            assert_eq!(socket.kind(), SocketKind::Raw);
            echo(socket, target.parse().unwrap(), raw(family));
        }
    }
}
