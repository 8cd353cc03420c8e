//! QUIC in UDP flows, as far as a passive observer sees it: version, connection IDs, the time of the handshake, the
//! server's name and the packet numbers of the Initial packets, ECN codepoints, and round trips by the spin bit (RFC
//! 9000, 9001, 9369).
//!
//! Left out: loss, reordering and data in flight after the Initial packets, because the keys of all later packets are
//! secret; migration with a new connection ID; what 0-RTT packets hold.
//!
//! | file | what it has |
//! |---|---|
//! | `initial` | keys of Initial packets, and their decryption |
//! | `moves` | a client's move to another address |
//! | `numbers` | packet numbers of Initial packets: loss, copies, data that is sent again |
//! | `spin` | round trips by the spin bit |

mod initial;
mod moves;
mod numbers;
mod spin;

use serde::{Deserialize, Serialize};
use wire::quic::{CryptoFrames, Kind, Long, Packet};
use wire::tls;

use initial::Opener;
pub use moves::{MOVES_MAX, Move};
pub use numbers::Numbers;
pub use spin::Spin;

/// Bytes of a ClientHello that are put together.
const HELLO_MAX: usize = 8 << 10;

/// Pieces of a ClientHello that wait for the ones before them. Browsers send up to about 20, in any order.
const PIECES_MAX: usize = 64;

/// A datagram with a client's first Initial packet is at least that long (RFC 9000 14.1).
const CLIENT_DATAGRAM_MIN: usize = 1200;

/// A QUIC connection in a UDP flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quic {
    /// Version of the client's last Initial packet.
    pub version: u32,
    /// The connection ID that the client chose for its first packet, in hexadecimal.
    pub original_destination_id: String,
    /// The client's own connection ID.
    pub client_id: String,
    /// The server's own connection ID.
    pub server_id: String,
    /// Name of the server, protocols that the client offers, and highest version of TLS, from the ClientHello.
    pub server_name: String,
    /// See `server_name`.
    pub alpn_offered: String,
    /// See `server_name`.
    pub tls_version: u16,
    /// The server sent a Retry packet, or a Version Negotiation packet.
    pub retried: bool,
    /// See `retried`.
    pub negotiated_version: bool,
    /// Time of the client's first Initial packet, in nanoseconds since 1970.
    pub started: i64,
    /// Time of the server's first packet.
    pub answered: Option<i64>,
    /// Time of the client's first packet with a short header.
    pub established: Option<i64>,
    /// Time of the client's first packet after the server's first.
    pub replied: Option<i64>,
    /// Time of the server's first packet with a short header.
    pub served: Option<i64>,
    /// The whole ClientHello was read. The client's Initial packets after it repeat it until the server answers.
    pub hello_is_read: bool,
    /// Datagrams that repeat the ClientHello before the server's first packet, and the times of the first and the last.
    pub repeated_hellos: u64,
    /// See `repeated_hellos`.
    pub repeated_at: Option<i64>,
    /// See `repeated_hellos`.
    pub repeated_until: Option<i64>,
    /// Packets with data of the client before the handshake is complete (0-RTT).
    pub early_packets: u64,
    /// Packets of both ends after the handshake whose fixed bit is 0 (RFC 9287). Their spin bit counts as well.
    pub greased: [u64; 2],
    /// ECN codepoints 1, 2 and 3 of the client's and of the server's packets.
    pub codepoints: [[u64; 3]; 2],
    /// The spin bit of the client's and of the server's packets.
    pub spin: [Spin; 2],
    /// Packet numbers of the client's and of the server's Initial packets.
    pub initials: [Numbers; 2],
    /// The client's first moves to other addresses and ports, and how many there were.
    pub moves: Vec<Move>,
    /// See `moves`.
    pub move_count: u64,
    #[serde(skip)]
    hello: Option<Box<Hello>>,
    #[serde(skip)]
    opener: Option<Box<Opener>>,
}

/// A ClientHello in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Hello {
    octets: Vec<u8>,
    early: Vec<(u64, Vec<u8>)>,
}

impl Quic {
    /// The connection that a datagram starts; `None` unless it begins with a client's Initial packet (RFC 9000 14.1).
    pub(crate) fn start(datagram: &[u8], length: usize, time: i64) -> Option<Quic> {
        let Some(Packet::Long(long)) = Packet::parse(datagram) else {
            return None;
        };
        if long.kind != Kind::Initial || length < CLIENT_DATAGRAM_MIN || long.destination.len() < 8
        {
            return None;
        }
        Some(Quic {
            version: long.version,
            original_destination_id: hexadecimal(long.destination),
            started: time,
            hello: Some(Box::default()),
            opener: Some(Box::new(Opener::new(long.destination))),
            ..Quic::default()
        })
    }

