//! Frames of every kind: whole, cut, changed, and random.

use proptest::prelude::*;

use crate::build::*;

const A: [u8; 4] = [192, 168, 1, 5];
const B: [u8; 4] = [203, 0, 113, 9];

fn zero6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = ipv6(protocol, payload);
    packet[8..40].fill(0);
    packet
}

fn chain(count: usize) -> Vec<u8> {
    let (mut last, mut headers) = (6, udp(1000, 2000, &[0; 12]));
    for index in 0..count {
        headers = extension(last, (index % 3) as u8, &headers);
        last = [60, 0, 43, 135][index % 4];
    }
    ipv6(last, &headers)
}

/// Packets that are not tunnelled.
pub(crate) fn bare() -> Vec<Vec<u8>> {
    let ah = |next| extension(next, 0, &udp(1, 2, &[0; 12]));
    let mut packets = vec![
        inner4(),
        inner6(),
        ipv4(A, B, 1, &[8; 16]),
        ipv4(A, B, 132, &udp(7, 8, &[0; 8])),
        ipv4(A, B, 33, &udp(7, 8, &[0; 8])),
        ipv4(A, B, 136, &udp(7, 8, &[])),
        options4(A, B, 17, &[1; 40], &udp(53, 4000, &[0; 8])),
        fragment4(A, B, 17, 0x2000, &udp(1, 2, &[0; 24])),
        fragment4(A, B, 17, 0x0040, &udp(1, 2, &[0; 24])),
        ipv4(A, B, 51, &ah(6)),
        ipv4(A, B, 51, &extension(51, 0, &ah(17))),
        ipv6(44, &fragment_header(17, 0, &udp(53, 4000, &[]))),
        ipv6(44, &fragment_header(17, 1, &udp(53, 4000, &[]))),
        ipv6(44, &fragment_header(4, 0x40, &udp(53, 4000, &[]))),
        ipv6(51, &ah(6)),
        zero6(17, &udp(53, 4000, &[0; 9])),
        zero6(17, &udp(65535, 65535, &[0; 9])),
    ];
    packets.extend((1..11).map(chain));
    let mut total0 = inner4();
    total0[2..4].fill(0);
    let mut jumbo = inner6();
    jumbo[4..6].fill(0);
    packets.extend([total0, jumbo]);
    packets
}

/// A packet in each kind of tunnel, and what looks like one.
fn around(packet: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = tunnels(packet, packet[0] >> 4)
        .into_iter()
        .map(|(_, packet, _)| packet)
        .collect();
    let arp = gre(&[], 0, 0x0806, &[0; 28]);
    let kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    let tagged = ethernet(&[(0x88a8, 7), (0x8100, 9)], kind, packet);
    let in_pppoe = ethernet(&[], 0x8864, &pppoe(packet));
    let v3 = |payload: &[u8]| [&[0, 0, 0, 9, 1, 2, 3, 4][..], payload].concat();
    let padded = [&tagged[..], &[0; 4]].concat();
    all.extend([
        ipv4(A, B, 47, &arp),
        ipv4(A, B, 47, &gre(&[], 0x4000, kind, packet)),
        ipv4(A, B, 47, &gre(&[], 2, kind, packet)),
        ipv4(A, B, 47, &gre(&[0; 8], 0x2081, 0x880b, &[])),
        ipv4(A, B, 47, &gre(&[], 0, 0x6558, &tagged)),
        ipv4(A, B, 47, &gre(&[], 0, 0x6558, &in_pppoe)),
        ipv4(A, B, 115, &v3(&tagged)),
        ipv4(A, B, 115, &v3(&padded)),
        ipv4(A, B, 115, &v3(&in_pppoe)),
        ipv4(A, B, 17, &udp(1, 4789, &vxlan(8, &tagged))),
        ipv4(A, B, 17, &udp(1, 4789, &vxlan(0xff, &in_pppoe))),
        ipv4(A, B, 17, &udp(1701, 4789, &vxlan(0xf7, &tagged))),
        ipv4(A, B, 17, &udp(4789, 1, &vxlan(8, &tagged))),
        ipv4(A, B, 17, &udp(4789, 1701, &vxlan(8, &tagged))),
        ipv4(A, B, 17, &udp(1, 4789, &vxlan(8, &tagged))[..15]),
        ipv4(A, B, 17, &udp(1, 4789, &vxlan(8, &tagged))[..29]),
        ipv4(A, B, 4, packet),
        ipv4(A, B, 41, packet),
        fragment4(A, B, 4, 0x2000, packet),
        ipv6(60, &extension(4, 1, packet)),
        ipv6(60, &extension(41, 1, packet)),
        zero6(41, packet),
    ]);
    for frame in [
        &[0xff, 3, 0xc0, 0x21, 9, 1][..],
        &[0xff, 3, 0x21],
        &[0xff, 3, 0xff],
        &[0xff, 3],
        &[0xff],
        &[0, 0x21],
        &[0, 1],
        &[0],
        &[0x57, 1],
        &[7, 1],
        &[],
    ] {
        let data = [&[0, 2, 0, 7, 0, 8], frame].concat();
        all.push(ipv4(A, B, 17, &udp(1701, 1701, &data)));
        all.push(ipv4(A, B, 47, &gre(&[1; 8], 0x3001, 0x880b, frame)));
    }
    all.push(ipv4(A, B, 17, &udp(1701, 9, &[0xc8, 2, 0, 12, 0, 1, 0, 0])));
    all.push(ipv4(A, B, 115, &[0, 0, 0, 0, 0xc8, 3, 0, 12]));
    all
}

