//! Answers the web requests of a subscriber in a walled garden, in place of the server that it addressed: TCP (RFC 9293)
//! without a connection, and a redirect of HTTP (RFC 9110 section 15.4.3) to a portal.
//!
//! [`Portal::answer`] is a function of one packet. It keeps no state: the number that it acknowledges everything from is
//! computed from addresses and ports again for each packet. So no number of half-open connections costs memory, any core
//! can answer any packet, and a repeated segment gets the same reply again. The alternative, to rewrite the destination
//! to the portal's address, would need a table to rewrite the portal's replies back to the address that the subscriber
//! had chosen.
//!
//! | segment to port 80 | reply |
//! |---|---|
//! | SYN | SYN and ACK, with our number |
//! | the acknowledgment of that | none |
//! | data, or data again | the redirect, which acknowledges the data, with FIN |
//! | FIN | its acknowledgment |
//! | RST | none |
//! | one of a connection with another number, from before the garden | RST (section 3.10.7.1) |
//!
//! A segment to port 443 gets RST, because no server but the right one can answer TLS. Everything else is refused, and
//! the caller sends an ICMP error.
//!
//! Left out: options of TCP (so the peer sends segments of 536 or 1220 bytes), windows and retransmission: the redirect
//! fits into one segment, and the peer repeats its request if the reply is lost.

#[cfg(test)]
mod tests;

use core::hash::BuildHasher;

use foldhash::fast::FixedState;
use wire::ip::{Header, Upper};
use wire::packet::Fragment;
use wire::{checksum, tcp};

/// The longest address of a portal, in bytes: with it the redirect fits into one segment of any peer (RFC 9293 section
/// 3.7.1: 536 bytes without the option).
pub const LOCATION_OCTETS_MAX: usize = 400;
/// The octets of the longest reply: an IPv6 header, TCP's, and a redirect.
pub const LENGTH_MAX: usize = 40 + TCP_HEADER + RESPONSE_OCTETS_MAX;

const TCP_HEADER: usize = 20;
const RESPONSE_OCTETS_MAX: usize = 536;
const HTTP: u16 = 80;
const HTTPS: u16 = 443;
const HOPS: u8 = 64;
/// Room for a request of some segments.
const WINDOW: u16 = 8_192;

const FIN: u8 = tcp::Flags::FIN.0 as u8;
const SYN: u8 = tcp::Flags::SYN.0 as u8;
const RST: u8 = tcp::Flags::RST.0 as u8;
const PSH: u8 = tcp::Flags::PSH.0 as u8;
const ACK: u8 = tcp::Flags::ACK.0 as u8;

/// What becomes of a packet that may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply of this length was written.
    Reply(usize),
    /// There is nothing to say.
    Silent,
    /// It is no web request: an ICMP error is due.
    Refused,
}

/// A portal: where web requests are redirected to.
#[derive(Debug, PartialEq, Eq)]
pub struct Portal {
    /// The whole response.
    response: Box<[u8]>,
    location: Box<str>,
}

/// Why an address is none of a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLocation {
    /// It is empty, or too long.
    #[error("an address of a portal has 1 to {LOCATION_OCTETS_MAX} bytes")]
    Length,
    /// It contains a space, a control character, or one that is not ASCII.
    #[error("an address of a portal has no spaces and no other characters than ASCII's")]
    Character,
}

/// The part of a TCP segment that decides about the answer.
struct Segment {
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    /// Octets of data.
    data: u32,
}

impl Portal {
    /// A portal at `location`, an absolute URI such as `http://portal.example/`.
    ///
    /// # Errors
    /// The address cannot be in the header of a response.
    pub fn new(location: &str) -> Result<Self, BadLocation> {
        if !(1..=LOCATION_OCTETS_MAX).contains(&location.len()) {
            return Err(BadLocation::Length);
        }
        if !location.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(BadLocation::Character);
        }
        let response = format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        Ok(Self {
            response: response.into_bytes().into(),
            location: location.into(),
        })
    }

    /// Its address.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Answers a packet that may not pass, of the subscriber and to any address. Writes the reply, IP header included, to
    /// `out`. All packets of a connection need the same `seed`.
    pub fn answer(
        &self,
        seed: u64,
        header: &Header,
        packet: &[u8],
        out: &mut [u8; LENGTH_MAX],
    ) -> Answer {
        let is_web = matches!(header.destination_port, HTTP | HTTPS);
        let is_tcp = header.protocol == tcp::PROTOCOL && header.upper == Upper::Ports;
        if !is_tcp || !is_web || header.fragment != Fragment::Whole {
            return Answer::Refused;
        }
        let Some(segment) = Segment::read(header, packet) else {
            return Answer::Silent;
        };
        if segment.flags & RST != 0 {
            return Answer::Silent;
        }
        if header.destination_port == HTTPS {
            return reset(header, &segment, out);
        }
        self.answer_http(first(seed, header), header, &segment, out)
    }

    fn answer_http(
        &self,
        first: u32,
        header: &Header,
        segment: &Segment,
        out: &mut [u8; LENGTH_MAX],
    ) -> Answer {
        match (segment.flags & SYN != 0, segment.flags & ACK != 0) {
            (true, false) => {
                let acknowledged = segment.sequence.wrapping_add(1);
                return write(header, [first, acknowledged], SYN | ACK, &[], out);
            }
            (true, true) | (false, false) => return reset(header, segment, out),
            (false, true) => {}
        }
        // What the peer has acknowledged behind our SYN.
        let start = first.wrapping_add(1);
        let acknowledged = segment.acknowledgment.wrapping_sub(start);
        let end = self.response.len() as u32 + 1;
        if acknowledged > end {
            return reset(header, segment, out);
        }
        let has_fin = segment.flags & FIN != 0;
        let next = segment.end();
        match (acknowledged, segment.data > 0, has_fin) {
            (0, true, _) => write(header, [start, next], PSH | FIN | ACK, &self.response, out),
            // It closes without a request.
            (0, false, true) => write(header, [start, next], FIN | ACK, &[], out),
            (0, false, false) => Answer::Silent,
            (_, true, _) | (_, _, true) => {
                let sequence = segment.acknowledgment;
                write(header, [sequence, next], ACK, &[], out)
            }
            (_, false, false) => Answer::Silent,
        }
    }
}

