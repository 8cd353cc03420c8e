//! Reassembles fragmented TCP segments.
//!
//! RFC 791 3.2, RFC 8200 4.5, RFC 5722 (overlaps), RFC 1122 3.3.2. A reassembled packet counts at the place of its last
//! fragment in the capture, because the receiver has the whole packet from then on. Left out: fragments of tunnel
//! packets; the decoder looks into their first fragment. Start reading at [`Fragments::add`].

use std::collections::{HashMap, VecDeque};

use wire::checksum;
use wire::packet::{Layers, Packet};

use super::tally::Tally;

/// Packets that are put together at the same time. Beyond it, the oldest counts as incomplete.
const PACKETS_MAX: usize = 1024;

/// Bytes of their fragments.
const BYTES_MAX: usize = 4 << 20;

/// Fragments of one packet: 512 bytes each for the longest packet.
const PIECES_MAX: usize = 128;

/// The longest payload of an IP packet.
const LENGTH_MAX: u32 = 65_535;

/// How long a packet waits for its last fragment, in nanoseconds of the capture's clock (RFC 8200 4.5).
const WAIT: i64 = 60_000_000_000;

/// Fragments that come so soon after the packet is complete are copies, as in [`crate::copies`].
const COPY: i64 = 20_000_000;

/// The packet that a fragment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name {
    source: [u8; 16],
    destination: [u8; 16],
    id: u32,
    version: u8,
    realm: u32,
}

/// A fragment of a TCP segment.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    name: Name,
    offset: u32,
    length: u32,
    more: bool,
    octets: Vec<u8>,
    /// The header fields of the first fragment.
    head: Option<Head>,
    /// A router marked it "congestion experienced".
    ce: bool,
    /// Number of its packet, its time and the capture's clock then.
    pub(crate) number: u64,
    pub(crate) time: i64,
    pub(crate) clock: i64,
}

#[derive(Debug, Clone)]
struct Head {
    version: u8,
    protocol: u8,
    traffic_class: u8,
    hop_limit: u8,
    id: u16,
    layers: Layers,
    /// The IP header, and the offset of the octet that names the header after it.
    header: Vec<u8>,
    next_header: usize,
}

impl Part {
    /// `None` if the packet is no fragment of a TCP segment, or none that can be put together.
    pub(crate) fn of(packet: &Packet<'_>, realm: u32) -> Option<Part> {
        let piece = packet.piece()?;
        if packet.protocol != wire::tcp::PROTOCOL {
            return None;
        }
        let header = packet.network.len() - piece.octets.len();
        let head = (piece.offset == 0).then(|| Head {
            version: packet.version,
            protocol: packet.protocol,
            traffic_class: packet.traffic_class,
            hop_limit: packet.hop_limit,
            id: packet.id,
            layers: packet.layers,
            header: packet.network.get(..header).unwrap_or(&[]).to_vec(),
            next_header: piece.next_header,
        });
        Some(Part {
            name: Name {
                source: packet.source,
                destination: packet.destination,
                id: piece.id,
                version: packet.version,
                realm,
            },
            offset: piece.offset,
            length: piece.length,
            more: piece.more,
            octets: piece.octets.to_vec(),
            head,
            ce: packet.traffic_class & 3 == 3,
            number: 0,
            time: 0,
            clock: 0,
        })
    }

    fn end(&self) -> u32 {
        self.offset + self.length
    }

    /// Whether the RFCs allow such a fragment.
    fn is_valid(&self) -> bool {
        let aligned = !self.more || self.length.is_multiple_of(8);
        self.length > 0 && aligned && self.end() <= LENGTH_MAX
    }
}

/// A packet that was put together.
pub(crate) struct Whole {
    head: Head,
    source: [u8; 16],
    destination: [u8; 16],
    /// Length of the payload as sent.
    length: u32,
    /// The IP header and the payload, up to the first byte that the capture lacks.
    octets: Vec<u8>,
    /// Length of the header.
    header: usize,
}

impl Whole {
    pub(crate) fn packet(&self) -> Packet<'_> {
        let head = &self.head;
        Packet {
            version: head.version,
            protocol: head.protocol,
            traffic_class: head.traffic_class,
            hop_limit: head.hop_limit,
            id: head.id,
            transport_length: self.length,
            source: self.source,
            destination: self.destination,
            network: &self.octets,
            transport: self.octets.get(self.header..).unwrap_or(&[]),
            layers: head.layers,
            ..Packet::new()
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Complete since this time.
    Complete(i64),
    /// Two fragments overlapped: the others are dropped too (RFC 5722 4).
    Overlapped,
}

/// A packet whose fragments are arriving.
#[derive(Debug)]
struct Datagram {
    serial: u64,
    state: State,
    /// Its fragments in order.
    parts: Vec<Part>,
}

/// The packets whose fragments are arriving.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    datagrams: HashMap<Name, Datagram>,
    /// Their names in the order of their first fragments, with the capture's clock then.
    ages: VecDeque<(u64, i64, Name)>,
    serial: u64,
    bytes: usize,
}

