//! A connection as octets: how one that is idle, finished, or on its way to another machine is kept.
//!
//! Each type lists its parts once, in `exchange`, and a [`Codec`] reads or writes them: what is kept is what comes
//! back. Numbers take as many octets as they need, runs of zeros two, times are kept relative to the connection's
//! first packet.

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
    /// Times are relative to this from here on.
    fn set_base(&mut self, base: i64);
    /// The time that times are relative to.
    fn base(&self) -> i64;
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

    fn maybe_time(&mut self, value: &mut Option<i64>) {
        let base = self.base();
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

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    zeros: u64,
    base: i64,
}

impl Writer<'_> {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn flush(&mut self) {
        if self.zeros > 0 {
            self.out.push(0);
            let zeros = self.zeros;
            self.varint(zeros);
            self.zeros = 0;
        }
    }
}

impl Codec for Writer<'_> {
    const READS: bool = false;

    #[inline]
    fn unsigned(&mut self, value: &mut u64) {
        if *value == 0 {
            self.zeros += 1;
            return;
        }
        self.flush();
        self.varint(*value);
    }

    fn set_base(&mut self, base: i64) {
        self.base = base;
    }

    fn base(&self) -> i64 {
        self.base
    }

    fn is_over(&self) -> bool {
        false
    }

    fn fail(&mut self) {}
}

struct Reader<'a> {
    octets: &'a [u8],
    zeros: u64,
    base: i64,
    over: bool,
}

impl Reader<'_> {
    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0u64, 0);
        while let Some((&octet, rest)) = self.octets.split_first() {
            self.octets = rest;
            if shift < 64 {
                value |= u64::from(octet & 0x7f) << shift;
            }
            shift += 7;
            if octet < 0x80 {
                return value;
            }
        }
        self.over = true;
        0
    }
}

impl Codec for Reader<'_> {
    const READS: bool = true;

    #[inline]
    fn unsigned(&mut self, value: &mut u64) {
        if self.zeros == 0 && self.octets.first() == Some(&0) {
            self.octets = &self.octets[1..];
            self.zeros = self.varint();
        }
        if self.zeros > 0 {
            self.zeros -= 1;
            *value = 0;
            return;
        }
        *value = self.varint();
    }

    fn set_base(&mut self, base: i64) {
        self.base = base;
    }

    fn base(&self) -> i64 {
        self.base
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
            out,
            zeros: 0,
            base: 0,
        };
        self.exchange(&mut writer);
        writer.flush();
    }

    /// Makes this the connection that was frozen, of which nothing is lost.
    ///
    /// # Errors
    /// The octets end too soon or are too many.
    pub fn thaw(&mut self, octets: &[u8]) -> Result<(), NotFrozen> {
        self.reset();
        let mut reader = Reader {
            octets,
            zeros: 0,
            base: 0,
            over: false,
        };
        self.exchange(&mut reader);
        if reader.over || !reader.octets.is_empty() || reader.zeros > 0 {
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
        codec.set_base(self.first_time);
        relative(codec, &mut self.last_time);
        relative(codec, &mut self.last_clock);
        codec.unsigned(&mut self.packets);
        self.a.exchange(codec);
        self.b.exchange(codec);
    }
}

/// A time that is always there.
fn relative<C: Codec>(codec: &mut C, time: &mut i64) {
    let base = codec.base();
    let mut delta = time.wrapping_sub(base);
    codec.signed(&mut delta);
    *time = base.wrapping_add(delta);
}

impl FlowKey {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let mut words = [
            (self.low >> 64) as u64,
            self.low as u64,
            (self.high >> 64) as u64,
            self.high as u64,
            u64::from(self.ports()),
            u64::from(self.realm),
        ];
        for word in &mut words {
            codec.unsigned(word);
        }
        let [a, b, c, d, ports, realm] = words;
        *self = FlowKey::from_parts(
            u128::from(a) << 64 | u128::from(b),
            u128::from(c) << 64 | u128::from(d),
            ports as u32,
            realm as u32,
        );
    }
}

impl Direction {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        self.exchange_common(codec);
        self.exchange_rare(codec);
    }

    fn exchange_common<C: Codec>(&mut self, codec: &mut C) {
        codec.maybe_time(&mut self.last_time);
        codec.unsigned(&mut self.packets);
        codec.unsigned(&mut self.ack_packets);
        codec.small(&mut self.window);
        codec.maybe_small(&mut self.ack);
        codec.maybe_time(&mut self.ack_time);
        codec.small(&mut self.window_end);
        codec.unsigned(&mut self.data_bytes);
        codec.unsigned(&mut self.data_packets);
        codec.unsigned(&mut self.unique_bytes);
        codec.small(&mut self.latest);
        self.segments.exchange(codec);
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
        codec.small(&mut self.segment_min);
        codec.maybe_time(&mut self.first_data_time);
        codec.maybe_time(&mut self.last_data_time);
        codec.unsigned(&mut self.cumulative_acks);
        for fingerprint in &mut self.remembered {
            codec.small(fingerprint);
        }
        codec.unsigned(&mut self.sacked_above);
        short(codec, &mut self.top_id);
    }

    fn exchange_rare<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.syns);
        codec.small(&mut self.fins);
        codec.small(&mut self.resets);
        codec.maybe(&mut self.syn);
        codec.maybe(&mut self.fin);
        codec.maybe_small(&mut self.first_sequence);
        codec.unsigned(&mut self.sack_packets);
        codec.unsigned(&mut self.dsack_packets);
        octet(codec, &mut self.sack_blocks_max);
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
        codec.unsigned(&mut self.urgent_packets);
        codec.unsigned(&mut self.urgent_bytes);
        codec.unsigned(&mut self.initial_bytes);
        codec.unsigned(&mut self.initial_packets);
        codec.unsigned(&mut self.truncated_bytes);
        codec.unsigned(&mut self.truncated_packets);
        codec.signed(&mut self.rtt_handshake);
        codec.signed(&mut self.rtt_last);
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
        codec.small(&mut self.min);
        codec.unsigned(&mut self.total);
        codec.unsigned(&mut self.count);
        codec.unsigned(&mut self.zero);
        codec.flags(&mut [&mut self.scaled]);
    }
}

impl Owin {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.max);
        codec.unsigned(&mut self.min);
        codec.unsigned(&mut self.total);
        codec.unsigned(&mut self.count);
        codec.float(&mut self.byte_seconds);
        codec.unsigned(&mut self.last);
        codec.maybe_time(&mut self.last_time);
    }
}

impl Episodes {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.count);
        codec.signed(&mut self.total);
        codec.signed(&mut self.longest);
        codec.maybe_time(&mut self.since);
    }
}

impl Times {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.count);
        codec.signed(&mut self.min);
        codec.signed(&mut self.max);
        codec.signed(&mut self.sum);
        codec.float(&mut self.squares);
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
                self.restore(bucket, times);
            }
            return;
        }
        for (bucket, times) in self.buckets() {
            short(codec, &mut bucket.clone());
            codec.small(&mut times.clone());
        }
    }
}
