//! Headers around payloads.

pub(super) const SOURCE6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(super) const DESTINATION6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// AF41 with ECT(1).
pub(super) const TRAFFIC_CLASS: u8 = 0x89;

const TUNNEL: ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [192, 0, 2, 2]);

pub(super) fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    fragment4(source, destination, protocol, 0x4000, payload)
}

pub(super) fn fragment4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    offset_and_flags: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = options4(source, destination, protocol, &[], payload);
    packet[6..8].copy_from_slice(&offset_and_flags.to_be_bytes());
    packet
}

pub(super) fn options4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let length = 20 + options.len();
    let mut packet = vec![0x40 | (length / 4) as u8, TRAFFIC_CLASS];
    packet.extend(((length + payload.len()) as u16).to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(options);
    packet.extend(payload);
    packet
}

pub(super) fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x60 | TRAFFIC_CLASS >> 4,
        TRAFFIC_CLASS << 4 | 5,
        0x43,
        0x21,
    ];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    packet.extend(SOURCE6);
    packet.extend(DESTINATION6);
    packet.extend(payload);
    packet
}

/// An extension header of `8 + 8 * units` octets (RFC 8200 4.2).
pub(super) fn extension(next: u8, units: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![next, units, 1, 4];
    header.resize(8 + 8 * usize::from(units), 0);
    header.extend(payload);
    header
}

/// RFC 8200 4.5; the offset is in the upper 13 bits, M in the lowest.
pub(super) fn fragment_header(next: u8, offset_and_more: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![next, 0];
    header.extend(offset_and_more.to_be_bytes());
    header.extend([0, 0, 0, 9]);
    header.extend(payload);
    header
}

/// TCP's ports are at the same offset.
pub(super) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = source.to_be_bytes().to_vec();
    header.extend(destination.to_be_bytes());
    header.extend((payload.len() as u16 + 8).to_be_bytes());
    header.extend([0, 0]);
    header.extend(payload);
    header
}

/// RFC 2784 2.1; `fields` are those that the flags indicate.
pub(super) fn gre(fields: &[u8], flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = flags.to_be_bytes().to_vec();
    header.extend(kind.to_be_bytes());
    header.extend(fields);
    header.extend(payload);
    header
}

/// RFC 2661 3.1, with Length, Ns and Nr, and an offset of 2.
pub(super) fn l2tp_v2(frame: &[u8]) -> Vec<u8> {
    let mut header = vec![0x4a, 2];
    header.extend((frame.len() as u16 + 16).to_be_bytes());
    header.extend([0, 7, 0, 8, 0, 1, 0, 2, 0, 2, 0xaa, 0xaa]);
    header.extend(frame);
    header
}

/// RFC 7348 5, with network 0x123456.
pub(super) fn vxlan(flags: u8, frame: &[u8]) -> Vec<u8> {
    let mut header = vec![flags, 0, 0, 0, 0x12, 0x34, 0x56, 0];
    header.extend(frame);
    header
}

/// A frame of `testdata/vxlan`.
pub(super) fn captured(name: &str) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vxlan");
    let text = std::fs::read_to_string(format!("{root}/{name}.hex")).expect("readable");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let octets = lines.flat_map(str::split_whitespace);
    octets
        .map(|octet| u8::from_str_radix(octet, 16).expect("hexadecimal"))
        .collect()
}

