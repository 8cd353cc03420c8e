//! A class number calculated from one key.

use wire::flow::Keys;

use super::Key;

/// The upper half of a class's name: the major number, which is its discipline's.
const MAJOR: u32 = 0xffff_0000;

/// `tc`'s `flow map`: `(((key & mask) ^ xor) >> rshift) + addend`, modulo `divisor`, counted from `baseclass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Map {
    /// The key.
    pub key: Key,
    /// Bits of the key that are kept.
    pub mask: u32,
    /// Bits that are inverted.
    pub xor: u32,
    /// How far the value is then shifted to the right. Linux takes up to 31; 32 and more give 0.
    pub rshift: u32,
    /// The number that is added last, modulo 2^32. To subtract, add the two's complement.
    pub addend: u32,
    /// Number of classes; 0 means one for each value.
    pub divisor: u32,
    /// The class of value 0. Other values count on in the lower 16 bits and wrap there, as class names do. Linux
    /// refuses a base class whose lower 16 bits are 0.
    pub baseclass: u32,
}

impl Map {
    /// The key itself, unchanged, counted from class 1.
    #[must_use]
    pub const fn new(key: Key) -> Map {
        Map {
            key,
            mask: u32::MAX,
            xor: 0,
            rshift: 0,
            addend: 0,
            divisor: 0,
            baseclass: 1,
        }
    }

    /// Also keeps only these bits: `tc`'s `and`. It may be mixed with [`Map::or`] and [`Map::xor`] in any order.
    #[must_use]
    pub const fn and(mut self, bits: u32) -> Map {
        self.mask &= bits;
        self.xor &= bits;
        self
    }

    /// Also sets these bits: `tc`'s `or`.
    #[must_use]
    pub const fn or(mut self, bits: u32) -> Map {
        self.mask &= !bits;
        self.xor = self.xor & !bits | bits;
        self
    }

    /// Also inverts these bits: `tc`'s `xor`.
    #[must_use]
    pub const fn xor(mut self, bits: u32) -> Map {
        self.xor ^= bits;
        self
    }

    /// The packet's class.
    #[must_use]
    #[inline]
    pub fn class(&self, keys: &Keys) -> u32 {
        let value = self.key.value(keys) & self.mask ^ self.xor;
        let value = value
            .checked_shr(self.rshift)
            .unwrap_or(0)
            .wrapping_add(self.addend);
        let value = value.checked_rem(self.divisor).unwrap_or(value);
        counted(self.baseclass, value)
    }
}

/// The class that is `value` after `baseclass`, of the same major number.
#[inline(always)]
pub(super) fn counted(baseclass: u32, value: u32) -> u32 {
    baseclass & MAJOR | baseclass.wrapping_add(value) & !MAJOR
}