/// Our first sequence number in a connection.
fn first(seed: u64, header: &Header) -> u32 {
    let connection = (
        header.source,
        header.destination,
        header.source_port,
        header.destination_port,
    );
    let hash = FixedState::with_seed(seed).hash_one(connection);
    (hash >> 32) as u32
}

impl Segment {
    /// Reads a segment; `None` if its header is impossible or its checksum wrong.
    fn read(header: &Header, packet: &[u8]) -> Option<Self> {
        let bytes = packet.get(usize::from(header.header_length)..header.total_length as usize)?;
        let head = bytes.first_chunk::<TCP_HEADER>()?;
        let length = usize::from(head[12] >> 4) * 4;
        if length < TCP_HEADER || length > bytes.len() {
            return None;
        }
        let addresses = match header.version {
            4 => packet.get(12..20)?,
            _ => packet.get(8..40)?,
        };
        let pseudo = checksum::pseudo_sum(addresses, tcp::PROTOCOL, bytes.len());
        let sum = checksum::fold(u64::from(pseudo) + u64::from(checksum::sum(bytes)));
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        (sum == 0xffff).then(|| Self {
            sequence: word(4),
            acknowledgment: word(8),
            flags: head[13],
            data: (bytes.len() - length) as u32,
        })
    }

    /// The number behind it: SYN and FIN count as one octet each (section 3.4).
    fn end(&self) -> u32 {
        let controls = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
        self.sequence.wrapping_add(self.data).wrapping_add(controls)
    }
}

/// The reply to a segment of a connection that does not exist (section 3.10.7.1).
fn reset(header: &Header, segment: &Segment, out: &mut [u8; LENGTH_MAX]) -> Answer {
    match segment.flags & ACK {
        0 => write(header, [0, segment.end()], RST | ACK, &[], out),
        _ => write(header, [segment.acknowledgment, 0], RST, &[], out),
    }
}

/// Writes a segment back to the source of a packet.
fn write(
    header: &Header,
    [sequence, acknowledgment]: [u32; 2],
    flags: u8,
    data: &[u8],
    out: &mut [u8; LENGTH_MAX],
) -> Answer {
    let ip_length = if header.version == 4 { 20 } else { 40 };
    let length = ip_length + TCP_HEADER + data.len();
    let (ip, segment) = out[..length].split_at_mut(ip_length);
    let (head, body) = segment.split_at_mut(TCP_HEADER);
    head[..2].copy_from_slice(&header.destination_port.to_be_bytes());
    head[2..4].copy_from_slice(&header.source_port.to_be_bytes());
    head[4..8].copy_from_slice(&sequence.to_be_bytes());
    head[8..12].copy_from_slice(&acknowledgment.to_be_bytes());
    head[12..14].copy_from_slice(&[(TCP_HEADER as u8 / 4) << 4, flags]);
    head[14..16].copy_from_slice(&WINDOW.to_be_bytes());
    head[16..].fill(0);
    body.copy_from_slice(data);
    let addresses = match header.version {
        4 => header_v4(ip, length, header),
        _ => header_v6(ip, length - ip_length, header),
    };
    let pseudo = checksum::pseudo_sum(addresses, tcp::PROTOCOL, segment.len());
    let sum = !checksum::fold(u64::from(pseudo) + u64::from(checksum::sum(segment)));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    Answer::Reply(length)
}

/// Writes an IPv4 header that needs no identification, since the packet may not be fragmented (RFC 6864 section 4).
/// Returns its addresses.
fn header_v4<'o>(out: &'o mut [u8], length: usize, header: &Header) -> &'o [u8] {
    out[..4].copy_from_slice(&[0x45, 0, (length >> 8) as u8, length as u8]);
    out[4..12].copy_from_slice(&[0, 0, 0x40, 0, HOPS, tcp::PROTOCOL, 0, 0]);
    out[12..16].copy_from_slice(&(header.destination as u32).to_be_bytes());
    out[16..20].copy_from_slice(&(header.source as u32).to_be_bytes());
    let sum = !checksum::sum(&out[..20]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    &out[12..20]
}

fn header_v6<'o>(out: &'o mut [u8], length: usize, header: &Header) -> &'o [u8] {
    out[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    out[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    out[6..8].copy_from_slice(&[tcp::PROTOCOL, HOPS]);
    out[8..24].copy_from_slice(&header.destination.to_be_bytes());
    out[24..40].copy_from_slice(&header.source.to_be_bytes());
    &out[8..40]
}
