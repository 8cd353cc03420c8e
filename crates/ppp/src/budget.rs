//! A limit on the control packets of one peer, so that a flood costs little processing time.

use base::snapshot::Codec;

use crate::event::Discard;
use crate::layer::Context;
use crate::snapshot;

/// The length of a second in milliseconds.
const SECOND_MS: u32 = 1_000;

/// Counts the packets that were handled in the current second, which starts with its first packet.
///
/// Each handled packet has at most one reply of about its length, so this also limits what a link computes and sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// When the second started, in milliseconds modulo 2^32.
    since_ms: u32,
    spent: u16,
}

impl Budget {
    /// Counts one packet. `false` if `1 / share` of this second's limit is used.
    pub(crate) fn spend(&mut self, share: u16, ctx: &Context<'_>) -> Result<(), Discard> {
        let limit = ctx.config.control_max_per_s;
        if limit == 0 {
            return Ok(());
        }
        let now_ms = (ctx.now.as_nanos() / 1_000_000) as u32;
        if now_ms.wrapping_sub(self.since_ms) >= SECOND_MS {
            *self = Self {
                since_ms: now_ms,
                spent: 0,
            };
        }
        if self.spent >= (limit / share).max(1) {
            return Err(Discard::Flood);
        }
        self.spent += 1;
        Ok(())
    }

    /// Fields of a link's snapshot.
    pub(crate) fn fields<C: Codec>(&mut self, codec: &mut C) {
        let Self { since_ms, spent } = self;
        codec.number(31, "spent", spent);
        let mut since = (*spent > 0).then_some(*since_ms);
        snapshot::low_bits(codec, 32, "since_ms", &mut since, 1);
        if C::READS && since.is_some() != (*spent > 0) {
            codec.refuse();
        }
        *since_ms = since.unwrap_or_default();
    }
}
