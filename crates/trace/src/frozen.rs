//! Encodes a connection in bytes, for connections that are idle, finished, or in a part file.
//!
//! Each type lists its numbers once, in `exchange`, and a [`Codec`] reads or writes them, so that reading and writing
//! cannot differ. A number takes as many bytes as it needs, and a zero takes a bit. Times and offsets are encoded as
//! the difference to a near one, and predictable numbers as the difference to the prediction.

mod codec;
pub(crate) mod shelf;

use crate::connection::Connection;
use crate::direction::{Direction, Episodes, Owin, Rare, Windows};
use crate::key::FlowKey;
use crate::prints::{MARK_BITS, Prints, TICK};
use crate::rtt::{Percentiles, Times};
use codec::Reader;
pub(crate) use codec::{Codec, Room};

/// The bytes are not a connection frozen by this version of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a frozen connection")]
pub struct NotFrozen;

/// The start of a frozen connection, which is read while it stays frozen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub(crate) key: FlowKey,
    pub(crate) last_clock: i64,
}

impl Head {
    /// The start of the bytes that [`Connection::freeze`] wrote. For other bytes, the result is
    /// unspecified.
    pub(crate) fn of(octets: &[u8]) -> Head {
        let mut head = Head::default();
        head.exchange(&mut Reader::new(octets));
        head
    }

    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        self.key.exchange(codec);
        codec.signed(&mut self.last_clock);
    }
}

impl Connection {
    /// Appends the connection to `out`.
    pub fn freeze(&mut self, out: &mut Vec<u8>) {
        let mut room = Room::default();
        self.freeze_in(&mut room);
        out.extend_from_slice(room.octets());
    }

    /// Writes it to `room` and overwrites its contents.
    pub(crate) fn freeze_in(&mut self, room: &mut Room) {
        self.exchange(&mut room.writer());
    }

    /// Replaces this by the connection that was frozen. Freezing loses nothing.
    ///
    /// # Errors
    /// The bytes are not a frozen connection. The connection's values are then unspecified.
    pub fn thaw(&mut self, octets: &[u8]) -> Result<(), NotFrozen> {
        self.reset();
        let mut reader = Reader::new(octets);
        self.exchange(&mut reader);
        if reader.is_done() {
            Ok(())
        } else {
            Err(NotFrozen)
        }
    }

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.begin_part();
        let mut head = Head {
            key: self.key,
            last_clock: self.last_clock,
        };
        head.exchange(codec);
        (self.key, self.last_clock) = (head.key, head.last_clock);
        codec.unsigned(&mut self.first_packet);
        codec.base().time = self.last_clock;
        codec.guessed_signed(&mut self.last_time, self.last_clock);
        codec.guessed_signed(&mut self.first_time, self.last_time);
        codec.base().time = self.last_time;
        codec.unsigned(&mut self.number);
        codec.small(&mut self.file);
        let mut has_why = self.why.is_some();
        let mut has_details = self.details.is_some();
        codec.flags(&mut [&mut self.a_is_low, &mut has_why, &mut has_details]);
        codec.unsigned(&mut self.packets);
        codec.end_part();
        self.a.exchange(codec);
        self.b.exchange(codec);
        if has_why {
            let why = self.why.get_or_insert_with(Box::default);
            codec.begin_part();
            let tops = (self.a.segments.top(), self.b.segments.top());
            why.exchange(codec, tops, self.first_packet);
            codec.end_part();
        } else if C::READS {
            self.why = None;
        }
        if has_details {
            let details = self.details.get_or_insert_default();
            codec.begin_part();
            details.exchange(codec);
            codec.end_part();
        }
    }
}

impl FlowKey {
    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut parts = self.parts();
        for part in &mut parts {
            codec.unsigned(part);
        }
        *self = FlowKey::from_parts(parts);
    }
}

