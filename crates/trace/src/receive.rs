//! Updates a connection's statistics for one packet.
//!
//! RFC 9293, RFC 7323, RFC 2018, RFC 2883, RFC 3168. Start reading at `Connection::receive`.

use crate::connection::Connection;
use crate::direction::{Direction, Events};
use crate::segment::{FIN, RST, SYN, Segment};
use crate::segments::{Acknowledged, Insertion};
use crate::verdict::{AckKind, Sample, Verdict};
use wire::packet::Layer;

/// A connection without packets for longer than this while data is in flight has stalled.
const STALL: i64 = 1_000_000_000;

/// Without a known round trip, a gap that is filled sooner than this counts as reordering, as in tshark.
const REORDERING: i64 = 3_000_000;

/// A sequence number as offset, near `reference`.
fn extend(reference: u64, sequence: u32) -> u64 {
    if reference == 0 {
        return 1 << 32 | u64::from(sequence);
    }
    let delta = sequence.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(delta))
}

impl Direction {
    /// The offset of `sequence` in this end's data.
    pub(crate) fn offset(&self, sequence: u32) -> u64 {
        let top = self.segments.top();
        extend(if top > 0 { top } else { self.reference() }, sequence)
    }
}

impl Direction {
    /// An offset near those of an end that has only sent ACKs and resets; 0 before its first packet.
    fn reference(&self) -> u64 {
        match (self.segments.acked(), self.first_sequence) {
            (0, Some(first)) => extend(0, first),
            (acked, _) => acked,
        }
    }
}

/// A packet's sequence numbers as offsets.
#[derive(Default)]
struct Sending {
    retransmitted: u32,
    out_of_order: bool,
    probe: bool,
    /// Bytes that the capture has for the first time count as retransmitted.
    late: bool,
}

impl Connection {
    /// Adds one of its packets to the statistics. If there is an observer (`WANTED`), it writes the result to `verdict`.
    #[inline(always)]
    pub(crate) fn receive<const WANTED: bool>(
        &mut self,
        segment: &Segment,
        layers: &[Layer],
        verdict: &mut Verdict,
    ) {
        if self.why.is_none() {
            return self.count::<WANTED>(segment, layers, verdict);
        }
        self.receive_with_why::<WANTED>(segment, layers, verdict);
    }

    /// The same, and divides the senders' time.
    #[inline(never)]
    fn receive_with_why<const WANTED: bool>(
        &mut self,
        segment: &Segment,
        layers: &[Layer],
        verdict: &mut Verdict,
    ) {
        let from_a = segment.from_low == self.a_is_low;
        let (this, other) = match from_a {
            true => (&mut self.a, &self.b),
            false => (&mut self.b, &self.a),
        };
        this.events = Events::default();
        let samples = other.rtt.count;
        self.count::<WANTED>(segment, layers, verdict);
        if let Some(why) = &mut self.why {
            why.packet(segment, from_a, samples, (&self.a, &self.b));
        }
    }

