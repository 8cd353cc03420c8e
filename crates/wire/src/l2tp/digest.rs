//! Control Message Authentication of v3: RFC 3931 4.3 and 5.4.1.
//!
//! A digest covers the whole control message with its digests zeroed. The sender hashes its own nonce first,
//! then the peer's. For an SCCRQ both nonces are empty; pass empty nonces to [`sign`] and [`verify`]. Without a
//! configured secret, a digest is only an integrity check: the key is [`shared_key`] of an empty secret, and
//! both nonces are empty (4.3).
//!
//! The Length that 5.4.1 gives for "Digest Type 1 (HMAC-MD5)" and "2 (HMAC-SHA-1)" contradicts the types 0 and
//! 1 that the same section and the IANA registry define; this module uses types 0 and 1.

use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;

use super::attribute::Attribute;
use super::avp::{AVP_HEADER_LEN, Avp, Avps, VALUE_LEN_MAX};
use super::header::CONTROL_HEADER_LEN;
use super::writer::Writer;

const MESSAGE_TYPE_AVP_LEN: usize = 8;

/// The required position of a message's digests: directly after the Message Type AVP.
const DIGESTS_AT: usize = CONTROL_HEADER_LEN + MESSAGE_TYPE_AVP_LEN;

/// Replaces a digest while one is being computed.
const ZEROS: [u8; VALUE_LEN_MAX] = [0; VALUE_LEN_MAX];

/// The Digest Type field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigestType {
    /// HMAC-MD5, 0: 16 octets.
    HmacMd5,
    /// HMAC-SHA-1, 1: 20 octets.
    HmacSha1,
}

impl DigestType {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(DigestType::HmacMd5),
            1 => Some(DigestType::HmacSha1),
            _ => None,
        }
    }

    /// The value of the Digest Type field.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            DigestType::HmacMd5 => 0,
            DigestType::HmacSha1 => 1,
        }
    }

    /// Octets of the digest.
    #[must_use]
    pub fn digest_len(self) -> usize {
        match self {
            DigestType::HmacMd5 => 16,
            DigestType::HmacSha1 => 20,
        }
    }
}

/// HMAC-MD5 of one octet under the secret; v3 derives its keys this way.
pub(super) fn derive(secret: &[u8], octet: u8) -> [u8; 16] {
    let mac = Hmac::<Md5>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.chain_update([octet]).finalize().into_bytes().into()
}

/// The key for digests, with both hashes already initialised, because initialising one costs as much as hashing
/// a short message.
#[derive(Clone)]
pub struct Key {
    md5: Hmac<Md5>,
    sha1: Hmac<Sha1>,
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key")
    }
}

/// The key for digests: HMAC-MD5 of the octet 2 under the shared secret,
/// RFC 3931 5.4.1.
#[must_use]
pub fn shared_key(secret: &[u8]) -> Key {
    let key = derive(secret, 2);
    let any = "HMAC takes a key of any length";
    Key {
        md5: Hmac::new_from_slice(&key).expect(any),
        sha1: Hmac::new_from_slice(&key).expect(any),
    }
}

/// Writes a Message Digest AVP with a zeroed digest. Call it directly after [`Writer::new`], at most twice;
/// [`sign`] fills in the digest.
pub fn placeholder(writer: &mut Writer<'_>, digest: DigestType) {
    let mut value = [0; 21];
    value[0] = digest.number();
    writer.bytes(Attribute::MessageDigest, &value[..1 + digest.digest_len()]);
}

/// A Message Digest AVP at the required position.
#[derive(Clone, Copy)]
struct Found {
    /// Offset of the digest, after the type, from the start of the message.
    at: usize,
    len: usize,
    /// `None` if the type is unknown or its length is wrong.
    digest: Option<DigestType>,
}

impl Found {
    fn new(avp: &Avp<'_>) -> Option<Self> {
        let is_digest = avp.known() == Some(Attribute::MessageDigest) && !avp.hidden;
        let (&number, octets) = avp.value.split_first().filter(|_| is_digest)?;
        let digest = DigestType::from_number(number).filter(|d| d.digest_len() == octets.len());
        let at = CONTROL_HEADER_LEN + avp.offset + AVP_HEADER_LEN + 1;
        Some(Found {
            at,
            len: octets.len(),
            digest,
        })
    }
}

