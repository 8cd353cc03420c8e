//! Everything that needs the shared secret of client and server: authenticators, User-Password,
//! Message-Authenticator (RFC 2865, RFC 2866, RFC 3579).
//!
//! All comparisons take constant time.
//!
//! Implements parts of RFC 2869, section 5.14.

use hmac::digest::CtOutput;
use hmac::{Hmac, Mac};
use md5::{Digest, Md5};

use super::attribute::MESSAGE_AUTHENTICATOR;
use super::{Authenticator, HEADER, Packet};

/// The result of checking a packet's Message-Authenticator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// The packet has none.
    Missing,
    /// It is right.
    Right,
    /// It is wrong, of a wrong length, or there are several.
    Wrong,
}

/// Hides a User-Password (RFC 2865, section 5.2) of at most 128 octets, and appends the hidden form.
pub fn hide_password(
    password: &[u8],
    secret: &[u8],
    authenticator: &Authenticator,
    out: &mut Vec<u8>,
) {
    let password = &password[..password.len().min(128)];
    let mut last = *authenticator;
    let blocks = password.len().div_ceil(16).max(1);
    for n in 0..blocks {
        let mut block = mask(secret, &last);
        let part = &password[n * 16..password.len().min(n * 16 + 16)];
        for (octet, plain) in block.iter_mut().zip(part) {
            *octet ^= plain;
        }
        out.extend_from_slice(&block);
        last = block;
    }
}

/// The password hidden in a User-Password, without its padding; `None` if its length is invalid.
#[must_use]
pub fn reveal_password(
    hidden: &[u8],
    secret: &[u8],
    authenticator: &Authenticator,
) -> Option<Vec<u8>> {
    let (blocks, rest) = hidden.as_chunks::<16>();
    if !rest.is_empty() || !(1..=8).contains(&blocks.len()) {
        return None;
    }
    let mut last = authenticator;
    let mut password = Vec::with_capacity(hidden.len());
    for block in blocks {
        let mask = mask(secret, last);
        password.extend(block.iter().zip(mask).map(|(octet, mask)| octet ^ mask));
        last = block;
    }
    let length = password.iter().rposition(|&octet| octet != 0);
    password.truncate(length.map_or(0, |at| at + 1));
    Some(password)
}

/// The password in a salted attribute: Salt and String (RFC 2868, section 3.5), with the authenticator of the request.
/// `None` if its length is impossible, which a wrong secret causes as well.
#[must_use]
pub fn reveal_salted(
    salted: &[u8],
    secret: &[u8],
    authenticator: &Authenticator,
) -> Option<Vec<u8>> {
    let (salt, hidden) = salted.split_first_chunk::<2>()?;
    let (blocks, rest) = hidden.as_chunks::<16>();
    if !rest.is_empty() || blocks.is_empty() {
        return None;
    }
    let mut first = [0; 18];
    first[..16].copy_from_slice(authenticator);
    first[16..].copy_from_slice(salt);
    let mut last: &[u8] = &first;
    let mut clear = Vec::with_capacity(hidden.len());
    for block in blocks {
        let mask = mask(secret, last);
        clear.extend(block.iter().zip(mask).map(|(octet, mask)| octet ^ mask));
        last = block;
    }
    let length = usize::from(*clear.first()?);
    Some(clear.get(1..=length)?.to_vec())
}

fn mask(secret: &[u8], last: &[u8]) -> [u8; 16] {
    Md5::new()
        .chain_update(secret)
        .chain_update(last)
        .finalize()
        .into()
}

/// The digest over a whole packet in its current state, and the secret (RFC 2865, section 3; RFC 2866, section
/// 3).
pub(super) fn digest(packet: &[u8], secret: &[u8]) -> Authenticator {
    Md5::new()
        .chain_update(packet)
        .chain_update(secret)
        .finalize()
        .into()
}

/// The Message-Authenticator of a packet in its current state, with zeros in the attribute's place (RFC 3579,
/// section 3.2).
pub(super) fn message_authenticator(packet: &[u8], secret: &[u8]) -> [u8; 16] {
    hmac(secret)
        .chain_update(packet)
        .finalize()
        .into_bytes()
        .into()
}

fn hmac(secret: &[u8]) -> Hmac<Md5> {
    // HMAC accepts keys of any length (RFC 2104).
    <Hmac<Md5> as Mac>::new_from_slice(secret).expect("any length is a key")
}

/// Whether a reply's authenticator is right for the request with this authenticator (RFC 2865, section 3).
#[must_use]
pub fn verify_reply(reply: &Packet<'_>, request: &Authenticator, secret: &[u8]) -> bool {
    verify(reply, request, secret)
}

/// Whether the authenticator of an accounting request, or of a request of RFC 5176, is right.
#[must_use]
pub fn verify_request(request: &Packet<'_>, secret: &[u8]) -> bool {
    verify(request, &[0; 16], secret)
}

fn verify(packet: &Packet<'_>, authenticator: &Authenticator, secret: &[u8]) -> bool {
    let octets = packet.octets();
    let expected = Md5::new()
        .chain_update(&octets[..4])
        .chain_update(authenticator)
        .chain_update(&octets[HEADER..])
        .chain_update(secret)
        .finalize();
    CtOutput::<Md5>::new(expected) == CtOutput::new(packet.authenticator().into())
}

/// Checks a packet's Message-Authenticator. `authenticator` is the request's for a reply, zero for a request
/// signed as a whole, and the packet's own for an Access-Request.
#[must_use]
pub fn signature(packet: &Packet<'_>, authenticator: &Authenticator, secret: &[u8]) -> Signature {
    let octets = packet.octets();
    let mut found = None;
    let mut at = HEADER;
    for attribute in packet.attributes() {
        let value_at = at + 2;
        at = value_at + attribute.value.len();
        if attribute.kind == MESSAGE_AUTHENTICATOR {
            if found.is_some() || attribute.value.len() != 16 {
                return Signature::Wrong;
            }
            found = Some(value_at);
        }
    }
    let Some(at) = found else {
        return Signature::Missing;
    };
    let mac = hmac(secret)
        .chain_update(&octets[..4])
        .chain_update(authenticator)
        .chain_update(&octets[HEADER..at])
        .chain_update([0; 16])
        .chain_update(&octets[at + 16..]);
    match mac.verify_slice(&octets[at..at + 16]) {
        Ok(()) => Signature::Right,
        Err(_) => Signature::Wrong,
    }
}
