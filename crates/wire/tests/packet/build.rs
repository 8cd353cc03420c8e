//! Headers around payloads.

pub(crate) const CLIENT: [u8; 4] = [10, 0, 0, 1];
pub(crate) const SERVER: [u8; 4] = [10, 0, 0, 2];
const CLIENT_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const SERVER_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Both, concatenated.
pub(crate) fn join(head: &[u8], payload: &[u8]) -> Vec<u8> {
    [head, payload].concat()
}

/// Bytes from hex digits; blanks are ignored.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let octet = |pair: &[char]| {
        let text: String = pair.iter().collect();
        u8::from_str_radix(&text, 16).expect("hexadecimal")
    };
    digits.chunks(2).map(octet).collect()
}

/// A segment with aligned timestamps and 18 octets of payload.
pub(crate) fn segment() -> Vec<u8> {
    let header = hex("c350 0050 01020304 a1a2a3a4 8018 0200 0000 0000
         0101080a 00000007 00000009");
    join(&header, b"GET / HTTP/1.1\r\n\r\n")
}

pub(crate) fn ipv4_between(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let total = (payload.len() as u16 + 20).to_be_bytes();
    let mut header = vec![0x45, 0x10, total[0], total[1], 0x12, 0x34, 0x40, 0, 63];
    header.extend([protocol, 0, 0]);
    header.extend(source);
    header.extend(destination);
    let sum = !wire::checksum::sum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    join(&header, payload)
}

/// An IPv4 packet from client to server.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_between(CLIENT, SERVER, protocol, payload)
}

/// An IPv4 packet between the ends of a tunnel.
pub(crate) fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_between([192, 0, 2, 1], [192, 0, 2, 2], protocol, payload)
}

/// An IPv6 packet from client to server, of traffic class 0x10 and hop limit 63.
pub(crate) fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = hex("61000000");
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next_header, 63]);
    header.extend(CLIENT_V6);
    header.extend(SERVER_V6);
    join(&header, payload)
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = source.to_be_bytes().to_vec();
    header.extend(destination.to_be_bytes());
    header.extend((payload.len() as u16 + 8).to_be_bytes());
    header.extend([0, 0]);
    join(&header, payload)
}

pub(crate) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = hex("020000000002 020000000001");
    header.extend(ethertype.to_be_bytes());
    join(&header, payload)
}

/// IPv4 over Ethernet, with the segment.
pub(crate) fn plain() -> Vec<u8> {
    ethernet(0x0800, &ipv4(6, &segment()))
}
