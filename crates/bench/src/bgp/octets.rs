//! A minimal BGP codec (RFC 4271, section 4) for the load generators. It is independent of the
//! codec under test, so that a fault there cannot hide itself.

use std::net::Ipv4Addr;

/// A complete KEEPALIVE.
pub(crate) const KEEPALIVE: [u8; 19] = header(19, KIND_KEEPALIVE);

/// Bytes of a header.
pub(crate) const HEADER_LEN: usize = 19;

/// Limit of a message, in bytes.
pub(crate) const MESSAGE_MAX: usize = 4096;

pub(crate) const KIND_OPEN: u8 = 1;
pub(crate) const KIND_UPDATE: u8 = 2;
pub(crate) const KIND_NOTIFICATION: u8 = 3;
pub(crate) const KIND_KEEPALIVE: u8 = 4;
pub(crate) const KIND_REFRESH: u8 = 5;

/// The two-octet AS number of a speaker whose AS number has four octets (RFC 6793).
const AS_TRANS: u16 = 23_456;

const fn header(length: u16, kind: u8) -> [u8; HEADER_LEN] {
    let mut octets = [0xff; HEADER_LEN];
    let [high, low] = length.to_be_bytes();
    octets[16] = high;
    octets[17] = low;
    octets[18] = kind;
    octets
}

/// An OPEN that offers IPv4 unicast (RFC 4760), route refresh (RFC 2918) and four-octet AS numbers.
pub(crate) fn open(asn: u32, router_id: Ipv4Addr, hold_time_s: u16) -> Vec<u8> {
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 2, 0, 65, 4];
    capabilities.extend(asn.to_be_bytes());
    let mut body = vec![4];
    body.extend(u16::try_from(asn).unwrap_or(AS_TRANS).to_be_bytes());
    body.extend(hold_time_s.to_be_bytes());
    body.extend(router_id.octets());
    body.extend([
        capabilities.len() as u8 + 2,
        2, // the parameter that holds capabilities (RFC 5492)
        capabilities.len() as u8,
    ]);
    body.extend(capabilities);
    message(KIND_OPEN, &body)
}

/// A complete message.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut octets = header((HEADER_LEN + body.len()) as u16, kind).to_vec();
    octets.extend(body);
    octets
}

/// Appends a complete UPDATE. Its content must fit into [`MESSAGE_MAX`].
pub(crate) fn update(withdrawn: &[u8], attributes: &[u8], announced: &[u8], out: &mut Vec<u8>) {
    let length = HEADER_LEN + 4 + withdrawn.len() + attributes.len() + announced.len();
    debug_assert!(length <= MESSAGE_MAX);
    out.extend(header(length as u16, KIND_UPDATE));
    out.extend((withdrawn.len() as u16).to_be_bytes());
    out.extend(withdrawn);
    out.extend((attributes.len() as u16).to_be_bytes());
    out.extend(attributes);
    out.extend(announced);
}

/// Appends an IPv4 prefix (RFC 4271, section 4.3).
pub(crate) fn prefix(address: u32, bits: u8, out: &mut Vec<u8>) {
    out.push(bits);
    out.extend(&address.to_be_bytes()[..usize::from(bits.div_ceil(8))]);
}

/// The length and kind of the message that `octets` starts with; `None` if its header is
/// incomplete.
///
/// # Errors
/// The length is not valid.
pub(crate) fn frame(octets: &[u8]) -> Result<Option<(usize, u8)>, ()> {
    let Some(header) = octets.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
    if length < HEADER_LEN {
        return Err(());
    }
    Ok(Some((length, header[18])))
}

/// The withdrawn and the announced prefixes of an UPDATE's body, still encoded; `None` if its
/// lengths do not fit.
pub(crate) fn routes(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (withdrawn, rest) = counted(body)?;
    let (_, announced) = counted(rest)?;
    Some((withdrawn, announced))
}

fn counted(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Each IPv4 prefix in turn; stops at the first that is not valid.
pub(crate) fn prefixes(mut octets: &[u8]) -> impl Iterator<Item = (u32, u8)> {
    std::iter::from_fn(move || {
        let (&bits, rest) = octets.split_first()?;
        let (significant, rest) = rest.split_at_checked(usize::from(bits.div_ceil(8)))?;
        let mut address = [0; 4];
        address
            .get_mut(..significant.len())?
            .copy_from_slice(significant);
        octets = rest;
        Some((u32::from_be_bytes(address), bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_has_the_fields_of_rfc_4271_and_three_capabilities() {
        let octets = open(65_001, Ipv4Addr::new(127, 0, 0, 9), 3);
        assert_eq!(frame(&octets), Ok(Some((octets.len(), KIND_OPEN))));
        assert_eq!(octets[..16], [0xff; 16]);
        let body = [
            4, 0xfd, 0xe9, 0, 3, 127, 0, 0, 9, 16, 2, 14, 1, 4, 0, 1, 0, 1, 2, 0, 65, 4, 0, 0,
            0xfd, 0xe9,
        ];
        assert_eq!(octets[HEADER_LEN..], body);
        assert_eq!(open(70_000, Ipv4Addr::LOCALHOST, 3)[20..22], [0x5b, 0xa0]);
    }

    #[test]
    fn prefixes_are_read_as_they_were_written() {
        let all = [
            (0x1001_0000, 16),
            (0x1002_0380, 25),
            (0, 0),
            (0x0a00_0000, 7),
        ];
        let mut octets = Vec::new();
        for (address, bits) in all {
            prefix(address, bits, &mut octets);
        }
        assert_eq!(octets[..3], [16, 16, 1]);
        let mut whole = Vec::new();
        update(&octets, &[], &octets, &mut whole);
        let (length, kind) = frame(&whole).unwrap().unwrap();
        assert_eq!((length, kind), (whole.len(), KIND_UPDATE));
        let (withdrawn, announced) = routes(&whole[HEADER_LEN..]).unwrap();
        assert!(prefixes(withdrawn).eq(all) && prefixes(announced).eq(all));
    }

    #[test]
    fn what_is_cut_off_or_no_message_is_told_apart() {
        assert_eq!(frame(&KEEPALIVE[..18]), Ok(None));
        assert_eq!(frame(&KEEPALIVE), Ok(Some((19, KIND_KEEPALIVE))));
        assert_eq!(frame(&[0; HEADER_LEN]), Err(()));
        assert_eq!(routes(&[0, 9, 1]), None);
        assert_eq!(prefixes(&[24, 1]).count(), 0);
        assert_eq!(prefixes(&[77, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).count(), 0);
    }
}