/// Links around an IP packet.
pub(crate) fn links(packet: &[u8]) -> Vec<Vec<u8>> {
    let kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    vec![
        ethernet(&[], kind, packet),
        ethernet(&[(0x8100, 0xe064)], kind, packet),
        ethernet(&[(0x88a8, 7), (0x8100, 100)], kind, packet),
        ethernet(&[(0x9100, 100); 4], kind, packet),
        ethernet(&[(0x9200, 100); 5], kind, packet),
        ethernet(&[], 0x8864, &pppoe(packet)),
        ethernet(&[(0x8100, 0x2007)], 0x8864, &pppoe(packet)),
        ethernet(&[], kind ^ 0x8edd, packet),
        ethernet(&[(0x8100, 100)], 0x0806, packet),
    ]
}

/// Packets in tunnels, one level and two levels deep, with their links.
pub(crate) fn whole() -> Vec<Vec<u8>> {
    let once: Vec<Vec<u8>> = bare().iter().flat_map(|packet| around(packet)).collect();
    let twice = once.iter().step_by(17).flat_map(|packet| around(packet));
    let packets = bare().into_iter().chain(twice).chain(once.clone());
    packets
        .enumerate()
        .filter_map(|(index, packet)| {
            let links = links(&packet);
            links
                .into_iter()
                .nth(if index % 3 == 0 { index / 3 % 9 } else { 0 })
        })
        .chain(["tcp", "tagged", "ipv6", "arp"].map(captured))
        .collect()
}

/// Every shorter form of a few frames.
pub(crate) fn cut() -> Vec<Vec<u8>> {
    let packets = around(&inner4()).into_iter().chain(around(&inner6()));
    // Behind a tag, as the kernel runs no program on an IP packet without a whole header.
    let frames = packets.map(|packet| links(&packet).swap_remove(1));
    let frames = frames.chain(links(&inner4())).chain(links(&inner6()));
    frames
        .flat_map(|frame| (14..frame.len()).map(move |length| frame[..length].to_vec()))
        .collect()
}

/// Nested tunnels, with a few bytes changed.
pub(crate) fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let index = any::<prop::sample::Index>;
    let levels = proptest::collection::vec(index(), 0..7);
    let changes = proptest::collection::vec((index(), any::<u8>()), 0..4);
    let (bare, cut) = (bare(), proptest::option::weighted(0.2, index()));
    (index(), levels, index(), changes, cut).prop_map(move |(first, levels, link, changes, cut)| {
        let mut packet = first.get(&bare).clone();
        for level in levels {
            let choices = around(&packet);
            let found = level.get(&choices).clone();
            if found.len() < 1_500 {
                packet = found;
            }
        }
        let mut frame = link.get(&links(&packet)).clone();
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        if let Some(cut) = cut {
            frame.truncate(14.max(cut.index(frame.len())));
        }
        frame
    })
}

/// Random bytes behind an IP header's first.
pub(crate) fn random_frame() -> impl Strategy<Value = Vec<u8>> {
    let protocols = prop::sample::select(vec![4_u8, 6, 17, 41, 44, 47, 51, 60, 115]);
    let octets = proptest::collection::vec(any::<u8>(), 46..200);
    let port = proptest::option::of(prop::sample::select(vec![1701_u16, 4789]));
    (octets, protocols, any::<bool>(), port).prop_map(|(mut packet, proto, six, port)| {
        let ports = if six {
            packet[0] = 0x60;
            packet[4..6].fill(0);
            packet[6] = proto;
            40
        } else {
            packet[0] = 0x45;
            packet[2..4].fill(0);
            packet[6..8].fill(0);
            packet[9] = proto;
            20
        };
        if let Some(port) = port {
            packet[ports + 2..ports + 4].copy_from_slice(&port.to_be_bytes());
        }
        ethernet(&[], if six { 0x86dd } else { 0x0800 }, &packet)
    })
}
