//! Details as numbers, for frozen connections and parts.

use std::collections::VecDeque;

use super::board::{Board, RANGES_MAX};
use super::folding::{Folding, Merge};
use super::intervals::{Interval, IntervalSide};
use super::losses::{LISTED_MAX, Loss, LossCause, Losses};
use super::shares::Shares;
use super::stamps::{AWAITED_MAX, Stamps};
use super::stream::{Stream, Tls};
use super::{Details, INTERVALS_MAX, RTT_WINDOWS_MAX, Shortest, Side};
use crate::frozen::Codec;
use wire::tls::HELLO_MAX;

/// Segments of a stream's start, at most, in what was frozen.
const EARLY_MAX: usize = 8;

fn maybe_octet<C: Codec>(codec: &mut C, value: &mut Option<u8>) {
    let mut wide = value.map(u64::from);
    codec.maybe(&mut wide);
    *value = wide.map(|wide| wide as u8);
}

/// A list of at most `most` elements.
fn list<C: Codec, T: Clone + Default>(
    codec: &mut C,
    list: &mut Vec<T>,
    most: usize,
    mut exchange: impl FnMut(&mut C, &mut T),
) {
    codec.room();
    let mut count = list.len() as u64;
    codec.unsigned(&mut count);
    if !C::READS {
        for element in list {
            codec.room();
            exchange(codec, element);
        }
        return;
    }
    list.clear();
    if count > most as u64 {
        codec.fail();
        return;
    }
    for _ in 0..count {
        let mut element = T::default();
        exchange(codec, &mut element);
        if codec.is_over() {
            break;
        }
        list.push(element);
    }
}

fn octets<C: Codec>(codec: &mut C, octets: &mut Vec<u8>) {
    list(codec, octets, 2 * HELLO_MAX, C::octet);
}

impl Details {
    #[inline(never)]
    pub(crate) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        let mut has_intervals = self.intervals.is_some();
        codec.flags(&mut [&mut self.only_intervals, &mut has_intervals]);
        if has_intervals {
            let intervals = self.intervals.get_or_insert_default();
            folding(
                codec,
                intervals,
                INTERVALS_MAX,
                |codec, interval: &mut Interval| {
                    interval.a.exchange(codec);
                    interval.b.exchange(codec);
                },
            );
        }
        if self.only_intervals {
            return;
        }
        codec.room();
        maybe_octet(codec, &mut self.ecn.syn);
        maybe_octet(codec, &mut self.ecn.syn_ack);
        self.tls.exchange(codec);
        self.a.exchange(codec);
        self.b.exchange(codec);
    }
}

fn folding<C: Codec, T: Merge>(
    codec: &mut C,
    folding: &mut Folding<T>,
    limit: usize,
    mut exchange: impl FnMut(&mut C, &mut T),
) {
    codec.room();
    codec.signed(&mut folding.width);
    if C::READS {
        folding.limit = limit;
        if folding.width < 1 {
            codec.fail();
            folding.width = 1;
        }
    }
    let mut before = 0;
    list(codec, &mut folding.list, limit, |codec, (number, value)| {
        codec.guessed_signed(number, before);
        before = *number;
        exchange(codec, value);
    });
}

impl IntervalSide {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        for number in [
            &mut self.packets,
            &mut self.bytes,
            &mut self.retransmitted_packets,
            &mut self.retransmitted_bytes,
            &mut self.out_of_order_packets,
            &mut self.rtt_count,
            &mut self.rtt_sum,
            &mut self.ce_packets,
        ] {
            codec.unsigned(number);
        }
        codec.signed(&mut self.rtt_min);
        codec.guessed_signed(&mut self.rtt_max, self.rtt_min);
        codec.maybe(&mut self.in_flight_max);
        codec.maybe(&mut self.window_min);
    }
}

impl Tls {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        codec.short(&mut self.client_version);
        codec.short(&mut self.server_version);
        codec.text(&mut self.server_name);
        codec.room();
        codec.text(&mut self.offered);
        codec.room();
        codec.text(&mut self.chosen);
    }
}

impl Side {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        for ttl in &mut self.ttl {
            codec.octet(ttl);
        }
        for number in [
            &mut self.codepoints.ect0,
            &mut self.codepoints.ect1,
            &mut self.codepoints.ce,
        ] {
            codec.unsigned(number);
        }
        self.shares.exchange(codec);
        self.stamps.exchange(codec);
        self.board.exchange(codec);
        self.losses.exchange(codec);
        folding(
            codec,
            &mut self.round_trips,
            RTT_WINDOWS_MAX,
            |codec, shortest: &mut Shortest| {
                codec.signed(&mut shortest.min);
                codec.unsigned(&mut shortest.count);
            },
        );
        self.stream.exchange(codec);
    }
}

impl Shares {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.maybe_time(&mut self.last);
        codec.flags(&mut [
            &mut self.is_busy,
            &mut self.is_limited,
            &mut self.is_recovering,
        ]);
        codec.unsigned(&mut self.recover);
        codec.unsigned(&mut self.retransmitted);
        codec.signed(&mut self.busy);
        codec.signed(&mut self.rwnd_limited);
        codec.signed(&mut self.recovery);
    }
}

impl Stamps {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        let (mut value, mut time) = self.first.unzip();
        codec.maybe_small(&mut value);
        codec.maybe_time(&mut time);
        self.first = value.zip(time);
        codec.small(&mut self.last.0);
        codec.time(&mut self.last.1);
        codec.unsigned(&mut self.ticks);
        self.round_trips.exchange(codec);
        let mut awaited: Vec<(u32, i64)> = self.awaited.drain(..).collect();
        list(codec, &mut awaited, AWAITED_MAX, |codec, (value, time)| {
            codec.small(value);
            codec.time(time);
        });
        self.awaited = VecDeque::from(awaited);
    }
}

impl Board {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        for number in [
            &mut self.high_rxt,
            &mut self.ranges_max,
            &mut self.forgotten,
            &mut self.lost_max,
            &mut self.pipe,
            &mut self.pipe_max,
        ] {
            codec.unsigned(number);
        }
        list(
            codec,
            &mut self.ranges,
            RANGES_MAX,
            |codec, (start, end)| {
                codec.unsigned(start);
                codec.guessed(end, *start);
            },
        );
    }
}

impl Losses {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        codec.unsigned(&mut self.left_out);
        codec.unsigned(&mut self.spurious);
        codec.unsigned(&mut self.fast);
        list(
            codec,
            &mut self.list,
            LISTED_MAX,
            |codec, loss: &mut Loss| {
                codec.time(&mut loss.time);
                codec.unsigned(&mut loss.packet);
                codec.small(&mut loss.sequence);
                codec.small(&mut loss.length);
                let mut cause = match loss.cause {
                    LossCause::Fast => 1,
                    LossCause::Timeout => 0,
                    LossCause::Spurious => 2,
                };
                codec.octet(&mut cause);
                loss.cause = match cause {
                    1 => LossCause::Fast,
                    2 => LossCause::Spurious,
                    _ => LossCause::Timeout,
                };
            },
        );
    }
}

impl Stream {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        codec.flags(&mut [&mut self.over]);
        codec.unsigned(&mut self.base);
        octets(codec, &mut self.octets);
        list(
            codec,
            &mut self.early,
            EARLY_MAX,
            |codec, (offset, payload)| {
                codec.unsigned(offset);
                octets(codec, payload);
            },
        );
    }
}
