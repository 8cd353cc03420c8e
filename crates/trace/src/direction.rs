//! One direction of a connection: the data one end sent, and the other end's acknowledgements of it.

use crate::prints::Prints;
use crate::rtt::{Percentiles, Times};
use crate::segments::Segments;
use core::ops::{Deref, DerefMut};

/// Statistics of one direction: the data that one end sent.
///
/// Times are in nanoseconds. Counts of bytes are of TCP payload unless stated otherwise. Names in parentheses are those
/// of `tcptrace -l`. Fields that are used together are next to each other, so that a packet needs few of the
/// processor's cache lines.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Direction {
    // Changed by an acknowledgement of the other end.
    /// The segments sent, and which of them are acknowledged.
    pub segments: Segments,
    /// Duplicate ACKs in a row for this end's data.
    pub(crate) duplicates_in_row: u32,
    /// A keep-alive awaits its answer, which is not a duplicate ACK.
    pub(crate) keep_alive_pending: bool,
    /// Some of its payload has been acknowledged.
    pub data_acked: bool,
    /// IP identification of the packet that carried its highest sequence number.
    pub(crate) top_id: u16,

    // Changed by every packet.
    /// Time of its last packet; `None` before its first.
    pub last_time: Option<i64>,
    /// Packets (total packets).
    pub packets: u64,
    /// Packets with ACK set (ack pkts sent).
    pub ack_packets: u64,
    /// Last acknowledgement number sent; `None` before the first ACK.
    pub ack: Option<u32>,
    /// Time of that acknowledgement.
    pub ack_time: Option<i64>,
    /// Last window advertised, scaled, in bytes.
    pub window: u32,
    /// Acknowledgement number plus window of the last ACK.
    pub window_end: u32,
    /// Sum, count and bounds of the bytes in flight, taken at each segment that leaves some in flight. Their integral.
    pub owin: Owin,
    /// Windows advertised.
    pub windows: Windows,
    /// The sequence number after the last byte of the last packet.
    pub latest: u32,
    /// Shift of its windows (adv wind scale); 0 if either SYN lacks the option. In use only if both SYNs are known.
    pub scale: u8,
    /// Its SYN has the window scale option, RFC 7323.
    pub asked_scale: bool,
    /// Sent time stamps, RFC 7323.
    pub asked_timestamps: bool,
    /// Sent SACK permitted, RFC 2018.
    pub asked_sack: bool,
    /// Longest time between two of its packets (idletime max).
    pub idle_max: i64,
    /// Packets with only an ACK (pure acks sent).
    pub pure_acks: u64,
    /// Its last packets, to recognize copies of them.
    pub(crate) prints: Prints,
    /// Packets with SYN (SYN pkts sent).
    pub syns: u32,
    /// Packets with FIN (FIN pkts sent).
    pub fins: u32,
    /// Packets with RST (resets sent).
    pub resets: u32,
    /// Maximum segment size in its SYN; 0 before.
    pub mss: u16,
    /// It repeated a SYN or FIN with another sequence number.
    pub bad_behaviour: bool,
    /// What was unusual about its last packet, for [`crate::why`].
    pub(crate) events: Events,

    // Changed by a packet with payload.
    /// Bytes of payload (actual data bytes).
    pub data_bytes: u64,
    /// Packets with payload (actual data pkts).
    pub data_packets: u64,
    /// Payload bytes seen for the first time (unique bytes sent).
    pub unique_bytes: u64,
    /// Packets with payload and PSH (pushed data pkts).
    pub pushed_packets: u64,
    /// Time of the last packet with payload (data xmit time: from the first to this).
    pub last_data_time: Option<i64>,
    /// Largest payload (max segm size).
    pub segment_max: u32,
    /// Smallest payload that is not empty (min segm size); 0 if there is none.
    pub segment_min: u32,
    /// Payload bytes sent for the first time before the first ACK for payload (initial window).
    pub initial_bytes: u64,
    /// Packets with these bytes.
    pub initial_packets: u64,
    /// Time of the first packet with payload.
    pub first_data_time: Option<i64>,
    /// Its initial sequence number, as sequence offset; `None` before its SYN. Of several, the acknowledged one.
    pub syn: Option<u64>,
    /// Offset of the byte in the last zero-window probe, until it is acknowledged; 0 if there is none.
    pub(crate) probed: u64,

    // Changed by a round trip.
    /// Round trip of its SYN (RTT from 3WHS), in nanoseconds; 0 if there is no sample.
    pub rtt_handshake: i64,
    /// Last round trip; 0 if the last ACK gave no sample.
    pub rtt_last: i64,
    /// Round trips of segments sent once (RTT samples, min, max, avg, stdev).
    pub rtt: Times,
    /// Round trips of the largest segments (RTT full_sz).
    pub rtt_full: Times,
    /// The distribution of [`Direction::rtt`].
    pub rtt_percentiles: Percentiles,
    /// Segments acknowledged by an ACK for a later one (segs cum acked).
    pub cumulative_acks: u64,
    /// The size of the largest segments, in sequence space.
    pub rtt_full_size: u32,

    // Changed once, or never.
    /// Offset of the highest selectively acknowledged byte.
    pub(crate) sacked_above: u64,
    /// Sequence offset of its FIN; `None` before it.
    pub fin: Option<u64>,
    /// Sequence number of its first packet, from which graphs count.
    pub first_sequence: Option<u32>,
    /// Payload bytes the capture cut off (truncated data).
    pub truncated_bytes: u64,
    /// Packets that the capture cut off (truncated packets).
    pub truncated_packets: u64,
    /// Segments carried in IPv6.
    pub ipv6_packets: u64,
    /// Statistics that are 0 in most connections: see [`Rare`].
    rare: Option<Box<Rare>>,
}

