//! Netlink attributes: length, kind, value, padded to four bytes (RFC 3549, section 2.3.1).

/// The flag that some attributes with nested ones have (`NLA_F_NESTED`).
pub(crate) const NESTED: u16 = 0x8000;

/// Attributes under construction.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.0.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind, &[]);
        fill(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

/// Attributes to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The value of the first attribute of a kind.
    pub(crate) fn bytes(self, wanted: u16) -> Option<&'a [u8]> {
        let mut left = self.0;
        loop {
            let (head, rest) = left.split_first_chunk::<4>()?;
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(4)?;
            let value = rest.get(..length)?;
            if u16::from_ne_bytes([head[2], head[3]]) & !NESTED == wanted {
                return Some(value);
            }
            left = rest.get(length.next_multiple_of(4)..)?;
        }
    }

    /// All attributes with the flags of their kinds, up to the first broken one.
    pub(crate) fn all(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let (head, rest) = left.split_first_chunk::<4>()?;
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(4)?;
            let value = rest.get(..length)?;
            left = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((u16::from_ne_bytes([head[2], head[3]]), value))
        })
    }

    pub(crate) fn u32(self, wanted: u16) -> Option<u32> {
        word(self.bytes(wanted)?, 0)
    }

    pub(crate) fn u64(self, wanted: u16) -> Option<u64> {
        let value = self.bytes(wanted)?.first_chunk::<8>()?;
        Some(u64::from_ne_bytes(*value))
    }

    pub(crate) fn nested(self, wanted: u16) -> Option<Self> {
        self.bytes(wanted).map(Reader)
    }

    pub(crate) fn text(self, wanted: u16) -> Option<&'a str> {
        let value = self.bytes(wanted)?;
        let value = value.split(|&byte| byte == 0).next()?;
        core::str::from_utf8(value).ok()
    }
}

/// The word at a place, in the host's order.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*word))
}

/// The half word at a place, in the host's order.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..at + 2)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*half))
}
