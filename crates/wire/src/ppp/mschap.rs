//! MS-CHAP version 2 (RFC 2759): CHAP with algorithm 0x81. Its Challenge and Response are [`super::chap::Value`]s.
//!
//! Left out: Change-Password (section 7), and the keys of MPPE (RFC 3079).

use des::Des;
use des::cipher::generic_array::GenericArray;
use des::cipher::{BlockEncrypt as _, KeyInit as _};
use md4::{Digest as _, Md4};
use sha1::Sha1;

/// The algorithm "MS-CHAP-2" of LCP's option (RFC 2759, section 2).
pub const ALGORITHM: u8 = 0x81;
/// The code of a Change-Password packet (RFC 2759, section 7).
pub const CHANGE_PASSWORD: u8 = 7;
/// Octets of a challenge, either side's (RFC 2759, sections 3 and 4).
pub const CHALLENGE: usize = 16;
/// Octets of a Response's value (RFC 2759, section 4).
pub const RESPONSE: usize = 49;
/// Octets of an authenticator response: `S=` and 40 hexadecimal digits (RFC 2759, section 5).
pub const SUCCESS: usize = 42;

/// Errors that a Failure reports (RFC 2759, section 6).
pub mod error {
    /// ERROR_AUTHENTICATION_FAILURE.
    pub const AUTHENTICATION_FAILURE: u32 = 691;
}

/// The value of a Response (RFC 2759, section 4). Its eight reserved octets and its flags are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The peer's own challenge.
    pub peer_challenge: &'a [u8; CHALLENGE],
    /// The answer to both challenges.
    pub nt_response: &'a [u8; 24],
}

impl<'a> Response<'a> {
    /// Reads a value.
    #[must_use]
    pub fn parse(value: &'a [u8; RESPONSE]) -> Self {
        let peer_challenge = value.first_chunk().expect("it has 49 octets");
        let nt_response = value[24..].first_chunk().expect("it has 49 octets");
        Self {
            peer_challenge,
            nt_response,
        }
    }

    /// The value's octets: reserved octets and flags are zero.
    #[must_use]
    pub fn to_octets(&self) -> [u8; RESPONSE] {
        let mut octets = [0; RESPONSE];
        octets[..CHALLENGE].copy_from_slice(self.peer_challenge);
        octets[24..48].copy_from_slice(self.nt_response);
        octets
    }
}

/// The two challenges, and the name that the peer gave. A domain before a backslash does not count (RFC 2759, section
/// 4).
#[derive(Clone, Copy, Debug)]
pub struct Challenges<'a> {
    /// The authenticator's challenge.
    pub authenticator: &'a [u8; CHALLENGE],
    /// The peer's.
    pub peer: &'a [u8; CHALLENGE],
    /// The peer's name.
    pub name: &'a [u8],
}

impl Challenges<'_> {
    /// ChallengeHash (RFC 2759, section 8.2).
    fn hash(&self) -> [u8; 8] {
        let name = match self.name.iter().position(|&octet| octet == b'\\') {
            Some(at) => &self.name[at + 1..],
            None => self.name,
        };
        let digest = Sha1::new()
            .chain_update(self.peer)
            .chain_update(self.authenticator)
            .chain_update(name)
            .finalize();
        let mut hash = [0; 8];
        hash.copy_from_slice(&digest[..8]);
        hash
    }

    /// GenerateNTResponse (RFC 2759, section 8.1), from a hash of [`password_hash`].
    #[must_use]
    pub fn nt_response(&self, password_hash: &[u8; 16]) -> [u8; 24] {
        let hash = self.hash();
        let mut keys = [0; 21];
        keys[..16].copy_from_slice(password_hash);
        let mut response = [0; 24];
        for (key, block) in keys.chunks_exact(7).zip(response.chunks_exact_mut(8)) {
            block.copy_from_slice(&des_encrypt(&hash, key));
        }
        response
    }

    /// GenerateAuthenticatorResponse (RFC 2759, section 8.7): the start of a Success's message.
    #[must_use]
    pub fn authenticator_response(
        &self,
        password_hash: &[u8; 16],
        nt_response: &[u8; 24],
    ) -> [u8; SUCCESS] {
        let digest = Sha1::new()
            .chain_update(Md4::digest(password_hash))
            .chain_update(nt_response)
            .chain_update(b"Magic server to client signing constant")
            .finalize();
        let digest = Sha1::new()
            .chain_update(digest)
            .chain_update(self.hash())
            .chain_update(b"Pad to make it do more than one iteration")
            .finalize();
        let mut text = *b"S=0000000000000000000000000000000000000000";
        for (octet, digits) in digest.iter().zip(text[2..].chunks_exact_mut(2)) {
            digits.copy_from_slice(&hex(*octet));
        }
        text
    }
}