impl Fragments {
    /// Adds a fragment. Returns the packet if it is complete now.
    pub(crate) fn add(&mut self, part: Part, tally: &mut Tally) -> Option<Whole> {
        self.expire(part.clock, tally);
        if !part.is_valid() {
            tally.invalid += 1;
            return None;
        }
        let (name, time) = (part.name, part.time);
        let datagram = self.datagrams.get(&name);
        if let Some(State::Complete(since)) = datagram.map(|datagram| &datagram.state) {
            if time.saturating_sub(*since).unsigned_abs() <= COPY as u64 {
                return None;
            }
            self.datagrams.remove(&name);
        }
        if !self.datagrams.contains_key(&name) {
            self.begin(name, part.clock, tally);
        }
        let datagram = self.datagrams.get_mut(&name)?;
        let bytes = part.octets.len();
        match datagram.insert(part) {
            Fit::Dropped => return None,
            Fit::Bad => {
                tally.overlapping += 1;
                self.bytes -= datagram.close(State::Overlapped);
                return None;
            }
            Fit::Good => self.bytes += bytes,
        }
        if datagram.is_complete() {
            tally.joined += 1;
            let whole = datagram.whole();
            self.bytes -= datagram.close(State::Complete(time));
            return whole;
        }
        while self.bytes > BYTES_MAX {
            self.drop_oldest(tally);
        }
        None
    }

    /// The packets that are still incomplete at the end of the capture.
    pub(crate) fn incomplete(&self) -> u64 {
        let open = |datagram: &&Datagram| datagram.state == State::Open;
        self.datagrams.values().filter(open).count() as u64
    }

    fn begin(&mut self, name: Name, clock: i64, tally: &mut Tally) {
        while self.datagrams.len() >= PACKETS_MAX {
            self.drop_oldest(tally);
        }
        self.serial += 1;
        self.ages.push_back((self.serial, clock, name));
        let datagram = Datagram {
            serial: self.serial,
            state: State::Open,
            parts: Vec::new(),
        };
        self.datagrams.insert(name, datagram);
    }

    /// Removes the packets that have waited too long.
    fn expire(&mut self, clock: i64, tally: &mut Tally) {
        while let Some(&(_, since, _)) = self.ages.front()
            && clock.saturating_sub(since) > WAIT
        {
            self.drop_oldest(tally);
        }
    }

    fn drop_oldest(&mut self, tally: &mut Tally) {
        let Some((serial, _, name)) = self.ages.pop_front() else {
            return;
        };
        // A complete packet may have been replaced by one with the same identification.
        if self
            .datagrams
            .get(&name)
            .is_some_and(|datagram| datagram.serial == serial)
            && let Some(mut datagram) = self.datagrams.remove(&name)
        {
            tally.incomplete += u64::from(datagram.state == State::Open);
            self.bytes -= datagram.close(State::Overlapped);
        }
    }
}

/// The header that the packet had before it was fragmented, with `length` bytes of payload.
fn unfragmented(head: &Head, length: u32) -> Vec<u8> {
    let mut header = head.header.clone();
    if head.version == 4 {
        let total = (header.len() as u32 + length).min(u32::from(u16::MAX)) as u16;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        // DF stays.
        (header[6], header[7]) = (header[6] & 0xc0, 0);
        header[10..12].fill(0);
        let sum = !checksum::sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        return header;
    }
    // The fragment header is the last one.
    let end = header.len() - 8;
    header[head.next_header] = head.protocol;
    header.truncate(end);
    let payload = (end as u32 - 40 + length).min(u32::from(u16::MAX)) as u16;
    header[4..6].copy_from_slice(&payload.to_be_bytes());
    header
}

/// How a fragment fits among the others.
enum Fit {
    Good,
    /// It is a copy of one of them, or they are dropped.
    Dropped,
    /// It overlaps one of them, or there are too many.
    Bad,
}

impl Datagram {
    fn insert(&mut self, part: Part) -> Fit {
        if self.state != State::Open {
            return Fit::Dropped;
        }
        let at = self.parts.partition_point(|old| old.offset < part.offset);
        let next = self.parts.get(at);
        if let Some(same) = next.filter(|next| next.offset == part.offset) {
            let copy = same.length == part.length && same.more == part.more;
            return match copy && same.octets == part.octets {
                true => Fit::Dropped,
                false => Fit::Bad,
            };
        }
        let before = at.checked_sub(1).and_then(|at| self.parts.get(at));
        // A fragment after the last one, or a second last one, contradicts it.
        let fits = before.is_none_or(|before| before.more && before.end() <= part.offset)
            && next.is_none_or(|next| part.more && part.end() <= next.offset);
        if !fits || self.parts.len() == PIECES_MAX {
            return Fit::Bad;
        }
        self.parts.insert(at, part);
        Fit::Good
    }

    fn is_complete(&self) -> bool {
        let mut end = 0;
        for part in &self.parts {
            if part.offset != end {
                return false;
            }
            end = part.end();
        }
        self.parts.last().is_some_and(|last| !last.more)
    }

    /// The packet, all of whose fragments are there.
    fn whole(&self) -> Option<Whole> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let mut head = first.head.clone()?;
        let header = unfragmented(&head, last.end());
        let (mut octets, header) = (header.clone(), header.len());
        for part in &self.parts {
            octets.extend_from_slice(&part.octets);
            if (part.octets.len() as u32) < part.length {
                break;
            }
        }
        // RFC 3168 5.3: a mark of one fragment is a mark of the packet.
        if self.parts.iter().any(|part| part.ce) {
            head.traffic_class |= 3;
        }
        Some(Whole {
            head,
            source: first.name.source,
            destination: first.name.destination,
            length: last.end(),
            octets,
            header,
        })
    }

    /// Forgets its fragments. Returns how many bytes they had.
    fn close(&mut self, state: State) -> usize {
        self.state = state;
        let parts = core::mem::take(&mut self.parts);
        parts.iter().map(|part| part.octets.len()).sum()
    }
}
