//! AVP hiding: RFC 2661 4.3, RFC 3931 5.3.
//!
//! The versions differ only in the key: v2 uses the shared secret itself, v3 a key derived from it,
//! [`shared_key`].

use md5::{Digest, Md5};

use super::attribute::Attribute;
use super::avp::{Avp, Avps, BIT_HIDDEN};

const BLOCK_LEN: usize = 16;

/// Why a hidden AVP cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HiddenError {
    /// No Random Vector AVP precedes it.
    #[error("no Random Vector precedes the hidden {}", .0.name())]
    NoRandomVector(Attribute),
    /// It is too short for the Length of Original Value.
    #[error("the hidden {} is too short", .0.name())]
    Short(Attribute),
    /// The Length of Original Value exceeds the AVP; most likely the secrets differ.
    #[error("the original length of the hidden {} does not fit", .0.name())]
    OriginalLength(Attribute),
}

/// The key for hiding in v3: HMAC-MD5 of the octet 1 under the shared secret,
/// RFC 3931 5.3.
#[must_use]
pub fn shared_key(secret: &[u8]) -> [u8; 16] {
    super::digest::derive(secret, 1)
}

/// Copies the AVPs of `body` into `out`, decrypting the hidden ones and clearing their H bit. `out` is cleared
/// first, and left empty on an error.
///
/// `secret` is the shared secret (v2) or [`shared_key`] of it (v3). The last Random Vector before an AVP
/// applies to it. Some octets are copied unchanged so that [`super::Message::parse`] can judge them: AVPs
/// missing from the table, AVPs that must not be hidden, and everything from an AVP with an invalid Length on.
///
/// # Errors
/// [`HiddenError`] for the first AVP that cannot be read.
pub fn unhide(body: &[u8], secret: &[u8], out: &mut Vec<u8>) -> Result<(), HiddenError> {
    out.clear();
    out.reserve(body.len());
    let result = unhide_each(body, secret, out);
    if result.is_err() {
        out.clear();
    }
    result
}

fn unhide_each(body: &[u8], secret: &[u8], out: &mut Vec<u8>) -> Result<(), HiddenError> {
    let mut random_vector = None;
    let mut avps = Avps::new(body);
    for avp in avps.by_ref() {
        let known = avp.known();
        if known == Some(Attribute::RandomVector) && !avp.hidden {
            random_vector = Some(avp.value);
        }
        match known.filter(|a| avp.hidden && a.may_hide()) {
            Some(attribute) => {
                let vector = random_vector.ok_or(HiddenError::NoRandomVector(attribute))?;
                unhide_one(body, &avp, attribute, secret, vector, out)?;
            }
            None => out.extend_from_slice(&body[avp.offset..avp.offset + avp.len()]),
        }
    }
    out.extend_from_slice(avps.rest());
    Ok(())
}

fn unhide_one(
    body: &[u8],
    avp: &Avp<'_>,
    attribute: Attribute,
    secret: &[u8],
    random_vector: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), HiddenError> {
    let header = out.len();
    out.extend_from_slice(&body[avp.offset..avp.offset + super::avp::AVP_HEADER_LEN]);
    let start = out.len();
    let mut mask = first_mask(avp.attribute, secret, random_vector);
    for block in avp.value.chunks(BLOCK_LEN) {
        out.extend(block.iter().zip(mask).map(|(c, m)| c ^ m));
        mask = next_mask(secret, block);
    }
    let subformat = &out[start..];
    let Some((&original, rest)) = subformat.split_first_chunk() else {
        return Err(HiddenError::Short(attribute));
    };
    let original = usize::from(u16::from_be_bytes(original));
    if original > rest.len() {
        return Err(HiddenError::OriginalLength(attribute));
    }
    out.copy_within(start + 2..start + 2 + original, start);
    out.truncate(start + original);
    let reserved_and_m = u16::from_be_bytes([out[header], out[header + 1]]) & !BIT_HIDDEN & 0xfc00;
    let bits = reserved_and_m | (out.len() - header) as u16;
    out[header..header + 2].copy_from_slice(&bits.to_be_bytes());
    Ok(())
}

/// Appends the masked value: length, value and padding, encrypted.
pub(super) fn hide_value(
    number: u16,
    value: &[u8],
    secret: &[u8],
    random_vector: &[u8],
    padding: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(padding);
    let mut mask = first_mask(number, secret, random_vector);
    for block in out[start..].chunks_mut(BLOCK_LEN) {
        for (octet, m) in block.iter_mut().zip(mask) {
            *octet ^= m;
        }
        mask = next_mask(secret, block);
    }
}

/// b1 = MD5(AV + S + RV), where AV is the attribute's number.
fn first_mask(number: u16, secret: &[u8], random_vector: &[u8]) -> [u8; BLOCK_LEN] {
    let md5 = Md5::new().chain_update(number.to_be_bytes());
    md5.chain_update(secret)
        .chain_update(random_vector)
        .finalize()
        .into()
}

