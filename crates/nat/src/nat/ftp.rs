//! Active FTP through the NAT: the client names the address and port where the server shall connect, and the NAT replaces
//! these by an external endpoint that it makes for them (RFC 959, RFC 2428; RFC 5382 REQ-6, RFC 3022 section 4.4).
//!
//! Only what follows is changed, all else of a control connection passes as it is:
//! - a whole PORT or EPRT command in one segment that arrives in order, with the address that the segment comes from, and a
//!   port that is no system port: so nobody can open ports of another host (RFC 2577 section 3);
//! - afterwards the sequence numbers of the client's segments, and the acknowledgements of the server's, with SACK blocks
//!   (RFC 2018);
//! - the command again, in any segments, if the client sends it again.
//!
//! Left out: the sequence number in a segment that an ICMP error quotes.

use std::collections::BTreeMap;

use base::Instant;
use wire::checksum;
use wire::ip::{Header, Upper};
use wire::packet::Fragment;

use super::flow::header_length;
use super::{Nat, tick};
use crate::ftp::command::{self, Command, Line};
use crate::ftp::stream::Stream;
use crate::ftp::{DATA_PORT, PORT};
use crate::pool::Protocol;
use crate::rewrite::{Delta, Sum, put, word};
use crate::subscribers::SubscriberId;
use crate::tcp::{self, Event};

/// A segment that a change makes longer than this is left as it is: every host takes packets of this length (RFC 791), and
/// so does every link between.
const LENGTH_MAX: usize = 576;
/// Control connections of one inside address.
const PER_ADDRESS: usize = 32;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// Inside address and port, and the server's address.
type Key = (u32, u16, u32);

/// A control connection.
#[derive(Debug)]
struct Control {
    stream: Stream,
    /// The client's number of the octet behind all that it has sent.
    sent: u32,
    /// Whether a line starts there.
    is_line_start: bool,
    /// Whether the server has answered.
    is_open: bool,
    /// Whether one of both has ended it.
    is_closing: bool,
    /// Tick of the last packet.
    last: u32,
}

/// Control connections.
#[derive(Debug, Default)]
pub(super) struct Controls {
    all: BTreeMap<Key, Control>,
    /// No connection times out before this tick.
    next_expiry: u32,
}

impl Controls {
    pub(super) fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether a segment from this port of a server may be of one of these connections.
    #[inline]
    pub(super) fn has(&self, port: u16) -> bool {
        port == PORT && !self.all.is_empty()
    }
}

/// The TCP segment of a packet that may have text of a control connection: where it starts, and where its text does.
fn segment(header: &Header, packet: &[u8]) -> Option<(usize, usize)> {
    let is_whole = header.version == 4
        && header.fragment == Fragment::Whole
        && header.upper == Upper::Ports
        && packet.get(9) == Some(&wire::tcp::PROTOCOL);
    let start = header_length(packet);
    let head = packet
        .get(start..)
        .filter(|head| is_whole && head.len() >= 20)?;
    let length = usize::from(head[12] >> 4) * 4;
    (20..=head.len())
        .contains(&length)
        .then_some((start, start + length))
}