    /// Updates the statistics.
    // long: the path of every packet; each step needs what the steps before it left in both directions
    #[inline(never)]
    fn count<const WANTED: bool>(
        &mut self,
        segment: &Segment,
        layers: &[Layer],
        verdict: &mut Verdict,
    ) {
        let from_a = segment.from_low == self.a_is_low;
        let first = self.packets == 0;
        let gap = segment.time.saturating_sub(self.last_time);
        let handshake = self.a.rtt_handshake.saturating_add(self.b.rtt_handshake);
        let (this, other) = if from_a {
            (&mut self.a, &mut self.b)
        } else {
            (&mut self.b, &mut self.a)
        };
        if gap > STALL && !first {
            stalled(this, other, gap);
        }
        self.packets += 1;
        self.last_time = segment.time;
        self.last_clock = self.last_clock.max(segment.now());

        if WANTED {
            *verdict = Verdict {
                from_a,
                first,
                ack_before: this.ack,
                ack_time_before: this.ack_time,
                window_end_before: this.window_end,
                ..Verdict::default()
            };
        }
        arrive(this, segment, layers);
        let copy = this.is_copy(other, segment);
        let flags = SYN_FIN_RST & segment.flags;
        if flags != 0 {
            this.flagged(segment);
        }
        let scaled = this.options(other, segment);
        let window = this.window_of(segment, scaled);
        if WANTED {
            verdict.hardware_duplicate = copy;
            verdict.window = window;
        }
        if copy {
            this.hardware_duplicates += 1;
            this.events.add(Events::COPY);
            if segment.ack() {
                this.ack_packets += 1;
                if segment.payload == 0 && flags == 0 {
                    this.pure_acks += 1;
                }
            }
            return;
        }
        let mut sending = Sending::default();
        if segment.payload > 0 || flags & (SYN | FIN) != 0 {
            sending = this.send(other, segment, handshake);
        } else {
            this.seek_keep_alive(segment);
        }
        if WANTED {
            verdict.keep_alive = this.keep_alive_pending;
            verdict.retransmitted = sending.retransmitted;
            verdict.out_of_order = sending.out_of_order;
            verdict.probe = sending.probe;
        }
        let keep_alive = this.keep_alive_pending;
        if segment.ack() {
            this.ack_packets += 1;
        }
        if segment.rst() {
            if segment.ack() {
                other.acknowledged_by_reset::<WANTED>(segment, verdict);
            }
            // Neither end waits for its data any more.
            this.owin.weigh(segment.time, 0);
            other.owin.weigh(segment.time, 0);
            return;
        }
        if segment.ack() {
            this.acknowledge::<WANTED>(other, segment, window, verdict);
        }
        this.advertise(segment, window, scaled);
        if segment.payload > 0 && !this.data_acked && (sending.retransmitted == 0 || sending.late) {
            this.initial_bytes += u64::from(segment.payload);
            this.initial_packets += 1;
        }
        if !segment.syn() && !sending.out_of_order && sending.retransmitted == 0 && !keep_alive {
            let in_flight = this.sample_in_flight(segment);
            if WANTED {
                verdict.in_flight = Some(in_flight);
            }
        }
    }
}

const SYN_FIN_RST: u16 = SYN | FIN | RST;

/// There was no packet of the connection for `gap` although data was in flight.
#[cold]
fn stalled(this: &mut Direction, other: &mut Direction, gap: i64) {
    for direction in [this, other] {
        let segments = &direction.segments;
        if segments.acked() > 0 && segments.top() > segments.acked() {
            direction.stalls.add(gap);
        }
    }
}

/// The updates that every packet makes.
#[inline(always)]
fn arrive(this: &mut Direction, segment: &Segment, layers: &[Layer]) {
    match this.last_time {
        Some(last) => {
            let silence = segment.time.saturating_sub(last);
            this.idle_max = this.idle_max.max(silence);
            this.prints.after(silence, this.packets);
        }
        None => {
            this.first_sequence = Some(segment.sequence);
            if !layers.is_empty() {
                this.layers = printed(layers);
            }
        }
    }
    this.last_time = Some(segment.time);
    this.packets += 1;
    this.latest = segment.end();
    if segment.version == 6 {
        this.ipv6_packets += 1;
    }
    if segment.ce() {
        this.ce_packets += 1;
    }
    let length = segment.payload;
    if length == 0 {
        return;
    }
    this.data_packets += 1;
    this.data_bytes += u64::from(length);
    if segment.psh() {
        this.pushed_packets += 1;
    }
    this.segment_max = this.segment_max.max(length);
    if this.segment_min == 0 || length < this.segment_min {
        this.segment_min = length;
    }
    if this.first_data_time.is_none() {
        this.first_data_time = Some(segment.time);
    }
    this.last_data_time = Some(segment.time);
    if segment.urg() {
        this.urgent_packets += 1;
        this.urgent_bytes += u64::from(segment.urgent);
    }
    if segment.captured < length {
        this.truncated_bytes += u64::from(length - segment.captured);
        this.truncated_packets += 1;
    }
}

#[cold]
fn printed(layers: &[Layer]) -> String {
    let mut text = String::new();
    for layer in layers {
        if !text.is_empty() {
            text.push_str(" / ");
        }
        text.push_str(&layer.to_string());
    }
    text
}

impl Direction {
    /// SYN, FIN, RST.
    #[inline(never)]
    fn flagged(&mut self, segment: &Segment) {
        if segment.rst() {
            self.resets = self.resets.saturating_add(1);
        }
        if segment.syn() {
            let offset = self.offset(segment.sequence);
            self.syns = self.syns.saturating_add(1);
            if self.syn.is_some_and(|syn| syn != offset) {
                self.bad_behaviour = true;
                self.renumber(segment.sequence);
            } else {
                self.syn = Some(offset);
            }
        }
        if segment.fin() {
            let offset = self.offset(segment.sequence) + u64::from(segment.payload);
            self.bad_behaviour |= self.fin.is_some_and(|fin| fin != offset);
            self.fins = self.fins.saturating_add(1);
            // The first one counts, unless the second is above it.
            self.fin = Some(self.fin.map_or(offset, |fin| fin.max(offset)));
        }
    }

