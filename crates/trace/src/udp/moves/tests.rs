use super::*;
use crate::quic::MOVES_MAX;
use crate::udp::Flows;
use crate::udp::report::Report;
use proptest::prelude::*;

const SERVER: [u8; 16] = [2; 16];

/// A datagram between the client with that last octet and port, and the server.
fn datagram(number: u64, client: (u8, u16), from_client: bool, payload: &[u8]) -> Datagram {
    let mut address = [0; 16];
    address[15] = client.0;
    let (key, from_low) = match from_client {
        true => FlowKey::new(&address, client.1, &SERVER, 443, 0),
        false => FlowKey::new(&SERVER, 443, &address, client.1, 0),
    };
    Datagram {
        number,
        time: number as i64 * 1_000_000,
        key,
        from_low,
        length: payload.len() as u32 + 8,
    }
}

/// The first datagram of a client, and the server's answer, which chooses an ID.
fn handshake(id: &[u8]) -> [Vec<u8>; 2] {
    let mut first = b"\xc0\0\0\0\x01\x08abcdefgh\0\0\x44\x00".to_vec();
    first.resize(1200, 0);
    let mut answer = vec![0xe0, 0, 0, 0, 1, 0, id.len() as u8];
    answer.extend_from_slice(id);
    answer.extend([0x40, 60]);
    answer.resize(answer.len() + 60, 0);
    [first, answer]
}

fn short(id: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.extend_from_slice(id);
    packet.resize(60, 9);
    packet
}

/// Flows of a client at (1, 1000) that has completed its handshake by packet 3.
fn connected(id: &[u8]) -> Flows {
    let mut flows = Flows::new(3, 10);
    flows.explain();
    let [first, answer] = handshake(id);
    flows.packet_with(&datagram(1, (1, 1000), true, &first), &first, 0);
    flows.packet_with(&datagram(2, (1, 1000), false, &answer), &answer, 0);
    let data = short(id);
    flows.packet_with(&datagram(3, (1, 1000), true, &data), &data, 0);
    flows
}

#[test]
fn a_known_id_from_another_port_is_the_same_connection() {
    let id = b"serverid";
    let mut flows = connected(id);
    let data = short(id);
    let back = short(b"");
    flows.packet_with(&datagram(9, (1, 2000), true, &data), &data, 0);
    flows.packet_with(&datagram(10, (1, 2000), false, &back), &back, 0);
    flows.packet_with(&datagram(11, (7, 2000), true, &data), &data, 0);
    let [flow] = flows.flows() else {
        panic!("{} flows", flows.flows().len())
    };
    assert_eq!((flow.a.packets, flow.b.packets), (4, 2));
    let quic = flow.quic.as_deref().unwrap();
    let moves: Vec<(String, u64, i64)> = (quic.moves.iter())
        .map(|moved| {
            let place = format!("{}:{}", moved.address, moved.port);
            (place, moved.packet, moved.silence)
        })
        .collect();
    let expected = [
        ("::1:2000".to_owned(), 9, 6_000_000),
        ("::7:2000".to_owned(), 11, 1_000_000),
    ];
    assert_eq!((moves.as_slice(), quic.move_count), (&expected[..], 2));
    let sentence = Report::new(flow).unwrap().sentence;
    let moved = "the client moved to [::1]:2000 in packet 9, after 8.0 ms and again once, with the same connection ID";
    assert!(sentence.contains(moved), "{sentence}");
}

#[test]
fn other_ids_and_other_servers_are_other_flows() {
    let mut flows = connected(b"serverid");
    let fresh = short(b"servernw");
    flows.packet_with(&datagram(4, (1, 2000), true, &fresh), &fresh, 0);
    let data = short(b"serverid");
    // The server's own packet, and a long header, are not of a client that moved.
    flows.packet_with(&datagram(5, (1, 3000), false, &data), &data, 0);
    let mut long = data.clone();
    long[0] = 0xc0;
    flows.packet_with(&datagram(6, (1, 4000), true, &long), &long, 0);
    assert_eq!(flows.flows().len(), 4);
    assert_eq!(flows.flows()[0].quic.as_deref().unwrap().move_count, 0);
}

#[test]
fn an_id_that_may_be_equal_by_chance_is_not_followed() {
    let mut flows = connected(b"abc");
    let data = short(b"abc");
    flows.packet_with(&datagram(4, (1, 2000), true, &data), &data, 0);
    assert_eq!(flows.flows().len(), 2);
}

#[test]
fn the_list_of_moves_is_bounded() {
    let mut flows = connected(b"serverid");
    let data = short(b"serverid");
    for number in 4..104 {
        flows.packet_with(&datagram(number, (1, number as u16), true, &data), &data, 0);
    }
    let quic = flows.flows()[0].quic.as_deref().unwrap();
    assert_eq!((quic.moves.len(), quic.move_count), (MOVES_MAX, 100));
}

proptest! {
    #[test]
    fn any_id_is_found_by_its_length(ids in prop::collection::hash_set(prop::collection::vec(any::<u8>(), ID_MIN..=ID_MAX), 1..20)) {
        let mut homes = Homes::new(5);
        let ids: Vec<Vec<u8>> = ids.into_iter().collect();
        let known = datagram(1, (1, 1), true, &[]);
        for (at, id) in ids.iter().enumerate() {
            homes.learn(at, &known.key, !known.from_low, id);
        }
        for (at, id) in ids.iter().enumerate() {
            let mut packet = short(id);
            // What follows the ID is no part of a longer one.
            packet.truncate(1 + id.len());
            let moved = datagram(2, (3, at as u16 + 9), true, &packet);
            let found = homes.find(&moved, &packet).unwrap();
            prop_assert_eq!((found.flow, found.from_client, found.is_first), (at, true, true));
            prop_assert!(!homes.find(&moved, &[]).unwrap().is_first);
        }
    }
}
