//! Hashes with a seed as their key, so that nobody outside can choose prefixes or attributes that collide.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

/// Only 32 bits of a hash are stored; this gives a table both its high and its low bits from them.
#[inline]
pub(crate) const fn widen(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

/// The hash of octets in two pieces; it is [`widen`]ed.
#[inline]
pub(crate) fn octets(seed: u64, first: &[u8], second: &[u8]) -> u64 {
    let state = SeedableRandomState::with_seed(seed, SharedSeed::global_fixed());
    let mut hasher = state.build_hasher();
    hasher.write_u64(first.len() as u64);
    hasher.write(first);
    hasher.write(second);
    let hash = hasher.finish();
    widen((hash >> 32) as u32 ^ hash as u32)
}

/// The hash of three numbers. Multiplication is by constants only, since a factor of 0 would lose all other input.
#[inline]
pub(crate) fn numbers(seed: u64, [a, b, c]: [u64; 3]) -> u64 {
    let mixed = fold(number(seed, a) ^ b, 0xd6e8_feb8_6659_fd93);
    fold(mixed ^ c, 0xa076_1d64_78bd_642f)
}

/// The hash of one number.
#[inline]
pub(crate) fn number(seed: u64, number: u64) -> u64 {
    fold(number ^ seed ^ 0x243f_6a88_85a3_08d3, 0x9e37_79b9_7f4a_7c15)
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