    /// It has sent a SYN with another number than before, which counts unless one is acknowledged or data was sent.
    #[cold]
    fn renumber(&mut self, sequence: u32) {
        if self.segments.acked() == 0 && self.unique_bytes == 0 {
            self.segments.clear();
            self.syn = Some(self.offset(sequence));
        }
    }

    /// TCP options and ECN. True if the packet's window is scaled: it is no SYN, and both SYNs are known to have the
    /// option.
    #[inline(always)]
    fn options(&mut self, other: &mut Direction, segment: &Segment) -> bool {
        let options = &segment.options;
        if let Some(mss) = options.mss {
            self.mss = mss;
        }
        if let Some(scale) = options.window_scale
            && segment.syn()
        {
            // RFC 7323 2.3: a shift above 14 counts as 14.
            self.scale = scale.min(14);
            self.asked_scale = true;
        }
        self.asked_timestamps |= options.timestamps;
        self.asked_sack |= options.sack_permitted;
        // If an end's SYN is not in the capture, nobody knows whether it has the option (RFC 7323 2.2).
        let agreed = self.asked_scale && other.asked_scale;
        if !agreed && !segment.syn() && self.syns > 0 && other.syns > 0 {
            (self.scale, other.scale) = (0, 0);
        }
        // In a SYN, these flags offer ECN (RFC 3168 6.1.1).
        if segment.flags & 0xc0 != 0 && !segment.syn() {
            self.cwr_packets += u64::from(segment.cwr());
            self.ece_packets += u64::from(segment.ece());
        }
        if !options.sack().is_empty() {
            self.sacks_sent += 1;
        }
        agreed && !segment.syn()
    }

    /// The window in bytes.
    #[inline(always)]
    fn window_of(&mut self, segment: &Segment, scaled: bool) -> u32 {
        if !segment.ack() && !segment.syn() {
            return 0;
        }
        let window = u32::from(segment.window) << if scaled { self.scale } else { 0 };
        if segment.ack() {
            self.window_end = segment.acknowledgment.wrapping_add(window);
        }
        window
    }

    /// A segment without payload, SYN and FIN just below the acknowledged edge is a keep-alive (RFC 9293 3.8.4).
    #[inline(always)]
    fn seek_keep_alive(&mut self, segment: &Segment) {
        self.keep_alive_pending = segment.ack()
            && !segment.rst()
            && self.segments.acked() > 0
            && self.segments.acked() >= self.segments.top()
            && segment.sequence.wrapping_add(1) == self.segments.acked() as u32;
        if self.keep_alive_pending {
            self.keep_alives += 1;
        }
    }

    /// Payload, SYN or FIN.
    #[inline(always)]
    fn send(&mut self, other: &Direction, segment: &Segment, handshake: i64) -> Sending {
        let first = self.offset(segment.sequence);
        let flags = u32::from(segment.syn()) + u32::from(segment.fin());
        let length = segment.payload + flags;
        self.keep_alive_pending = false;
        if length == 1 && segment.payload == 1 {
            if self.is_keep_alive(first) {
                self.keep_alive_pending = true;
                self.keep_alives += 1;
                return Sending::default();
            }
            if other.window == 0 && other.ack.is_some() {
                return self.probe(first);
            }
        }
        if segment.flags & (SYN | RST) != 0 && self.is_apart(segment, first) {
            return Sending::default();
        }
        let above = self.segments.top();
        let found = self.segments.insert(first, length, segment.time);
        if found.overlap == 0 && !found.fills {
            self.unique_bytes += u64::from(segment.payload);
            self.top_id = segment.id;
            self.weigh_sent(segment);
            return Sending::default();
        }
        self.sent_again(segment, first, length, above, handshake, &found)
    }