    /// Whether pieces of a ClientHello are kept.
    pub(crate) fn is_reading(&self) -> bool {
        self.hello.is_some()
    }

    /// Gives up the ClientHello.
    pub(crate) fn stop_reading(&mut self) {
        self.hello = None;
    }

    /// The connection ID that the server chose first.
    pub(crate) fn server_connection_id(&self) -> Vec<u8> {
        let octets = (0..self.server_id.len()).step_by(2);
        let octet = |at| u8::from_str_radix(self.server_id.get(at..at + 2)?, 16).ok();
        octets.filter_map(octet).collect()
    }

    /// The client sends from another address or port.
    pub(crate) fn note_move(&mut self, moved: Move) {
        self.move_count += 1;
        if self.moves.len() < MOVES_MAX {
            self.moves.push(moved);
        }
    }

    /// A datagram of the flow. The client sent the first one.
    pub(crate) fn datagram(
        &mut self,
        from_client: bool,
        datagram: &[u8],
        codepoint: u8,
        time: i64,
    ) {
        let side = usize::from(!from_client);
        let repeats = from_client && self.answered.is_none() && self.hello_is_read;
        let copies = self.initials[0].duplicates;
        if let Some(count) = self.codepoints[side].get_mut(usize::from(codepoint).wrapping_sub(1)) {
            *count += 1;
        }
        match from_client {
            false => {
                self.answered.get_or_insert(time);
            }
            true if self.answered.is_some() => {
                self.replied.get_or_insert(time);
            }
            true => {}
        }
        if self.is_greased(datagram) {
            self.greased[side] += 1;
            self.spin[side].packet(datagram[0] & 0x20 != 0, time);
            return;
        }
        let mut rest = datagram;
        while let Some(packet) = Packet::parse(rest) {
            match packet {
                Packet::Short { spin } => {
                    self.spin[side].packet(spin, time);
                    if from_client {
                        self.established.get_or_insert(time);
                        self.hello = None;
                    } else {
                        self.served.get_or_insert(time);
                    }
                    return;
                }
                Packet::Long(long) => {
                    self.long(from_client, &long, &rest[..long.length], time);
                    rest = &rest[long.length..];
                }
            }
        }
        if repeats && self.initials[0].duplicates == copies {
            self.count_repeat(datagram, time);
        }
    }

    /// Counts a datagram that repeats the ClientHello: nothing else is to be sent in Initial packets before the server's
    /// first packet (RFC 9002 6.2).
    fn count_repeat(&mut self, datagram: &[u8], time: i64) {
        let initial = |packet| matches!(packet, Packet::Long(long) if long.kind == Kind::Initial);
        if Packet::parse(datagram).is_some_and(initial) {
            self.repeated_hellos += 1;
            self.repeated_at.get_or_insert(time);
            self.repeated_until = Some(time);
        }
    }

    /// Whether a datagram has a short header whose fixed bit is 0: both ends have agreed on that.
    fn is_greased(&self, datagram: &[u8]) -> bool {
        self.established.is_some()
            && datagram.len() > 1
            && datagram.first().is_some_and(|first| first & 0xc0 == 0)
    }

    fn long(&mut self, from_client: bool, long: &Long<'_>, packet: &[u8], time: i64) {
        let id = match from_client {
            true => &mut self.client_id,
            false => &mut self.server_id,
        };
        // The ID in a Retry packet is for the client's next packet only, and that in a Version Negotiation packet is the
        // client's.
        if id.is_empty() && !matches!(long.kind, Kind::Retry | Kind::VersionNegotiation) {
            *id = hexadecimal(long.source);
        }
        if matches!(long.kind, Kind::Handshake | Kind::ZeroRtt) {
            self.initials[usize::from(!from_client)].other();
        }
        match long.kind {
            Kind::Retry if !from_client => {
                self.retried = true;
                // The client's next Initial packet has keys of the ID that the server chose (RFC 9001 5.2).
                if let Some(opener) = &mut self.opener {
                    **opener = Opener::new(long.source);
                    self.initials[0].send_anew();
                }
            }
            Kind::VersionNegotiation => self.negotiated_version = true,
            Kind::ZeroRtt if from_client => self.early_packets += 1,
            Kind::Initial => {
                if from_client {
                    self.version = long.version;
                }
                self.open(from_client, long, packet, time);
            }
            _ => {}
        }
    }

