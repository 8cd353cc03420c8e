//! The one source of chance: xoshiro256++ (Blackman and Vigna), seeded through
//! SplitMix64. Not for secrets.

use base::Duration;

/// A small seeded generator; the same seed gives the same values on every
/// platform.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of `seed`; neighbouring seeds give unrelated values.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Self {
            state: [(); 4].map(|()| split_mix(&mut x)),
        }
    }

    /// The stream of `seed` that `labels` name, unrelated to every other stream
    /// of that seed: adding one stream does not change another.
    pub fn stream(seed: u64, labels: &[&str]) -> Self {
        // FNV-1a; the 0xff after each label, never a UTF-8 byte, keeps ("a", "bc") and
        // ("ab", "c") apart.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        seed.to_le_bytes().into_iter().for_each(&mut mix);
        for label in labels {
            label.bytes().chain([0xff]).for_each(&mut mix);
        }
        Self::new(hash)
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }

    /// A value in `0..n`, or 0 if `n` is 0 (biased by less than `n` in 2^64).
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a 128-bit product.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A value in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`: never at 0, always at 1.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A span in `0..=max`.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(self.below(max.as_nanos().saturating_add(1)))
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// One step of SplitMix64.
fn split_mix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_published_generator() {
        // From the reference C code: SplitMix64 of 0, and xoshiro256++ of state 1, 2, 3, 4.
        let mut x = 0;
        assert_eq!(split_mix(&mut x), 0xe220_a839_7b1d_cdaf);
        assert_eq!(split_mix(&mut x), 0x6e78_9e6a_a1b9_65f4);
        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        assert_eq!(rng.next_u64(), 41_943_041);
        assert_eq!(rng.next_u64(), 58_720_359);
        assert_eq!(rng.next_u64(), 3_588_806_011_781_223);
    }

    #[test]
    fn streams_of_one_seed_differ_by_every_label() {
        let first = |seed, labels: &[&str]| Rng::stream(seed, labels).next_u64();
        assert_eq!(first(1, &["a", "b"]), first(1, &["a", "b"]));
        assert_ne!(first(1, &["a", "b"]), first(1, &["b", "a"]));
        assert_ne!(first(1, &["a", "bc"]), first(1, &["ab", "c"]));
        assert_ne!(first(1, &["a", "b"]), first(2, &["a", "b"]));
    }

    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
        assert!((0..1000).all(|_| !rng.chance(0.0) && rng.chance(1.0)));
        assert_eq!(rng.up_to(Duration::ZERO), Duration::ZERO);
        let mut items: Vec<u32> = (0..100).collect();
        rng.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
        let mut bytes = [0; 13];
        rng.fill(&mut bytes);
        assert_ne!(bytes[8..], [0; 5]);
    }
}
