//! What a datagram costs on loopback: sending and receiving, one by one and in
//! batches, with and without joining by the kernel (GSO, GRO).
//!
//! Prints nanoseconds of this thread's processor time per datagram of 100 bytes; on
//! loopback, sending includes what the kernel does to deliver. The best of several
//! rounds, since other work on the machine only ever adds.
//!
//! `cargo run --release -p headend-reactor --example datagrams`

use std::net::SocketAddr;

use reactor::{RecvBatch, SendBatch, SysCounts, UdpOptions, UdpSocket, usage};

const DATAGRAM_BYTES: usize = 100;
const BATCH: usize = 64;
const ROUNDS: usize = 400;

/// The cheapest round so far, in nanoseconds, of sending and of receiving.
#[derive(Default)]
struct Best {
    send: Option<f64>,
    receive: Option<f64>,
}

fn main() {
    println!(
        "{:<46} {:>9} {:>9}",
        "100-byte datagrams, ns each", "send", "receive"
    );
    one_by_one();
    for (gso, gro) in [(false, false), (true, false), (false, true), (true, true)] {
        one_peer(gso, gro);
    }
    many_peers(false);
    many_peers(true);
    a_socket_each();
}

fn socket(gro: bool) -> UdpSocket {
    let options = UdpOptions {
        gro,
        recv_buffer_bytes: Some(1 << 20),
        ..UdpOptions::default()
    };
    UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
}

fn wildcard(gro: bool) -> (UdpSocket, SocketAddr) {
    let options = UdpOptions {
        gro,
        recv_buffer_bytes: Some(1 << 20),
        ..UdpOptions::default()
    };
    let socket = UdpSocket::bind("0.0.0.0:0".parse().unwrap(), &options).unwrap();
    let address = SocketAddr::new("127.0.0.1".parse().unwrap(), socket.local_addr().port());
    (socket, address)
}

/// Measures `work`, which handles `count` datagrams.
fn measure(best: &mut Option<f64>, count: usize, work: impl FnOnce()) {
    let before = usage::thread_cpu();
    work();
    let took = usage::thread_cpu().as_nanos() - before.as_nanos();
    let each = took as f64 / count as f64;
    *best = Some(best.map_or(each, |so_far| so_far.min(each)));
}

fn print(name: &str, best: &Best, calls: &SysCounts) {
    let show = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
    println!(
        "{name:<46} {:>9} {:>9}   {calls:?}",
        show(best.send),
        show(best.receive)
    );
}

fn one_by_one() {
    let (sender, receiver) = (
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let to = receiver.local_addr().unwrap();
    let mut best = Best::default();
    let mut buffer = [0; 2048];
    for _ in 0..ROUNDS {
        measure(&mut best.send, BATCH, || {
            for _ in 0..BATCH {
                sender.send_to(&[7; DATAGRAM_BYTES], to).unwrap();
            }
        });
        measure(&mut best.receive, BATCH, || {
            for _ in 0..BATCH {
                receiver.recv_from(&mut buffer).unwrap();
            }
        });
    }
    print("sendto, recvfrom, one by one", &best, &SysCounts::default());
}

fn fill(outbox: &mut SendBatch, to: impl Iterator<Item = SocketAddr>) {
    for peer in to {
        outbox.push(&[7; DATAGRAM_BYTES], peer, None);
    }
}

/// Receives until `count` datagrams have come, looking at each.
fn receive_all(socket: &mut UdpSocket, inbox: &mut RecvBatch, count: usize) {
    let mut left = count;
    while left > 0 {
        let came = socket.recv(inbox).unwrap();
        assert!(came > 0, "{left} of {count} datagrams are missing");
        left -= came;
        assert_eq!(
            inbox.iter().map(|d| d.bytes.len()).sum::<usize>(),
            came * DATAGRAM_BYTES
        );
    }
}

fn one_peer(gso: bool, gro: bool) {
    let mut sender = socket(false);
    let (mut receiver, to) = wildcard(gro);
    if !gso {
        sender.disable_gso();
    }
    let (mut inbox, mut outbox) = (RecvBatch::new(BATCH), SendBatch::new(BATCH));
    let mut best = Best::default();
    let before = SysCounts::of_this_thread();
    for _ in 0..ROUNDS {
        measure(&mut best.send, BATCH, || {
            fill(&mut outbox, std::iter::repeat_n(to, BATCH));
            assert_eq!(sender.send(&mut outbox).sent, BATCH);
        });
        measure(&mut best.receive, BATCH, || {
            receive_all(&mut receiver, &mut inbox, BATCH)
        });
    }
    let on = |on| if on { "on" } else { "off" };
    let name = format!(
        "one peer, batches of {BATCH}, GSO {}, GRO {}",
        on(gso),
        on(gro)
    );
    print(&name, &best, &SysCounts::of_this_thread().since(&before));
}

/// Questions from many peers to one socket, and its answers to them.
fn many_peers(gro: bool) {
    let (mut server, to) = wildcard(gro);
    let mut clients: Vec<_> = (0..BATCH).map(|_| socket(false)).collect();
    let peers: Vec<_> = clients.iter().map(UdpSocket::local_addr).collect();
    let (mut inbox, mut outbox) = (RecvBatch::new(BATCH), SendBatch::new(BATCH));
    let mut best = Best::default();
    let before = SysCounts::of_this_thread();
    for _ in 0..ROUNDS {
        for client in &mut clients {
            fill(&mut outbox, std::iter::once(to));
            client.send(&mut outbox);
        }
        measure(&mut best.receive, BATCH, || {
            receive_all(&mut server, &mut inbox, BATCH)
        });
        measure(&mut best.send, BATCH, || {
            fill(&mut outbox, peers.iter().copied());
            assert_eq!(server.send(&mut outbox).sent, BATCH);
        });
        for client in &mut clients {
            receive_all(client, &mut inbox, 1);
        }
    }
    let name = format!(
        "{BATCH} peers, one socket, GRO {}",
        if gro { "on" } else { "off" }
    );
    print(&name, &best, &SysCounts::of_this_thread().since(&before));
}

/// A connected socket for each peer, as some designs have it.
fn a_socket_each() {
    let mut clients: Vec<_> = (0..BATCH).map(|_| socket(false)).collect();
    let mut servers: Vec<_> = clients
        .iter()
        .map(|client| {
            let connect = Some(client.local_addr());
            let options = UdpOptions {
                connect,
                ..UdpOptions::default()
            };
            UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
        })
        .collect();
    let (mut inbox, mut outbox) = (RecvBatch::new(BATCH), SendBatch::new(BATCH));
    let mut best = Best::default();
    let before = SysCounts::of_this_thread();
    for _ in 0..ROUNDS {
        for (client, server) in clients.iter_mut().zip(&servers) {
            fill(&mut outbox, std::iter::once(server.local_addr()));
            client.send(&mut outbox);
        }
        measure(&mut best.receive, BATCH, || {
            for server in &mut servers {
                receive_all(server, &mut inbox, 1);
            }
        });
        measure(&mut best.send, BATCH, || {
            for (server, client) in servers.iter_mut().zip(&clients) {
                fill(&mut outbox, std::iter::once(client.local_addr()));
                assert_eq!(server.send(&mut outbox).sent, 1);
            }
        });
        for client in &mut clients {
            receive_all(client, &mut inbox, 1);
        }
    }
    let name = format!("{BATCH} peers, a connected socket each");
    print(&name, &best, &SysCounts::of_this_thread().since(&before));
}
