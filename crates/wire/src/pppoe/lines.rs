//! The line that a subscriber is connected by, as its access node (DSLAM) reports it: the Vendor-Specific tag of the
//! Broadband Forum (TR-101), its attributes in RADIUS (RFC 4679) and its AVPs in L2TP (RFC 5515).
//!
//! All three number the values alike. In the tag, a sub-option is its number, the length of its value, and the value.

use core::fmt;

/// The Broadband Forum's enterprise number, assigned when it was the ADSL Forum (RFC 4679, section 3.1).
pub const ADSL_FORUM: u32 = 3561;

/// The longest Agent-Circuit-Id or Agent-Remote-Id (RFC 4679, sections 3.3.1 and 3.3.2).
pub const LINE_ID_MAX: usize = 63;

/// Numbers of a line's values (RFC 4679, section 4; RFC 5515, section 7.1).
pub mod line {
    /// The port of the access node: a text.
    pub const AGENT_CIRCUIT_ID: u8 = 0x01;
    /// The operator's name for the line: a text.
    pub const AGENT_REMOTE_ID: u8 = 0x02;
    /// Actual-Data-Rate-Upstream, in bits per second.
    pub const ACTUAL_RATE_UP: u8 = 0x81;
    /// Actual-Data-Rate-Downstream, in bits per second.
    pub const ACTUAL_RATE_DOWN: u8 = 0x82;
    /// Maximum-Data-Rate-Upstream, in bits per second.
    pub const MAXIMUM_RATE_UP: u8 = 0x87;
    /// Maximum-Data-Rate-Downstream, in bits per second.
    pub const MAXIMUM_RATE_DOWN: u8 = 0x88;
    /// The last of the data rates, Minimum-Data-Rate-Downstream-Low-Power. The first is [`ACTUAL_RATE_UP`].
    pub const LAST_RATE: u8 = 0x8a;
    /// The first of the delays, Maximum-Interleaving-Delay-Upstream, in milliseconds.
    pub const FIRST_DELAY: u8 = 0x8b;
    /// The last of the delays, Actual-Interleaving-Delay-Downstream, in milliseconds.
    pub const LAST_DELAY: u8 = 0x8e;
    /// Access-Loop-Encapsulation: three octets.
    pub const ENCAPSULATION: u8 = 0x90;
    /// IWF-Session: the access node turns PPPoA into PPPoE.
    pub const IWF_SESSION: u8 = 0xfe;
}

/// A line's values: each number at most once, in the order of the tag, with a length that its definition allows.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct LineInfo {
    /// Sub-options as they are in the tag.
    raw: Box<[u8]>,
}

/// A value in the form of an L2TP AVP (RFC 5515, section 5), with the vendor id [`ADSL_FORUM`] and without the M bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineAvp<'a> {
    /// The value as it is: a text, or Access-Loop-Encapsulation.
    Bytes(&'a [u8]),
    /// A data rate in bits per second, which has eight octets in an AVP.
    Rate(u64),
    /// A delay in milliseconds, or a flag: four octets.
    Word(u32),
}

