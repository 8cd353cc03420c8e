//! A connection as octets: how one that is idle, finished, or on its way to another machine is kept.
//!
//! Each type lists its parts once, in `exchange`, and a [`Codec`] reads or writes them: what is kept is what comes
//! back. Numbers take as many octets as they need and zeros a bit; times and offsets are kept as the difference to one
//! that is near, and what can be guessed as the difference to the guess.

use crate::connection::Connection;
use crate::direction::{Direction, Episodes, Owin, Windows};
use crate::key::FlowKey;
use crate::rtt::{Percentiles, Times};

/// Octets that are not a connection as this version of the program keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a kept connection")]
pub struct NotFrozen;

/// Reads or writes a part.
pub(crate) trait Codec {
    /// It reads: parts get the values that were written.
    const READS: bool;
    /// One number.
    fn unsigned(&mut self, value: &mut u64);
    /// What times and offsets are relative to from here on.
    fn base(&mut self) -> &mut Base;
    /// True when reading came to the end too soon.
    fn is_over(&self) -> bool;
    /// What was read cannot be.
    fn fail(&mut self);

    fn small(&mut self, value: &mut u32) {
        let mut wide = u64::from(*value);
        self.unsigned(&mut wide);
        *value = wide as u32;
    }

    fn signed(&mut self, value: &mut i64) {
        let mut wide = ((*value << 1) ^ (*value >> 63)) as u64;
        self.unsigned(&mut wide);
        *value = (wide >> 1) as i64 ^ -((wide & 1) as i64);
    }

    /// A time, with 0 for none.
    fn time(&mut self, value: &mut i64) {
        let mut some = (*value != 0).then_some(*value);
        self.maybe_time(&mut some);
        *value = some.unwrap_or(0);
    }

    /// An offset, with 0 for none.
    fn offset(&mut self, value: &mut u64) {
        let base = self.base().offset;
        let mut wide = if *value == 0 {
            0
        } else {
            let delta = value.wrapping_sub(base) as i64;
            (((delta << 1) ^ (delta >> 63)) as u64).wrapping_add(1)
        };
        self.unsigned(&mut wide);
        *value = match wide.checked_sub(1) {
            None => 0,
            Some(zigzag) => base.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg()),
        };
    }

    /// A number that is often `guess`.
    fn guessed(&mut self, value: &mut u64, guess: u64) {
        let mut delta = value.wrapping_sub(guess) as i64;
        self.signed(&mut delta);
        *value = guess.wrapping_add(delta as u64);
    }

    /// A number that is often `guess`.
    fn guessed_small(&mut self, value: &mut u32, guess: u32) {
        self.sequence(value, guess);
    }

    /// A number that is often `guess`.
    fn guessed_signed(&mut self, value: &mut i64, guess: i64) {
        let mut delta = value.wrapping_sub(guess);
        self.signed(&mut delta);
        *value = guess.wrapping_add(delta);
    }

    /// An offset or a sequence number that may be absent, near `base`.
    fn maybe_near(&mut self, value: &mut Option<u64>, base: u64) {
        let before = core::mem::replace(&mut self.base().offset, base);
        let mut some = value.map_or(0, |value| value.wrapping_add(1));
        self.offset(&mut some);
        *value = some.checked_sub(1);
        self.base().offset = before;
    }

    /// A sequence number near `base`.
    fn sequence(&mut self, value: &mut u32, base: u32) {
        let delta = value.wrapping_sub(base) as i32;
        let mut wide = i64::from(delta);
        self.signed(&mut wide);
        *value = base.wrapping_add(wide as u32);
    }

    fn maybe_time(&mut self, value: &mut Option<i64>) {
        let base = self.base().time;
        let mut wide = value.map_or(0, |time| {
            let delta = time.wrapping_sub(base);
            (((delta << 1) ^ (delta >> 63)) as u64).wrapping_add(1)
        });
        self.unsigned(&mut wide);
        *value = (wide != 0).then(|| {
            let zigzag = wide.wrapping_sub(1);
            base.wrapping_add((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
        });
    }

    fn maybe(&mut self, value: &mut Option<u64>) {
        let mut wide = value.map_or(0, |value| value.wrapping_add(1));
        self.unsigned(&mut wide);
        *value = wide.checked_sub(1);
    }

    fn maybe_small(&mut self, value: &mut Option<u32>) {
        let mut wide = value.map(u64::from);
        self.maybe(&mut wide);
        *value = wide.map(|wide| wide as u32);
    }

    fn float(&mut self, value: &mut f64) {
        let mut wide = value.to_bits().swap_bytes();
        self.unsigned(&mut wide);
        *value = f64::from_bits(wide.swap_bytes());
    }

    /// Up to 64 yes or no, as one number.
    fn flags(&mut self, flags: &mut [&mut bool]) {
        let mut wide = 0;
        for (at, flag) in flags.iter().enumerate() {
            wide |= u64::from(**flag) << at;
        }
        self.unsigned(&mut wide);
        for (at, flag) in flags.iter_mut().enumerate() {
            **flag = wide >> at & 1 == 1;
        }
    }

    fn text(&mut self, text: &mut String) {
        let mut length = text.len() as u64;
        self.unsigned(&mut length);
        if !Self::READS {
            for octet in text.bytes() {
                self.unsigned(&mut u64::from(octet));
            }
            return;
        }
        let mut octets = Vec::new();
        for _ in 0..length {
            let mut octet = 0;
            self.unsigned(&mut octet);
            if self.is_over() {
                break;
            }
            octets.push(octet as u8);
        }
        *text = String::from_utf8_lossy(&octets).into_owned();
    }
}

/// What is near to most times and offsets of a direction, so that the difference is small.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Base {
    time: i64,
    offset: u64,
}

