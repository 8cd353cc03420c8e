//! Encodes numbers in bytes: first a bit mask of which of the next 55 numbers are not 0, then these numbers.
//!
//! A number's lowest byte has a 1 bit, and below it as many zero bits as bytes follow. The bits above are the number,
//! the lowest first, seven for each byte. A number of more than 56 bits is a zero byte followed by its eight bytes.
//! Only the distance to the next number depends on a number's length, so neither reading nor writing has a branch that
//! the processor mispredicts.

/// Reads or writes a part.
///
/// The defaults read nothing and write nothing.
pub(crate) trait Codec: Default {
    /// It reads: fields are set to the values that were written.
    const READS: bool;
    /// Starts a part, which [`Codec::end_part`] ends. It begins with the mask of its first 55 numbers.
    fn begin_part(&mut self);
    fn end_part(&mut self);
    /// Makes room to write up to [`ROOM`] numbers. Call it before each element of a list, and before other numbers
    /// after a list.
    fn room(&mut self);
    /// One number.
    fn unsigned(&mut self, value: &mut u64);
    /// Sets the values that later times and offsets are relative to.
    fn base(&mut self) -> &mut Base;
    /// Whether the bytes ended too soon.
    fn is_over(&self) -> bool;
    /// Notes that the values read are impossible.
    fn fail(&mut self);

    #[inline(always)]
    fn small(&mut self, value: &mut u32) {
        let mut wide = u64::from(*value);
        self.unsigned(&mut wide);
        *value = wide as u32;
    }

    #[inline(always)]
    fn short(&mut self, value: &mut u16) {
        let mut wide = u64::from(*value);
        self.unsigned(&mut wide);
        *value = wide as u16;
    }

    #[inline(always)]
    fn octet(&mut self, value: &mut u8) {
        let mut wide = u64::from(*value);
        self.unsigned(&mut wide);
        *value = wide as u8;
    }

    #[inline(always)]
    fn real(&mut self, value: &mut f64) {
        let mut bits = value.to_bits();
        self.unsigned(&mut bits);
        *value = f64::from_bits(bits);
    }

    #[inline(always)]
    fn signed(&mut self, value: &mut i64) {
        let mut wide = ((*value << 1) ^ (*value >> 63)) as u64;
        self.unsigned(&mut wide);
        if Self::READS {
            *value = (wide >> 1) as i64 ^ -((wide & 1) as i64);
        }
    }

    /// A time, with 0 for none.
    #[inline(always)]
    fn time(&mut self, value: &mut i64) {
        let mut some = (*value != 0).then_some(*value);
        self.maybe_time(&mut some);
        if Self::READS {
            *value = some.unwrap_or(0);
        }
    }

