//! A seeded mutator: the same seed and corpus give the same inputs.
//!
//! Besides flipping bits and splicing, it knows about length fields: when it inserts or removes octets, it may
//! adjust the fields that enclose them, so that the layers outside the change stay valid.

/// SplitMix64: small, fast, and good enough to choose mutations.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which must not be 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn octet(&mut self) -> u8 {
        self.next() as u8
    }

    /// True with probability 1/`n`.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Values at which decoders have off-by-one faults.
const INTERESTING: [u16; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 127, 128, 255, 256, 0x3ff, 0x7fff, 0x8000, 0xffff,
];

/// The most octets that one insertion adds.
const INSERT_MAX: usize = 40;

/// Creates inputs from a corpus.
#[derive(Debug, Clone)]
pub struct Mutator {
    random: Random,
    corpus: Vec<Vec<u8>>,
    len_max: usize,
}

/// The layout of a length field: its size, its significant bits, and how far before it the counted octets
/// begin.
struct Shape {
    octets: usize,
    mask: u16,
    before: usize,
}

const SHAPES: [Shape; 4] = [
    // A 10-bit AVP length at the start of the octets that it counts.
    Shape {
        octets: 2,
        mask: 0x03ff,
        before: 0,
    },
    // A 16-bit length after a 16-bit word of flags, or a code and an identifier.
    Shape {
        octets: 2,
        mask: 0xffff,
        before: 2,
    },
    // A length that counts the octets after itself.
    Shape {
        octets: 2,
        mask: 0xffff,
        before: usize::MAX,
    },
    // An octet of length after an octet of type.
    Shape {
        octets: 1,
        mask: 0x00ff,
        before: 1,
    },
];

impl Mutator {
    /// A mutator over `corpus`, whose inputs are no longer than `len_max` octets.
    #[must_use]
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>, len_max: usize) -> Self {
        Mutator {
            random: Random(seed),
            corpus,
            len_max,
        }
    }

    /// Replaces `out` by the next input.
    pub fn next_input(&mut self, out: &mut Vec<u8>) {
        out.clear();
        if !self.corpus.is_empty() {
            let chosen = self.random.below(self.corpus.len());
            out.extend_from_slice(&self.corpus[chosen]);
        }
        let rounds = 1 + self.random.below(6);
        for _ in 0..rounds {
            self.mutate(out);
        }
        out.truncate(self.len_max);
    }

    fn mutate(&mut self, out: &mut Vec<u8>) {
        match self.random.below(10) {
            0 => self.flip_bit(out),
            1 => self.set_octet(out),
            2 => self.set_interesting(out),
            3 => self.set_length(out),
            4 => self.insert(out),
            5 => self.remove(out),
            6 => self.repeat(out),
            7 => self.splice(out),
            8 => self.swap(out),
            _ => self.truncate(out),
        }
    }

    fn flip_bit(&mut self, out: &mut [u8]) {
        if !out.is_empty() {
            let at = self.random.below(out.len());
            out[at] ^= 1 << self.random.below(8);
        }
    }

    fn set_octet(&mut self, out: &mut [u8]) {
        if !out.is_empty() {
            let at = self.random.below(out.len());
            out[at] = self.random.octet();
        }
    }

    fn set_interesting(&mut self, out: &mut [u8]) {
        let value = INTERESTING[self.random.below(INTERESTING.len())];
        self.set_field(out, value, 0xffff);
    }

    /// Overwrites the masked bits of two octets somewhere.
    fn set_field(&mut self, out: &mut [u8], value: u16, mask: u16) {
        if out.len() >= 2 {
            let at = self.random.below(out.len() - 1);
            let old = u16::from_be_bytes([out[at], out[at + 1]]);
            out[at..at + 2].copy_from_slice(&(old & !mask | value & mask).to_be_bytes());
        }
    }

    /// Treats two octets as a length and sets it to the end of the input, or close to it.
    fn set_length(&mut self, out: &mut [u8]) {
        if out.len() >= 2 {
            let at = self.random.below(out.len() - 1);
            let shape = &SHAPES[self.random.below(2)];
            let to_end = out.len() - at.saturating_sub(shape.before);
            let value = (to_end + self.random.below(5)).wrapping_sub(2) as u16;
            let old = u16::from_be_bytes([out[at], out[at + 1]]);
            let new = old & !shape.mask | value & shape.mask;
            out[at..at + 2].copy_from_slice(&new.to_be_bytes());
        }
    }

    fn insert(&mut self, out: &mut Vec<u8>) {
        let at = self.random.below(out.len() + 1);
        let count = 1 + self.random.below(INSERT_MAX);
        let octets: Vec<u8> = (0..count).map(|_| self.random.octet()).collect();
        self.replace(out, at, 0, &octets);
    }

    fn remove(&mut self, out: &mut Vec<u8>) {
        if !out.is_empty() {
            let at = self.random.below(out.len());
            let count = 1 + self.random.below((out.len() - at).min(INSERT_MAX));
            self.replace(out, at, count, &[]);
        }
    }

    /// Repeats a part of the input in place.
    fn repeat(&mut self, out: &mut Vec<u8>) {
        if !out.is_empty() {
            let at = self.random.below(out.len());
            let count = 1 + self.random.below((out.len() - at).min(INSERT_MAX));
            let part = out[at..at + count].to_vec();
            self.replace(out, at, 0, &part);
        }
    }

    /// Inserts a part of another input.
    fn splice(&mut self, out: &mut Vec<u8>) {
        let Some(other) = self
            .corpus
            .len()
            .checked_sub(1)
            .map(|last| self.random.below(last + 1))
        else {
            return;
        };
        let len = self.corpus[other].len();
        let from = self.random.below(len + 1);
        let count = self.random.below(len - from + 1);
        let part = self.corpus[other][from..from + count].to_vec();
        let at = self.random.below(out.len() + 1);
        let removed = self.random.below(out.len() - at + 1);
        self.replace(out, at, removed, &part);
    }

    /// Exchanges two parts of the same length.
    fn swap(&mut self, out: &mut [u8]) {
        if out.len() >= 2 {
            let count = 1 + self.random.below((out.len() / 2).min(INSERT_MAX));
            let (a, b) = (self.random.below(out.len()), self.random.below(out.len()));
            let (a, b) = (a.min(b), a.max(b));
            if a + count <= b && b + count <= out.len() {
                let (low, high) = out.split_at_mut(b);
                low[a..a + count].swap_with_slice(&mut high[..count]);
            }
        }
    }

    fn truncate(&mut self, out: &mut Vec<u8>) {
        let len = self.random.below(out.len() + 1);
        out.truncate(len);
    }

    /// Replaces `removed` octets at `at` by `octets`, and, in three of four cases, adjusts the apparent length
    /// fields around them.
    fn replace(&mut self, out: &mut Vec<u8>, at: usize, removed: usize, octets: &[u8]) {
        if !self.random.one_in(4) {
            let change = octets.len() as isize - removed as isize;
            for shape in &SHAPES {
                adjust(out, shape, at, at + removed, change);
            }
        }
        out.splice(at..at + removed, octets.iter().copied());
    }
}