/// The message's digests: the AVPs directly after the Message Type.
fn find(message: &[u8]) -> [Option<Found>; 2] {
    let body = message.get(CONTROL_HEADER_LEN..).unwrap_or(&[]);
    let mut avps = Avps::new(body);
    let first = avps.next();
    if first.is_none_or(|avp| CONTROL_HEADER_LEN + avp.len() != DIGESTS_AT) {
        return [None; 2];
    }
    let one = avps.next().and_then(|avp| Found::new(&avp));
    let two = one
        .and_then(|_| avps.next())
        .and_then(|avp| Found::new(&avp));
    [one, two]
}

/// Whether the message has a Message Digest AVP at the required position.
#[must_use]
pub fn present(message: &[u8]) -> bool {
    find(message)[0].is_some()
}

/// Hashes the nonces and the message, with every digest zeroed.
fn feed<M: Mac>(mut mac: M, message: &[u8], nonces: [&[u8]; 2], found: [Option<Found>; 2]) -> M {
    mac.update(nonces[0]);
    mac.update(nonces[1]);
    let mut at = 0;
    for digest in found.into_iter().flatten() {
        mac.update(&message[at..digest.at]);
        mac.update(&ZEROS[..digest.len]);
        at = digest.at + digest.len;
    }
    mac.update(&message[at..]);
    mac
}

/// Fills in the digests of that type in a complete control message, header included; `false` if it has none.
///
/// `local_nonce` is the signer's own. Both nonces are empty for an SCCRQ, and if no secret is configured.
pub fn sign(
    message: &mut [u8],
    digest: DigestType,
    key: &Key,
    local_nonce: &[u8],
    remote_nonce: &[u8],
) -> bool {
    let found = find(message);
    let mut signed = false;
    for one in found
        .into_iter()
        .flatten()
        .filter(|f| f.digest == Some(digest))
    {
        let nonces = [local_nonce, remote_nonce];
        let octets = &mut [0; 20][..one.len];
        match digest {
            DigestType::HmacMd5 => {
                let mac = feed(key.md5.clone(), message, nonces, found);
                octets.copy_from_slice(&mac.finalize().into_bytes());
            }
            DigestType::HmacSha1 => {
                let mac = feed(key.sha1.clone(), message, nonces, found);
                octets.copy_from_slice(&mac.finalize().into_bytes());
            }
        }
        message[one.at..one.at + one.len].copy_from_slice(octets);
        signed = true;
    }
    signed
}