    /// Whether a SYN or a reset is not part of the stream.
    #[cold]
    fn is_apart(&self, segment: &Segment, first: u64) -> bool {
        // Data in a reset is for people to read (RFC 9293 3.10.7), and its sequence number may be anything.
        segment.rst()
            // A SYN with another number than the acknowledged one.
            || self.syn != Some(first)
            // Both ends opened at once: the SYN-ACK answers the other's SYN and repeats the own one (RFC 9293 3.5).
            || segment.ack()
                && self.ack.is_none()
                && self.syns > 1
                && segment.payload == 0
                && !segment.fin()
    }

    /// The byte just below the acknowledged edge, sent again.
    fn is_keep_alive(&self, first: u64) -> bool {
        let segments = &self.segments;
        // In a capture that begins in the middle, the end may not have sent any data yet.
        let idle = segments.top() == 0 || segments.acked() == segments.top();
        segments.acked() > 0 && idle && first + 1 == segments.acked()
    }

    /// One byte into a zero window, which the receiver may accept or not (RFC 9293 3.8.6.1). It does not count as sent
    /// until it is acknowledged.
    #[cold]
    fn probe(&mut self, first: u64) -> Sending {
        self.probe_packets += 1;
        self.probe_bytes += 1;
        self.probed = first;
        Sending {
            probe: true,
            ..Sending::default()
        }
    }

    /// All data below `ack` has been acknowledged, including the byte of a probe, which then counts as sent.
    #[cold]
    fn settle_probe(&mut self, ack: u64, time: i64) {
        let first = self.probed;
        if ack <= first {
            return;
        }
        self.probed = 0;
        if !self.segments.has(first, first + 1) {
            self.segments.insert(first, 1, time);
            self.unique_bytes += 1;
        }
    }

    /// A segment that does not simply follow the last one.
    #[inline(never)]
    fn sent_again(
        &mut self,
        segment: &Segment,
        first: u64,
        length: u32,
        above: u64,
        handshake: i64,
        found: &Insertion,
    ) -> Sending {
        let new = length - found.overlap;
        // SYN and FIN are no payload: a repeated one takes one octet of sequence space.
        let mut overlap_flags = 0;
        if segment.syn() && self.syns > 1 {
            overlap_flags += 1;
        }
        if segment.fin() && self.fins > 1 {
            overlap_flags += 1;
        }
        let flags = u32::from(segment.syn()) + u32::from(segment.fin());
        let new_flags = flags.saturating_sub(overlap_flags);
        self.unique_bytes += u64::from(new.saturating_sub(new_flags).min(segment.payload));

        let mut sending = Sending::default();
        let fills = found.fills && found.overlap == 0;
        if fills {
            if self.is_reordered(segment, handshake, found) {
                sending.out_of_order = true;
                self.out_of_order_packets += 1;
                self.events.add(Events::LATE);
                return sending;
            }
            // Data lost before the point of capture is retransmitted, though the capture has it for the first time.
            self.segments.mark_again(first);
            sending.late = true;
        }
        sending.retransmitted = if fills { length } else { found.overlap };
        self.retransmitted_packets += 1;
        self.events.add(Events::AGAIN);
        self.retransmitted_bytes += u64::from(sending.retransmitted);
        if found.overlap == length && found.acknowledged == length {
            self.spurious_retransmissions += 1;
            self.events.add(Events::SPURIOUS);
        } else if self.duplicates_in_row >= 4
            || (self.sacked_above > first && first >= self.segments.acked())
        {
            self.fast_retransmissions += 1;
            self.events.add(Events::FAST);
        }
        if let Some(again) = found.again {
            self.retransmissions_max = self.retransmissions_max.max(again.count);
            self.retransmission_times
                .add(segment.time.saturating_sub(again.time).max(0));
        }
        if first + u64::from(length) > above {
            self.top_id = segment.id;
            self.weigh_sent(segment);
        }
        sending
    }

    /// A segment that fills a gap within a round trip, or with an older IP identification than the packets before it,
    /// was sent earlier and overtaken. Later and with a newer identification, it is a retransmission of data that the
    /// capture lacks.
    fn is_reordered(&self, segment: &Segment, handshake: i64, found: &Insertion) -> bool {
        let late = segment.time.saturating_sub(found.above_time);
        let round_trip = if handshake > 0 { handshake } else { REORDERING };
        if found.above_time != 0 && late <= round_trip {
            return true;
        }
        let (id, top) = (segment.id, self.top_id);
        id != 0 && top != 0 && id != top && (id.wrapping_sub(top) as i16) < 0
    }