/// Adds `change` to each field of that layout before `start` that counts up to the end of the input or to the
/// end of the change.
fn adjust(out: &mut [u8], shape: &Shape, start: usize, end: usize, change: isize) {
    for at in 0..start.saturating_sub(shape.octets - 1) {
        let field = match shape.octets {
            1 => u16::from(out[at]),
            _ => u16::from_be_bytes([out[at], out[at + 1]]),
        };
        let from = match shape.before {
            usize::MAX => at + shape.octets,
            before if before <= at => at - before,
            _ => continue,
        };
        let counted = usize::from(field & shape.mask);
        let reaches = from + counted;
        if counted == 0 || (reaches != out.len() && reaches != end) {
            continue;
        }
        let new = counted.wrapping_add_signed(change) as u16;
        let new = field & !shape.mask | new & shape.mask;
        match shape.octets {
            1 => out[at] = new as u8,
            _ => out[at..at + 2].copy_from_slice(&new.to_be_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_inputs_again() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, vec![vec![1; 30], vec![2; 9]], 64);
            let mut out = Vec::new();
            let mut all = Vec::new();
            for _ in 0..200 {
                mutator.next_input(&mut out);
                all.push(out.clone());
            }
            all
        };
        assert_eq!(inputs(5), inputs(5));
        assert_ne!(inputs(5), inputs(6));
    }

    #[test]
    fn inputs_are_bounded_and_come_even_from_an_empty_corpus() {
        for corpus in [vec![], vec![vec![]], vec![vec![7; 500]]] {
            let mut mutator = Mutator::new(1, corpus, 100);
            let mut out = Vec::new();
            for _ in 0..5_000 {
                mutator.next_input(&mut out);
                assert!(out.len() <= 100);
            }
        }
    }

    #[test]
    fn enclosing_lengths_follow_an_insertion() {
        // A header with a 16-bit length, then an AVP with a 10-bit one.
        let mut octets = vec![0xc8, 2, 0, 12, 0x80, 8, 0, 0, 0, 9, 1, 2];
        for shape in &SHAPES[..2] {
            adjust(&mut octets, shape, 10, 10, 3);
        }
        assert_eq!(octets[..6], [0xc8, 2, 0, 15, 0x80, 11]);
    }
}