/// What was unusual about a packet. To compare counters before and after each packet would take longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Events(u8);

impl Events {
    /// A retransmission.
    pub(crate) const AGAIN: Events = Events(1);
    /// A retransmission of bytes that had all been acknowledged.
    pub(crate) const SPURIOUS: Events = Events(2);
    /// A retransmission that duplicate ACKs or SACK asked for.
    pub(crate) const FAST: Events = Events(4);
    /// A D-SACK.
    pub(crate) const DSACK: Events = Events(8);
    /// A copy of an earlier packet.
    pub(crate) const COPY: Events = Events(16);
    /// Out of order.
    pub(crate) const LATE: Events = Events(32);

    pub(crate) fn add(&mut self, event: Events) {
        self.0 |= event.0;
    }

    #[inline(always)]
    pub(crate) const fn has(self, event: Events) -> bool {
        self.0 & event.0 != 0
    }
}

/// Statistics that are 0 in most connections. A [`Direction`] allocates them on the first write; they are read and
/// written as if they were part of the direction.
#[derive(Debug, Clone)]
pub struct Rare {
    /// ACKs with SACK blocks (sack pkts sent).
    pub sack_packets: u64,
    /// ACKs whose first SACK block reports a duplicate, RFC 2883 (dsack pkts sent).
    pub dsack_packets: u64,
    /// Most SACK blocks in one ACK (max sack blks/ack).
    pub sack_blocks_max: u8,
    /// Packets with any SACK blocks, also without ACK (sacks sent).
    pub sacks_sent: u64,
    /// Retransmitted packets (rexmt data pkts).
    pub retransmitted_packets: u64,
    /// Retransmitted sequence space (rexmt data bytes).
    pub retransmitted_bytes: u64,
    /// Retransmitted packets whose bytes had all been acknowledged before.
    pub spurious_retransmissions: u64,
    /// Retransmitted packets sent after three duplicate ACKs or a SACK above them.
    pub fast_retransmissions: u64,
    /// One-octet segments sent into a zero window (zwnd probe pkts).
    pub probe_packets: u64,
    /// Bytes in them (zwnd probe bytes).
    pub probe_bytes: u64,
    /// Keep-alives, RFC 9293 3.8.4: at most one byte, just below the acknowledged edge.
    pub keep_alives: u64,
    /// Packets out of order (outoforder pkts).
    pub out_of_order_packets: u64,
    /// Exact copies of a packet, by a span port or the like (hardware dups).
    pub hardware_duplicates: u64,
    /// Packets with payload and URG (urgent data pkts).
    pub urgent_packets: u64,
    /// Sum of their urgent pointers (urgent data bytes).
    pub urgent_bytes: u64,
    /// Round trips of retransmitted segments, from their last transmission (RTT min (last)).
    pub rtt_ambiguous: Times,
    /// ACKs of segments that were sent before, and acknowledged after, a retransmission (post-loss acks).
    pub post_loss_acks: u64,
    /// Duplicate ACKs it received (duplicate acks).
    pub duplicate_acks: u64,
    /// Runs of three of them (triple dupacks).
    pub triple_duplicate_acks: u64,
    /// Most retransmissions of one segment (max # retrans).
    pub retransmissions_max: u32,
    /// Times between a segment and its retransmission (min retr time).
    pub retransmission_times: Times,
    /// Packets marked "congestion experienced", RFC 3168.
    pub ce_packets: u64,
    /// Packets with ECE outside the handshake.
    pub ece_packets: u64,
    /// Packets with CWR outside the handshake.
    pub cwr_packets: u64,
    /// Times when it advertised a zero window.
    pub zero_windows: Episodes,
    /// Times without any packet while its data was in flight.
    pub stalls: Episodes,
    /// Encapsulation of its first packet, as the printed path of [`wire::packet::Layer`]s; empty for none.
    pub layers: String,
}

