//! What a flood of one peer may cost.

use crate::event::Discard;
use crate::layer::Context;

/// Counts what was heeded in the present second.
///
/// Each packet that is heeded has at most one answer, hardly longer than it is; so this bounds what a link computes and
/// sends as well.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// The second, modulo 2^32.
    second: u32,
    spent: u16,
}

impl Budget {
    /// Takes one packet out of a share of `1 / share` of this second's.
    pub(crate) fn spend(&mut self, share: u16, ctx: &Context<'_>) -> Result<(), Discard> {
        let limit = ctx.config.control_max_per_s;
        if limit == 0 {
            return Ok(());
        }
        let second = (ctx.now.as_nanos() / 1_000_000_000) as u32;
        if second != self.second {
            *self = Self { second, spent: 0 };
        }
        if self.spent >= (limit / share).max(1) {
            return Err(Discard::Flood);
        }
        self.spent += 1;
        Ok(())
    }
}