impl Direction {
    #[inline(never)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let time = codec.base().time;
        // A codec local to this function, which the compiler can keep in registers.
        let mut own = core::mem::take(codec);
        own.begin_part();
        own.maybe_small(&mut self.first_sequence);
        own.base().offset = 1 << 32 | u64::from(self.first_sequence.unwrap_or(0));
        own.maybe_time(&mut self.last_time);
        // Most other times of a direction are near its last packet's.
        own.base().time = self.last_time.unwrap_or(time);
        self.exchange_common(&mut own);
        self.exchange_ends(&mut own);
        *codec = own;
        // Fields of variable length come last.
        self.segments.exchange_lists(codec);
        self.rtt_percentiles.exchange(codec);
        self.exchange_rare(codec);
        codec.base().time = time;
        codec.end_part();
    }

    #[inline(always)]
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
        codec.unsigned(&mut self.pure_acks);
        codec.unsigned(&mut self.pushed_packets);
        codec.small(&mut self.segment_max);
        codec.guessed_small(&mut self.segment_min, self.segment_max);
        codec.maybe_time(&mut self.first_data_time);
        codec.maybe_time(&mut self.last_data_time);
        codec.unsigned(&mut self.cumulative_acks);
        self.prints.exchange(codec, self.last_time.unwrap_or(0));
        codec.short(&mut self.top_id);
    }

    #[inline(always)]
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
        codec.octet(&mut self.scale);
        codec.short(&mut self.mss);
        codec.unsigned(&mut self.initial_bytes);
        codec.unsigned(&mut self.initial_packets);
        codec.unsigned(&mut self.truncated_bytes);
        codec.unsigned(&mut self.truncated_packets);
        codec.unsigned(&mut self.ipv6_packets);
        codec.offset(&mut self.sacked_above);
        codec.offset(&mut self.probed);
        codec.guessed_signed(&mut self.rtt_handshake, self.rtt.min);
        codec.guessed_signed(&mut self.rtt_last, self.rtt.max);
    }

    /// The rare statistics. One bit encodes that there are none.
    fn exchange_rare<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        let mut any = self.has_rare();
        codec.flags(&mut [&mut any]);
        if any {
            let rare: &mut Rare = self;
            rare.exchange(codec);
        }
    }
}

impl Rare {
    #[inline(never)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.sack_packets);
        codec.unsigned(&mut self.dsack_packets);
        codec.octet(&mut self.sack_blocks_max);
        codec.unsigned(&mut self.sacks_sent);
        codec.unsigned(&mut self.retransmitted_packets);
        codec.unsigned(&mut self.retransmitted_bytes);
        codec.unsigned(&mut self.spurious_retransmissions);
        codec.unsigned(&mut self.fast_retransmissions);
        codec.unsigned(&mut self.probe_packets);
        codec.unsigned(&mut self.probe_bytes);
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
        codec.unsigned(&mut self.ce_packets);
        codec.unsigned(&mut self.ece_packets);
        codec.unsigned(&mut self.cwr_packets);
        self.zero_windows.exchange(codec);
        self.stalls.exchange(codec);
        codec.text(&mut self.layers);
    }
}

impl Windows {
    #[inline(always)]
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

impl Prints {
    /// `time` is that of the last packet.
    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C, time: i64) {
        let now = u64::from((time >> TICK) as u16) << (16 + MARK_BITS);
        for word in self.words() {
            // What is mostly small comes on top: how the time differs from that of the last packet.
            let mut number = match *word {
                0 => 0,
                word => word.rotate_left(MARK_BITS) ^ now,
            };
            codec.unsigned(&mut number);
            if C::READS && number != 0 {
                *word = (number ^ now).rotate_right(MARK_BITS);
            }
        }
    }
}

impl Owin {
    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.max);
        codec.guessed(&mut self.min, self.max);
        codec.unsigned(&mut self.count);
        codec.guessed(&mut self.total, self.max.wrapping_mul(self.count));
        codec.unsigned(&mut self.last);
        // With data in flight, the sum is far from zero, and the integral until now is not.
        let now = codec.base().time;
        let mut sum = *self;
        sum.weigh(now, 0);
        let sum = sum.byte_nanoseconds;
        let sum = (sum << 1 ^ sum >> 127) as u128;
        let mut halves = [sum as u64, (sum >> 64) as u64];
        codec.unsigned(&mut halves[0]);
        codec.unsigned(&mut halves[1]);
        if C::READS {
            let sum = u128::from(halves[1]) << 64 | u128::from(halves[0]);
            self.set_until(now, (sum >> 1) as i128 ^ -((sum & 1) as i128));
        }
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
    #[inline(always)]
    pub(crate) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.count);
        codec.signed(&mut self.min);
        codec.guessed_signed(&mut self.max, self.min);
        codec.guessed_signed(&mut self.sum, self.min.wrapping_mul(self.count as i64));
        // For one time, or equal ones, this is the sum of squares; for others it is near it.
        let sum = self.sum as f64;
        let guess = if self.count > 0 {
            sum * (sum / self.count as f64)
        } else {
            0.0
        };
        let mut delta = self.squares.to_bits() ^ guess.to_bits();
        codec.unsigned(&mut delta);
        if C::READS {
            self.squares = f64::from_bits(delta ^ guess.to_bits());
        }
    }
}

impl Percentiles {
    #[inline(always)]
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
                codec.short(&mut bucket);
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
            codec.room();
            codec.short(&mut bucket.clone());
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
            hop_limit: 64,
            id: small(4, 6) as u16,
            flags: (small(10, 8) & 0xff) as u16 | if small(18, 3) > 0 { 0x10 } else { 0 },
            sequence: 0xffff_ff00u32.wrapping_add(small(20, 10)),
            acknowledgment: 0xffff_ff00u32.wrapping_add(small(28, 10)),
            window: (small(36, 3) * 1000) as u16,
            urgent: small(12, 9) as u16,
            checksum: 0,
            payload: small(44, 7),
            captured: small(45, 6),
            lead: 0,
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
