//! Faults of an UPDATE message that do not reset the session: RFC 7606 and the RFCs that refer to it.

use std::fmt;

use super::notification::{self, Notification};
use crate::bgp::attr::{self, code};

/// The most faults kept per message; further ones are only counted.
pub const FAULTS_MAX: usize = 16;

/// What RFC 7606, section 2 prescribes for a fault, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Treatment {
    /// The attribute is discarded.
    AttributeDiscard,
    /// The routes are treated as withdrawn.
    TreatAsWithdraw,
    /// The session ends with a NOTIFICATION.
    SessionReset,
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Treatment::AttributeDiscard => "attribute discard",
            Treatment::TreatAsWithdraw => "treat-as-withdraw",
            Treatment::SessionReset => "session reset",
        })
    }
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// The Optional or Transitive bit is wrong.
    Flags,
    /// A mandatory attribute is missing.
    Missing,
    /// The attribute occurs more than once.
    Repeated,
    /// The attribute runs past the end of the attributes, or the remaining bytes are too few for one.
    PastEnd,
    /// The attribute cannot have this length.
    Length,
    /// The origin is not one of the three defined values.
    Origin,
    /// The next hop is not a host address.
    NextHop,
    /// IPv4 routes occur in both places, with different next hops.
    TwoNextHops,
    /// A segment of an unknown type.
    SegmentKind,
    /// A segment longer than the path.
    SegmentPastEnd,
    /// A single octet remains where a segment should start.
    SegmentCut,
    /// A segment without AS numbers.
    SegmentEmpty,
    /// A confederation segment from outside the confederation or in an AS4_PATH, or none where the path must
    /// begin with one.
    Confederation,
    /// The path does not begin with the peer's AS.
    FirstAs,
    /// AS 0.
    ZeroAs,
    /// The attribute is not allowed from an external peer.
    FromExternal,
    /// The attribute is only for peers with two-octet AS numbers.
    FromFourOctet,
    /// Routes of a family that was not negotiated.
    Family,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault<'a> {
    /// The attribute's type; 0 if none.
    pub code: u8,
    /// What is wrong with it.
    pub what: What,
    /// The attribute as received: flags, type, length, value. Empty if it is missing.
    pub octets: &'a [u8],
}

impl Fault<'_> {
    /// How the fault is treated.
    #[must_use]
    pub fn treatment(&self) -> Treatment {
        match self.what {
            What::Repeated | What::FromExternal | What::FromFourOctet | What::Family => {
                Treatment::AttributeDiscard
            }
            What::Length
            | What::ZeroAs
            | What::SegmentKind
            | What::SegmentPastEnd
            | What::SegmentCut
            | What::SegmentEmpty
            | What::Confederation => attr::row(self.code).on_error,
            What::Flags
            | What::Missing
            | What::PastEnd
            | What::Origin
            | What::NextHop
            | What::TwoNextHops
            | What::FirstAs => Treatment::TreatAsWithdraw,
        }
    }

    /// The RFC section that prescribes it.
    #[must_use]
    pub fn source(&self) -> &'static str {
        match self.what {
            What::Flags => "RFC 7606, section 3 (c)",
            What::Missing => "RFC 7606, section 3 (d)",
            What::Repeated => "RFC 7606, section 3 (g)",
            What::PastEnd => "RFC 7606, section 4",
            What::Origin => "RFC 7606, section 7.1",
            What::NextHop => "RFC 7606, section 3 (e)",
            What::TwoNextHops => "RFC 7606, section 5.1",
            What::FirstAs => "RFC 7606, section 7.2",
            What::ZeroAs => "RFC 7607, section 2",
            What::FromFourOctet => "RFC 6793, section 6",
            What::Family => "RFC 4760, section 8",
            What::Confederation if self.code == code::AS_PATH => "RFC 5065, section 5",
            What::Confederation
            | What::SegmentKind
            | What::SegmentPastEnd
            | What::SegmentCut
            | What::SegmentEmpty
            | What::Length
            | What::FromExternal => attr::row(self.code).source,
        }
    }

    /// The NOTIFICATION to send when the session must be reset after all because no route could be treated as
    /// withdrawn (RFC 7606, section 5.2; RFC 4271, section 6.3).
    #[must_use]
    pub fn notification(&self) -> Notification {
        use notification::update;
        let subcode = match self.what {
            What::Flags => update::FLAGS,
            What::Missing => {
                let code = notification::code::UPDATE;
                return Notification::with_data(code, update::MISSING_WELL_KNOWN, &[self.code]);
            }
            What::Repeated | What::PastEnd => update::MALFORMED_ATTRIBUTES,
            What::Length => update::LENGTH,
            What::Origin => update::ORIGIN,
            What::NextHop | What::TwoNextHops => update::NEXT_HOP,
            What::SegmentKind
            | What::SegmentPastEnd
            | What::SegmentCut
            | What::SegmentEmpty
            | What::Confederation
            | What::FirstAs => update::AS_PATH,
            What::ZeroAs if self.code == code::AS_PATH => update::AS_PATH,
            What::ZeroAs | What::FromExternal | What::FromFourOctet | What::Family => {
                update::OPTIONAL
            }
        };
        Notification::with_data(notification::code::UPDATE, subcode, self.octets)
    }

    fn text(&self) -> &'static str {
        match self.what {
            What::Flags => "flags that it cannot have",
            What::Missing => "is missing",
            What::Repeated => "appears again",
            What::PastEnd => "reaches past the attributes",
            What::Length => "a length that it cannot have",
            What::Origin => "an undefined origin",
            What::NextHop => "not the address of a host",
            What::TwoNextHops => "IPv4 routes with two next hops",
            What::SegmentKind => "a segment of an unknown type",
            What::SegmentPastEnd => "a segment that reaches past the path",
            What::SegmentCut => "one octet left where a segment would begin",
            What::SegmentEmpty => "an empty segment",
            What::Confederation => "segments of a confederation are not as they must be",
            What::FirstAs => "does not begin with the peer's AS",
            What::ZeroAs => "AS 0",
            What::FromExternal => "from an external peer",
            What::FromFourOctet => "from a peer that knows four-octet AS numbers",
            What::Family => "a family that was not agreed on",
        }
    }
}

impl fmt::Display for Fault<'_> {
    /// `attribute 8 (COMMUNITIES): a length that it cannot have (RFC 7606, section 7.8: treat-as-withdraw)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, attr::row(self.code).name) {
            (0, _) => write!(f, "{}", self.text())?,
            (code, "") => write!(f, "attribute {code}: {}", self.text())?,
            (code, name) => write!(f, "attribute {code} ({name}): {}", self.text())?,
        }
        write!(f, " ({}: {})", self.source(), self.treatment())
    }
}