impl Rare {
    const NONE: Rare = Rare {
        sack_packets: 0,
        dsack_packets: 0,
        sack_blocks_max: 0,
        sacks_sent: 0,
        retransmitted_packets: 0,
        retransmitted_bytes: 0,
        spurious_retransmissions: 0,
        fast_retransmissions: 0,
        probe_packets: 0,
        probe_bytes: 0,
        keep_alives: 0,
        out_of_order_packets: 0,
        hardware_duplicates: 0,
        urgent_packets: 0,
        urgent_bytes: 0,
        rtt_ambiguous: Times::NONE,
        post_loss_acks: 0,
        duplicate_acks: 0,
        triple_duplicate_acks: 0,
        retransmissions_max: 0,
        retransmission_times: Times::NONE,
        ce_packets: 0,
        ece_packets: 0,
        cwr_packets: 0,
        zero_windows: Episodes::NONE,
        stalls: Episodes::NONE,
        layers: String::new(),
    };
}

impl Deref for Direction {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        const NONE: &Rare = &Rare::NONE;
        self.rare.as_deref().unwrap_or(NONE)
    }
}

impl DerefMut for Direction {
    fn deref_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(|| Box::new(Rare::NONE))
    }
}

/// Windows that one end advertised, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Windows {
    /// Largest (max win adv).
    pub max: u32,
    /// Smallest that is not zero (min win adv); 0 before any.
    pub min: u32,
    /// Sum (avg win adv).
    pub total: u64,
    /// Number of windows in the sum.
    pub count: u64,
    /// ACKs with a zero window (zero win adv).
    pub zero: u64,
    /// The first scaled window has been seen, with which the sums begin.
    pub scaled: bool,
}

/// Bytes in flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct Owin {
    /// Most (max owin).
    pub max: u64,
    /// Fewest, not zero (min non-zero owin).
    pub min: u64,
    /// Sum of the samples.
    pub total: u64,
    /// How many samples (avg owin).
    pub count: u64,
    /// Bytes in flight now.
    pub last: u64,
    /// The sum over all changes of the bytes in flight: by how many bytes there were fewer, times when, in nanoseconds.
    /// With no bytes in flight, this is their integral over time.
    pub(crate) byte_nanoseconds: i128,
}

impl Owin {
    /// From `time` on, `in_flight` bytes are in flight.
    #[inline]
    pub(crate) fn weigh(&mut self, time: i64, in_flight: u64) {
        let fewer = self.last.wrapping_sub(in_flight) as i64;
        let product = i128::from(fewer) * i128::from(time);
        self.byte_nanoseconds = self.byte_nanoseconds.wrapping_add(product);
        self.last = in_flight;
    }

    /// The integral of the bytes in flight over time until `end`, in nanoseconds (wavg owin, over the connection's
    /// time). Time stamps may run backwards; what they add to the integral, they take away again.
    #[must_use]
    pub fn byte_nanoseconds_until(&self, end: i64) -> u128 {
        let mut owin = *self;
        owin.weigh(end, 0);
        owin.byte_nanoseconds.try_into().unwrap_or(0)
    }

    /// The opposite: the integral until `end` is that.
    pub(crate) fn set_until(&mut self, end: i64, byte_nanoseconds: i128) {
        let in_flight = core::mem::take(&mut self.last);
        self.byte_nanoseconds = byte_nanoseconds;
        self.weigh(end, in_flight);
    }
}

/// Durations of a condition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Episodes {
    /// How many times.
    pub count: u32,
    /// Their sum, in nanoseconds.
    pub total: i64,
    /// The longest.
    pub longest: i64,
    /// Start of the present one.
    pub since: Option<i64>,
}

impl Episodes {
    /// None at all.
    const NONE: Episodes = Episodes {
        count: 0,
        total: 0,
        longest: 0,
        since: None,
    };

