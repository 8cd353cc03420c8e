//! Reasons to drop a packet.

use core::fmt;

use wire::ip::HeaderError;

/// Why a packet was dropped. The owner counts these; [`icmp::Error::of`](crate::icmp::Error::of) gives the ICMP error
/// for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Discard {
    /// Shorter than a header of its version.
    Truncated,
    /// Neither IPv4 nor IPv6.
    Version,
    /// IPv4's header length is impossible (RFC 1812 section 5.2.2, test 4).
    HeaderLength,
    /// The length in the header is impossible, or above that of the packet (test 5).
    TotalLength,
    /// IPv6 extension headers, or AH, exceed the packet or the limit on their number.
    Extensions,
    /// IPv4's header checksum is wrong (test 2).
    Checksum,
    /// A fragment that ends beyond 65,535 bytes (RFC 791 section 3.1, RFC 8200 section 4.5).
    FragmentEnd,
    /// A source that no packet on a network may have (RFC 1812 section 5.3.7, RFC 4291 section 2.5).
    MartianSource,
    /// A destination that no router forwards to (the same, RFC 3927 section 7).
    MartianDestination,
    /// Multicast, which is not forwarded here.
    Multicast,
    /// A link-local source and a destination that is not on the link (RFC 4291 section 2.5.6).
    BeyondScope,
    /// A source that is not the subscriber's.
    Spoofed,
    /// Its TTL or hop limit is used up (RFC 1812 section 5.3.1, RFC 8200 section 3).
    HopLimit,
    /// No subscriber has the destination.
    NoRoute,
    /// It does not fit, and may not be fragmented (RFC 1191, RFC 8200 section 5).
    TooBig,
}

impl Discard {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Truncated,
        Self::Version,
        Self::HeaderLength,
        Self::TotalLength,
        Self::Extensions,
        Self::Checksum,
        Self::FragmentEnd,
        Self::MartianSource,
        Self::MartianDestination,
        Self::Multicast,
        Self::BeyondScope,
        Self::Spoofed,
        Self::HopLimit,
        Self::NoRoute,
        Self::TooBig,
    ];

    /// Its name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "version",
            Self::HeaderLength => "header_length",
            Self::TotalLength => "total_length",
            Self::Extensions => "extensions",
            Self::Checksum => "checksum",
            Self::FragmentEnd => "fragment_end",
            Self::MartianSource => "martian_source",
            Self::MartianDestination => "martian_destination",
            Self::Multicast => "multicast",
            Self::BeyondScope => "beyond_scope",
            Self::Spoofed => "spoofed",
            Self::HopLimit => "hop_limit",
            Self::NoRoute => "no_route",
            Self::TooBig => "too_big",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Discard {}

impl From<HeaderError> for Discard {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::Truncated => Self::Truncated,
            HeaderError::Version(_) => Self::Version,
            HeaderError::HeaderLength(_) => Self::HeaderLength,
            HeaderError::TotalLength(_) => Self::TotalLength,
            HeaderError::Extension | HeaderError::TooManyExtensions => Self::Extensions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Discard;

    #[test]
    fn reasons_stand_in_the_order_of_their_numbers_and_have_names_of_their_own() {
        let mut names = std::collections::BTreeSet::new();
        for (number, reason) in Discard::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            assert!(names.insert(reason.name()), "{reason}");
        }
    }
}
