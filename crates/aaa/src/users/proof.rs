//! A peer's credentials, and checking them against a password (RFC 1334, RFC 1994, RFC 2759).

use md5::{Digest, Md5};
use wire::ppp::mschap::{self, Challenges, Response};

use super::{PASSWORD_OCTETS_MAX, Reject};

/// Replaces the password of an unknown user, so that checking one takes the same time.
pub(super) const DECOY: &[u8] = b"nobody's password";

/// The credentials that a peer sends with its name.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// No credentials.
    None,
    /// The password (RFC 1334, section 2.2.1).
    Pap(&'a [u8]),
    /// The MD5 response to our challenge (RFC 1994, section 4.1).
    Chap {
        /// The identifier of the Challenge and of the Response.
        identifier: u8,
        /// Our challenge.
        challenge: &'a [u8],
        /// Its response.
        response: &'a [u8],
    },
    /// The response to our challenge by MS-CHAP version 2 (RFC 2759, section 4).
    MsChapV2 {
        /// Our challenge.
        challenge: &'a [u8; mschap::CHALLENGE],
        /// The response's value.
        response: &'a [u8; mschap::RESPONSE],
        /// The name in the response, with its domain if it has one.
        name: &'a [u8],
    },
    /// EAP, which only a server can judge.
    Eap,
}

impl core::fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Pap(_) => "Pap([redacted])",
            Self::Chap { .. } => "Chap([redacted])",
            Self::MsChapV2 { .. } => "MsChapV2([redacted])",
            Self::Eap => "Eap",
        })
    }
}

impl Proof<'_> {
    /// Checks whether the credentials match the password. By MS-CHAP, returns our own proof to the peer.
    ///
    /// # Errors
    /// Why they do not.
    pub(super) fn check(&self, password: &[u8]) -> Result<Option<[u8; mschap::SUCCESS]>, Reject> {
        let is_equal = match *self {
            Self::None => return Err(Reject::NoProof),
            Self::Eap => return Err(Reject::Eap),
            Self::Pap(given) => is_equal(given, password),
            Self::Chap { response, .. } if response.len() != 16 => {
                return Err(Reject::ResponseLength);
            }
            Self::Chap {
                identifier,
                challenge,
                response,
            } => {
                let mut md5 = Md5::new();
                md5.update([identifier]);
                md5.update(password);
                md5.update(challenge);
                is_equal(response, &md5.finalize())
            }
            Self::MsChapV2 {
                challenge,
                response,
                name,
            } => return check_mschap(challenge, &Response::parse(response), name, password),
        };
        match is_equal {
            true => Ok(None),
            false => Err(Reject::WrongPassword),
        }
    }
}

/// As [`Proof::check`], for MS-CHAP (RFC 2759, sections 8.4 and 8.7).
fn check_mschap(
    challenge: &[u8; mschap::CHALLENGE],
    response: &Response<'_>,
    name: &[u8],
    password: &[u8],
) -> Result<Option<[u8; mschap::SUCCESS]>, Reject> {
    let challenges = Challenges {
        authenticator: challenge,
        peer: response.peer_challenge,
        name,
    };
    let hash = mschap::password_hash(password);
    match is_equal(response.nt_response, &challenges.nt_response(&hash)) {
        true => Ok(Some(
            challenges.authenticator_response(&hash, response.nt_response),
        )),
        false => Err(Reject::WrongPassword),
    }
}

/// Compares two texts in constant time.
fn is_equal(given: &[u8], right: &[u8]) -> bool {
    let padded = |text: &[u8]| {
        let mut padded = [0_u8; PASSWORD_OCTETS_MAX];
        let len = text.len().min(padded.len());
        padded[..len].copy_from_slice(&text[..len]);
        padded
    };
    let pairs = padded(given).into_iter().zip(padded(right));
    let differ = pairs.fold(0, |differ, (given, right)| differ | (given ^ right));
    core::hint::black_box(differ) == 0 && given.len() == right.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_equal() {
        let long = [b'x'; 300];
        for (given, right, same) in [
            (&b""[..], &b""[..], true),
            (b"secret", b"secret", true),
            (b"secret", b"secreT", false),
            (b"secret", b"secret\0", false),
            (b"secret\0", b"secret", false),
            (&long[..255], &long[..255], true),
            (&long[..256], &long[..255], false),
        ] {
            assert_eq!(is_equal(given, right), same, "{given:?} {right:?}");
        }
    }

    #[test]
    fn a_proof_does_not_print_itself() {
        let proofs = [
            Proof::None,
            Proof::Pap(b"secret"),
            Proof::Chap {
                identifier: 1,
                challenge: b"challenge",
                response: b"response",
            },
        ];
        assert_eq!(
            format!("{proofs:?}"),
            "[None, Pap([redacted]), Chap([redacted])]"
        );
    }
}