    /// Starts one, unless one has started.
    pub(crate) fn begin(&mut self, now: i64) {
        if self.since.is_none() {
            self.since = Some(now);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Ends the present one.
    pub(crate) fn end(&mut self, now: i64) {
        if let Some(since) = self.since.take() {
            let lasted = now.saturating_sub(since).max(0);
            self.total = self.total.saturating_add(lasted);
            self.longest = self.longest.max(lasted);
        }
    }

    /// Adds one that has already ended.
    pub(crate) fn add(&mut self, lasted: i64) {
        self.count = self.count.saturating_add(1);
        self.total = self.total.saturating_add(lasted);
        self.longest = self.longest.max(lasted);
    }
}

impl Direction {
    /// Makes it one that has sent nothing, and keeps the allocated room.
    // long: one line for each field, so that none can be left out
    pub(crate) fn reset(&mut self) {
        // Field by field: a new value would be built elsewhere, and its lists moved there and back.
        let Direction {
            segments,
            duplicates_in_row,
            keep_alive_pending,
            data_acked,
            top_id,
            last_time,
            packets,
            ack_packets,
            ack,
            ack_time,
            window,
            window_end,
            owin,
            windows,
            latest,
            scale,
            asked_scale,
            asked_timestamps,
            asked_sack,
            idle_max,
            pure_acks,
            prints,
            syns,
            fins,
            resets,
            mss,
            bad_behaviour,
            events,
            data_bytes,
            data_packets,
            unique_bytes,
            pushed_packets,
            last_data_time,
            segment_max,
            segment_min,
            initial_bytes,
            initial_packets,
            first_data_time,
            syn,
            probed,
            rtt_handshake,
            rtt_last,
            rtt,
            rtt_full,
            rtt_percentiles,
            cumulative_acks,
            rtt_full_size,
            sacked_above,
            fin,
            first_sequence,
            truncated_bytes,
            truncated_packets,
            ipv6_packets,
            rare,
        } = self;
        segments.clear();
        rtt_percentiles.clear();
        *events = Events::default();
        *rare = None;
        for number in [
            packets,
            ack_packets,
            pure_acks,
            data_bytes,
            data_packets,
            unique_bytes,
            pushed_packets,
            initial_bytes,
            initial_packets,
            probed,
            cumulative_acks,
            sacked_above,
            truncated_bytes,
            truncated_packets,
            ipv6_packets,
        ] {
            *number = 0;
        }
        for number in [
            duplicates_in_row,
            window,
            window_end,
            latest,
            syns,
            fins,
            resets,
            segment_max,
            segment_min,
            rtt_full_size,
        ] {
            *number = 0;
        }
        for number in [idle_max, rtt_handshake, rtt_last] {
            *number = 0;
        }
        for number in [top_id, mss] {
            *number = 0;
        }
        for flag in [
            keep_alive_pending,
            data_acked,
            asked_scale,
            asked_timestamps,
            asked_sack,
            bad_behaviour,
        ] {
            *flag = false;
        }
        for time in [last_time, ack_time, last_data_time, first_data_time] {
            *time = None;
        }
        (*ack, *first_sequence, *syn, *fin) = (None, None, None, None);
        (*owin, *windows) = (Owin::default(), Windows::default());
        (*rtt, *rtt_full) = (Times::NONE, Times::NONE);
        (*scale, *prints) = (0, Prints::default());
    }

    /// Whether it has rare statistics.
    pub(crate) fn has_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// Reads a number of each cache line that most packets need.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let numbers = [
            self.segments.top(),
            u64::from(self.duplicates_in_row),
            self.packets,
            self.owin.last,
            u64::from(self.latest),
            self.pure_acks,
            self.data_bytes,
            self.rtt_last as u64,
            self.rtt.count,
            u64::from(self.rtt_full_size),
        ];
        numbers.into_iter().fold(0, u64::wrapping_add)
    }

    /// Like [`Direction::touch`], for the lists, which are elsewhere in memory.
    #[inline]
    pub(crate) fn touch_lists(&self) -> u64 {
        let (segments, percentiles) = (&self.segments, &self.rtt_percentiles);
        segments.touch().wrapping_add(percentiles.touch())
    }

    /// Bytes of payload between SYN and FIN (or, after a reset, the last packet), if both are in the capture
    /// (ttl stream length).
    #[must_use]
    pub fn stream_length(&self) -> Option<u64> {
        let (syn, fin) = (self.syn?, self.fin?);
        Some(fin.saturating_sub(syn).saturating_sub(1))
    }

    /// Bytes of the stream that the capture lacks (missed data).
    #[must_use]
    pub fn missed(&self) -> Option<u64> {
        Some(self.stream_length()?.saturating_sub(self.unique_bytes))
    }

    /// Bytes of sequence space that the other end acknowledged and the capture lacks: the capture lost packets. Data
    /// that this end sent before its first packet in the capture does not count.
    #[must_use]
    pub fn unseen_bytes(&self) -> u64 {
        let Some(first) = self.first_sequence else {
            return 0;
        };
        self.segments.unseen_above(self.offset(first))
    }
}