    /// An offset, with 0 for none.
    #[inline(always)]
    fn offset(&mut self, value: &mut u64) {
        let base = self.base().offset;
        let mut wide = if *value == 0 {
            0
        } else {
            let delta = value.wrapping_sub(base) as i64;
            (((delta << 1) ^ (delta >> 63)) as u64).wrapping_add(1)
        };
        self.unsigned(&mut wide);
        if Self::READS {
            *value = match wide.checked_sub(1) {
                None => 0,
                Some(zigzag) => base.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg()),
            };
        }
    }

    /// A number that is often `guess`.
    #[inline(always)]
    fn guessed(&mut self, value: &mut u64, guess: u64) {
        let mut delta = value.wrapping_sub(guess) as i64;
        self.signed(&mut delta);
        if Self::READS {
            *value = guess.wrapping_add(delta as u64);
        }
    }

    /// A number that is often `guess`.
    #[inline(always)]
    fn guessed_small(&mut self, value: &mut u32, guess: u32) {
        self.sequence(value, guess);
    }

    /// A number that is often `guess`.
    #[inline(always)]
    fn guessed_signed(&mut self, value: &mut i64, guess: i64) {
        let mut delta = value.wrapping_sub(guess);
        self.signed(&mut delta);
        if Self::READS {
            *value = guess.wrapping_add(delta);
        }
    }

    /// An offset or a sequence number that may be absent, near `base`.
    #[inline(always)]
    fn maybe_near(&mut self, value: &mut Option<u64>, base: u64) {
        let before = core::mem::replace(&mut self.base().offset, base);
        let mut some = value.map_or(0, |value| value.wrapping_add(1));
        self.offset(&mut some);
        if Self::READS {
            *value = some.checked_sub(1);
        }
        self.base().offset = before;
    }

    /// A sequence number near `base`.
    #[inline(always)]
    fn sequence(&mut self, value: &mut u32, base: u32) {
        let delta = value.wrapping_sub(base) as i32;
        let mut wide = i64::from(delta);
        self.signed(&mut wide);
        if Self::READS {
            *value = base.wrapping_add(wide as u32);
        }
    }

    #[inline(always)]
    fn maybe_time(&mut self, value: &mut Option<i64>) {
        let base = self.base().time;
        let mut wide = value.map_or(0, |time| {
            let delta = time.wrapping_sub(base);
            (((delta << 1) ^ (delta >> 63)) as u64).wrapping_add(1)
        });
        self.unsigned(&mut wide);
        if Self::READS {
            *value = (wide != 0).then(|| {
                let zigzag = wide.wrapping_sub(1);
                base.wrapping_add((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
            });
        }
    }

    #[inline(always)]
    fn maybe(&mut self, value: &mut Option<u64>) {
        let mut wide = value.map_or(0, |value| value.wrapping_add(1));
        self.unsigned(&mut wide);
        if Self::READS {
            *value = wide.checked_sub(1);
        }
    }

    #[inline(always)]
    fn maybe_small(&mut self, value: &mut Option<u32>) {
        let mut wide = value.map(u64::from);
        self.maybe(&mut wide);
        if Self::READS {
            *value = wide.map(|wide| wide as u32);
        }
    }

    /// Up to 64 truth values as one number.
    #[inline(always)]
    fn flags(&mut self, flags: &mut [&mut bool]) {
        let mut wide = 0;
        for (at, flag) in flags.iter().enumerate() {
            wide |= u64::from(**flag) << at;
        }
        self.unsigned(&mut wide);
        if Self::READS {
            for (at, flag) in flags.iter_mut().enumerate() {
                **flag = wide >> at & 1 == 1;
            }
        }
    }

    fn text(&mut self, text: &mut String) {
        let mut length = text.len() as u64;
        self.unsigned(&mut length);
        if !Self::READS {
            for octet in text.bytes() {
                self.room();
                self.unsigned(&mut u64::from(octet));
            }
            return;
        }
        let mut octets = Vec::new();
        for _ in 0..length {
            let mut octet = 0;
            self.unsigned(&mut octet);
            if self.is_over() {
                break;
            }
            octets.push(octet as u8);
        }
        *text = String::from_utf8_lossy(&octets).into_owned();
    }
}

/// Values near most times and offsets of a direction, so that differences are small.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Base {
    pub(crate) time: i64,
    pub(crate) offset: u64,
}

/// Numbers for which there is room at the start, and after [`Codec::room`].
pub(super) const ROOM: usize = 128;

/// Numbers collected before they are written.
const GATHERED: usize = 256;

/// The highest bit of a mask. The lowest bit of a mask is 1, so that it is never 0.
const HIGHEST: u64 = 1 << BLOCK;

/// Numbers that a mask is about.
const BLOCK: u32 = 55;

/// The most bytes that a number takes.
const LONGEST: usize = 9;

/// The buffers of a [`Writer`], which are reused.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    numbers: Box<[u64; GATHERED]>,
    octets: Vec<u8>,
    /// Number of bytes written.
    length: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            numbers: Box::new([0; GATHERED]),
            octets: Vec::new(),
            length: 0,
        }
    }
}

impl Room {
    /// The bytes written.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    /// A writer to these buffers, without contents.
    pub(super) fn writer(&mut self) -> Writer<'_> {
        self.length = 0;
        Writer {
            numbers: &mut self.numbers[..],
            octets: Some((&mut self.octets, &mut self.length)),
            ..Writer::default()
        }
    }
}

/// Collects the numbers that are not 0, then writes them.
#[derive(Default)]
pub(super) struct Writer<'a> {
    numbers: &'a mut [u64],
    /// How many are collected.
    count: usize,
    /// Start of the present block, which is its mask.
    block: usize,
    /// The mask of the numbers that are not 0, above a 1.
    there: u64,
    /// The mask's bit of the last number.
    next: u64,
    octets: Option<(&'a mut Vec<u8>, &'a mut usize)>,
    base: Base,
}

impl Writer<'_> {
    #[inline(always)]
    fn begin_block(&mut self) {
        (self.block, self.there, self.next) = (self.count, 1, 1);
        self.count += 1;
    }

    #[inline(always)]
    fn end_block(&mut self) {
        self.numbers[self.block] = self.there;
    }

    /// Writes the first `count` of the collected numbers.
    #[inline(never)]
    fn write(&mut self, count: usize) {
        let Some((octets, length)) = &mut self.octets else {
            return;
        };
        let most = **length + (count + 1) * LONGEST;
        if octets.len() < most {
            octets.resize(most, 0);
        }
        let mut at = **length;
        for &number in &self.numbers[..count] {
            if let Some(room) = octets[at..].first_chunk_mut() {
                at += put(room, number);
            }
        }
        **length = at;
        self.numbers.copy_within(count..self.count, 0);
        self.count -= count;
        self.block = 0;
    }
}

/// Bytes of a number with this highest bit.
const LENGTHS: [u8; 64] = {
    let mut lengths = [9; 64];
    let mut bit = 0;
    while bit < 56 {
        lengths[bit] = bit as u8 / 7 + 1;
        bit += 1;
    }
    lengths
};

