//! Takes numbers and addresses from the front of a slice.

use std::net::IpAddr;

/// Takes from the front; `None` when there is too little.
#[derive(Debug, Clone, Copy)]
pub(super) struct Octets<'a>(pub(super) &'a [u8]);

impl<'a> Octets<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(slice)
    }

    /// An IPv6 address if `is_v6`, else an IPv4 address.
    pub(super) fn address(&mut self, is_v6: bool) -> Option<IpAddr> {
        if is_v6 {
            self.array::<16>().map(IpAddr::from)
        } else {
            self.array::<4>().map(IpAddr::from)
        }
    }

    /// An AS number: four octets if `true`, else two.
    pub(super) fn asn(&mut self, is_wide: bool) -> Option<u32> {
        if is_wide {
            self.u32()
        } else {
            self.u16().map(u32::from)
        }
    }
}
