//! Message digests of L2TPv3, under the secret and the nonces of the golden
//! messages.

use wire::l2tp::{DigestType, digest};

const SECRET: &[u8] = b"lantern";
const OWN_NONCE: &[u8] = b"own nonce";
const PEER_NONCE: &[u8] = b"the peer's nonce";

/// Takes a whole control message, header included.
///
/// # Panics
/// If a digest verifies that we would not have written, or one of ours does not verify.
pub fn target(data: &[u8]) {
    let key = digest::shared_key(SECRET);
    let right = digest::verify(data, &key, &[], &[]);
    assert!(!right || digest::present(data));
    let mut kept = false;
    for kind in [DigestType::HmacMd5, DigestType::HmacSha1] {
        kept |= check_kind(data, kind, &key);
    }
    assert!(
        !right || kept,
        "a right digest is the one that we would write"
    );
}

/// Signs the message again; returns whether it already had that digest.
fn check_kind(data: &[u8], kind: DigestType, key: &digest::Key) -> bool {
    let mut plain = data.to_vec();
    let signed = digest::sign(&mut plain, kind, key, &[], &[]);
    assert_eq!(plain.len(), data.len());
    if !signed {
        assert_eq!(plain, data);
        return false;
    }
    let changed = plain
        .iter()
        .zip(data)
        .filter(|(new, old)| new != old)
        .count();
    assert!(digest::present(data) && changed <= 2 * kind.digest_len());
    assert!(digest::verify(&plain, key, &[], &[]));
    assert!(!digest::verify(&plain, &digest::shared_key(b"torch"), &[], &[]) || changed == 0);
    let mut other = data.to_vec();
    assert!(digest::sign(&mut other, kind, key, OWN_NONCE, PEER_NONCE));
    assert!(
        digest::verify(&other, key, PEER_NONCE, OWN_NONCE),
        "the peer sees it mirrored"
    );
    // One of two digests may have been right before, and the other not.
    changed <= kind.digest_len() && digest::verify(data, key, &[], &[])
}
