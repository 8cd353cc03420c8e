//! Hashes that a seed keys, so that nobody outside can aim prefixes or attributes at one place of a table.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

/// Of a hash only 32 bits are kept; this gives a table both its high and its low bits from them.
#[inline]
pub(crate) const fn widen(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

/// Of octets in two pieces; its value is a [`widen`]ed one.
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

/// Of numbers. Only constants are multiplied by, since a factor of 0 would forget all others.
#[inline]
pub(crate) fn numbers(seed: u64, [a, b, c]: [u64; 3]) -> u64 {
    let mixed = fold(number(seed, a) ^ b, 0xd6e8_feb8_6659_fd93);
    fold(mixed ^ c, 0xa076_1d64_78bd_642f)
}

/// Of one number.
#[inline]
pub(crate) fn number(seed: u64, number: u64) -> u64 {
    fold(number ^ seed ^ 0x243f_6a88_85a3_08d3, 0x9e37_79b9_7f4a_7c15)
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
