//! A peer's credentials, and checking them against a password (RFC 1334, RFC 1994).

use md5::{Digest, Md5};

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
}

impl core::fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Pap(_) => "Pap([redacted])",
            Self::Chap { .. } => "Chap([redacted])",
        })
    }
}

impl Proof<'_> {
    /// Checks whether the credentials match the password.
    ///
    /// # Errors
    /// Why they do not.
    pub(super) fn check(&self, password: &[u8]) -> Result<(), Reject> {
        let is_equal = match *self {
            Self::None => return Err(Reject::NoProof),
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
        };
        if is_equal {
            Ok(())
        } else {
            Err(Reject::WrongPassword)
        }
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
