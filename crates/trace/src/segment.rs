//! One TCP packet, the analyser's input.

use crate::key::FlowKey;
use wire::packet::Packet;
use wire::tcp::{Options, Tcp};

/// A TCP packet without its payload: its header fields, and when it was captured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segment {
    /// Its number in the whole input, from 1.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub time: i64,
    /// The capture's clock at this packet: see [`crate::Clock`].
    pub clock: i64,
    /// Addresses and ports.
    pub key: FlowKey,
    /// The lower end of the key sent it.
    pub from_low: bool,
    /// IP version, 4 or 6.
    pub version: u8,
    /// First byte of its payload; 0 if the capture has none.
    pub lead: u8,
    /// TOS or traffic class octet.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv4 identification; 0 for IPv6.
    pub id: u16,
    /// TCP flags, as [`wire::tcp`] numbers them.
    pub flags: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; valid only with ACK.
    pub acknowledgment: u32,
    /// Window as sent, not scaled.
    pub window: u16,
    /// Checksum as sent.
    pub checksum: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Bytes of payload as sent.
    pub payload: u32,
    /// Bytes of payload in the capture.
    pub captured: u32,
    /// TCP options.
    pub options: SegmentOptions,
}

// 65,536 segments are sorted at a time, so that their size counts.
const _: () = assert!(size_of::<Segment>() == 144);

/// The TCP options that the analyser uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct SegmentOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// There is a time stamp.
    pub timestamps: bool,
    pub(crate) blocks: u8,
    /// SACK blocks. The last place is the time stamp's if there is one: 40 bytes of options have no room for four blocks and
    /// a time stamp (RFC 2018 3).
    pub(crate) sack: [(u32, u32); 4],
}

impl SegmentOptions {
    /// The SACK blocks, as sent: left edge, right edge.
    #[must_use]
    #[inline]
    pub fn sack(&self) -> &[(u32, u32)] {
        self.sack.get(..usize::from(self.blocks)).unwrap_or(&[])
    }

    /// The time stamp's value and echo (RFC 7323 3.2); 0 without.
    #[must_use]
    #[inline]
    pub fn stamp(&self) -> (u32, u32) {
        if self.timestamps {
            self.sack[3]
        } else {
            (0, 0)
        }
    }

    /// Sets the time stamp.
    #[inline(always)]
    pub(crate) fn set_stamp(&mut self, stamp: Option<(u32, u32)>) {
        self.timestamps = stamp.is_some();
        if let Some(stamp) = stamp {
            self.sack[3] = stamp;
            self.blocks = self.blocks.min(3);
        }
    }

    /// Copies the options of a packet.
    #[inline(always)]
    pub fn set(&mut self, options: &Options) {
        self.mss = options.mss;
        self.window_scale = options.window_scale;
        self.sack_permitted = options.sack_permitted;
        self.blocks = 0;
        for (to, from) in self.sack.iter_mut().zip(options.sack()) {
            *to = *from;
            self.blocks += 1;
        }
        self.set_stamp(options.timestamps);
    }
}

impl Segment {
    /// The segment of a decoded packet. `realm` keeps flows with the same addresses and ports in different tunnels
    /// apart.
    #[must_use]
    #[inline(always)]
    pub fn new(
        number: u64,
        time: i64,
        clock: i64,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        realm: u32,
    ) -> Segment {
        let mut segment = Segment::default();
        segment.set(number, time, clock, packet, tcp, realm);
        segment
    }

    /// Like [`Segment::new`], in place and field by field: copying a value that was just written in smaller pieces
    /// makes the processor wait.
    #[inline(always)]
    pub fn set(
        &mut self,
        number: u64,
        time: i64,
        clock: i64,
        packet: &Packet<'_>,
        tcp: &Tcp<'_>,
        realm: u32,
    ) {
        self.number = number;
        self.time = time;
        self.clock = clock;
        self.from_low = self.key.set(
            &packet.source,
            tcp.source_port,
            &packet.destination,
            tcp.destination_port,
            realm,
        );
        self.version = packet.version;
        self.traffic_class = packet.traffic_class;
        self.hop_limit = packet.hop_limit;
        self.id = packet.id;
        self.flags = tcp.flags.0;
        self.sequence = tcp.sequence;
        self.acknowledgment = tcp.acknowledgment;
        self.window = tcp.window;
        self.urgent = tcp.urgent;
        self.checksum = tcp.checksum;
        self.payload = tcp.payload_length;
        self.captured = tcp.payload.len() as u32;
        self.lead = tcp.payload.first().copied().unwrap_or(0);
        self.options.set(&tcp.options);
    }

    /// Reads a number of each cache line.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.number
            .wrapping_add(u64::from(self.captured))
            .wrapping_add(u64::from(self.flags))
    }

    /// The time: the capture's clock, or the packet's own time if that is later.
    #[inline]
    pub(crate) fn now(&self) -> i64 {
        self.clock.max(self.time)
    }

    /// SYN is set.
    #[must_use]
    pub const fn syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// FIN is set.
    #[must_use]
    pub const fn fin(&self) -> bool {
        self.flags & FIN != 0
    }

    /// RST is set.
    #[must_use]
    pub const fn rst(&self) -> bool {
        self.flags & RST != 0
    }

    /// PSH is set.
    #[must_use]
    pub const fn psh(&self) -> bool {
        self.flags & PSH != 0
    }

    /// ACK is set.
    #[must_use]
    pub const fn ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// URG is set.
    #[must_use]
    pub const fn urg(&self) -> bool {
        self.flags & URG != 0
    }

    /// ECE is set.
    #[must_use]
    pub const fn ece(&self) -> bool {
        self.flags & ECE != 0
    }

    /// CWR is set.
    #[must_use]
    pub const fn cwr(&self) -> bool {
        self.flags & CWR != 0
    }

    /// A router marked it "congestion experienced" (RFC 3168). tcptrace reads this for IPv4 only.
    #[must_use]
    pub const fn ce(&self) -> bool {
        self.traffic_class & 3 == 3
    }

    /// The sequence number after its payload. SYN and FIN do not count.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.payload)
    }
}

pub(crate) const FIN: u16 = 0x01;
pub(crate) const SYN: u16 = 0x02;
pub(crate) const RST: u16 = 0x04;
pub(crate) const PSH: u16 = 0x08;
pub(crate) const ACK: u16 = 0x10;
pub(crate) const URG: u16 = 0x20;
pub(crate) const ECE: u16 = 0x40;
pub(crate) const CWR: u16 = 0x80;