    /// An ACK that this end sent for the data of `other`.
    #[inline(always)]
    fn acknowledge<const WANTED: bool>(
        &mut self,
        other: &mut Direction,
        segment: &Segment,
        window: u32,
        verdict: &mut Verdict,
    ) {
        let mut ack = other.offset(segment.acknowledgment);
        if other.bad_behaviour {
            ack = other.settle_number(segment.acknowledgment);
        }
        let plain = segment.payload == 0 && segment.flags & SYN_FIN_RST == 0;
        if plain {
            self.pure_acks += 1;
        }
        let acked = other.segments.acked();
        if ack > acked {
            let covered = other.segments.acknowledge(ack);
            other.weigh_acknowledged(acked, segment.time);
            if covered.segments > 0 {
                other.acknowledged::<WANTED>(segment, &covered, verdict);
            }
            if other.probed > 0 {
                other.settle_probe(ack, segment.time);
            }
            other.duplicates_in_row = 1;
        } else {
            let duplicate = plain
                && self.ack == Some(segment.acknowledgment)
                && ack == other.segments.acked()
                && window == self.window
                && other.owin.count > 0
                && !self.keep_alive_pending
                && !other.keep_alive_pending
                && other.probed == 0;
            if duplicate {
                other.duplicate_acks += 1;
                other.duplicates_in_row = other.duplicates_in_row.saturating_add(1);
                let triple = other.duplicates_in_row == 4;
                other.triple_duplicate_acks += u64::from(triple);
                if WANTED {
                    verdict.ack = match triple {
                        true => AckKind::Triple,
                        false => AckKind::Cumulative,
                    };
                }
            } else if !other.keep_alive_pending {
                other.duplicates_in_row = 1;
            }
        }
        other.keep_alive_pending = false;
        if !other.data_acked && other.syn.is_none_or(|syn| ack != syn + 1) {
            other.data_acked = true;
        }
        if !segment.options.sack().is_empty() {
            self.selective(other, segment, ack);
        }
        self.ack = Some(segment.acknowledgment);
        self.ack_time = Some(segment.time);
    }

    /// It has sent SYNs with two numbers, and now the first of them may be acknowledged, which then counts. Returns the
    /// acknowledgement as offset.
    #[cold]
    fn settle_number(&mut self, acknowledgment: u32) -> u64 {
        let first = acknowledgment.wrapping_sub(1);
        if self.segments.acked() == 0
            && self.first_sequence == Some(first)
            && self.syn.is_some_and(|syn| syn as u32 != first)
        {
            self.renumber(first);
        }
        self.offset(acknowledgment)
    }

    /// Its data was acknowledged, beyond `acked`, the highest acknowledgement before: less is in flight from now on.
    #[inline(always)]
    fn weigh_acknowledged(&mut self, acked: u64, time: i64) {
        let now = self.segments.acked();
        let in_flight = if acked == 0 && now > 0 {
            self.segments.top().saturating_sub(now)
        } else {
            self.owin.last.saturating_sub(now - acked)
        };
        self.owin.weigh(time, in_flight);
    }

    /// The other end refused or aborted the connection. Its reset acknowledges this end's data if it is acceptable
    /// (RFC 9293 3.10.7.3).
    #[cold]
    fn acknowledged_by_reset<const WANTED: bool>(
        &mut self,
        segment: &Segment,
        verdict: &mut Verdict,
    ) {
        let ack = self.offset(segment.acknowledgment);
        if ack > self.segments.acked() && ack <= self.segments.top() {
            let covered = self.segments.acknowledge(ack);
            if covered.segments > 0 {
                self.acknowledged::<WANTED>(segment, &covered, verdict);
            }
        }
    }

