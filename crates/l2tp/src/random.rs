//! The endpoint's random stream, from the owner's seed.
//!
//! Implements parts of RFC 3931, section 8.2.

use base::snapshot::{Codec, Part};
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

/// A position in a stream of random numbers.
#[derive(Clone, Default)]
pub(crate) struct Position {
    seed: [u8; 32],
    stream: u64,
    /// The next 32-bit word: 68 bits.
    word: [u64; 2],
}

impl Random {
    pub(crate) fn position(&self) -> Position {
        let word = self.0.get_word_pos();
        Position {
            seed: self.0.get_seed(),
            stream: self.0.get_stream(),
            word: [word as u64, (word >> 64) as u64],
        }
    }

    pub(crate) fn at(position: &Position) -> Self {
        let mut random = ChaCha12Rng::from_seed(position.seed);
        random.set_stream(position.stream);
        random.set_word_pos(u128::from(position.word[1]) << 64 | u128::from(position.word[0]));
        Self(random)
    }
}

impl Part for Position {
    const NAME: &'static str = "position";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.array(1, "seed", &mut self.seed);
        codec.number(2, "stream", &mut self.stream);
        codec.number(3, "word", &mut self.word[0]);
        codec.number(4, "word_high", &mut self.word[1]);
        if C::READS && self.word[1] >= 1 << 4 {
            codec.refuse();
        }
    }
}
