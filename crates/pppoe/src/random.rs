//! The endpoint's random stream, from the owner's seed.
//!
//! Implements parts of RFC 2516, section 9.

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};

/// A cryptographic generator; equal seeds give equal streams.
pub(crate) struct Random(ChaCha12Rng);

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, by the multiply-shift method.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
