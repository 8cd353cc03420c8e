//! Packets of a schedule, made with right checksums, and a text for each that is the same on both translators.

use super::End;
use wire::checksum::{fold, pseudo_sum, sum};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// More fragments follow.
const MORE: u16 = 0x2000;

/// An IPv4 packet with these bytes behind a header of 20.
pub(crate) fn ip(protocol: u8, ends: [[u8; 4]; 2], id: u16, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + content.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0, 0, 64, protocol, 0, 0]);
    packet.extend(ends.concat());
    packet.extend(content);
    seal_header(&mut packet);
    packet
}

fn seal_header(packet: &mut [u8]) {
    put(packet, 10, 0);
    let value = !sum(&packet[..20]);
    put(packet, 10, value);
}

fn put(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    let two = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// Writes the checksum of the content, at this place behind the header.
fn seal(packet: &mut [u8], at: usize) {
    put(packet, 20 + at, 0);
    let value = match !content_sum(packet) {
        0 if packet[9] == UDP => 0xffff,
        value => value,
    };
    put(packet, 20 + at, value);
}

/// The sum of content and pseudo header; `0xffff` if the checksum is right.
fn content_sum(packet: &[u8]) -> u16 {
    let (content, protocol) = (&packet[20..], packet[9]);
    match protocol {
        ICMP => sum(content),
        _ => {
            let pseudo = pseudo_sum(&packet[12..20], protocol, content.len());
            fold(u64::from(pseudo) + u64::from(sum(content)))
        }
    }
}

/// Bytes that differ from packet to packet.
fn payload(id: u16, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (usize::from(id) + at * 7) as u8)
        .collect()
}

/// A UDP datagram, with a checksum or without.
pub(crate) fn udp(from: End, to: End, id: u16, length: usize, has_checksum: bool) -> Vec<u8> {
    let words = [from.port, to.port, 8 + length as u16, 0].map(u16::to_be_bytes);
    let content = [words.concat(), payload(id, length)].concat();
    let mut packet = ip(UDP, [from.address, to.address], id, &content);
    if has_checksum {
        seal(&mut packet, 6);
    }
    packet
}

/// A TCP segment's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) length: usize,
}

pub(crate) fn tcp(from: End, to: End, id: u16, segment: Segment) -> Vec<u8> {
    let mut content = [from.port, to.port].map(u16::to_be_bytes).concat();
    content.extend(segment.sequence.to_be_bytes());
    content.extend(segment.acknowledged.to_be_bytes());
    content.extend([0x50, segment.flags, 0x40, 0, 0, 0, 0, 0]);
    content.extend(payload(id, segment.length));
    let mut packet = ip(TCP, [from.address, to.address], id, &content);
    seal(&mut packet, 16);
    packet
}

/// An ICMP query or reply of this type; `identifier` takes the place of a port.
pub(crate) fn query(kind: u8, from: End, to: End, id: u16, identifier: u16) -> Vec<u8> {
    let mut content = vec![kind, 0, 0, 0];
    content.extend(identifier.to_be_bytes());
    content.extend([0, 7]);
    // Timestamps have 12 bytes, address masks 4.
    let length = match kind {
        13 | 14 => 12,
        17 | 18 => 4,
        _ => 24,
    };
    content.extend(payload(id, length));
    let mut packet = ip(ICMP, [from.address, to.address], id, &content);
    seal(&mut packet, 2);
    packet
}

/// An ICMP error that quotes these bytes.
pub(crate) fn error((kind, code): (u8, u8), ends: [[u8; 4]; 2], id: u16, quote: &[u8]) -> Vec<u8> {
    let mut content = vec![kind, code, 0, 0, 0, 0, 0, 0];
    if (kind, code) == (3, 4) {
        // The next hop's MTU (RFC 1191).
        put(&mut content, 6, 1280);
    }
    content.extend(quote);
    let mut packet = ip(ICMP, ends, id, &content);
    seal(&mut packet, 2);
    packet
}

/// Makes the checksum behind the header wrong.
pub(crate) fn damage(packet: &mut [u8]) {
    let at = 20
        + match packet[9] {
            ICMP => 2,
            UDP => 6,
            _ => 16,
        };
    packet[at] ^= 0x55;
}

/// Divides a packet after this many bytes of its content, a multiple of 8.
pub(crate) fn fragments(packet: &[u8], at: usize) -> [Vec<u8>; 2] {
    let mut first = packet[..20 + at].to_vec();
    let mut second = packet[..20].to_vec();
    second.extend(&packet[20 + at..]);
    put(&mut first, 6, MORE);
    put(&mut second, 6, (at / 8) as u16);
    for fragment in [&mut first, &mut second] {
        let length = fragment.len() as u16;
        put(fragment, 2, length);
        seal_header(fragment);
    }
    [first, second]
}