/// bi = MD5(S + c(i-1)).
fn next_mask(secret: &[u8], cipher: &[u8]) -> [u8; BLOCK_LEN] {
    Md5::new()
        .chain_update(secret)
        .chain_update(cipher)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2tp::{Fault, Message, MessageType, Version, Writer};

    const SECRET: &[u8] = b"secret";
    const VECTOR: &[u8] = b"0123456789abcdef";

    fn iccn(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut body = Vec::new();
        write(&mut Writer::new(&mut body, Version::V2, MessageType::Iccn));
        body
    }

    /// An ICCN with a Vendor Name whose masked value encodes `subformat`.
    fn with_subformat(subformat: &[u8]) -> Vec<u8> {
        let mut value = Vec::new();
        let (length, rest) = subformat.split_at(subformat.len().min(2));
        let number = Attribute::VendorName.number();
        // Within the first block, the mask does not depend on the value.
        hide_value(number, &[0; 14], SECRET, VECTOR, &[], &mut value);
        let mask = |at: usize| value[at] ^ if at == 1 { 14 } else { 0 };
        let octets = length.iter().chain(rest).enumerate();
        let masked: Vec<u8> = octets.map(|(at, octet)| octet ^ mask(at)).collect();
        let mut body = iccn(|w| _ = w.random_vector(VECTOR).raw(false, 0, number, &masked));
        let at = body.len() - masked.len() - 6;
        body[at] |= 0x40;
        body
    }

    fn unhidden(body: &[u8]) -> Result<Vec<u8>, HiddenError> {
        let mut out = vec![1, 2, 3];
        let result = unhide(body, SECRET, &mut out);
        assert!(result.is_ok() || out.is_empty());
        result.map(|()| out)
    }

    #[test]
    fn a_message_without_hidden_avps_stays_as_it_is() {
        let body = iccn(|w| _ = w.u32(Attribute::TxConnectSpeed, 9).raw(true, 5, 5, b"x"));
        assert_eq!(unhidden(&body), Ok(body));
    }

    #[test]
    fn a_hidden_avp_without_a_random_vector_before_it_is_refused() {
        let body = iccn(|w| {
            w.hidden(Attribute::VendorName, b"x", SECRET, VECTOR, b"")
                .random_vector(VECTOR);
        });
        assert_eq!(
            unhidden(&body),
            Err(HiddenError::NoRandomVector(Attribute::VendorName))
        );
    }

    #[test]
    fn the_random_vector_nearest_before_the_avp_counts() {
        let body = iccn(|w| {
            w.random_vector(b"another").random_vector(VECTOR);
            w.hidden(Attribute::VendorName, b"x", SECRET, VECTOR, b"")
                .random_vector(b"after");
        });
        let clear = unhidden(&body).expect("hidden right");
        assert_eq!(
            Message::parse(Version::V2, &clear).get(Attribute::VendorName),
            Some(&b"x"[..])
        );
    }

    #[test]
    fn a_vendor_s_attribute_36_is_no_random_vector() {
        let body = iccn(|w| {
            w.random_vector(VECTOR).raw(false, 9, 36, b"of a vendor");
            w.hidden(Attribute::VendorName, b"x", SECRET, VECTOR, b"");
        });
        assert!(unhidden(&body).is_ok());
    }

    #[test]
    fn an_original_length_may_use_all_that_is_there_and_no_more() {
        for (subformat, expected) in [
            (&[0, 3, 7, 8, 9][..], Ok(&[7, 8, 9][..])),
            (&[0, 1, 7, 8, 9], Ok(&[7])),
            (&[0, 0], Ok(&[])),
            (
                &[0, 4, 7, 8, 9],
                Err(HiddenError::OriginalLength(Attribute::VendorName)),
            ),
            (
                &[255, 255, 7],
                Err(HiddenError::OriginalLength(Attribute::VendorName)),
            ),
            (&[0], Err(HiddenError::Short(Attribute::VendorName))),
            (&[], Err(HiddenError::Short(Attribute::VendorName))),
        ] {
            let clear = unhidden(&with_subformat(subformat));
            let message = clear
                .as_ref()
                .map(|clear| Message::parse(Version::V2, clear));
            let value = message.map(|m| m.get(Attribute::VendorName).expect("in the clear"));
            assert_eq!(value.map_err(|e| *e), expected, "{subformat:?}");
        }
    }

    #[test]
    fn the_m_bit_outlives_hiding() {
        let body = iccn(|w| {
            w.random_vector(VECTOR)
                .hidden(Attribute::CalledNumber, b"5", SECRET, VECTOR, b"pad");
        });
        let clear = unhidden(&body).expect("hidden right");
        let called = Message::parse(Version::V2, &clear)
            .avps()
            .last()
            .expect("Called Number");
        assert_eq!(
            (called.mandatory, called.hidden, called.value),
            (true, false, &b"5"[..])
        );
    }

    #[test]
    fn what_must_not_be_hidden_stays_hidden_for_the_message_to_refuse() {
        let mut body = iccn(|w| _ = w.random_vector(VECTOR).bytes(Attribute::HostName, b"host"));
        let at = body.len() - 10;
        body[at] |= 0x40;
        let clear = unhidden(&body).expect("left alone");
        assert_eq!(clear, body);
        let fault = Message::parse(Version::V2, &clear).fault();
        assert_eq!(fault, Some(Fault::Hidden(Attribute::HostName)));
    }

    #[test]
    fn an_unknown_hidden_avp_is_left_alone() {
        let mut body = iccn(|w| _ = w.raw(false, 0, 99, b"x"));
        body[8] |= 0x40;
        assert_eq!(unhidden(&body), Ok(body));
    }

    #[test]
    fn a_fault_of_the_walk_is_still_there_afterwards() {
        let mut body = iccn(|w| {
            w.random_vector(VECTOR)
                .hidden(Attribute::CalledNumber, b"5", SECRET, VECTOR, b"");
        });
        body.extend([0x80, 200, 0, 0, 0, 9, 1, 2]);
        let clear = unhidden(&body).expect("hidden right");
        let message = Message::parse(Version::V2, &clear);
        assert_eq!(message.get(Attribute::CalledNumber), Some(&b"5"[..]));
        assert_eq!(
            message.fault(),
            Some(Fault::PastEnd {
                offset: clear.len() - 8
            })
        );
    }
}