fn long(octets: &[u8], at: usize) -> u32 {
    let four = octets.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

fn put_long(octets: &mut [u8], at: usize, value: u32) {
    put(octets, at, (value >> 16) as u16);
    put(octets, at + 2, value as u16);
}

/// Changes a TCP header, and its checksum by the difference. A partial checksum does not cover the header.
fn change(head: &mut [u8], sum: Sum, change: impl FnOnce(&mut [u8])) {
    let mut before = [0; 60];
    let length = head.len().min(60);
    before[..length].copy_from_slice(&head[..length]);
    change(head);
    if sum == Sum::Partial {
        return;
    }
    let mut delta = Delta::default();
    for at in (0..length & !1).step_by(2) {
        if let (Some(old), Some(new)) = (word(&before, at), word(head, at))
            && old != new
        {
            delta.word(old, new);
        }
    }
    if let Some(old) = word(head, 16) {
        put(head, 16, delta.apply(old));
    }
}

/// Where the blocks of a SACK option (RFC 2018 section 3) start in a TCP header, and how many octets they have.
fn sack_blocks(head: &[u8]) -> Option<(usize, usize)> {
    let mut at = 20;
    while let Some(&kind) = head.get(at) {
        match kind {
            0 => return None,
            1 => at += 1,
            _ => {
                let length = usize::from(*head.get(at + 1)?);
                if length < 2 || at + length > head.len() {
                    return None;
                }
                if kind == 5 {
                    return Some((at + 2, (length - 2) & !7));
                }
                at += length;
            }
        }
    }
    None
}

impl Nat {
    /// Whether a packet from a subscriber is for [`Nat::outbound_ftp`].
    #[inline]
    #[must_use]
    pub fn is_ftp(&self, header: &Header) -> bool {
        // Also after a reload without FTP, because numbers that differ do so until the connection ends.
        header.destination_port == PORT
            && header.upper == Upper::Ports
            && (self.config.ftp || !self.controls.all.is_empty())
    }

    /// Replaces addresses in commands of active FTP in a packet from a subscriber. To be called before [`Nat::outbound`],
    /// with the same packet. Returns whether the packet changed: then it may have another length, and its header is to be
    /// read again.
    pub fn outbound_ftp(
        &mut self,
        subscriber: SubscriberId,
        header: &Header,
        packet: &mut Vec<u8>,
        now: Instant,
    ) -> bool {
        let (source, destination) = (header.source as u32, header.destination as u32);
        let Some((start, text)) = segment(header, packet).filter(|_| self.is_ftp(header)) else {
            return false;
        };
        // Between two subscribers both directions would be outbound.
        if self.is_exempt(header) || self.pool.index_of(destination).is_some() {
            return false;
        }
        let key = (source, header.source_port, destination);
        let number = long(packet, start + 4);
        if tcp::is_first(header.tcp_flags) {
            // Old numbers are of no use to a new connection.
            self.controls.all.remove(&key);
            self.track(key, number.wrapping_add(1), tick(now));
            return false;
        }
        let Some(mut control) = self.controls.all.remove(&key) else {
            return false;
        };
        control.last = tick(now);
        control.is_closing |= header.tcp_flags & (FIN | RST) != 0;
        if header.tcp_flags & (SYN | RST) == 0 {
            self.read_lines(subscriber, &key, &mut control, (number, packet, text), now);
        }
        let is_changed = !control.stream.is_plain();
        if is_changed {
            resend(&control.stream, number, packet, (start, text));
        }
        self.controls.all.insert(key, control);
        is_changed
    }

    /// Follows a new control connection, if there is room.
    fn track(&mut self, key: Key, sent: u32, tick: u32) {
        let control = Control {
            stream: Stream::default(),
            sent,
            is_line_start: true,
            is_open: false,
            is_closing: false,
            last: tick,
        };
        if !self.config.ftp {
            return;
        }
        let most = self.config.limits.ftp_controls_max as usize;
        if self.controls.all.len() >= most {
            self.expire_ftp(tick);
        }
        let same = self
            .controls
            .all
            .range((key.0, 0, 0)..=(key.0, u16::MAX, u32::MAX));
        if self.controls.all.len() >= most || same.take(PER_ADDRESS).count() >= PER_ADDRESS {
            self.counters.ftp_untracked += 1;
            return;
        }
        self.controls.all.insert(key, control);
    }

    /// Reads what a segment adds to the client's text, and notes which parts the server is to receive otherwise.
    fn read_lines(
        &mut self,
        subscriber: SubscriberId,
        key: &Key,
        control: &mut Control,
        (number, packet, text): (u32, &[u8], usize),
        now: Instant,
    ) {
        let content = packet.get(text..).unwrap_or_default();
        let end = number.wrapping_add(content.len() as u32);
        let ahead = end.wrapping_sub(control.sent) as i32;
        if content.is_empty() || ahead <= 0 {
            return;
        }
        let is_next = ahead as usize <= content.len();
        let (mut is_line_start, mut sent) = (control.is_line_start, control.sent);
        control.sent = end;
        control.is_line_start = content.ends_with(b"\n");
        if !is_next {
            // What lies between may come later, when what is behind it has passed with its numbers.
            self.counters.ftp_left += 1;
            return;
        }
        let new = &content[content.len() - ahead as usize..];
        // The server's checksum of the segment would hide a fault of the client's.
        let is_right = is_right(packet, header_length(packet));
        let mut growth = 0;
        for line in new.split_inclusive(|&octet| octet == b'\n') {
            let is_whole = is_line_start && line.ends_with(b"\n");
            let read = match is_whole {
                true => command::read(line),
                false if is_line_start && command::is_start(line) => Line::Unclear,
                false => Line::Other,
            };
            let length = packet.len() + growth;
            let change = match read {
                Line::Named(one)
                    if is_right
                        && self.config.ftp
                        && one.address == key.0
                        && control.stream.has_room() =>
                {
                    self.replacement(subscriber, key, &one, length, now)
                }
                Line::Named(_) | Line::Unclear => None,
                Line::Other => {
                    (is_line_start, sent) = (true, sent.wrapping_add(line.len() as u32));
                    continue;
                }
            };
            if let Some((one, text)) = change {
                let at = sent.wrapping_add(one.at.start as u32);
                growth += text.as_bytes().len().saturating_sub(one.at.len());
                control.stream.add(at, one.at.len() as u16, text);
                self.counters.ftp_rewritten += 1;
            } else {
                self.counters.ftp_left += 1;
            }
            (is_line_start, sent) = (true, sent.wrapping_add(line.len() as u32));
        }
    }

    /// The argument that the server is to receive instead of a command's, with a mapping for the endpoint that it names.
    fn replacement(
        &mut self,
        subscriber: SubscriberId,
        &(inside, _, server): &Key,
        command: &Command,
        length: usize,
        now: Instant,
    ) -> Option<(Command, command::Text)> {
        // The longest argument of 27 octets in place of this one.
        if command.port < 1024 || length + 27 > LENGTH_MAX + command.at.len() {
            return None;
        }
        let found = self.find(inside, command.port, Protocol::Tcp);
        let found = found.filter(|&at| {
            !self.is_expired(&self.mappings[at as usize], tick(now)) || self.settle(at, now)
        });
        let at = match found {
            Some(at) => at,
            None => {
                let ends = (inside, command.port);
                let made = self.create(subscriber, Protocol::Tcp, ends, now);
                made.ok()?
            }
        };
        // The server's SYN is expected, so the mapping waits for it as if it had arrived.
        let remote = (server, DATA_PORT);
        let expected = self.tcp(at, remote, Event::ServerSyn, true, tick(now));
        self.note_remote(at, server);
        let mapping = self.mappings[at as usize];
        let text = command::argument(command.form, mapping.external, mapping.external_port);
        expected.ok().map(|()| (command.clone(), text))
    }

    /// Takes the numbers of a segment from a server back to those of the client. The packet is translated already.
    pub(super) fn inbound_ftp(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        sum: Sum,
        now: Instant,
    ) {
        let Some((start, text)) = segment(header, packet) else {
            return;
        };
        // The destination is the client by now.
        let client = (long(packet, 16), word(packet, start + 2).unwrap_or(0));
        let key = (client.0, client.1, header.source as u32);
        let Some(control) = self.controls.all.get_mut(&key) else {
            return;
        };
        control.last = tick(now);
        control.is_open = true;
        control.is_closing |= header.tcp_flags & (FIN | RST) != 0;
        let stream = &mut control.stream;
        if stream.is_plain() || header.tcp_flags & 16 == 0 {
            return;
        }
        let number = long(packet, start + 8);
        stream.acknowledge(number, control.sent);
        let stream = *stream;
        change(&mut packet[start..text], sum, |head| {
            put_long(head, 8, stream.for_client(number));
            let (at, length) = sack_blocks(head).unwrap_or((0, 0));
            for edge in (at..at + length).step_by(4) {
                let number = long(head, edge);
                put_long(head, edge, stream.for_client(number));
            }
        });
    }

    /// Forgets control connections that are idle or over.
    pub(super) fn expire_ftp(&mut self, tick: u32) {
        if self.controls.next_expiry > tick {
            return;
        }
        let ticks = self.ticks;
        self.controls.all.retain(|_, control| {
            let span = match (control.is_closing, control.is_open) {
                (true, _) => ticks.closing,
                (false, true) => ticks.established,
                (false, false) => ticks.opening,
            };
            control.last + span > tick
        });
        // Not each time, because it looks at all.
        self.controls.next_expiry = tick + 4;
    }
}

/// Whether the checksum of a packet's segment is right.
fn is_right(packet: &[u8], start: usize) -> bool {
    let segment = packet.get(start..).unwrap_or_default();
    let pseudo = checksum::pseudo_sum(&packet[12..20], wire::tcp::PROTOCOL, segment.len());
    let sum = u64::from(pseudo) + u64::from(checksum::sum(segment));
    checksum::fold(sum) == 0xffff
}

/// Puts the server's text and numbers into a packet of the client. A wrong checksum stays wrong.
fn resend(stream: &Stream, number: u32, packet: &mut Vec<u8>, (start, text): (usize, usize)) {
    let was_right = is_right(packet, start);
    let content = packet.split_off(text);
    stream.rewrite(number, &content, packet);
    change(&mut packet[start..text], Sum::Complete, |head| {
        put_long(head, 4, stream.for_server(number));
    });
    if packet[text..] == content {
        return;
    }
    let (old, new) = (word(packet, 2).unwrap_or(0), packet.len() as u16);
    let mut delta = Delta::default();
    delta.word(old, new);
    put(packet, 2, new);
    let sum = word(packet, 10).unwrap_or(0);
    put(packet, 10, delta.apply(sum));
    put(packet, start + 16, 0);
    let segment = &packet[start..];
    let pseudo = checksum::pseudo_sum(&packet[12..20], wire::tcp::PROTOCOL, segment.len());
    let sum = u64::from(pseudo) + u64::from(checksum::sum(segment));
    let right = !checksum::fold(sum);
    put(packet, start + 16, if was_right { right } else { !right });
}
