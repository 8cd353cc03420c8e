//! TCP options (RFC 9293 3.1).

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Two NOPs, and the kind and length of timestamps.
const ALIGNED_TIMESTAMPS: u32 = 0x0101_080a;

/// A segment's options. If an option is repeated, the last one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Timestamp value and echo reply (RFC 7323 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Shift count as sent; values above 14 are treated as 14 (RFC 7323 2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 2).
    pub sack_permitted: bool,
    /// The options are malformed; those before the fault are kept.
    pub malformed: bool,
    /// The capture ends within the options; those before that are kept.
    pub cut: bool,
    /// How many of `sack_blocks` are used, at most 4; see [`sack`](Self::sack).
    pub sack_len: u8,
    /// SACK blocks; unused ones are 0.
    pub sack_blocks: [(u32, u32); 4],
}

impl Options {
    /// No options.
    pub const NONE: Options = Options {
        timestamps: None,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        malformed: false,
        cut: false,
        sack_len: 0,
        sack_blocks: [(0, 0); 4],
    };

    /// SACK blocks, left and right edge, in the order sent (RFC 2018 3).
    #[inline]
    #[must_use]
    pub fn sack(&self) -> &[(u32, u32)] {
        self.sack_blocks
            .get(..usize::from(self.sack_len))
            .unwrap_or(&self.sack_blocks)
    }

    /// Reads two NOPs and timestamps, as RFC 7323 appendix A recommends and nearly all segments have; None for
    /// other options.
    #[inline(always)]
    pub(super) fn aligned_timestamps(octets: &[u8; 12]) -> Option<Self> {
        let (head, value) = octets.split_first_chunk::<4>()?;
        let aligned = u32::from_be_bytes(*head) == ALIGNED_TIMESTAMPS;
        aligned.then_some(Options {
            timestamps: Some(pair(value.first_chunk()?)),
            ..Self::NONE
        })
    }

    /// Reads the octets after the fixed header. Does not fail: reading ends at a malformed option.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Self {
        let mut options = Self::NONE;
        options.malformed = options.read(octets).is_none();
        options
    }

    /// Reads options of which only the beginning was captured.
    pub(super) fn parse_cut(octets: &[u8]) -> Self {
        let mut options = Self::parse(octets);
        // An unterminated option is the capture's fault, not the sender's.
        options.malformed = false;
        options.cut = true;
        options
    }

    /// None if an option is malformed.
    fn read(&mut self, mut octets: &[u8]) -> Option<()> {
        loop {
            match *octets {
                [] | [END, ..] => return Some(()),
                [NO_OPERATION, ref rest @ ..] => octets = rest,
                [kind, length, ..] => {
                    let (option, rest) = octets.split_at_checked(usize::from(length))?;
                    self.take(kind, option.get(2..)?)?;
                    octets = rest;
                }
                [_] => return None,
            }
        }
    }

    /// None if the value is invalid for `kind`.
    fn take(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match kind {
            MAXIMUM_SEGMENT_SIZE => self.mss = Some(u16::from_be_bytes(value.try_into().ok()?)),
            WINDOW_SCALE => self.window_scale = Some(u8::from_be_bytes(value.try_into().ok()?)),
            SACK_PERMITTED if value.is_empty() => self.sack_permitted = true,
            SACK_PERMITTED => return None,
            TIMESTAMPS => self.timestamps = Some(pair(value.try_into().ok()?)),
            SACK => {
                let (blocks, rest) = value.as_chunks::<8>();
                if !rest.is_empty() || blocks.is_empty() || blocks.len() > self.sack_blocks.len() {
                    return None;
                }
                self.sack_blocks = Self::NONE.sack_blocks;
                for (slot, block) in self.sack_blocks.iter_mut().zip(blocks) {
                    *slot = pair(block);
                }
                self.sack_len = blocks.len() as u8;
            }
            _ => {}
        }
        Some(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::NONE
    }
}

#[inline]
fn pair(octets: &[u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(*octets);
    ((both >> 32) as u32, both as u32)
}