impl LineInfo {
    /// Parses the sub-options of the tag, which follow the vendor's number. Returns `None` if none of them can be used.
    ///
    /// Ignored: numbers that RFC 4679 does not define, values of a length that it does not allow, repeated numbers, and
    /// everything from a sub-option on that is beyond the tag's end.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        Self::collect(Options(data))
    }

    /// Collects numbers and values, as [`LineInfo::radius`] returns them. Returns `None` if none of them can be used.
    /// What [`LineInfo::parse`] ignores is ignored here as well.
    pub fn collect<'a>(values: impl IntoIterator<Item = (u8, &'a [u8])>) -> Option<Self> {
        let mut raw = Vec::new();
        for (number, value) in values {
            if allows(number, value.len()) && Options(&raw).all(|(known, _)| known != number) {
                raw.extend_from_slice(&[number, value.len() as u8]);
                raw.extend_from_slice(value);
            }
        }
        (!raw.is_empty()).then(|| Self { raw: raw.into() })
    }

    /// Collects the AVPs of an ICRQ whose vendor id is [`ADSL_FORUM`]: Attribute Type and value (RFC 5515, section 5).
    /// Returns `None` if none of them can be used. A data rate of 2^32 bits per second or more becomes 2^32 - 1.
    pub fn from_avps<'a>(avps: impl IntoIterator<Item = (u16, &'a [u8])>) -> Option<Self> {
        let mut raw = Vec::new();
        for (attribute, value) in avps {
            let Ok(number) = u8::try_from(attribute) else {
                continue;
            };
            let rate = value.try_into().map(u64::from_be_bytes).map(|rate| {
                let rate = u32::try_from(rate).unwrap_or(u32::MAX);
                rate.to_be_bytes()
            });
            let value = match (number, &rate) {
                (line::ACTUAL_RATE_UP..=line::LAST_RATE, Ok(rate)) => &rate[..],
                (line::ACTUAL_RATE_UP..=line::LAST_RATE, Err(_)) => continue,
                // "0x00 IWF not performed, 0x01 IWF performed"; in the tag its presence says so.
                (line::IWF_SESSION, _) if value == [0, 0, 0, 1] => &[],
                (line::IWF_SESSION, _) => continue,
                _ => value,
            };
            let len = u8::try_from(value.len()).unwrap_or(u8::MAX);
            raw.extend_from_slice(&[number, len]);
            raw.extend_from_slice(&value[..usize::from(len)]);
        }
        Self::parse(&raw)
    }

    /// Agent-Circuit-Id.
    #[must_use]
    pub fn circuit_id(&self) -> Option<&[u8]> {
        self.get(line::AGENT_CIRCUIT_ID)
    }

    /// Agent-Remote-Id.
    #[must_use]
    pub fn remote_id(&self) -> Option<&[u8]> {
        self.get(line::AGENT_REMOTE_ID)
    }

    /// The value of a number, see [`mod@line`].
    #[must_use]
    pub fn get(&self, number: u8) -> Option<&[u8]> {
        let mut options = Options(&self.raw);
        options
            .find(|(known, _)| *known == number)
            .map(|(_, value)| value)
    }

    /// The value of a data rate (bits per second) or a delay (milliseconds).
    #[must_use]
    pub fn word(&self, number: u8) -> Option<u32> {
        Some(u32::from_be_bytes(self.get(number)?.try_into().ok()?))
    }

    /// All values, in the order of the tag. This is also their form in RADIUS (RFC 4679, section 3.3): the Vendor-Type
    /// and the value of a sub-attribute of vendor [`ADSL_FORUM`].
    pub fn radius(&self) -> impl Iterator<Item = (u8, &[u8])> {
        Options(&self.raw)
    }

    /// All values as AVPs of an ICRQ: Attribute Type and value (RFC 5515, section 5).
    ///
    /// Access-Loop-Encapsulation is passed on unchanged: RFC 4679 and RFC 5515 number its data link differently, and the
    /// access node decides which numbers it sends.
    pub fn avps(&self) -> impl Iterator<Item = (u16, LineAvp<'_>)> {
        self.radius().map(|(number, value)| {
            let word = || value.try_into().map_or(0, u32::from_be_bytes);
            let avp = match number {
                line::ACTUAL_RATE_UP..=line::LAST_RATE => LineAvp::Rate(word().into()),
                line::FIRST_DELAY..=line::LAST_DELAY => LineAvp::Word(word()),
                // "0x01 IWF performed"; in the tag its presence says so.
                line::IWF_SESSION => LineAvp::Word(1),
                _ => LineAvp::Bytes(value),
            };
            (number.into(), avp)
        })
    }

    /// The sub-options as a tag has them after the vendor's number.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.raw
    }
}

impl fmt::Debug for LineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineInfo ")?;
        let values = self
            .radius()
            .map(|(number, value)| (number, value.escape_ascii().to_string()));
        f.debug_map().entries(values).finish()
    }
}

/// Whether a value may have this length (RFC 4679, section 3.3; RFC 5515, sections 5.1 to 5.19).
fn allows(number: u8, len: usize) -> bool {
    match number {
        line::AGENT_CIRCUIT_ID | line::AGENT_REMOTE_ID => (1..=LINE_ID_MAX).contains(&len),
        line::ACTUAL_RATE_UP..=line::LAST_DELAY => len == 4,
        line::ENCAPSULATION => len == 3,
        line::IWF_SESSION => len == 0,
        _ => false,
    }
}

/// Sub-options, as far as they are within the octets.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[number, len], rest) = self.0.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some((number, value))
    }
}