/// NtPasswordHash (RFC 2759, section 8.3). The password is text in UTF-8; octets that are not are taken as ISO 8859-1.
#[must_use]
pub fn password_hash(password: &[u8]) -> [u8; 16] {
    let mut md4 = Md4::new();
    match core::str::from_utf8(password) {
        Ok(text) => text
            .encode_utf16()
            .for_each(|unit| md4.update(unit.to_le_bytes())),
        Err(_) => password.iter().for_each(|&octet| md4.update([octet, 0])),
    }
    md4.finalize().into()
}

/// Appends a Failure's message (RFC 2759, section 6): the peer may not retry, so the new challenge has no use, but its
/// field is part of the format.
pub fn emit_failure(out: &mut Vec<u8>, error: u32, challenge: &[u8; CHALLENGE], text: &[u8]) {
    out.extend_from_slice(format!("E={error} R=0 C=").as_bytes());
    for &octet in challenge {
        out.extend_from_slice(&hex(octet));
    }
    out.extend_from_slice(b" V=3 M=");
    out.extend_from_slice(text);
}

/// The error code at the start of a Failure's message, and the text after `M=`, or what follows the code.
#[must_use]
pub fn parse_failure(message: &[u8]) -> Option<(u32, &[u8])> {
    let rest = message.strip_prefix(b"E=")?;
    let digits = rest.iter().take_while(|octet| octet.is_ascii_digit());
    let (digits, rest) = rest.split_at(digits.count());
    let code = core::str::from_utf8(digits).ok()?.parse().ok()?;
    let text = rest.windows(3).position(|window| window == b" M=");
    let text = text.map_or_else(
        || rest.strip_prefix(b" ").unwrap_or(rest),
        |at| &rest[at + 3..],
    );
    Some((code, text))
}

/// The text of a Success's message after the authenticator response and `M=`. `None` if the message does not start with
/// an authenticator response.
#[must_use]
pub fn parse_success(message: &[u8]) -> Option<(&[u8; SUCCESS], &[u8])> {
    let (response, rest) = message.split_first_chunk::<SUCCESS>()?;
    let is_one = response.starts_with(b"S=") && response[2..].iter().all(u8::is_ascii_hexdigit);
    is_one.then(|| (response, rest.strip_prefix(b" M=").unwrap_or(b"")))
}

/// DesEncrypt (RFC 2759, section 8.6): the key's 56 bits get a parity bit after each seventh.
fn des_encrypt(clear: &[u8; 8], key: &[u8]) -> [u8; 8] {
    let bits = key
        .iter()
        .fold(0_u64, |bits, &octet| bits << 8 | u64::from(octet));
    let mut parted = [0; 8];
    for (n, octet) in parted.iter_mut().enumerate() {
        *octet = ((bits >> (49 - 7 * n)) as u8) << 1;
    }
    let mut block = GenericArray::from(*clear);
    Des::new(&GenericArray::from(parted)).encrypt_block(&mut block);
    block.into()
}

