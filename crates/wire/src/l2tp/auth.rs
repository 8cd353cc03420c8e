//! Tunnel authentication of v2: RFC 2661 4.4.3 and 5.1.1, after RFC 1994.

use hmac::digest::CtOutput;
use md5::{Digest, Md5};

/// The Challenge Response to `challenge`: MD5 over ID, secret and challenge.
///
/// `message_type` serves as the ID: the Message Type of the message that carries the response, 2 for an SCCRP
/// and 3 for an SCCCN.
#[must_use]
pub fn challenge_response(message_type: u8, secret: &[u8], challenge: &[u8]) -> [u8; 16] {
    let md5 = Md5::new().chain_update([message_type]);
    md5.chain_update(secret)
        .chain_update(challenge)
        .finalize()
        .into()
}

/// Whether `response` is right, compared in constant time.
#[must_use]
pub fn verify_response(message_type: u8, secret: &[u8], challenge: &[u8], response: &[u8]) -> bool {
    let Ok(response) = <[u8; 16]>::try_from(response) else {
        return false;
    };
    let expected = challenge_response(message_type, secret, challenge);
    CtOutput::<Md5>::new(expected.into()) == CtOutput::new(response.into())
}
