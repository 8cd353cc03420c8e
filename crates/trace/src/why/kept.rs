//! A connection's time as numbers, for frozen connections and parts.
//!
//! Most numbers are 0 for most connections, so that groups of them are left out: a number of flags says which are there.
//! What is read starts as new, with all values 0.

use super::recent::Recent;
use super::repair::{Recovery, Restart};
use super::sender::{Ack, Sender, Share};
use super::{Tls, Why};
use crate::frozen::Codec;

/// ACKs on their way to a sender, at most, in what was frozen.
const LAGGED_MAX: u64 = 1024;

/// Values that the numbers of one end are close to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    /// Offset after the highest byte that the end sent.
    pub(super) top: u64,
    /// The same for the other end.
    pub(super) other_top: u64,
    /// Number of the connection's first packet.
    pub(super) first: u64,
}

/// An offset or the number of a packet, near `base`; 0 for none.
#[inline(always)]
pub(super) fn near<C: Codec>(codec: &mut C, value: &mut u64, base: u64) {
    codec.base().offset = base;
    codec.offset(value);
}

impl Why {
    /// `tops` are the offsets after the highest bytes of both ends, and `first` is the number of the first packet.
    #[inline(never)]
    pub(crate) fn exchange<C: Codec>(&mut self, codec: &mut C, tops: (u64, u64), first: u64) {
        codec.room();
        let mut tls = match self.tls {
            Tls::Unknown => 0,
            Tls::Over => 1,
            Tls::Started(false) => 2,
            Tls::Started(true) => 3,
        };
        codec.flags(&mut [
            &mut self.begun,
            &mut self.opened,
            &mut self.over,
            &mut self.asked_by_a,
            &mut self.any_data,
        ]);
        codec.octet(&mut tls);
        self.tls = match tls {
            0 => Tls::Unknown,
            1 => Tls::Over,
            started => Tls::Started(started == 3),
        };
        near(codec, &mut self.last_packet, first);
        let of = |top, other_top| Near {
            top,
            other_top,
            first,
        };
        let (a, b) = (of(tops.0, tops.1), of(tops.1, tops.0));
        self.a.exchange(codec, a, self.over);
        self.b.exchange(codec, b, self.over);
        self.findings.exchange(codec, a, b);
    }
}