/// Writes eight numbers at a time: an octet that says which of them are not 0, then those.
struct Writer<'a> {
    /// What is written, and room for more.
    out: &'a mut Vec<u8>,
    /// Where what is written ends.
    at: usize,
    /// Where the octet of the present eight is.
    group: usize,
    /// Which of the eight is next, as a bit.
    next: u8,
    base: Base,
}

/// Octets that there is always room for: one of a group and a number.
const ROOM: usize = 11;

impl Writer<'_> {
    #[inline(never)]
    fn begin_group(&mut self) {
        self.reserve();
        self.group = self.at;
        self.next = 1;
        self.out[self.at] = 0;
        self.at += 1;
    }

    #[inline]
    fn reserve(&mut self) {
        if self.out.len() - self.at < ROOM {
            let length = self.out.len();
            self.out.resize(length + 512, 0);
        }
    }

    #[inline(never)]
    fn nonzero(&mut self, mut value: u64) {
        self.reserve();
        self.out[self.group] |= self.next;
        let mut length = 0;
        if let Some(room) = self.out[self.at..].first_chunk_mut::<10>() {
            while value >= 0x80 && length < 9 {
                room[length] = value as u8 | 0x80;
                length += 1;
                value >>= 7;
            }
            room[length] = value as u8;
        }
        self.at += length + 1;
    }
}

impl Codec for Writer<'_> {
    const READS: bool = false;

    #[inline(always)]
    fn unsigned(&mut self, value: &mut u64) {
        if self.next == 0 {
            self.begin_group();
        }
        if *value != 0 {
            self.nonzero(*value);
        }
        self.next <<= 1;
    }

    fn base(&mut self) -> &mut Base {
        &mut self.base
    }

    fn is_over(&self) -> bool {
        false
    }

    fn fail(&mut self) {}
}

struct Reader<'a> {
    octets: &'a [u8],
    /// What is left of the octet that says which are not 0, below a 1 that ends it.
    group: u32,
    base: Base,
    over: bool,
}

impl Reader<'_> {
    fn octet(&mut self) -> u8 {
        let Some((&octet, rest)) = self.octets.split_first() else {
            self.over = true;
            return 0;
        };
        self.octets = rest;
        octet
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let octet = self.octet();
            value |= u64::from(octet & 0x7f).wrapping_shl(shift);
            if octet < 0x80 {
                break;
            }
        }
        value
    }
}

impl Codec for Reader<'_> {
    const READS: bool = true;

    #[inline]
    fn unsigned(&mut self, value: &mut u64) {
        if self.group <= 1 {
            self.group = 0x100 | u32::from(self.octet());
        }
        let there = self.group & 1 == 1;
        self.group >>= 1;
        *value = if there { self.varint() } else { 0 };
    }

    fn base(&mut self) -> &mut Base {
        &mut self.base
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn fail(&mut self) {
        self.over = true;
    }
}

impl Connection {
    /// Appends the connection to `out`.
    pub fn freeze(&mut self, out: &mut Vec<u8>) {
        let mut writer = Writer {
            at: out.len(),
            out,
            group: 0,
            next: 0,
            base: Base::default(),
        };
        self.exchange(&mut writer);
        let end = writer.at;
        out.truncate(end);
    }

