//! XXH32 (version 0.1.1 of the xxHash specification), with seed 0: the checksum of lz4 frames.

const PRIMES: [u32; 5] = [
    0x9e37_79b1,
    0x85eb_ca77,
    0xc2b2_ae3d,
    0x27d4_eb2f,
    0x1656_67b1,
];

/// The checksum of bytes that come in portions.
pub(super) struct Xxh32 {
    lanes: [u32; 4],
    /// Bytes of the stripe that is not whole.
    rest: [u8; 16],
    held: usize,
    length: u64,
}

impl Xxh32 {
    pub(super) fn new() -> Self {
        let lanes = [
            PRIMES[0].wrapping_add(PRIMES[1]),
            PRIMES[1],
            0,
            PRIMES[0].wrapping_neg(),
        ];
        Xxh32 {
            lanes,
            rest: [0; 16],
            held: 0,
            length: 0,
        }
    }

    /// The checksum of these bytes.
    pub(super) fn of(octets: &[u8]) -> u32 {
        let mut checksum = Self::new();
        checksum.add(octets);
        checksum.value()
    }

    pub(super) fn add(&mut self, mut octets: &[u8]) {
        self.length += octets.len() as u64;
        if self.held > 0 {
            let count = octets.len().min(16 - self.held);
            self.rest[self.held..self.held + count].copy_from_slice(&octets[..count]);
            self.held += count;
            octets = &octets[count..];
            if self.held < 16 {
                return;
            }
            let stripe = self.rest;
            self.mix(&stripe);
        }
        let (stripes, rest) = octets.as_chunks::<16>();
        for stripe in stripes {
            self.mix(stripe);
        }
        self.held = rest.len();
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    fn mix(&mut self, stripe: &[u8; 16]) {
        let (words, _) = stripe.as_chunks::<4>();
        for (lane, word) in self.lanes.iter_mut().zip(words) {
            let word = u32::from_le_bytes(*word).wrapping_mul(PRIMES[1]);
            *lane = lane
                .wrapping_add(word)
                .rotate_left(13)
                .wrapping_mul(PRIMES[0]);
        }
    }

    pub(super) fn value(&self) -> u32 {
        let mut sum = match self.length {
            0..16 => PRIMES[4],
            _ => {
                let turns = [1, 7, 12, 18];
                let lanes = self.lanes.iter().zip(turns);
                lanes.fold(0, |sum: u32, (lane, turn)| {
                    sum.wrapping_add(lane.rotate_left(turn))
                })
            }
        };
        // Modulo 2^32, as the specification says.
        sum = sum.wrapping_add(self.length as u32);
        let (words, octets) = self.rest[..self.held].as_chunks::<4>();
        for word in words {
            let word = u32::from_le_bytes(*word).wrapping_mul(PRIMES[2]);
            sum = sum
                .wrapping_add(word)
                .rotate_left(17)
                .wrapping_mul(PRIMES[3]);
        }
        for &octet in octets {
            let octet = u32::from(octet).wrapping_mul(PRIMES[4]);
            sum = sum
                .wrapping_add(octet)
                .rotate_left(11)
                .wrapping_mul(PRIMES[0]);
        }
        sum = (sum ^ (sum >> 15)).wrapping_mul(PRIMES[1]);
        sum = (sum ^ (sum >> 13)).wrapping_mul(PRIMES[2]);
        sum ^ (sum >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_reference_in_whatever_portions() {
        // As `xxhsum -H0` prints them.
        let long: Vec<u8> = (0..=255).collect();
        for (octets, expected) in [
            (&b""[..], 0x02cc_5d05),
            (b"abc", 0x32d1_53ff),
            (b"Nobody inspects the spammish repetition", 0xe229_3b2f),
        ] {
            assert_eq!(Xxh32::of(octets), expected);
        }
        for step in [1, 3, 15, 16, 17, 100] {
            let mut checksum = Xxh32::new();
            long.chunks(step).for_each(|portion| checksum.add(portion));
            assert_eq!(checksum.value(), Xxh32::of(&long), "{step}");
        }
    }
}
