//! Datagrams through real sockets on loopback.

use std::net::{IpAddr, SocketAddr};

use reactor::{Interest, PollerKind, Reactor, RecvBatch, SendBatch, StoreKind};
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
