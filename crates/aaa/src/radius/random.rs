//! The client's own random stream, from the seed that its owner supplied.

use base::Duration;
use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};

/// A cryptographic generator: Request Authenticators must be unpredictable (RFC 2865, section 3).
pub(super) struct Random(ChaCha12Rng);

impl Random {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A random duration within a tenth of `span`.
    pub(super) fn about(&mut self, span: Duration) -> Duration {
        let tenth = span.as_nanos() / 10;
        let below = (u128::from(self.0.next_u64()) * u128::from(2 * tenth + 1)) >> 64;
        Duration::from_nanos((span.as_nanos() - tenth).saturating_add(below as u64))
    }
}