    /// Data of this end was acknowledged.
    #[inline]
    fn acknowledged<const WANTED: bool>(
        &mut self,
        segment: &Segment,
        covered: &Acknowledged,
        verdict: &mut Verdict,
    ) {
        let mut ignored = Verdict::default();
        let verdict = if WANTED { verdict } else { &mut ignored };
        let Some(sent) = covered.exact else {
            self.cumulative_acks += covered.segments;
            verdict.ack = AckKind::Cumulative;
            return;
        };
        self.cumulative_acks += covered.segments - 1;
        let time = segment.time.saturating_sub(sent.time).max(0);
        self.rtt_last = 0;
        let mut sample = Sample {
            sequence: sent.first as u32,
            time: 0,
        };
        if covered.waited {
            self.post_loss_acks += 1;
            verdict.ack = AckKind::PostLoss;
            if sent.again == 0 {
                verdict.sample = Some(sample);
            }
            return;
        }
        if sent.again > 0 {
            self.rtt_ambiguous.add(time);
            verdict.ack = AckKind::Ambiguous;
            return;
        }
        verdict.ack = AckKind::Normal;
        sample.time = time;
        verdict.sample = Some(sample);
        self.rtt_last = time;
        self.rtt.add(time);
        self.rtt_percentiles.add(time);
        if sent.length > self.rtt_full_size {
            self.rtt_full_size = sent.length;
            self.rtt_full = crate::rtt::Times::default();
            self.rtt_full.add(time);
        } else if sent.length == self.rtt_full_size {
            self.rtt_full.add(time);
        }
        if self.syns == 1 && self.syn.is_some_and(|syn| sent.end() == syn + 1) {
            self.rtt_handshake = time;
        }
    }

    /// SACK blocks (RFC 2018), and whether the first one reports a duplicate (RFC 2883).
    #[cold]
    fn selective(&mut self, other: &mut Direction, segment: &Segment, ack: u64) {
        self.sack_packets += 1;
        let blocks = segment.options.sack();
        self.sack_blocks_max = self.sack_blocks_max.max(blocks.len() as u8);
        let near = |sequence: u32| extend(ack, sequence);
        let Some(&(left, right)) = blocks.first() else {
            return;
        };
        let (left, right) = (near(left), near(right));
        let mut duplicate = right <= ack;
        if let Some(&(next_left, next_right)) = blocks.get(1)
            && !duplicate
        {
            let (next_left, next_right) = (near(next_left), near(next_right));
            duplicate = left < next_right && next_left < right;
        }
        if duplicate {
            self.dsack_packets += 1;
            self.events.add(Events::DSACK);
        }
        for &(_, right) in blocks {
            let right = near(right);
            if right <= other.segments.top() {
                other.sacked_above = other.sacked_above.max(right);
            }
        }
    }

    /// The window of a packet that is no reset.
    #[inline(always)]
    fn advertise(&mut self, segment: &Segment, window: u32, scaled: bool) {
        if !segment.ack() && !segment.syn() {
            return;
        }
        self.window = window;
        let windows = &mut self.windows;
        if scaled && !windows.scaled && window > 0 {
            // The windows of the handshake are not scaled, so they do not count with those after it.
            self.windows = crate::direction::Windows {
                max: window,
                min: window,
                total: u64::from(window),
                count: 1,
                zero: self.windows.zero,
                scaled: true,
            };
        } else {
            windows.max = windows.max.max(window);
            if window > 0 && (windows.min == 0 || window < windows.min) {
                windows.min = window;
            }
            windows.total += u64::from(window);
            windows.count += 1;
        }
        if segment.ack() {
            if window == 0 {
                self.windows.zero += 1;
                self.zero_windows.begin(segment.time);
            } else if self.zero_windows.since.is_some() {
                self.zero_windows.end(segment.time);
            }
        }
    }

    /// Bytes in flight after the packet. If there are none, there is no sample, so that the average is between the
    /// bounds.
    #[inline(always)]
    fn sample_in_flight(&mut self, segment: &Segment) -> u64 {
        let acked = self.segments.acked();
        let in_flight = if acked == 0 {
            u64::from(segment.payload)
        } else {
            self.offset(segment.end()).saturating_sub(acked)
        };
        let owin = &mut self.owin;
        if in_flight > 0 {
            owin.max = owin.max.max(in_flight);
            if owin.min == 0 || in_flight < owin.min {
                owin.min = in_flight;
            }
            owin.total += in_flight;
            owin.count += 1;
        }
        in_flight
    }

    /// New payload was sent: from now on, so much is in flight.
    #[inline(always)]
    fn weigh_sent(&mut self, segment: &Segment) {
        let acked = self.segments.acked();
        let in_flight = if acked == 0 && segment.payload == 0 {
            self.owin.last
        } else if acked == 0 {
            u64::from(segment.payload)
        } else {
            // The FIN is no byte.
            let end = acked + u64::from(segment.fin());
            self.segments.top().saturating_sub(end)
        };
        self.owin.weigh(segment.time, in_flight);
    }
}
