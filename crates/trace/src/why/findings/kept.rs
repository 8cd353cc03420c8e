//! Findings as numbers, for frozen connections and parts.

use super::{End, FINDINGS, Findings, Response, Seen, Stuck};
use crate::frozen::Codec;

impl Findings {
    #[inline(never)]
    pub(crate) fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        codec.signed(&mut self.last_time);
        self.a.exchange(codec);
        self.b.exchange(codec);
    }
}

impl End {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.room();
        let mut bits: u64 = (0..FINDINGS)
            .filter(|index| self.seen[*index].count > 0)
            .fold(0, |bits, index| bits | 1 << index);
        codec.unsigned(&mut bits);
        for (index, seen) in self.seen.iter_mut().enumerate() {
            if bits >> index & 1 == 1 {
                codec.room();
                seen.exchange(codec);
            }
        }
        codec.room();
        self.exchange_numbers(codec);
        codec.room();
        self.steps.exchange(codec);
        self.stuck.exchange(codec);
        self.response.exchange(codec);
    }

    fn exchange_numbers<C: Codec>(&mut self, codec: &mut C) {
        for number in [
            &mut self.syn_packet,
            &mut self.closed_packet,
            &mut self.edge,
            &mut self.small.0,
            &mut self.late.1,
            &mut self.full_end,
            &mut self.reset_packet,
            &mut self.loss.0,
            &mut self.loss.1,
        ] {
            codec.unsigned(number);
        }
        for time in [
            &mut self.syn_time,
            &mut self.closed_since,
            &mut self.small.1,
            &mut self.late.0,
            &mut self.late.2,
        ] {
            codec.signed(time);
        }
        let mut mss = u32::from(self.syn_options.0);
        codec.small(&mut mss);
        self.syn_options.0 = mss as u16;
        codec.octet(&mut self.syn_options.1);
        codec.octet(&mut self.ttl);
        codec.small(&mut self.new_segments);
        codec.small(&mut self.full_size);
        codec.flags(&mut [
            &mut self.syn_options.2,
            &mut self.ttl_varies,
            &mut self.ecn,
            &mut self.ecn_capable,
            &mut self.more,
            &mut self.answered,
        ]);
    }
}

impl Seen {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.count);
        codec.unsigned(&mut self.first);
        codec.unsigned(&mut self.value);
        codec.unsigned(&mut self.packet);
    }
}

impl Stuck {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.unsigned(&mut self.offset);
        codec.small(&mut self.times);
        codec.unsigned(&mut self.first_packet);
        codec.unsigned(&mut self.smaller);
    }
}

impl Response {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.count);
        codec.real(&mut self.sum);
        codec.real(&mut self.squares);
    }
}