    /// Makes this the connection that was frozen, of which nothing is lost.
    ///
    /// # Errors
    /// The octets end too soon or are too many.
    pub fn thaw(&mut self, octets: &[u8]) -> Result<(), NotFrozen> {
        self.reset();
        let mut reader = Reader {
            octets,
            group: 0,
            base: Base::default(),
            over: false,
        };
        self.exchange(&mut reader);
        if reader.over || !reader.octets.is_empty() {
            return Err(NotFrozen);
        }
        Ok(())
    }

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.number);
        codec.unsigned(&mut self.first_packet);
        codec.small(&mut self.file);
        self.key.exchange(codec);
        codec.flags(&mut [&mut self.a_is_low]);
        codec.signed(&mut self.first_time);
        codec.base().time = self.first_time;
        codec.guessed_signed(&mut self.last_time, self.first_time);
        codec.guessed_signed(&mut self.last_clock, self.last_time);
        codec.base().time = self.last_time;
        codec.unsigned(&mut self.packets);
        self.a.exchange(codec);
        self.b.exchange(codec);
    }
}

impl FlowKey {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut parts = self.parts();
        for part in &mut parts {
            codec.unsigned(part);
        }
        *self = FlowKey::from_parts(parts);
    }
}

impl Direction {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.maybe_small(&mut self.first_sequence);
        codec.base().offset = 1 << 32 | u64::from(self.first_sequence.unwrap_or(0));
        let time = codec.base().time;
        codec.maybe_time(&mut self.last_time);
        // Most other times of a direction are near to its last packet's.
        codec.base().time = self.last_time.unwrap_or(time);
        self.exchange_common(codec);
        self.exchange_ends(codec);
        self.exchange_rare(codec);
        codec.base().time = time;
    }

    fn exchange_common<C: Codec>(&mut self, codec: &mut C) {
        self.segments.exchange(codec);
        codec.unsigned(&mut self.packets);
        codec.guessed(&mut self.ack_packets, self.packets);
        codec.small(&mut self.window);
        codec.maybe_small(&mut self.ack);
        codec.maybe_time(&mut self.ack_time);
        codec.sequence(
            &mut self.window_end,
            self.ack.unwrap_or(0).wrapping_add(self.window),
        );
        codec.unsigned(&mut self.data_bytes);
        codec.unsigned(&mut self.data_packets);
        codec.guessed(&mut self.unique_bytes, self.data_bytes);
        codec.sequence(&mut self.latest, self.segments.top_sequence());
        self.owin.exchange(codec);
        codec.signed(&mut self.idle_max);
        codec.small(&mut self.duplicates_in_row);
        self.windows.exchange(codec);
        self.rtt.exchange(codec);
        self.rtt_full.exchange(codec);
        codec.small(&mut self.rtt_full_size);
        self.rtt_percentiles.exchange(codec);
        codec.unsigned(&mut self.pure_acks);
        codec.unsigned(&mut self.pushed_packets);
        codec.small(&mut self.segment_max);
        codec.guessed_small(&mut self.segment_min, self.segment_max);
        codec.maybe_time(&mut self.first_data_time);
        codec.maybe_time(&mut self.last_data_time);
        codec.unsigned(&mut self.cumulative_acks);
        for fingerprint in &mut self.remembered {
            codec.small(fingerprint);
        }
        short(codec, &mut self.top_id);
    }

    fn exchange_ends<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.syns);
        codec.small(&mut self.fins);
        codec.small(&mut self.resets);
        let base = codec.base().offset;
        codec.maybe_near(&mut self.syn, base);
        codec.maybe_near(&mut self.fin, self.segments.top());
        codec.flags(&mut [
            &mut self.keep_alive_pending,
            &mut self.asked_scale,
            &mut self.asked_timestamps,
            &mut self.asked_sack,
            &mut self.data_acked,
            &mut self.bad_behaviour,
        ]);
        octet(codec, &mut self.scale);
        short(codec, &mut self.mss);
        codec.unsigned(&mut self.initial_bytes);
        codec.unsigned(&mut self.initial_packets);
        codec.unsigned(&mut self.truncated_bytes);
        codec.unsigned(&mut self.truncated_packets);
        codec.guessed_signed(&mut self.rtt_handshake, self.rtt.min);
        codec.guessed_signed(&mut self.rtt_last, self.rtt.max);
    }

    /// What most connections have none of: one bit says so.
    fn exchange_rare<C: Codec>(&mut self, codec: &mut C) {
        let mut any = self.has_rare();
        codec.flags(&mut [&mut any]);
        if !any {
            return;
        }
        codec.unsigned(&mut self.sack_packets);
        codec.unsigned(&mut self.dsack_packets);
        octet(codec, &mut self.sack_blocks_max);
        codec.unsigned(&mut self.sacks_sent);
        codec.offset(&mut self.sacked_above);
        codec.unsigned(&mut self.retransmitted_packets);
        codec.unsigned(&mut self.retransmitted_bytes);
        codec.unsigned(&mut self.spurious_retransmissions);
        codec.unsigned(&mut self.fast_retransmissions);
        codec.unsigned(&mut self.probe_packets);
        codec.unsigned(&mut self.probe_bytes);
        codec.offset(&mut self.probed);
        codec.unsigned(&mut self.keep_alives);
        codec.unsigned(&mut self.out_of_order_packets);
        codec.unsigned(&mut self.hardware_duplicates);
        codec.unsigned(&mut self.urgent_packets);
        codec.unsigned(&mut self.urgent_bytes);
        self.rtt_ambiguous.exchange(codec);
        codec.unsigned(&mut self.post_loss_acks);
        codec.unsigned(&mut self.duplicate_acks);
        codec.unsigned(&mut self.triple_duplicate_acks);
        codec.small(&mut self.retransmissions_max);
        self.retransmission_times.exchange(codec);
        codec.unsigned(&mut self.ipv6_packets);
        codec.unsigned(&mut self.ce_packets);
        codec.unsigned(&mut self.ece_packets);
        codec.unsigned(&mut self.cwr_packets);
        self.zero_windows.exchange(codec);
        self.stalls.exchange(codec);
        codec.text(&mut self.layers);
    }

    /// Whether anything of [`Direction::exchange_rare`] is there.
    fn has_rare(&self) -> bool {
        let counts = self.sacks_sent
            | self.sack_packets
            | self.dsack_packets
            | self.sacked_above
            | self.retransmitted_packets
            | self.retransmitted_bytes
            | self.probe_packets
            | self.probed
            | self.keep_alives
            | self.out_of_order_packets
            | self.hardware_duplicates
            | self.urgent_packets
            | self.rtt_ambiguous.count
            | self.post_loss_acks
            | self.duplicate_acks
            | u64::from(self.retransmissions_max)
            | self.retransmission_times.count
            | self.ipv6_packets
            | self.ce_packets
            | self.ece_packets
            | self.cwr_packets
            | u64::from(self.zero_windows.count)
            | u64::from(self.stalls.count);
        counts != 0 || !self.layers.is_empty()
    }
}

