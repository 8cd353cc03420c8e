//! The edge's random stream, from the owner's seed.

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
}

impl ppp::Random for Random {
    fn fill(&mut self, octets: &mut [u8]) {
        self.0.fill_bytes(octets);
    }
}