/// Whether any of the message's digests, of which there may be two, is right. The comparison takes constant
/// time.
///
/// `message` is exactly one control message, header included; `local_nonce` is the verifier's own. Both nonces
/// are empty for an SCCRQ, and if no secret is configured. With two secrets configured, call this once per key.
#[must_use]
pub fn verify(message: &[u8], key: &Key, local_nonce: &[u8], remote_nonce: &[u8]) -> bool {
    let found = find(message);
    let nonces = [remote_nonce, local_nonce];
    found.into_iter().flatten().any(|one| {
        let octets = &message[one.at..one.at + one.len];
        match one.digest {
            Some(DigestType::HmacMd5) => feed(key.md5.clone(), message, nonces, found)
                .verify_slice(octets)
                .is_ok(),
            Some(DigestType::HmacSha1) => feed(key.sha1.clone(), message, nonces, found)
                .verify_slice(octets)
                .is_ok(),
            None => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l2tp::{MessageType, Version, emit_control};

    const OWN: &[u8] = b"own nonce";
    const PEER: &[u8] = b"peer's nonce";

    fn message(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut body = Vec::new();
        write(&mut Writer::new(&mut body, Version::V3, MessageType::Sccrp));
        let mut message = Vec::new();
        emit_control(&mut message, Version::V3, 1, 0, 2, 3, &body);
        message
    }

    /// Test case 2 of RFC 2202, with its data split into two nonces and a message.
    #[test]
    fn the_hash_is_over_nonces_and_message() {
        let nonces: [&[u8]; 2] = [b"what do ", b"ya want "];
        let md5 = Hmac::<Md5>::new_from_slice(b"Jefe").expect("a key");
        let md5 = feed(md5, b"for nothing?", nonces, [None; 2])
            .finalize()
            .into_bytes();
        assert_eq!(
            u128::from_be_bytes(md5.into()),
            0x750c_783e_6ab0_b503_eaa8_6e31_0a5d_b738
        );
        let sha1 = Hmac::<Sha1>::new_from_slice(b"Jefe").expect("a key");
        let sha1 = feed(sha1, b"for nothing?", nonces, [None; 2])
            .finalize()
            .into_bytes();
        let expected = [
            0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f, 0xa2, 0xd2, 0x74, 0x16, 0xd5, 0xf1, 0x84,
            0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79,
        ];
        assert_eq!(sha1[..], expected);
    }

    #[test]
    fn a_message_without_a_digest_is_neither_signed_nor_right() {
        let mut message = message(|w| _ = w.bytes(Attribute::HostName, b"host"));
        assert!(!present(&message));
        assert!(!sign(
            &mut message,
            DigestType::HmacMd5,
            &shared_key(b""),
            OWN,
            PEER
        ));
        assert!(!verify(&message, &shared_key(b""), PEER, OWN));
        assert!(!present(&message[..CONTROL_HEADER_LEN]));
        assert!(!verify(&[], &shared_key(b""), PEER, OWN));
    }

    #[test]
    fn a_digest_counts_only_right_after_the_message_type() {
        let mut message = message(|w| {
            w.bytes(Attribute::HostName, b"host");
            placeholder(w, DigestType::HmacMd5);
        });
        assert!(!present(&message));
        assert!(!sign(
            &mut message,
            DigestType::HmacMd5,
            &shared_key(b""),
            OWN,
            PEER
        ));
    }

    #[test]
    fn a_digest_of_another_type_is_not_filled_in() {
        let mut message = message(|w| placeholder(w, DigestType::HmacMd5));
        assert!(!sign(
            &mut message,
            DigestType::HmacSha1,
            &shared_key(b""),
            OWN,
            PEER
        ));
    }

    #[test]
    fn signing_again_after_a_change_makes_it_right_again() {
        let mut message = message(|w| placeholder(w, DigestType::HmacSha1));
        let key = shared_key(b"secret");
        assert!(sign(&mut message, DigestType::HmacSha1, &key, OWN, PEER));
        message[11] = 9; // Nr
        assert!(!verify(&message, &key, PEER, OWN));
        assert!(sign(&mut message, DigestType::HmacSha1, &key, OWN, PEER));
        assert!(verify(&message, &key, PEER, OWN));
    }

    #[test]
    fn a_digest_of_an_unknown_type_does_not_spoil_the_other() {
        let key = shared_key(b"secret");
        let mut message = message(|w| {
            w.bytes(Attribute::MessageDigest, &[7; 33]);
            placeholder(w, DigestType::HmacMd5);
        });
        message[DIGESTS_AT + AVP_HEADER_LEN + 1..][..32].fill(0);
        assert!(sign(&mut message, DigestType::HmacMd5, &key, OWN, PEER));
        message[DIGESTS_AT + AVP_HEADER_LEN + 1..][..32].fill(5);
        assert!(verify(&message, &key, PEER, OWN));
    }

    #[test]
    fn a_digest_of_the_wrong_length_for_its_type_is_never_right() {
        for number in [0, 1] {
            let mut value = [0; 19];
            value[0] = number;
            let message = message(|w| _ = w.bytes(Attribute::MessageDigest, &value));
            assert!(present(&message));
            assert!(!verify(&message, &shared_key(b""), PEER, OWN));
        }
    }

    #[test]
    fn only_two_digests_are_looked_at() {
        let key = shared_key(b"secret");
        let mut message = message(|w| {
            for _ in 0..2 {
                placeholder(w, DigestType::HmacSha1);
            }
            placeholder(w, DigestType::HmacMd5);
        });
        assert!(!sign(&mut message, DigestType::HmacMd5, &key, OWN, PEER));
    }
}