    /// Opens an Initial packet: takes its number and, of the client, its part of the ClientHello.
    fn open(&mut self, from_client: bool, long: &Long<'_>, packet: &[u8], time: i64) {
        let Some(opener) = &mut self.opener else {
            return;
        };
        let numbers = &mut self.initials[usize::from(!from_client)];
        let sealed = (packet, long.number_at);
        let Some(opened) = opener.open(long.version, from_client, sealed, numbers.next()) else {
            return;
        };
        if opener.is_used_up() {
            self.opener = None;
        }
        let mut frames = CryptoFrames::new(&opened.payload);
        let crypto: Vec<(u64, &[u8])> = frames.by_ref().collect();
        // Without the right keys, the payload is no list of frames.
        if frames.is_whole() {
            numbers.packet(opened.number, &crypto, time);
        }
        if from_client {
            self.read(&crypto);
        }
    }

    /// Reads the ClientHello in pieces.
    fn read(&mut self, crypto: &[(u64, &[u8])]) {
        let Some(hello) = &mut self.hello else {
            return;
        };
        for &(offset, octets) in crypto {
            hello.add(offset, octets);
        }
        match tls::hello(&hello.octets) {
            Ok(found) => {
                self.server_name = found.server_name.unwrap_or_default().to_owned();
                self.tls_version = found.version;
                let protocols = found.protocols().map(String::from_utf8_lossy);
                self.alpn_offered = protocols.take(16).collect::<Vec<_>>().join(",");
                self.hello = None;
                self.hello_is_read = true;
            }
            Err(tls::NoHello::Incomplete) => {}
            Err(tls::NoHello::Other) => self.hello = None,
        }
    }

    /// Time from the client's first packet to its first with a short header, in nanoseconds.
    #[must_use]
    pub fn handshake(&self) -> Option<i64> {
        Some(self.established?.saturating_sub(self.started).max(0))
    }

    /// Time that the handshake lost because packets were sent again: from an end's first packet to its last with CRYPTO
    /// data that it had sent before. Of both ends, the longer one.
    #[must_use]
    pub fn lost(&self) -> i64 {
        let [client, server] = &self.initials;
        let until = |time: Option<i64>| time.map(|time| time.min(self.established.unwrap_or(time)));
        let client = until(client.retransmitted_until.max(self.repeated_until));
        let server = until(server.retransmitted_until).zip(self.answered);
        let ends = [client.map(|time| (time, self.started)), server];
        let lost = ends.into_iter().flatten();
        lost.map(|(time, from)| time.saturating_sub(from).max(0))
            .max()
            .unwrap_or(0)
    }

    /// Time from the client's first packet to the server's first.
    #[must_use]
    pub fn answer(&self) -> Option<i64> {
        Some(self.answered?.saturating_sub(self.started).max(0))
    }

    /// Time from the server's first packet to the client's next.
    #[must_use]
    pub fn reply(&self) -> Option<i64> {
        Some(self.replied?.saturating_sub(self.answered?).max(0))
    }

    /// Time from the client's first packet to the server's first with a short header.
    #[must_use]
    pub fn server_data(&self) -> Option<i64> {
        Some(self.served?.saturating_sub(self.started).max(0))
    }

    /// Datagrams that repeat the ClientHello before the server's first packet; `None` if it could not be read.
    #[must_use]
    pub fn repeats(&self) -> Option<u64> {
        self.hello_is_read.then_some(self.repeated_hellos)
    }

    /// Time from the client's first packet to the first that repeats the ClientHello.
    #[must_use]
    pub fn first_repeat(&self) -> Option<i64> {
        Some(self.repeated_at?.saturating_sub(self.started).max(0))
    }
}

impl Hello {
    fn add(&mut self, offset: u64, octets: &[u8]) {
        if self.early.len() < PIECES_MAX && offset + octets.len() as u64 <= HELLO_MAX as u64 {
            self.early.push((offset, octets.to_vec()));
        }
        let end = |hello: &Hello| hello.octets.len() as u64;
        while let Some(at) = self
            .early
            .iter()
            .position(|(offset, _)| *offset <= end(self))
        {
            let (offset, octets) = self.early.swap_remove(at);
            let known = (end(self) - offset) as usize;
            self.octets
                .extend_from_slice(octets.get(known..).unwrap_or_default());
        }
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests;
