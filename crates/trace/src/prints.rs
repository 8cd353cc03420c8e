//! Fingerprints of the last packets of an end, to recognize copies of these packets. [`crate::copies`] has the rule.
//!
//! This code runs for every packet, so each instruction counts. Start reading at [`Prints`].

use crate::segment::Segment;

/// A longer silence separates two packets too much for a copy. Eight such silences last less than the 537 ms after
/// which the time of a [`Print`] repeats.
const SILENCE: i64 = 60_000_000;

/// Packets before the last one whose prints are kept.
const REMEMBERED: usize = 8;

/// Times count units of 2^13 ns, in 16 bits: 537 ms.
pub(crate) const TICK: u32 = 13;

/// Bits of the fingerprint of a [`Print`].
pub(crate) const MARK_BITS: u32 = 28;

/// Bits below the fingerprint.
const MARK: u32 = u64::BITS - MARK_BITS;

/// What is left of a packet: a fingerprint in the upper 28 bits, its time in 16 of the lower bits, and its IP
/// identification in the lowest 16 bits. A fingerprint of 0 means that no packet is its copy any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Print(u64);

impl Print {
    #[inline]
    pub(crate) fn new(segment: &Segment) -> Print {
        // Most packets have no copy, so this is a few multiplications. The fields are next to each other in memory, and
        // one read gets four of them.
        let numbers = u64::from(segment.sequence) | u64::from(segment.acknowledgment) << u32::BITS;
        let fields = u64::from(segment.id)
            | u64::from(segment.flags) << 16
            | u64::from(segment.window) << 32
            | u64::from(segment.checksum) << 48;
        let length = u64::from(segment.payload);
        let mut hash = numbers
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(length.wrapping_mul(0xd6e8_feb8_6659_fd93))
            ^ fields;
        if segment.options.blocks > 0 {
            hash = with_sack(hash, segment);
        }
        let mark = (hash.wrapping_mul(0xff51_afd7_ed55_8ccd) | 1 << MARK) >> MARK << MARK;
        let tick = (segment.time >> TICK) as u16;
        Print(mark | u64::from(tick) << 16 | u64::from(segment.id))
    }

    /// Its fingerprint.
    fn mark(self) -> u64 {
        self.0 >> MARK
    }

    fn tick(self) -> u16 {
        (self.0 >> 16) as u16
    }

    fn id(self) -> u16 {
        self.0 as u16
    }

    /// How much later `segment` was captured, in ticks.
    pub(crate) fn age(self, segment: &Segment) -> i64 {
        let tick = (segment.time >> TICK) as u16;
        i64::from(tick.wrapping_sub(self.tick()) as i16)
    }
}

/// The SACK block that the last data caused tells the duplicate ACKs of one burst apart.
#[cold]
fn with_sack(hash: u64, segment: &Segment) -> u64 {
    let (left, right) = segment.options.sack[0];
    (hash ^ u64::from(left) ^ u64::from(right) << u32::BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The last packets of one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prints([Print; REMEMBERED]);

impl Prints {
    /// After a silence, no packet before it can have a copy. `packets` were sent before it.
    #[inline(always)]
    pub(crate) fn after(&mut self, silence: i64, packets: u64) {
        // One comparison for both signs: time stamps may run backwards.
        if silence.wrapping_add(SILENCE) as u64 > 2 * SILENCE as u64 {
            self.forget(packets as usize);
        }
    }

    #[cold]
    fn forget(&mut self, packets: usize) {
        // Two identifications show whether they differ.
        let places = [packets % REMEMBERED, packets.wrapping_sub(1) % REMEMBERED];
        let ids = places.map(|at| self.0[at].id());
        *self = Prints::default();
        for (at, id) in places.into_iter().zip(ids) {
            self.0[at] = Print(u64::from(id));
        }
    }

    /// Adds the print of the last packet, with which `packets` were sent.
    #[inline(always)]
    pub(crate) fn push(&mut self, packets: u64, print: Print) {
        self.0[packets as usize % REMEMBERED] = print;
    }

    /// Whether one of the packets was equal but for its time.
    #[inline]
    pub(crate) fn has(&self, print: Print) -> bool {
        self.0.iter().any(|old| old.mark() == print.mark())
    }

    /// The prints of these packets.
    pub(crate) fn equal_to(&self, print: Print) -> impl Iterator<Item = Print> {
        let old = self.0.into_iter();
        old.filter(move |old| old.mark() == print.mark())
    }

    /// Whether the end's packets have different identifications, so that an equal one means a copy.
    pub(crate) fn counts_ids(&self, last: Print) -> bool {
        let id = last.id();
        let others = || self.0.iter().filter(|print| print.mark() != last.mark());
        id != 0 && others().any(|print| print.id() != 0) && !others().any(|print| print.id() == id)
    }

    /// The numbers of which it consists, for a codec.
    #[inline(always)]
    pub(crate) fn words(&mut self) -> impl Iterator<Item = &mut u64> {
        self.0.iter_mut().map(|Print(word)| word)
    }
}