fn short<C: Codec>(codec: &mut C, value: &mut u16) {
    let mut wide = u64::from(*value);
    codec.unsigned(&mut wide);
    *value = wide as u16;
}

fn octet<C: Codec>(codec: &mut C, value: &mut u8) {
    let mut wide = u64::from(*value);
    codec.unsigned(&mut wide);
    *value = wide as u8;
}

impl Windows {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.max);
        codec.guessed_small(&mut self.min, self.max);
        codec.unsigned(&mut self.count);
        codec.guessed(
            &mut self.total,
            u64::from(self.max).wrapping_mul(self.count),
        );
        codec.unsigned(&mut self.zero);
        codec.flags(&mut [&mut self.scaled]);
    }
}

impl Owin {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.max);
        codec.guessed(&mut self.min, self.max);
        codec.unsigned(&mut self.count);
        codec.guessed(&mut self.total, self.max.wrapping_mul(self.count));
        let mut halves = [
            self.byte_nanoseconds as u64,
            (self.byte_nanoseconds >> 64) as u64,
        ];
        codec.unsigned(&mut halves[0]);
        codec.unsigned(&mut halves[1]);
        self.byte_nanoseconds = u128::from(halves[1]) << 64 | u128::from(halves[0]);
        codec.unsigned(&mut self.last);
        codec.maybe_time(&mut self.last_time);
    }
}

impl Episodes {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.count);
        if self.count == 0 {
            return;
        }
        codec.signed(&mut self.total);
        codec.signed(&mut self.longest);
        codec.maybe_time(&mut self.since);
    }
}

