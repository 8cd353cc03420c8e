//! The hashes of both versions, computed independently of the code under test: MD5 and SHA-1 from their crates,
//! HMAC as written in RFC 2104.

use md5::{Digest, Md5};
use sha1::Sha1;
use wire::l2tp::DigestType;

/// H(parts).
fn hash<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut digest = D::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().to_vec()
}

/// MD5 over the parts.
pub(crate) fn md5(parts: &[&[u8]]) -> Vec<u8> {
    hash::<Md5>(parts)
}

/// RFC 2104 2: H(K xor opad, H(K xor ipad, text)).
fn hmac<D: Digest>(key: &[u8], text: &[&[u8]]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let pad = |octet: u8| {
        let mut block = [octet; 64];
        block.iter_mut().zip(key).for_each(|(b, k)| *b ^= k);
        block
    };
    let (inner, outer) = (pad(0x36), pad(0x5c));
    let inner = hash::<D>(&[&[&inner[..]], text].concat());
    hash::<D>(&[&outer, &inner])
}

/// HMAC-MD5.
pub(crate) fn hmac_md5(key: &[u8], text: &[&[u8]]) -> Vec<u8> {
    hmac::<Md5>(key, text)
}

/// The CHAP response of RFC 2661 4.4.3 (RFC 1994 4.1): MD5(id, secret, challenge).
pub(crate) fn chap(id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
    md5(&[&[id], secret, challenge])
}

/// The mask of RFC 2661 4.3 over a subformat: length, value and padding.
pub(crate) fn hide(
    number: u16,
    value: &[u8],
    padding: &[u8],
    key: &[u8],
    vector: &[u8],
) -> Vec<u8> {
    let length = (value.len() as u16).to_be_bytes();
    let plain = [&length, value, padding].concat();
    let mut mask = md5(&[&number.to_be_bytes(), key, vector]);
    let mut hidden = Vec::new();
    for block in plain.chunks(16) {
        let masked: Vec<u8> = block.iter().zip(&mask).map(|(p, m)| p ^ m).collect();
        mask = md5(&[key, &masked]);
        hidden.extend(masked);
    }
    hidden
}

/// Removes the mask: length, value and padding.
pub(crate) fn unhide(number: u16, hidden: &[u8], key: &[u8], vector: &[u8]) -> Vec<u8> {
    let mut mask = md5(&[&number.to_be_bytes(), key, vector]);
    let mut plain = Vec::new();
    for block in hidden.chunks(16) {
        plain.extend(block.iter().zip(&mask).map(|(c, m)| c ^ m));
        mask = md5(&[key, block]);
    }
    plain
}

/// Message authentication by a version 3 peer (RFC 3931 5.4.1).
#[derive(Clone)]
pub(crate) struct PeerAuth {
    pub(crate) secret: Vec<u8>,
    pub(crate) local_nonce: Vec<u8>,
    pub(crate) remote_nonce: Vec<u8>,
    pub(crate) digest: DigestType,
}

/// Offset of a message's digest: after the header, the Message Type AVP, the AVP header and the Digest Type.
const DIGEST_AT: usize = 12 + 8 + 6 + 1;

impl PeerAuth {
    pub(crate) fn new(secret: &[u8], digest: DigestType) -> Self {
        Self {
            secret: secret.to_vec(),
            local_nonce: b"the peer's nonce".to_vec(),
            remote_nonce: Vec::new(),
            digest,
        }
    }

    fn len(&self) -> usize {
        match self.digest {
            DigestType::HmacMd5 => 16,
            DigestType::HmacSha1 => 20,
        }
    }

    /// The body with a zeroed Message Digest AVP after its Message Type.
    pub(crate) fn with_placeholder(&self, body: &[u8]) -> Vec<u8> {
        let mut avp = vec![0x80, 6 + 1 + self.len() as u8, 0, 0, 0, 59];
        avp.push(u8::from(self.digest == DigestType::HmacSha1));
        avp.resize(avp.len() + self.len(), 0);
        [&body[..8], &avp, &body[8..]].concat()
    }

    /// The digest of a whole message with its digest zeroed, by the end that chose the nonce `own` and received
    /// the nonce `other`.
    fn compute(&self, message: &[u8], own: &[u8], other: &[u8]) -> Vec<u8> {
        let key = hmac_md5(&self.secret, &[&[2]]);
        let is_sccrq = message[12 + 6..12 + 8] == [0, 1];
        let text: &[&[u8]] = match is_sccrq {
            true => &[message],
            false => &[own, other, message],
        };
        match self.digest {
            DigestType::HmacMd5 => hmac::<Md5>(&key, text),
            DigestType::HmacSha1 => hmac::<Sha1>(&key, text),
        }
    }

    /// Fills in the digest of this peer's message.
    pub(crate) fn sign(&self, message: &mut [u8]) {
        let digest = self.compute(message, &self.local_nonce, &self.remote_nonce);
        message[DIGEST_AT..DIGEST_AT + self.len()].copy_from_slice(&digest);
    }

    /// Whether the endpoint's message has the right digest.
    pub(crate) fn verifies(&self, message: &[u8]) -> bool {
        let mut zeroed = message.to_vec();
        zeroed[DIGEST_AT..DIGEST_AT + self.len()].fill(0);
        let expected = self.compute(&zeroed, &self.remote_nonce, &self.local_nonce);
        message[DIGEST_AT..DIGEST_AT + self.len()] == expected[..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2202, test case 2 of both.
    #[test]
    fn hmac_is_that_of_rfc_2202() {
        let text: &[&[u8]] = &[b"what do ya want ", b"for nothing?"];
        let md5 = hmac::<Md5>(b"Jefe", text);
        assert_eq!(md5[..4], [0x75, 0x0c, 0x78, 0x3e]);
        let sha1 = hmac::<Sha1>(b"Jefe", text);
        assert_eq!(sha1[..4], [0xef, 0xfc, 0xdf, 0x6a]);
    }
}
