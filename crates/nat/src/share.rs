//! One of several NATs that have the same external addresses, each on a core of its own.
//!
//! Blocks on demand are divided over the NATs by their number, so that each NAT computes which one has an external port,
//! without state that they share. Ports below the blocks, and the shares of deterministic mode, are those of the NAT that
//! has the subscriber: the caller knows it by the inside address ([`crate::Nat::home`]). A port below the blocks is
//! forwarded by all NATs, so that each knows its inside address.

/// Which of several NATs one is. The default is the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: u16,
    of: u16,
    /// Identifications of fragmented datagrams: the first one of this NAT, and the bits that it counts.
    base: u16,
    mask: u16,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            number: 0,
            of: 1,
            base: 0,
            mask: u16::MAX,
        }
    }
}

impl Share {
    /// The NAT with a number, from 0 on, of so many; `None` if there is no such one.
    #[must_use]
    pub fn new(number: u16, of: u16) -> Option<Self> {
        if number >= of {
            return None;
        }
        let bits = 16 - u32::from(of).next_power_of_two().trailing_zeros();
        Some(Self {
            number,
            of,
            base: (u32::from(number) << bits) as u16,
            mask: ((1_u32 << bits) - 1) as u16,
        })
    }

    /// Its number, from 0 on.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.number
    }

    /// How many NATs there are.
    #[must_use]
    pub const fn of(self) -> u16 {
        self.of
    }

    /// Whether there are others.
    #[inline]
    #[must_use]
    pub const fn has_others(self) -> bool {
        self.of > 1
    }

    /// This NAT's part of a number; the parts of all NATs add up to it.
    #[must_use]
    pub const fn part(self, whole: u32) -> u32 {
        let (number, of) = (self.number as u32, self.of as u32);
        whole / of + (number < whole % of) as u32
    }

    /// The identification that follows from a counter. No other NAT has it, and successive counters have successive ones
    /// until they start again (RFC 6864 section 5.3.1).
    #[inline]
    pub(crate) const fn identification(self, counter: u16) -> u16 {
        self.base | counter & self.mask
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        for of in 1..=64 {
            for whole in [0, 1, 63, 64, 1000, 65_536, 1_000_003] {
                let parts = (0..of).map(|number| Share::new(number, of).unwrap().part(whole));
                assert_eq!(parts.sum::<u32>(), whole);
            }
            assert!(Share::new(of, of).is_none());
        }
    }

    #[test]
    fn no_two_nats_have_an_identification() {
        for of in [1, 2, 3, 4, 5, 63, 64] {
            let mut seen = HashSet::new();
            for number in 0..of {
                let share = Share::new(number, of).unwrap();
                let own: HashSet<u16> = (0..=u16::MAX).map(|at| share.identification(at)).collect();
                assert!(own.len() >= 65_536 / 2 / usize::from(of));
                assert!(own.iter().all(|one| seen.insert(*one)), "{number} of {of}");
            }
        }
    }
}