/// Upper case, as RFC 2759, section 5, has it.
fn hex(octet: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [octet >> 4, octet & 15].map(|digit| DIGITS[usize::from(digit)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2759, section 9.2.
    const AUTHENTICATOR: [u8; 16] = *b"[]|}{?/><,`!2&&(";
    const PEER: [u8; 16] = *b"!@#$%^&*()_+:3|~";
    const NT_RESPONSE: [u8; 24] = [
        0x82, 0x30, 0x9e, 0xcd, 0x8d, 0x70, 0x8b, 0x5e, 0xa0, 0x8f, 0xaa, 0x39, 0x81, 0xcd, 0x83,
        0x54, 0x42, 0x33, 0x11, 0x4a, 0x3d, 0x85, 0xd6, 0xdf,
    ];

    fn challenges(name: &[u8]) -> Challenges<'_> {
        Challenges {
            authenticator: &AUTHENTICATOR,
            peer: &PEER,
            name,
        }
    }

    #[test]
    fn the_hashes_are_those_of_rfc_2759_section_9_2() {
        let hash = password_hash(b"clientPass");
        let expected = [
            0x44, 0xeb, 0xba, 0x8d, 0x53, 0x12, 0xb8, 0xd6, 0x11, 0x47, 0x44, 0x11, 0xf5, 0x69,
            0x89, 0xae,
        ];
        assert_eq!(hash, expected);
        let both = challenges(b"User");
        let expected = [0xd0, 0x2e, 0x43, 0x86, 0xbc, 0xe9, 0x12, 0x26];
        assert_eq!(both.hash(), expected);
        assert_eq!(both.nt_response(&hash), NT_RESPONSE);
        assert_eq!(
            both.authenticator_response(&hash, &NT_RESPONSE),
            *b"S=407A5589115FD0D6209F510FE9C04566932CDA56"
        );
    }

    #[test]
    fn the_des_keys_are_those_of_rfc_2759_section_9_3() {
        // "DesEncrypt with a 7-octet key of 0xFC 0x15 ..." has no vector of its own; FIPS 46's well-known one has: the
        // key 13 34 57 79 9B BC DF F1 without its parity bits.
        let bits = [0x12, 0x69, 0x5b, 0xc9, 0xb7, 0xb7, 0xf8];
        let clear = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let expected = [0x85, 0xe8, 0x13, 0x54, 0x0f, 0x0a, 0xb4, 0x05];
        assert_eq!(des_encrypt(&clear, &bits), expected);
    }

    #[test]
    fn a_domain_before_the_name_does_not_count() {
        assert_eq!(
            challenges(b"BIGCO\\User").hash(),
            challenges(b"User").hash()
        );
    }

    #[test]
    fn a_response_is_read_as_it_was_written() {
        let response = Response {
            peer_challenge: &PEER,
            nt_response: &NT_RESPONSE,
        };
        let octets = response.to_octets();
        assert_eq!(Response::parse(&octets), response);
        assert_eq!((&octets[16..24], octets[48]), (&[0; 8][..], 0));
    }

    #[test]
    fn passwords_beyond_ascii_are_utf_16() {
        let hash = |units: &[u16]| -> [u8; 16] {
            let octets: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            Md4::digest(octets).into()
        };
        assert_eq!(
            password_hash("é😀".as_bytes()),
            hash(&[0xe9, 0xd83d, 0xde00])
        );
        assert_eq!(password_hash(&[0xe9]), hash(&[0xe9]));
    }

    #[test]
    fn failures_and_successes_are_read_back() {
        let mut out = Vec::new();
        emit_failure(&mut out, 691, &[0xab; 16], b"no");
        assert_eq!(
            out,
            b"E=691 R=0 C=ABABABABABABABABABABABABABABABAB V=3 M=no"
        );
        assert_eq!(parse_failure(&out), Some((691, &b"no"[..])));
        assert_eq!(parse_failure(b"E=648 R=1"), Some((648, &b"R=1"[..])));
        assert_eq!(
            parse_failure(b"E=648 expired"),
            Some((648, &b"expired"[..]))
        );
        for wrong in [&b""[..], b"E=", b"no", b"E=99999999999999"] {
            assert_eq!(parse_failure(wrong), None);
        }
        let message = b"S=407A5589115FD0D6209F510FE9C04566932CDA56 M=hello";
        assert_eq!(
            parse_success(message).map(|both| both.1),
            Some(&b"hello"[..])
        );
        assert_eq!(parse_success(&message[..41]), None);
        assert_eq!(parse_success(&[b'x'; 42]), None);
    }
}
