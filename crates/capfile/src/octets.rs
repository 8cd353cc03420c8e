//! Integers at a place in a slice, in either byte order.

/// The order in which a file's integers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Big,
    Little,
}

impl Order {
    #[inline(always)]
    pub(crate) fn u16(self, octets: &[u8], at: usize) -> u16 {
        let octets = [octets[at], octets[at + 1]];
        match self {
            Order::Big => u16::from_be_bytes(octets),
            Order::Little => u16::from_le_bytes(octets),
        }
    }

    #[inline(always)]
    pub(crate) fn u32(self, octets: &[u8], at: usize) -> u32 {
        let octets = [octets[at], octets[at + 1], octets[at + 2], octets[at + 3]];
        match self {
            Order::Big => u32::from_be_bytes(octets),
            Order::Little => u32::from_le_bytes(octets),
        }
    }

    pub(crate) fn u64(self, octets: &[u8], at: usize) -> u64 {
        let (first, second) = (self.u32(octets, at), self.u32(octets, at + 4));
        let (high, low) = match self {
            Order::Big => (first, second),
            Order::Little => (second, first),
        };
        u64::from(high) << 32 | u64::from(low)
    }

    /// Two 32-bit words, the more significant one first whatever the order.
    #[inline(always)]
    pub(crate) fn u64_of_words(self, octets: &[u8], at: usize) -> u64 {
        u64::from(self.u32(octets, at)) << 32 | u64::from(self.u32(octets, at + 4))
    }
}
