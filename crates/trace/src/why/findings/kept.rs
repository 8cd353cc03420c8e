//! Findings as numbers, for frozen connections and parts.

use super::{End, FINDINGS, Findings, Response, Seen, Stuck};
use crate::frozen::Codec;
use crate::why::kept::{Near, near};

impl Findings {
    #[inline(never)]
    pub(in crate::why) fn exchange<C: Codec>(&mut self, codec: &mut C, a: Near, b: Near) {
        codec.room();
        codec.time(&mut self.last_time);
        self.a.exchange(codec, a);
        self.b.exchange(codec, b);
    }
}

impl End {
    #[inline(never)]
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.room();
        // A codec local to this function, which the compiler can keep in registers.
        let mut own = core::mem::take(codec);
        self.exchange_numbers(&mut own, base);
        *codec = own;
        let mut bits = (self.seen.iter()).fold(0, |bits, (number, _)| bits | 1 << number);
        codec.unsigned(&mut bits);
        if C::READS {
            if bits >> FINDINGS != 0 {
                codec.fail();
                return;
            }
            let numbers = (0..FINDINGS as u8).filter(|number| bits >> number & 1 == 1);
            self.seen.clear();
            self.seen
                .extend(numbers.map(|number| (number, Seen::default())));
        }
        for (_, seen) in &mut self.seen {
            codec.room();
            seen.exchange(codec, base);
        }
    }

    #[inline(always)]
    fn exchange_numbers<C: Codec>(&mut self, codec: &mut C, base: Near) {
        let mut has_steps = self.steps.count > 0;
        let mut is_stuck = self.stuck != Stuck::default();
        let mut has_response = self.response.count > 0;
        let mut has_small = self.small != (0, 0);
        let mut has_late = self.late != (0, 0, 0);
        let mut has_loss = self.loss != (0, 0);
        let mut is_closed = self.closed_since != 0 || self.closed_packet != 0;
        codec.flags(&mut [
            &mut self.syn_options.2,
            &mut self.ttl_varies,
            &mut self.ecn,
            &mut self.ecn_capable,
            &mut self.more,
            &mut self.answered,
            &mut has_steps,
            &mut is_stuck,
            &mut has_response,
            &mut has_small,
            &mut has_late,
            &mut has_loss,
            &mut is_closed,
        ]);
        codec.time(&mut self.syn_time);
        near(codec, &mut self.syn_packet, base.first);
        codec.short(&mut self.syn_options.0);
        codec.octet(&mut self.syn_options.1);
        codec.octet(&mut self.ttl);
        codec.small(&mut self.new_segments);
        near(codec, &mut self.edge, base.other_top);
        codec.small(&mut self.full_size);
        near(codec, &mut self.full_end, base.top);
        near(codec, &mut self.reset_packet, base.first);
        if has_steps {
            self.steps.exchange(codec, base);
        }
        if is_stuck {
            self.stuck.exchange(codec, base);
        }
        if has_response {
            self.response.exchange(codec);
        }
        if has_small {
            near(codec, &mut self.small.0, base.top);
            codec.time(&mut self.small.1);
        }
        if has_late {
            codec.time(&mut self.late.0);
            near(codec, &mut self.late.1, base.first);
            codec.signed(&mut self.late.2);
        }
        if has_loss {
            near(codec, &mut self.loss.0, base.top);
            codec.unsigned(&mut self.loss.1);
        }
        if is_closed {
            codec.time(&mut self.closed_since);
            near(codec, &mut self.closed_packet, base.first);
        }
    }
}

impl Seen {
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        codec.small(&mut self.count);
        near(codec, &mut self.first, base.first);
        codec.unsigned(&mut self.value);
        codec.guessed(&mut self.packet, self.first);
    }
}

impl Stuck {
    fn exchange<C: Codec>(&mut self, codec: &mut C, base: Near) {
        near(codec, &mut self.offset, base.top);
        codec.small(&mut self.times);
        near(codec, &mut self.first_packet, base.first);
        near(codec, &mut self.smaller, base.top);
    }
}

impl Response {
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.small(&mut self.count);
        codec.real(&mut self.sum);
        codec.real(&mut self.squares);
    }
}
