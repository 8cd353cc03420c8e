//! Tests batched datagrams over a path with a smaller MTU.

mod common;

use common::privileged;
use reactor::namespace::{Namespace, veth};
use reactor::{RecvBatch, SendBatch, UdpOptions, UdpSocket};

/// Two namespaces joined by a wire of this MTU.
fn pair(mtu: u32) -> (Namespace, Namespace) {
    let (one, other) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    veth((&one, "a"), (&other, "b")).unwrap();
    for (namespace, name, address) in [(&one, "a", "192.0.2.1"), (&other, "b", "192.0.2.2")] {
        let mut netlink = namespace.netlink().unwrap();
        netlink.set_mtu(name, mtu).unwrap();
        let address = address.parse().unwrap();
        netlink.add_address(name, address, 24).unwrap();
        netlink.set_up(name, true).unwrap();
    }
    (one, other)
}

fn bind(namespace: &Namespace, address: &str) -> UdpSocket {
    let address = address.parse().unwrap();
    let options = UdpOptions::default();
    let socket = namespace.run(|| UdpSocket::bind(address, &options).unwrap());
    socket.unwrap()
}

#[test]
fn datagrams_that_fit_ethernet_leave_as_one_and_those_that_do_not_fit_the_path_one_by_one() {
    privileged(
        "datagrams_that_fit_ethernet_leave_as_one_and_those_that_do_not_fit_the_path_one_by_one",
        || {
            for (mtu, merged) in [(1_500, 2), (1_300, 1)] {
                let (one, other) = pair(mtu);
                let (mut sender, mut receiver) =
                    (bind(&one, "192.0.2.1:0"), bind(&other, "192.0.2.2:0"));
                let (mut inbox, mut outbox) = (RecvBatch::new(64), SendBatch::new(64));
                for length in [1_400, 1_400, 1_400, 1_400, 1_000, 800, 800] {
                    outbox.push(&vec![1; length], receiver.local_addr(), None);
                }
                let outcome = sender.send(&mut outbox);
                assert_eq!((outcome.sent, outcome.dropped), (7, 0), "MTU {mtu}");
                assert!(sender.uses_gso());
                assert_eq!(sender.stats().merged, merged, "MTU {mtu}");
                let mut lengths = Vec::new();
                while lengths.len() < 7 {
                    receiver.recv(&mut inbox).unwrap();
                    lengths.extend(inbox.iter().map(|datagram| datagram.bytes.len()));
                }
                assert_eq!(lengths, [1_400, 1_400, 1_400, 1_400, 1_000, 800, 800]);
            }
        },
    );
}