impl Times {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.count);
        if self.count == 0 {
            return;
        }
        codec.signed(&mut self.min);
        codec.guessed_signed(&mut self.max, self.min);
        codec.guessed_signed(&mut self.sum, self.min.wrapping_mul(self.count as i64));
        // Of one, or of equal ones, the sum of squares is known.
        let guess = (self.min as f64 * self.min as f64) * self.count as f64;
        let mut known = self.squares.to_bits() == guess.to_bits();
        codec.flags(&mut [&mut known]);
        if known {
            self.squares = guess;
        } else {
            codec.float(&mut self.squares);
        }
    }
}

impl Percentiles {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut count = self.buckets().len() as u64;
        codec.unsigned(&mut count);
        if C::READS {
            if count > u64::from(u16::MAX) {
                codec.fail();
                return;
            }
            for _ in 0..count {
                let (mut bucket, mut times) = (0, 0);
                short(codec, &mut bucket);
                codec.small(&mut times);
                if codec.is_over() {
                    break;
                }
                if !self.restore(bucket, times) {
                    codec.fail();
                    break;
                }
            }
            return;
        }
        for (bucket, times) in self.buckets() {
            short(codec, &mut bucket.clone());
            codec.small(&mut times.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzer::{Analyzer, Config};
    use crate::segment::{Segment, SegmentOptions};
    use crate::verdict::Nobody;
    use proptest::prelude::*;

    /// A packet of one connection, from numbers.
    fn segment(number: u64, word: u64) -> Segment {
        let from_low = word & 1 == 1;
        let (source, destination) = if from_low {
            ([1; 16], [2; 16])
        } else {
            ([2; 16], [1; 16])
        };
        let ports = if from_low { (1, 2) } else { (2, 1) };
        let (key, from_low) = FlowKey::new(&source, ports.0, &destination, ports.1, 0);
        let small = |shift: u32, bits: u32| (word >> shift) as u32 & ((1 << bits) - 1);
        let time = 1_600_000_000_000_000_000 + number as i64 * 1_000_003 - i64::from(small(40, 22));
        Segment {
            number,
            time,
            clock: time,
            key,
            from_low,
            version: 4 + (small(1, 1) as u8) * 2,
            traffic_class: small(2, 2) as u8,
            id: small(4, 6) as u16,
            flags: (small(10, 8) & 0xff) as u16 | if small(18, 3) > 0 { 0x10 } else { 0 },
            sequence: 0xffff_ff00u32.wrapping_add(small(20, 10)),
            acknowledgment: 0xffff_ff00u32.wrapping_add(small(28, 10)),
            window: (small(36, 3) * 1000) as u16,
            urgent: small(12, 9) as u16,
            checksum: 0,
            payload: small(44, 7),
            captured: small(45, 6),
            options: SegmentOptions {
                mss: Some(small(3, 11) as u16),
                window_scale: Some(small(5, 4) as u8),
                ..SegmentOptions::default()
            },
        }
    }

    proptest! {
        #[test]
        fn what_is_frozen_comes_back_whole(words in prop::collection::vec(any::<u64>(), 1..120)) {
            let mut warm = Analyzer::new(Config::default());
            for (number, word) in words.iter().enumerate() {
                warm.packet(&segment(number as u64 + 1, *word), &[], &mut Nobody);
            }
            warm.finish();
            for finished in warm.take_finished() {
                let mut connection = Connection::default();
                connection.thaw(&finished.octets).unwrap();
                let mut again = Vec::new();
                connection.freeze(&mut again);
                prop_assert_eq!(&again[..], &finished.octets[..]);
                let before = format!("{connection:?}");
                let mut other = Connection::default();
                other.thaw(&again).unwrap();
                prop_assert_eq!(before, format!("{other:?}"));
            }
        }

        #[test]
        fn freezing_in_between_changes_nothing(words in prop::collection::vec(any::<u64>(), 1..120)) {
            let results = [1, 64].map(|hot| {
                let mut analyzer = Analyzer::new(Config { hot, ..Config::default() });
                for (number, word) in words.iter().enumerate() {
                    // Two flows that take turns, so that with room for one each packet thaws the other.
                    let mut segment = segment(number as u64 + 1, *word);
                    segment.key = FlowKey::from_parts([0, 1, 0, 2, word >> 60 & 1, 0]);
                    analyzer.packet(&segment, &[], &mut Nobody);
                }
                analyzer.finish();
                let mut finished = analyzer.take_finished();
                finished.sort_by_key(|finished| finished.first_packet);
                finished
            });
            prop_assert_eq!(&results[0], &results[1]);
        }

        #[test]
        fn any_octets_are_a_connection_or_refused(octets in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Connection::default().thaw(&octets);
        }
    }
}