impl Sender {
    #[inline(never)]
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near, is_over: bool) {
        codec.room();
        // A codec local to this function, which the compiler can keep in registers.
        let mut own = core::mem::take(codec);
        self.exchange_result(&mut own, base);
        if !is_over {
            own.room();
            self.exchange_work(&mut own, base);
        }
        *codec = own;
        if !is_over {
            self.exchange_lagged(codec, base);
        }
    }

    /// What remains once both ends have sent all they had.
    #[inline(always)]
    fn exchange_result<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.time(&mut self.upto);
        codec.signed(&mut self.lag);
        codec.guessed_signed(&mut self.near_min, self.lag);
        codec.signed(&mut self.far_min);
        codec.signed(&mut self.queue_max);
        codec.real(&mut self.rates.mean);
        codec.octet(&mut self.current);
        codec.flags(&mut [&mut self.closed, &mut self.tls]);
        let mut there = 0;
        for (index, share) in self.shares.iter().enumerate() {
            there |= u64::from(share.spans > 0 || share.time > 0) << index;
        }
        codec.unsigned(&mut there);
        while there != 0 {
            let index = there.trailing_zeros() as usize;
            there &= there - 1;
            match self.shares.get_mut(index) {
                Some(share) => share.exchange(codec, base),
                None => codec.fail(),
            }
        }
    }

    #[inline(always)]
    fn exchange_work<C: Codec>(&mut self, codec: &mut C, base: Near) {
        let (mut restarts, mut recovers) = (
            self.restart != Restart::default(),
            self.recovery != Recovery::default(),
        );
        let mut has_rates = self.rates.at != 0;
        let mut has_clumps = self.clumps.since != 0 || self.clumps.count > 0;
        let [mut has_near, mut has_far, mut has_gaps, mut has_pauses] =
            [&self.near, &self.far, &self.gaps, &self.pauses].map(|recent| recent.count > 0);
        codec.flags(&mut [
            &mut self.is_near,
            &mut self.is_coarse,
            &mut self.blocked,
            &mut self.asked,
            &mut self.prompt,
            &mut self.ended,
            &mut self.ever_lost,
            &mut restarts,
            &mut recovers,
            &mut has_rates,
            &mut has_clumps,
            &mut has_near,
            &mut has_far,
            &mut has_gaps,
            &mut has_pauses,
        ]);
        self.exchange_numbers(codec, base);
        if restarts {
            near(codec, &mut self.restart.end, base.top);
            codec.signed(&mut self.restart.time);
            near(codec, &mut self.restart.packet, base.first);
        }
        if recovers {
            self.recovery.exchange(codec, base);
        }
        if has_rates {
            codec.time(&mut self.rates.at);
            near(codec, &mut self.rates.acked, base.top);
            codec.small(&mut self.rates.count);
            codec.real(&mut self.rates.squares);
        }
        if has_clumps {
            codec.time(&mut self.clumps.since);
            near(codec, &mut self.clumps.acked, base.top);
            codec.small(&mut self.clumps.count);
            codec.real(&mut self.clumps.rates);
            codec.unsigned(&mut self.clumps.bytes);
            codec.signed(&mut self.clumps.time);
        }
        codec.room();
        for (is_there, recent) in [
            (has_near, &mut self.near),
            (has_far, &mut self.far),
            (has_gaps, &mut self.gaps),
            (has_pauses, &mut self.pauses),
        ] {
            if is_there {
                recent.exchange(codec);
            }
        }
        if C::READS {
            self.measure();
        }
    }

    #[inline(always)]
    fn exchange_numbers<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.time(&mut self.last_sent);
        codec.time(&mut self.drained);
        codec.time(&mut self.grown);
        codec.time(&mut self.clock_at);
        codec.small(&mut self.clock_start);
        near(codec, &mut self.acked, base.top);
        near(codec, &mut self.window_end, base.top);
        near(codec, &mut self.top, base.top);
        codec.unsigned(&mut self.flight_max);
        codec.unsigned(&mut self.sent);
        codec.small(&mut self.unit_max);
        codec.small(&mut self.unit_seen);
        codec.small(&mut self.last_payload);
        codec.octet(&mut self.cut);
        codec.octet(&mut self.names.streak);
        codec.short(&mut self.names.next);
        let mut missing = self.missing.map(u32::from);
        codec.maybe_small(&mut missing);
        self.missing = missing.map(|missing| missing as u16);
    }

    fn exchange_lagged<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.room();
        let mut count = self.lagged.len() as u64;
        codec.unsigned(&mut count);
        if !C::READS {
            for ack in &self.lagged {
                codec.room();
                { *ack }.exchange(codec, base);
            }
            return;
        }
        self.lagged.clear();
        if count > LAGGED_MAX {
            codec.fail();
            return;
        }
        for _ in 0..count {
            let mut ack = Ack::default();
            ack.exchange(codec, base);
            if codec.is_over() {
                break;
            }
            self.lagged.push_back(ack);
        }
    }
}

impl Ack {
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.time(&mut self.at);
        near(codec, &mut self.acked, base.top);
        near(codec, &mut self.window_end, base.top);
        codec.flags(&mut [&mut self.asks, &mut self.stamped]);
        codec.small(&mut self.stamp);
    }
}

impl Recent {
    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.time(&mut self.since);
        codec.signed(&mut self.low);
        codec.guessed_signed(&mut self.high, self.low);
        codec.guessed_small(&mut self.count, 1);
        codec.flags(&mut [&mut self.has_before]);
        if self.has_before {
            codec.guessed_signed(&mut self.low_before, self.low);
            codec.guessed_signed(&mut self.high_before, self.high);
        }
    }
}

impl Recovery {
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        near(codec, &mut self.until, base.top);
        codec.octet(&mut self.cause);
        codec.signed(&mut self.time);
        codec.small(&mut self.sent);
        codec.small(&mut self.needless);
    }
}

impl Share {
    #[inline(always)]
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.signed(&mut self.time);
        codec.small(&mut self.spans);
        codec.guessed_signed(&mut self.longest, self.time);
        near(codec, &mut self.packet, base.first);
    }
}
