//! Tests TUN devices with offloads; the kernel checks headers and checksums.

mod common;

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::privileged;
use reactor::bare;
use reactor::namespace::Namespace;
use reactor::tun::{HEADER, Tun, TunOptions};

const OFFLOADS: TunOptions = TunOptions {
    offloads: true,
    queues: 1,
};

/// A namespace with its own TUN device, which is up and has 192.0.2.1/24.
fn open(options: &TunOptions) -> (Namespace, Vec<Tun>) {
    let namespace = Namespace::new().unwrap();
    let queues = namespace.run(|| Tun::open_queues("tun%d", options).unwrap());
    let queues = queues.unwrap();
    let mut netlink = namespace.netlink().unwrap();
    let name = queues[0].name();
    netlink
        .add_address(name, "192.0.2.1".parse().unwrap(), 24)
        .unwrap();
    netlink.set_up(name, true).unwrap();
    (namespace, queues)
}

/// The next IPv4 UDP packet with its header; the kernel also sends others of its own.
fn next(tun: &Tun) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    loop {
        match tun.receive(&mut buffer).unwrap() {
            Some(length) if buffer[HEADER] == 0x45 && buffer[HEADER + 9] == 17 => {
                return buffer[..length].to_vec();
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn a_device_has_the_offloads_it_says() {
    privileged("a_device_has_the_offloads_it_says", || {
        let (namespace, queues) = open(&OFFLOADS);
        let tun = &queues[0];
        assert_eq!(tun.name(), "tun0");
        assert!(tun.offloads().header && tun.offloads().checksum && tun.offloads().tcp);
        let socket = namespace.run(|| UdpSocket::bind("192.0.2.1:4000").unwrap());
        let socket = socket.unwrap();
        socket.send_to(b"out", "192.0.2.9:5000").unwrap();
        let packet = next(tun);
        // A partial checksum that starts at byte 20 and is stored 6 bytes further on.
        assert_eq!(packet[..2], [1, 0]);
        assert_eq!(packet[6..10], [20_u16, 6].map(u16::to_ne_bytes).concat());
        assert_eq!(packet[HEADER + 28..], *b"out");
        // The other direction, also with a partial checksum.
        let mut back = packet.clone();
        back[HEADER + 12..HEADER + 16].copy_from_slice(&packet[HEADER + 16..HEADER + 20]);
        back[HEADER + 16..HEADER + 20].copy_from_slice(&packet[HEADER + 12..HEADER + 16]);
        back[HEADER + 20..HEADER + 22].copy_from_slice(&packet[HEADER + 22..HEADER + 24]);
        back[HEADER + 22..HEADER + 24].copy_from_slice(&packet[HEADER + 20..HEADER + 22]);
        tun.send(&back).unwrap();
        let mut buffer = [0; 100];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from), (3, "192.0.2.9:5000".parse().unwrap()));
        // A missing header and a wrong header are both rejected.
        for bad in [
            &back[..HEADER - 1],
            &[1, 5, 0, 0, 0, 0, 255, 255, 0, 0, 0x45],
        ] {
            let error = tun.send(bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
    });
}

#[test]
fn queues_share_a_device_and_each_takes_and_gives_packets() {
    let name = "queues_share_a_device_and_each_takes_and_gives_packets";
    privileged(name, || {
        let (namespace, queues) = open(&TunOptions {
            offloads: true,
            queues: 3,
        });
        assert!(queues.iter().all(|queue| queue.name() == "tun0"));
        assert!(
            queues
                .iter()
                .all(|queue| queue.offloads() == queues[0].offloads())
        );
        let sockets: Vec<UdpSocket> = namespace
            .run(|| {
                let ports = 0..64;
                ports
                    .map(|_| UdpSocket::bind("192.0.2.1:0").unwrap())
                    .collect()
            })
            .unwrap();
        for socket in &sockets {
            socket.send_to(b"flow", "192.0.2.9:5000").unwrap();
        }
        let mut buffer = vec![0; 70_000];
        let mut seen = 0;
        for queue in &queues {
            while let Some(length) = queue.receive(&mut buffer).unwrap() {
                seen += usize::from(buffer[..length].ends_with(b"flow"));
            }
        }
        assert_eq!(seen, sockets.len());
    });
}

#[test]
fn a_name_that_is_taken_is_refused_in_words() {
    privileged("a_name_that_is_taken_is_refused_in_words", || {
        let (namespace, queues) = open(&OFFLOADS);
        let again = namespace
            .run(|| Tun::open(queues[0].name()).unwrap_err())
            .unwrap();
        let text = again.to_string();
        assert!(
            text.starts_with("cannot make the TUN device tun0: "),
            "{text}"
        );
        let none = namespace.run(|| Tun::open("").unwrap_err()).unwrap();
        assert!(none.to_string().starts_with("cannot make"), "{none}");
    });
}

/// A subscriber's test packet: 72 bytes in UDP from 192.0.2.9 to 192.0.2.1, without checksum.
fn datagram() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 100, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend([192, 0, 2, 9, 192, 0, 2, 1]);
    let words = packet.chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x13, 0x88, 0x0f, 0xa0, 0, 80, 0, 0]);
    packet.resize(100, 7);
    packet
}

#[test]
fn the_bare_loops_move_packets_both_ways() {
    privileged("the_bare_loops_move_packets_both_ways", || {
        let (namespace, queues) = open(&TunOptions {
            offloads: false,
            queues: 1,
        });
        let tun = &queues[0];
        let inner = namespace.run(|| UdpSocket::bind("192.0.2.1:4000").unwrap());
        let inner = inner.unwrap();
        let (here, there) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        here.connect(there.local_addr().unwrap()).unwrap();
        there.connect(here.local_addr().unwrap()).unwrap();
        here.set_nonblocking(true).unwrap();
        let limit = Some(Duration::from_secs(10));
        there.set_read_timeout(limit).unwrap();
        inner.set_read_timeout(limit).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| bare::receive_and_write(&here, tun, 8, &stop));
            let sending = scope.spawn(|| bare::read_and_send(tun, &here, b"tunnel: ", &stop));
            let mut buffer = [0; 2048];
            for _ in 0..100 {
                let packet = [b"8 octets", &datagram()[..]].concat();
                there.send(&packet).unwrap();
                assert_eq!(inner.recv(&mut buffer).unwrap(), 72);
                inner.send_to(&[9; 72], "192.0.2.9:5000").unwrap();
                let length = loop {
                    let length = there.recv(&mut buffer).unwrap();
                    if buffer[8] == 0x45 {
                        break length;
                    }
                };
                assert_eq!(buffer[..8], *b"tunnel: ");
                assert_eq!(buffer[36..length], [9; 72]);
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(receiving.join().unwrap().unwrap(), 100);
            assert!(sending.join().unwrap().unwrap() >= 100);
        });
    });
}
