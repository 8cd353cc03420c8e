//! Pseudo-random numbers for jitter and phases, from the seed that the speaker's owner chose. Not for secrets.

/// SplitMix64 (Steele, Lea and Flood). Its state is eight bytes, so a speaker stays small.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        let (words, _) = seed.as_chunks::<8>();
        let folded = words.iter().fold(0_u64, |sum, word| {
            mix(sum.wrapping_add(u64::from_le_bytes(*word)))
        });
        Self(folded)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, by the multiply-shift method.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// `span` times a random factor from 0.75 to 1 (RFC 4271, section 10).
    pub(crate) fn jitter(&mut self, span: base::Duration) -> base::Duration {
        let quarter = span.as_nanos() / 4;
        base::Duration::from_nanos(span.as_nanos() - self.below(quarter.saturating_add(1)))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    #[test]
    fn jitter_stays_between_three_quarters_and_the_whole() {
        let mut random = Random::new([7; 32]);
        let span = Duration::from_secs(120);
        let drawn: Vec<_> = (0..1_000).map(|_| random.jitter(span)).collect();
        assert!(
            drawn
                .iter()
                .all(|d| *d >= Duration::from_secs(90) && *d <= span)
        );
        assert!(drawn.iter().any(|d| *d < Duration::from_secs(95)));
        assert!(drawn.iter().any(|d| *d > Duration::from_secs(115)));
        assert_eq!(random.jitter(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn every_octet_of_a_seed_counts() {
        let first = |seed| Random::new(seed).next();
        let mut seed = [0; 32];
        let zero = first(seed);
        for at in 0..32 {
            seed[at] = 1;
            assert_ne!(first(seed), zero);
            seed[at] = 0;
        }
    }
}
