//! A connection's time as numbers, for frozen connections and parts.

use std::collections::VecDeque;

use super::recent::Recent;
use super::sender::{Ack, Recovery, Sender, Share};
use super::{Tls, Why};
use crate::frozen::Codec;

/// ACKs on their way to a sender, at most, in what was frozen.
const LAGGED_MAX: u64 = 1024;

impl Why {
    #[inline(never)]
    pub(crate) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        codec.flags(&mut [
            &mut self.begun,
            &mut self.opened,
            &mut self.asked_by_a,
            &mut self.any_data,
        ]);
        let mut tls = match self.tls {
            Tls::Unknown => 0,
            Tls::Over => 1,
            Tls::Started(false) => 2,
            Tls::Started(true) => 3,
        };
        codec.octet(&mut tls);
        self.tls = match tls {
            0 => Tls::Unknown,
            1 => Tls::Over,
            started => Tls::Started(started == 3),
        };
        codec.unsigned(&mut self.last_packet);
        self.a.exchange(codec);
        self.b.exchange(codec);
        self.findings.exchange(codec);
    }
}

impl Sender {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        self.exchange_numbers(codec);
        self.recovery.exchange(codec);
        codec.room();
        for share in &mut self.shares {
            share.exchange(codec);
        }
        self.exchange_lagged(codec);
    }

    fn exchange_numbers<C: Codec>(&mut self, codec: &mut C) {
        for time in [
            &mut self.upto,
            &mut self.lag,
            &mut self.drained,
            &mut self.grown,
            &mut self.near_min,
            &mut self.far_min,
            &mut self.last_sent,
            &mut self.restart.time,
            &mut self.queue_max,
            &mut self.clock_at,
            &mut self.rates.at,
            &mut self.clumps.since,
            &mut self.clumps.time,
        ] {
            codec.signed(time);
        }
        for number in [
            &mut self.acked,
            &mut self.window_end,
            &mut self.top,
            &mut self.flight_max,
            &mut self.sent,
            &mut self.restart.end,
            &mut self.restart.packet,
            &mut self.rates.acked,
            &mut self.clumps.acked,
            &mut self.clumps.bytes,
        ] {
            codec.unsigned(number);
        }
        codec.small(&mut self.clock_start);
        codec.small(&mut self.unit_max);
        codec.small(&mut self.unit_seen);
        codec.small(&mut self.last_payload);
        codec.small(&mut self.rates.count);
        codec.real(&mut self.rates.mean);
        codec.real(&mut self.rates.squares);
        codec.small(&mut self.clumps.count);
        codec.real(&mut self.clumps.rates);
        codec.octet(&mut self.current);
        codec.octet(&mut self.cut);
        codec.room();
        self.exchange_names(codec);
        for recent in [
            &mut self.near,
            &mut self.far,
            &mut self.gaps,
            &mut self.pauses,
        ] {
            recent.exchange(codec);
        }
        codec.flags(&mut [
            &mut self.is_near,
            &mut self.is_coarse,
            &mut self.blocked,
            &mut self.asked,
            &mut self.prompt,
            &mut self.ended,
            &mut self.ever_lost,
            &mut self.closed,
            &mut self.tls,
        ]);
    }

    fn exchange_names<C: Codec>(&mut self, codec: &mut C) {
        codec.octet(&mut self.names.streak);
        let mut next = u32::from(self.names.next);
        codec.small(&mut next);
        self.names.next = next as u16;
        let mut missing = self.missing.map_or(0, |missing| u32::from(missing) + 1);
        codec.small(&mut missing);
        self.missing = missing.checked_sub(1).map(|missing| missing as u16);
    }

    fn exchange_lagged<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        let mut count = self.lagged.len() as u64;
        codec.unsigned(&mut count);
        if !C::READS {
            for ack in &self.lagged {
                codec.room();
                ack.clone().exchange(codec);
            }
            return;
        }
        self.lagged = VecDeque::new();
        if count > LAGGED_MAX {
            codec.fail();
            return;
        }
        for _ in 0..count {
            let mut ack = Ack::default();
            ack.exchange(codec);
            if codec.is_over() {
                break;
            }
            self.lagged.push_back(ack);
        }
    }
}

impl Ack {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.signed(&mut self.at);
        codec.unsigned(&mut self.acked);
        codec.unsigned(&mut self.window_end);
        codec.flags(&mut [&mut self.asks, &mut self.stamped]);
        codec.small(&mut self.stamp);
    }
}

impl Recent {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        for time in [
            &mut self.since,
            &mut self.low,
            &mut self.high,
            &mut self.low_before,
            &mut self.high_before,
        ] {
            codec.signed(time);
        }
        codec.small(&mut self.count);
        codec.flags(&mut [&mut self.has_before]);
    }
}

impl Recovery {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.until);
        codec.octet(&mut self.cause);
        codec.signed(&mut self.time);
        codec.small(&mut self.sent);
        codec.small(&mut self.needless);
    }
}

impl Share {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.signed(&mut self.time);
        codec.small(&mut self.spans);
        codec.signed(&mut self.longest);
        codec.unsigned(&mut self.packet);
    }
}
