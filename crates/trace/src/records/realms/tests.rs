use super::*;
use wire::packet::Fragment;
use wire::tcp::{Flags, Options};

const LAC: [u8; 4] = [192, 0, 2, 1];
const LNS: [u8; 4] = [192, 0, 2, 9];

/// The encapsulation of a packet in a session of a tunnel.
fn layers(up: bool, layer: Layer) -> [Layer; 2] {
    let (source, destination) = if up { (LAC, LNS) } else { (LNS, LAC) };
    let outer = Layer::Ipv4 {
        source,
        destination,
    };
    [outer, layer]
}

/// The packet inside.
fn packet(up: bool) -> Packet<'static> {
    let mut packet = Packet::new();
    let end = |last| {
        let mut address = [0; 16];
        address[10..].copy_from_slice(&[255, 255, 10, 0, 0, last]);
        address
    };
    (packet.source, packet.destination) = match up {
        true => (end(7), end(8)),
        false => (end(8), end(7)),
    };
    (packet.protocol, packet.fragment) = (6, Fragment::Whole);
    packet
}

fn tcp(up: bool, sequence: u32, ack: u32, flags: Flags) -> Tcp<'static> {
    let (source_port, destination_port) = if up { (40_000, 80) } else { (80, 40_000) };
    Tcp {
        source_port,
        destination_port,
        sequence,
        acknowledgment: ack,
        header_length: 20,
        flags,
        window: 1000,
        checksum: 0,
        urgent: 0,
        options: Options::NONE,
        payload: &[],
        payload_length: 0,
    }
}

fn l2tp(session: u32) -> Layer {
    Layer::L2tp {
        version: 2,
        tunnel: 1,
        session,
    }
}

const ACK: Flags = Flags(0x10);
const SYN_ACK: Flags = Flags(0x12);

#[test]
fn two_sessions_of_a_tunnel_with_the_same_addresses_are_two_realms_both_ways() {
    for layer in [
        l2tp,
        |call: u32| Layer::Pptp { call: call as u16 },
        |teid| Layer::Gtp { teid },
    ] {
        let mut realms = Realms::default();
        let mut of = |up, id, sequence, ack, flags| {
            let segment = tcp(up, sequence, ack, flags);
            realms.of(99, &layers(up, layer(id)), &packet(up), Some(&segment))
        };
        let first = of(true, 10, 1000, 0, Flags::SYN);
        assert_eq!(of(false, 77, 5000, 1001, SYN_ACK), first);
        // The other subscriber has the same address and uses the same ports.
        let second = of(true, 11, 70_000, 0, Flags::SYN);
        assert_ne!(second, first);
        assert_eq!(of(false, 78, 90_000, 70_001, SYN_ACK), second);
        for (up, id, realm) in [
            (true, 10, first),
            (false, 77, first),
            (true, 11, second),
            (false, 78, second),
        ] {
            assert_eq!(of(up, id, 1, 1, ACK), realm, "{id}");
        }
    }
}

#[test]
fn a_capture_that_begins_in_the_middle_pairs_the_directions_by_an_acknowledgement() {
    let mut realms = Realms::default();
    let down = tcp(false, 800, 300, ACK);
    let first = realms.of(5, &layers(false, l2tp(4)), &packet(false), Some(&down));
    let up = tcp(true, 300, 800, ACK);
    let answer = realms.of(5, &layers(true, l2tp(9)), &packet(true), Some(&up));
    assert_eq!(answer, first);
}

#[test]
fn what_is_in_no_such_tunnel_keeps_the_realm_around_it() {
    let mut realms = Realms::default();
    let vxlan = layers(true, Layer::Vxlan { vni: 4 });
    let mut packet = packet(true);
    let syn = tcp(true, 1, 0, Flags::SYN);
    assert_eq!(realms.of(7, &vxlan, &packet, Some(&syn)), 7);
    packet.protocol = 1;
    assert_eq!(realms.of(7, &vxlan, &packet, None), 7);
    // Of a session that is not known, packets other than TCP are of the tunnel's realm.
    assert_eq!(realms.of(7, &layers(true, l2tp(3)), &packet, None), 7);
}

#[test]
fn at_the_limit_further_sessions_are_of_the_realm_of_their_tunnel() {
    let mut realms = Realms::default();
    for id in 0..SESSIONS_MAX as u32 {
        let session = session(1, &layers(true, l2tp(id))).unwrap();
        realms.sessions.insert(session, 2);
    }
    let syn = tcp(true, 1, 0, Flags::SYN);
    let beyond = layers(true, l2tp(u32::MAX));
    assert_eq!(realms.of(1, &beyond, &packet(true), Some(&syn)), 1);
}
