//! Vendor-Specific attributes (RFC 2865, section 5.26): the vendor's number, then the vendor's own attributes in the
//! format that the RFC recommends: type, length, value.

use super::Attribute;

/// Cisco Systems.
pub const CISCO: u32 = 9;
/// Microsoft.
pub const MICROSOFT: u32 = 311;
/// Wi-Fi Alliance, for the attributes of WISPr.
pub const WISPR: u32 = 14_122;
/// MikroTik.
pub const MIKROTIK: u32 = 14_988;
/// The number that RFC 5612 reserves for examples: it belongs to nobody.
pub const EXAMPLE: u32 = 32_473;

/// Attributes of Cisco.
pub mod cisco {
    /// Cisco-AVPair: `NAME=VALUE`.
    pub const AV_PAIR: u8 = 1;
    /// Cisco-Policy-Up: the policy for packets from the subscriber.
    pub const POLICY_UP: u8 = 37;
    /// Cisco-Policy-Down: the policy for packets to the subscriber.
    pub const POLICY_DOWN: u8 = 38;
}

/// Attributes of Microsoft (RFC 2548).
pub mod microsoft {
    /// MS-CHAP-Error: an identifier, and a Failure's message (RFC 2548, section 2.1.5).
    pub const CHAP_ERROR: u8 = 2;
    /// MS-CHAP-Challenge (section 2.1.2).
    pub const CHAP_CHALLENGE: u8 = 11;
    /// MS-CHAP2-Response: an identifier, flags, and 48 octets of the Response (section 2.3.2).
    pub const CHAP2_RESPONSE: u8 = 25;
    /// MS-CHAP2-Success: an identifier, and the authenticator response (section 2.3.3).
    pub const CHAP2_SUCCESS: u8 = 26;
}

/// Attributes of WISPr.
pub mod wispr {
    /// WISPr-Bandwidth-Max-Up, in bits per second.
    pub const BANDWIDTH_MAX_UP: u8 = 7;
    /// WISPr-Bandwidth-Max-Down, in bits per second.
    pub const BANDWIDTH_MAX_DOWN: u8 = 8;
}

/// Attributes of MikroTik.
pub mod mikrotik {
    /// Mikrotik-Rate-Limit, a text.
    pub const RATE_LIMIT: u8 = 8;
}

/// A Vendor-Specific attribute.
#[derive(Clone, Copy, Debug)]
pub struct VendorSpecific<'a> {
    /// The vendor's number.
    pub vendor: u32,
    rest: &'a [u8],
}

impl<'a> VendorSpecific<'a> {
    /// Reads the value of a Vendor-Specific attribute; `None` if it has no octet behind the vendor's number.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (vendor, rest) = value.split_first_chunk::<4>()?;
        let vendor = u32::from_be_bytes(*vendor);
        (!rest.is_empty()).then_some(Self { vendor, rest })
    }

    /// The vendor's attributes, in order. The last item is `None` if what follows does not have the recommended format.
    pub fn attributes(self) -> impl Iterator<Item = Option<Attribute<'a>>> {
        let mut rest = self.rest;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let whole = core::mem::take(&mut rest);
            let (kind, length) = match *whole {
                [kind, length, ..] => (kind, usize::from(length)),
                _ => return Some(None),
            };
            let Some(value) = whole.get(2..length) else {
                return Some(None);
            };
            rest = &whole[length..];
            Some(Some(Attribute { kind, value }))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(value: &[u8]) -> Vec<Option<(u8, Vec<u8>)>> {
        let parsed = VendorSpecific::parse(value).expect("a vendor");
        let one = |one: Option<Attribute<'_>>| one.map(|one| (one.kind, one.value.to_vec()));
        parsed.attributes().map(one).collect()
    }

    #[test]
    fn several_attributes_of_a_vendor_are_read_in_order() {
        let value = [0, 0, 0x37, 0x2a, 7, 6, 0, 1, 2, 3, 8, 3, 9];
        assert_eq!(
            VendorSpecific::parse(&value).map(|one| one.vendor),
            Some(WISPR)
        );
        assert_eq!(
            read(&value),
            [Some((7, vec![0, 1, 2, 3])), Some((8, vec![9]))]
        );
    }

    #[test]
    fn what_is_not_in_the_recommended_format_ends_the_list() {
        assert_eq!(read(&[0, 0, 0, 9, 1]), [None]);
        assert_eq!(read(&[0, 0, 0, 9, 1, 1]), [None]);
        assert_eq!(read(&[0, 0, 0, 9, 1, 0, 5]), [None]);
        assert_eq!(read(&[0, 0, 0, 9, 1, 2, 5]), [Some((1, vec![])), None]);
        assert_eq!(read(&[0, 0, 0, 9, 1, 9, 5]), [None]);
        for short in [&[][..], &[0, 0, 0], &[0, 0, 0, 9]] {
            assert!(VendorSpecific::parse(short).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_the_reader_panic_or_read_more_than_there_is(
            value in proptest::collection::vec(any::<u8>(), 0..260)
        ) {
            if let Some(parsed) = VendorSpecific::parse(&value) {
                let octets: usize = parsed
                    .attributes()
                    .map(|one| one.map_or(0, |one| one.value.len() + 2))
                    .sum();
                prop_assert!(octets <= value.len() - 4);
            }
        }
    }
}
