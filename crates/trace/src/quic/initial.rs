//! Opens the Initial packets of both ends, whose keys follow from the connection ID (RFC 9001 5, RFC 9369 3.3).
//!
//! The authentication tag is not verified: a packet that was changed on its way shows a wrong ClientHello or none, and a payload that is no list of frames.

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::quic::{VERSION_1, VERSION_2};

const SALT_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];

/// Octets of the authentication tag at the end of a packet.
const TAG: usize = 16;

/// Keys of one end's Initial packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) key: [u8; 16],
    pub(super) iv: [u8; 12],
    pub(super) header: [u8; 16],
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hmac =
        <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| hmac.update(part));
    hmac.finalize().into_bytes().into()
}

/// HKDF-Expand-Label (RFC 8446 7.1) for at most 32 octets.
fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> [u8; N] {
    let length = [0, N as u8, (6 + label.len()) as u8];
    let octets = hmac(secret, &[&length, b"tls13 ", label.as_bytes(), &[0, 1]]);
    let mut out = [0; N];
    out.copy_from_slice(&octets[..N]);
    out
}

impl Keys {
    /// The keys of the client, or of the server, for the connection ID of the client's first packet; `None` for other
    /// versions.
    pub(super) fn new(version: u32, id: &[u8], of_client: bool) -> Option<Keys> {
        let (salt, labels) = match version {
            VERSION_1 => (SALT_1, ["quic key", "quic iv", "quic hp"]),
            VERSION_2 => (SALT_2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
            _ => return None,
        };
        let end = if of_client { "client in" } else { "server in" };
        let secret = expand::<32>(&hmac(&salt, &[id]), end);
        let [key, iv, header] = labels;
        Some(Keys {
            key: expand(&secret, key),
            iv: expand(&secret, iv),
            header: expand(&secret, header),
        })
    }

    /// The mask of header protection (RFC 9001 5.4.3).
    pub(super) fn mask(&self, sample: &[u8; 16]) -> [u8; 16] {
        encrypt(&Aes128::new(&self.header.into()), *sample)
    }

    /// Encrypts or decrypts a payload: AES-GCM without its tag is the counter mode from 2 on (NIST SP 800-38D).
    pub(super) fn apply(&self, number: u64, payload: &mut [u8]) {
        let cipher = Aes128::new(&self.key.into());
        let mut block = [0; 16];
        block[..12].copy_from_slice(&self.iv);
        for (octet, part) in block[4..12].iter_mut().zip(number.to_be_bytes()) {
            *octet ^= part;
        }
        for (counter, chunk) in (2u32..).zip(payload.chunks_mut(16)) {
            block[12..].copy_from_slice(&counter.to_be_bytes());
            let stream = encrypt(&cipher, block);
            chunk
                .iter_mut()
                .zip(stream)
                .for_each(|(octet, key)| *octet ^= key);
        }
    }
}

fn encrypt(cipher: &Aes128, block: [u8; 16]) -> [u8; 16] {
    let mut block = aes::Block::from(block);
    cipher.encrypt_block(&mut block);
    block.into()
}

/// Packets that are opened of a flow. The handshake of an honest connection needs far less.
const OPENED_MAX: u32 = 128;

/// Opens the Initial packets of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opener {
    /// The connection ID that keys are derived from.
    id: Vec<u8>,
    /// Keys of the client and of the server, and the version they are of. It may change (RFC 9369 4.1).
    keys: Option<(u32, [Keys; 2])>,
    opened: u32,
}

/// An opened packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) number: u64,
    pub(super) payload: Vec<u8>,
}

impl Opener {
    pub(super) fn new(id: &[u8]) -> Opener {
        Opener {
            id: id.to_vec(),
            keys: None,
            opened: 0,
        }
    }

    /// Whether no more packets of the flow shall be opened.
    pub(super) const fn is_used_up(&self) -> bool {
        self.opened >= OPENED_MAX
    }

    /// An Initial packet, whose packet number begins at `number_at`. `next` is one more than the sender's highest number
    /// so far. `None` if the version is unknown or the packet is too short.
    pub(super) fn open(
        &mut self,
        version: u32,
        of_client: bool,
        (packet, number_at): (&[u8], usize),
        next: u64,
    ) -> Option<Opened> {
        if self.keys.as_ref().is_none_or(|(of, _)| *of != version) {
            let keys = |of_client| Keys::new(version, &self.id, of_client);
            self.keys = Some((version, [keys(true)?, keys(false)?]));
        }
        let (_, keys) = self.keys.as_ref()?;
        let keys = &keys[usize::from(!of_client)];
        let sample = packet.get(number_at + 4..)?.first_chunk::<16>()?;
        let mask = keys.mask(sample);
        let width = usize::from((packet[0] ^ mask[0]) & 3) + 1;
        let shown = packet.get(number_at..number_at + width)?;
        let shown = shown.iter().zip(&mask[1..]);
        let shown = shown.fold(0, |sum, (octet, mask)| sum << 8 | u64::from(octet ^ mask));
        let number = in_full(shown, 8 * width as u32, next);
        let mut payload = packet
            .get(number_at + width..packet.len().checked_sub(TAG)?)?
            .to_vec();
        keys.apply(number, &mut payload);
        self.opened += 1;
        Some(Opened { number, payload })
    }
}

/// A packet number of which a packet shows the low bits: the one nearest to `next` (RFC 9000 A.3).
pub(super) const fn in_full(shown: u64, bits: u32, next: u64) -> u64 {
    let window = 1 << bits;
    let near = (next & !(window - 1)) | shown;
    if near + window / 2 <= next && near < (1 << 62) - window {
        near + window
    } else if near > next + window / 2 && near >= window {
        near - window
    } else {
        near
    }
}