pub(super) fn ethernet(tags: &[(u16, u16)], kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for (tpid, control) in tags {
        frame.extend(tpid.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

/// RFC 2516 4.
pub(super) fn pppoe(packet: &[u8]) -> Vec<u8> {
    let mut header = vec![0x11, 0, 0, 1];
    header.extend((packet.len() as u16 + 2).to_be_bytes());
    header.extend([0, ppp_protocol(packet)]);
    header.extend(packet);
    header
}

fn ppp_protocol(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { 0x21 } else { 0x57 }
}

/// TCP 192.168.1.5:50000 > 203.0.113.9:443.
pub(super) fn inner4() -> Vec<u8> {
    ipv4(
        [192, 168, 1, 5],
        [203, 0, 113, 9],
        6,
        &udp(50000, 443, &[0; 20]),
    )
}

/// UDP 2001:db8::1.53 > 2001:db8::2.4000.
pub(super) fn inner6() -> Vec<u8> {
    ipv6(17, &udp(53, 4000, b"who is it"))
}

/// A tunnel's name, a packet of it, and the outer header's protocol and ports.
pub(super) type Tunnel = (&'static str, Vec<u8>, (u8, u16, u16));

/// `packet`, of that version, in every kind of tunnel.
pub(super) fn tunnels(packet: &[u8], version: u8) -> Vec<Tunnel> {
    let (kind, ip_in_ip) = [(0x86dd, 41), (0x0800, 4)][usize::from(version == 4)];
    let ppp = ppp_protocol(packet);
    let join = |head: &[u8]| [head, packet].concat();
    let bridged = ethernet(&[(0x8100, 3)], kind, packet);
    let v3 =
        |between: &[u8], payload: &[u8]| [&[0, 3, 0, 0, 0, 0, 0, 9][..], between, payload].concat();
    let behind = |protocol, payload: &[u8]| ipv4(TUNNEL.0, TUNNEL.1, protocol, payload);
    let datagram = |payload: &[u8]| behind(17, &udp(1701, 40000, payload));
    let l2tp = (17, 1701, 40000);
    [
        ("in IPv4", behind(ip_in_ip, packet), (ip_in_ip, 0, 0)),
        ("in IPv6", ipv6(ip_in_ip, packet), (ip_in_ip, 0, 0)),
        ("GRE", behind(47, &gre(&[], 0, kind, packet)), (47, 0, 0)),
        (
            "GRE with checksum, key and sequence number",
            ipv6(47, &gre(&[9; 12], 0xb000, kind, packet)),
            (47, 0, 0),
        ),
        (
            "Ethernet in GRE",
            behind(47, &gre(&[5; 4], 0x2000, 0x6558, &bridged)),
            (47, 0, 0),
        ),
        (
            "PPTP",
            behind(
                47,
                &gre(&[1; 12], 0x3081, 0x880b, &join(&[0xff, 3, 0, ppp])),
            ),
            (47, 0, 0),
        ),
        (
            "L2TPv2",
            datagram(&join(&[0, 2, 0, 7, 0, 8, 0xff, 3, 0, ppp])),
            l2tp,
        ),
        (
            "L2TPv2 with everything",
            datagram(&l2tp_v2(&join(&[ppp]))),
            l2tp,
        ),
        (
            "L2TPv2 in IPv6",
            ipv6(17, &udp(5, 1701, &l2tp_v2(&join(&[0, ppp])))),
            (17, 5, 1701),
        ),
        ("L2TPv3, PPP", datagram(&v3(&[], &join(&[0, ppp]))), l2tp),
        (
            "L2TPv3, cookie, PPP",
            datagram(&v3(&[7; 4], &join(&[0xff, 3, 0, ppp]))),
            l2tp,
        ),
        (
            "L2TPv3, sublayer, cookie, Ethernet",
            datagram(&v3(&[0x40; 12], &bridged)),
            l2tp,
        ),
        (
            "L2TPv3 over IP",
            behind(115, &v3(&[3; 8], &join(&[0, ppp]))[4..]),
            (115, 0, 0),
        ),
    ]
    .into_iter()
    .chain(vxlans(packet, kind, &bridged))
    .collect()
}

fn vxlans(packet: &[u8], kind: u16, tagged: &[u8]) -> [Tunnel; 2] {
    let bare = vxlan(8, &ethernet(&[], kind, packet));
    [
        (
            "VXLAN",
            ipv4(TUNNEL.0, TUNNEL.1, 17, &udp(50001, 4789, &bare)),
            (17, 50001, 4789),
        ),
        (
            "VXLAN in IPv6, tagged",
            ipv6(17, &udp(1701, 4789, &vxlan(0x88, tagged))),
            (17, 1701, 4789),
        ),
    ]
}