/// Writes a number that is not 0, and returns its length in bytes.
#[inline(always)]
fn put(room: &mut [u8; LONGEST], number: u64) -> usize {
    let length = LENGTHS[(number | 1).ilog2() as usize];
    let [first, rest @ ..] = room;
    if length > 8 {
        *first = 0;
        *rest = number.to_le_bytes();
        return 9;
    }
    let octets = (number << 1 | 1) << (length - 1);
    if let Some(room) = room.first_chunk_mut() {
        *room = octets.to_le_bytes();
    }
    usize::from(length)
}

impl Codec for Writer<'_> {
    const READS: bool = false;

    #[inline(always)]
    fn begin_part(&mut self) {
        self.count = 0;
        self.begin_block();
    }

    fn end_part(&mut self) {
        self.end_block();
        self.write(self.count);
    }

    #[inline]
    fn room(&mut self) {
        if self.count + ROOM + ROOM / BLOCK as usize >= GATHERED {
            self.write(self.block);
        }
    }

    #[inline(always)]
    fn unsigned(&mut self, value: &mut u64) {
        if self.next == HIGHEST {
            self.end_block();
            self.begin_block();
        }
        self.next <<= 1;
        let there = *value != 0;
        self.there |= if there { self.next } else { 0 };
        // The next number overwrites a 0.
        self.numbers[self.count] = *value;
        self.count += usize::from(there);
    }

    #[inline(always)]
    fn base(&mut self) -> &mut Base {
        &mut self.base
    }

    fn is_over(&self) -> bool {
        false
    }

    fn fail(&mut self) {}
}

/// Reads numbers from bytes.
#[derive(Default)]
pub(super) struct Reader<'a> {
    octets: &'a [u8],
    /// The mask: which of the next numbers are not 0.
    there: u64,
    /// How many numbers the mask is still about.
    left: u32,
    base: Base,
    over: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Reader<'a> {
        Reader {
            octets,
            there: 0,
            left: 0,
            base: Base::default(),
            over: false,
        }
    }

    /// Whether nothing was wrong and no bytes are left.
    pub(super) fn is_done(&self) -> bool {
        !self.over && self.octets.is_empty()
    }

    /// Skips that many bytes.
    #[inline]
    fn advance(&mut self, length: usize) {
        match self.octets.get(length..) {
            Some(rest) => self.octets = rest,
            None => (self.octets, self.over) = (&[], true),
        }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let word = self.word();
        let length = (word as u8).trailing_zeros() as usize + 1;
        if length > 8 {
            return self.large();
        }
        self.advance(length);
        word >> length & ((1 << (7 * length)) - 1)
    }

    #[cold]
    fn large(&mut self) -> u64 {
        self.advance(1);
        let number = self.word();
        self.advance(8);
        number
    }

    /// The next eight bytes, padded with zeros at the end.
    #[inline]
    fn word(&self) -> u64 {
        if let Some(octets) = self.octets.first_chunk::<8>() {
            return u64::from_le_bytes(*octets);
        }
        let mut octets = [0; 8];
        octets[..self.octets.len()].copy_from_slice(self.octets);
        u64::from_le_bytes(octets)
    }
}

impl Codec for Reader<'_> {
    const READS: bool = true;

    fn begin_part(&mut self) {
        self.left = 0;
    }

    fn end_part(&mut self) {}

    fn room(&mut self) {}

    #[inline]
    fn unsigned(&mut self, value: &mut u64) {
        if self.left == 0 {
            self.there = self.number() >> 1;
            self.left = BLOCK;
        }
        let there = self.there & 1 == 1;
        self.there >>= 1;
        self.left -= 1;
        *value = if there { self.number() } else { 0 };
    }

    fn base(&mut self) -> &mut Base {
        &mut self.base
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn fail(&mut self) {
        self.over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_come_back() {
        let mut numbers: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).collect();
        numbers.extend([0, 0, 0, u64::MAX, 0]);
        let mut room = Room::default();
        let mut writer = room.writer();
        writer.begin_part();
        for number in &numbers {
            writer.room();
            writer.unsigned(&mut number.clone());
        }
        writer.end_part();
        let mut reader = Reader::new(room.octets());
        reader.begin_part();
        for number in &numbers {
            let mut read = 0;
            reader.unsigned(&mut read);
            assert_eq!(read, *number);
        }
        assert!(reader.is_done());
    }

    #[test]
    fn a_number_takes_an_octet_for_each_seven_bits() {
        for bits in 1usize..=64 {
            let length = if bits > 56 { 9 } else { bits.div_ceil(7) };
            let highest = u64::MAX >> (64 - bits);
            assert_eq!(put(&mut [0; LONGEST], highest), length, "{bits} bits");
        }
    }
}
