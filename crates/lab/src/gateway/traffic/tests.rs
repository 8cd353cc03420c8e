use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::stream::Receiver;
use super::{Span, bulk, flood, page, stream};
use crate::gateway::stop::Stop;

fn span(to: std::net::SocketAddr, ms: u64) -> Span {
    let begin = Instant::now();
    Span {
        to,
        begin,
        end: begin + Duration::from_millis(ms),
    }
}

#[test]
fn a_stream_on_loopback_loses_nothing() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let span = span(socket.local_addr().expect("an address"), 300);
    let over = Stop::default();
    let receiver = std::thread::spawn({
        let over = over.clone();
        move || stream::receive(&socket, span.begin, &over)
    });
    let sent = stream::send(span, &Stop::default()).expect("a sender");
    std::thread::sleep(Duration::from_millis(200));
    over.set();
    let mut account = receiver.join().expect("no panic").expect("a receiver");
    account.sent = sent;
    assert!(account.sent > 0, "{account:?}");
    assert_eq!((account.received, account.duplicates), (account.sent, 0));
    assert_eq!(account.loss_percent(), 0.0);
}

#[test]
fn a_stream_that_is_stopped_ends_before_its_time() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let span = span(socket.local_addr().expect("an address"), 3_600_000);
    let stop = Stop::default();
    stop.set();
    assert_eq!(stream::send(span, &stop).expect("a sender"), 0);
}

#[test]
fn jitter_is_the_smoothed_difference_of_transit_times() {
    let mut receiver = Receiver::default();
    // Transits of 10, 26 and 26 ms: RFC 3550 gives 16/16 = 1, then 1 - 1/16.
    for (number, sent_ms, arrived_ms) in [(0, 0, 10), (1, 20, 46), (2, 40, 66)] {
        receiver.take(number, sent_ms * 1_000_000, arrived_ms * 1_000_000);
    }
    assert!((receiver.account.jitter_ms - 0.9375).abs() < 1e-9);
}

#[test]
fn copies_and_latecomers_of_a_stream_are_told_apart() {
    let mut receiver = Receiver::default();
    for number in [0, 1, 3, 2, 3, 5, u64::MAX] {
        receiver.take(number, 0, 0);
    }
    let account = receiver.account;
    assert_eq!(
        (account.received, account.reordered, account.duplicates),
        (5, 1, 1)
    );
}

#[test]
fn a_page_of_a_dozen_objects_is_loaded_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let server = listener.local_addr().expect("an address");
    let (loads, heard) = std::sync::mpsc::channel();
    let end = Instant::now() + Duration::from_secs(2);
    std::thread::spawn(move || page::serve(&listener, &loads, end, &Stop::default()));
    assert!(page::load(server, Duration::from_secs(2)).is_some());
    let mut stream = std::net::TcpStream::connect(server).expect("a connection");
    let request = b"GET /loaded?ms=123.5&network=99 HTTP/1.1\r\n\r\n";
    std::io::Write::write_all(&mut stream, request).expect("sent");
    let reported = page::Reported {
        load_ms: 123.5,
        network_ms: 99.0,
    };
    assert_eq!(heard.recv_timeout(Duration::from_secs(2)), Ok(reported));
    // What is not a load's report is answered, and not kept.
    for wrong in ["", "?ms=1", "?ms=NaN&network=1", "?ms=1&network=-1"] {
        let request = format!("GET /loaded{wrong} HTTP/1.1\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    }
    assert!(heard.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn a_page_that_is_not_there_is_no_page() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let server = listener.local_addr().expect("an address");
    assert_eq!(page::load(server, Duration::from_millis(100)), None);
}

#[test]
fn bulk_counts_what_arrives_and_both_ends_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let span = span(listener.local_addr().expect("an address"), 200);
    let octets = AtomicU64::new(0);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| bulk::send(span, &Stop::default()));
        let end = span.end + Duration::from_secs(1);
        bulk::receive(&listener, &octets, end, &Stop::default()).expect("received");
        sender.join().expect("no panic").expect("sent")
    });
    assert!(sent > 0);
    assert_eq!(octets.load(Ordering::Relaxed), sent);
}

#[test]
fn a_flood_goes_on_though_nobody_listens_and_is_never_faster_than_its_rate() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = socket.local_addr().expect("an address");
    drop(socket);
    // 1,400 octets at 1.12 Mbit/s: a datagram every 10 ms.
    let sent = flood::send(span(to, 200), 1_120_000, &Stop::default()).expect("sent");
    assert!((1..=21).contains(&sent), "{sent}");
}
