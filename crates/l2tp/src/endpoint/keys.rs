//! Keys that are derived from shared secrets (RFC 3931 5.3 and 5.4.1).
//!
//! Each tunnel keeps the secret that was in force when the tunnel was opened. Start reading at [`Keyring`].

use base::Redacted;
use wire::l2tp::{auth, digest, hidden};

/// The keys of one secret.
pub(super) struct Keys {
    /// The secret itself, for L2TPv2.
    pub(super) secret: Vec<u8>,
    /// For hidden AVPs in L2TPv3 (RFC 3931 5.3).
    pub(super) hiding: [u8; 16],
    /// For message digests in L2TPv3 (RFC 3931 5.4.1).
    pub(super) digest: digest::Key,
}

/// All secrets since the start, each once. A tunnel names its own by a number.
pub(super) struct Keyring {
    all: Vec<Option<Keys>>,
    current: u16,
}

impl Keyring {
    pub(super) fn new(secret: Option<&Redacted<Vec<u8>>>) -> Self {
        Self {
            all: vec![secret.map(Keys::new)],
            current: 0,
        }
    }

    /// The keys for new tunnels; `None` without a secret.
    pub(super) fn current(&self) -> Option<&Keys> {
        self.of(self.current)
    }

    /// The number of the current secret, for a new tunnel.
    pub(super) fn number(&self) -> u16 {
        self.current
    }

    /// The keys of the secret with that number.
    pub(super) fn of(&self, number: u16) -> Option<&Keys> {
        self.all.get(usize::from(number))?.as_ref()
    }

    /// Makes a secret the current one.
    pub(super) fn renew(&mut self, secret: Option<&Redacted<Vec<u8>>>) {
        self.current = self.number_of(secret);
    }

    /// The number of the secret with this check value.
    pub(super) fn find(&self, check: u32, seed: u64) -> Option<u16> {
        let is_it = |keys: &Option<Keys>| keys.as_ref().is_some_and(|k| k.check(seed) == check);
        let place = self.all.iter().position(is_it)?;
        Some(place as u16)
    }

    /// The number of a secret. After 65,535 different secrets, a further one takes the place of the last.
    pub(super) fn number_of(&mut self, secret: Option<&Redacted<Vec<u8>>>) -> u16 {
        let wanted = secret.map(|secret| secret.reveal());
        let is_it = |keys: &Option<Keys>| keys.as_ref().map(|keys| &keys.secret) == wanted;
        let place = self.all.iter().position(is_it).unwrap_or_else(|| {
            self.all.truncate(usize::from(u16::MAX));
            self.all.push(secret.map(Keys::new));
            self.all.len() - 1
        });
        place as u16
    }
}

/// The check value of a secret: 32 bits of MD5.
pub(super) fn check(secret: &[u8], seed: u64) -> u32 {
    let [a, b, c, d, ..] = auth::challenge_response(0, secret, &seed.to_be_bytes());
    u32::from_be_bytes([a, b, c, d])
}

impl Keys {
    /// Tells whether this is the secret of a snapshot, without giving it away. `seed` belongs to the endpoint.
    pub(super) fn check(&self, seed: u64) -> u32 {
        check(&self.secret, seed)
    }

    fn new(secret: &Redacted<Vec<u8>>) -> Self {
        let secret = secret.reveal();
        Self {
            secret: secret.clone(),
            hiding: hidden::shared_key(secret),
            digest: digest::shared_key(secret),
        }
    }
}