/// Joins the fragments among some packets; other packets stay as they are. Fragments of an incomplete datagram stay too.
pub(crate) fn join(packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let field = |packet: &[u8]| word(packet, 6).unwrap_or(0) & 0x3fff;
    let (mut pieces, mut whole): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|packet| field(packet) != 0);
    pieces.sort_by_key(|packet| field(packet) & 0x1fff);
    while !pieces.is_empty() {
        let key = pieces[0][12..20].to_vec();
        let id = word(&pieces[0], 4);
        let (own, others): (Vec<_>, Vec<_>) = pieces
            .into_iter()
            .partition(|packet| packet[12..20] == key && word(packet, 4) == id);
        pieces = others;
        let mut joined = own[0].clone();
        let is_complete = own.iter().enumerate().all(|(number, piece)| {
            let begins = usize::from(field(piece) & 0x1fff) * 8 == joined.len() - 20 || number == 0;
            if number > 0 && begins {
                joined.extend(&piece[20..]);
            }
            begins
        });
        let is_complete = is_complete
            && field(&own[0]) == MORE
            && own.last().is_some_and(|last| field(last) & MORE == 0);
        if is_complete {
            let length = joined.len() as u16;
            put(&mut joined, 2, length);
            put(&mut joined, 6, 0);
            seal_header(&mut joined);
            whole.push(joined);
        } else {
            whole.extend(own);
        }
    }
    whole
}

/// Source and destination of a packet; for ICMP queries the identifier is the port of both.
pub(crate) fn ends(packet: &[u8]) -> Option<[End; 2]> {
    let address = |at: usize| packet.get(at..at + 4)?.try_into().ok();
    let ports = match *packet.get(9)? {
        ICMP => [word(packet, 24)?; 2],
        TCP | UDP => [word(packet, 20)?, word(packet, 22)?],
        _ => [0; 2],
    };
    let end = |at, port| {
        Some(End {
            address: address(at)?,
            port,
        })
    };
    Some([end(12, ports[0])?, end(16, ports[1])?])
}

/// Whether an ICMP packet is an error, and what it quotes.
pub(crate) fn quote(packet: &[u8]) -> Option<&[u8]> {
    let is_error = packet.get(9) == Some(&ICMP) && matches!(packet.get(20), Some(3..=5 | 11 | 12));
    packet.get(28..).filter(|_| is_error)
}

/// What a packet says, without TTL and identification, which each router sets as it likes. `name` writes an end.
pub(crate) fn describe(packet: &[u8], name: &dyn Fn(u8, End, End) -> String) -> String {
    if let Some(quote) = quote(packet) {
        let ends = ends(packet).map(|ends| ends.map(|end| End { port: 0, ..end }));
        let [from, to] = ends.map_or_else(Default::default, |[from, to]| {
            [name(ICMP, from, to), name(ICMP, to, from)]
        });
        let mtu = word(packet, 26).unwrap_or(0);
        return format!(
            "error {}/{} {from} > {to} mtu {mtu} {} quoting [{}]",
            packet[20],
            packet[21],
            checksums(packet),
            describe(quote, name)
        );
    }
    let Some([from, to]) = ends(packet) else {
        return format!("{packet:02x?}");
    };
    let protocol = packet[9];
    let header = match protocol {
        UDP => 8,
        TCP => 20,
        _ => 4,
    };
    let numbers = match protocol {
        TCP => packet.get(24..34).map(|some| format!("{some:02x?}")),
        ICMP => packet.get(20..22).map(|some| format!("{some:02x?}")),
        _ => None,
    };
    let content = packet.get(20 + header..).unwrap_or_default();
    // An identifier is in the content of a query.
    let content = if protocol == ICMP {
        content.get(2..).unwrap_or_default()
    } else {
        content
    };
    format!(
        "{protocol} {} > {} {} {} bytes sum {:04x} {}",
        name(protocol, from, to),
        name(protocol, to, from),
        numbers.unwrap_or_default(),
        content.len(),
        sum(content),
        checksums(packet)
    )
}

/// Whether the checksums are right, as far as the packet is complete.
fn checksums(packet: &[u8]) -> &'static str {
    if packet.len() < 20 || wire::checksum::ip_ok(packet) != Some(true) {
        return "WRONG header checksum";
    }
    let is_part = word(packet, 6).is_some_and(|field| field & 0x3fff != 0)
        || word(packet, 2).is_some_and(|length| usize::from(length) != packet.len());
    match packet[9] {
        _ if is_part => "in part",
        UDP if word(packet, 26) == Some(0) => "no checksum",
        ICMP | TCP | UDP if content_sum(packet) != 0xffff => "WRONG checksum",
        _ => "right",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(last: u8, port: u16) -> End {
        End {
            address: [10, 0, 0, last],
            port,
        }
    }

    fn plain(_: u8, end: End, _: End) -> String {
        format!("{:?}:{}", end.address, end.port)
    }

    #[test]
    fn fragments_are_joined_in_any_order_and_kept_while_one_is_missing() {
        let whole = udp(end(1, 7), end(2, 8), 9, 100, true);
        let [first, second] = fragments(&whole, 48);
        for pieces in [[&first, &second], [&second, &first]] {
            let joined = join(pieces.map(Clone::clone).into());
            assert_eq!(joined.len(), 1);
            assert_eq!(joined[0], whole);
        }
        assert_eq!(join(vec![second.clone()]), vec![second]);
    }

    #[test]
    fn a_wrong_checksum_is_written_down_and_a_quote_is_read() {
        let mut packet = udp(end(1, 7), end(2, 8), 9, 10, true);
        let error = error((3, 4), [[10, 0, 0, 2], [10, 0, 0, 1]], 5, &packet);
        let text = describe(&error, &plain);
        assert!(
            text.contains("mtu 1280 right quoting [17 [10, 0, 0, 1]:7"),
            "{text}"
        );
        damage(&mut packet);
        assert!(describe(&packet, &plain).ends_with("WRONG checksum"));
    }
}
