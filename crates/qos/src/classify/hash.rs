//! Several keys, spread over buckets by a hash.

use core::fmt;
use core::str::FromStr;

use wire::flow::{Flow, Keys};

use super::map::counted;
use super::{Key, UnknownKey, halves, small};

/// A set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeySet(u32);

const PROTO: u64 = 0xffff_ffff << 32;
const PROTO_SRC: u64 = 0xffff << 16;
const PROTO_DST: u64 = 0xffff;

impl KeySet {
    /// The user that sent a packet: the source within the tunnel, or the only source.
    pub const HOST: KeySet = KeySet::of(&[Key::InnermostSrc]);
    /// The user that receives a packet: the destination within the tunnel, or the only destination.
    pub const HOST_DST: KeySet = KeySet::of(&[Key::InnermostDst]);
    /// Addresses, protocol and ports of the outer header.
    pub const PLAIN: KeySet =
        KeySet::of(&[Key::Src, Key::Dst, Key::Proto, Key::ProtoSrc, Key::ProtoDst]);
    /// Addresses, protocol and ports of the innermost header.
    pub const INNERMOST: KeySet = KeySet::of(&[
        Key::InnermostSrc,
        Key::InnermostDst,
        Key::InnermostProto,
        Key::InnermostProtoSrc,
        Key::InnermostProtoDst,
    ]);
    /// Addresses, protocol and ports of both headers.
    pub const FLOW: KeySet = KeySet::of(&[
        Key::Src,
        Key::Dst,
        Key::Proto,
        Key::ProtoSrc,
        Key::ProtoDst,
        Key::TunnelSrc,
        Key::TunnelDst,
        Key::TunnelProto,
        Key::TunnelProtoSrc,
        Key::TunnelProtoDst,
    ]);

    /// Sets that have a name.
    pub const NAMED: [(&'static str, KeySet); 5] = [
        ("host", KeySet::HOST),
        ("host-dst", KeySet::HOST_DST),
        ("plain", KeySet::PLAIN),
        ("innermost", KeySet::INNERMOST),
        ("flow", KeySet::FLOW),
    ];

    /// The set of these keys.
    #[must_use]
    pub const fn of(keys: &[Key]) -> KeySet {
        let mut set = KeySet(0);
        let mut index = 0;
        while index < keys.len() {
            set.0 |= 1 << keys[index] as u32;
            index += 1;
        }
        set
    }

    /// Whether a key is in it.
    #[must_use]
    pub const fn has(self, key: Key) -> bool {
        self.0 >> key as u32 & 1 == 1
    }

    /// Its keys, in their order.
    pub fn iter(self) -> impl Iterator<Item = Key> {
        Key::ALL.into_iter().filter(move |&key| self.has(key))
    }

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// `bits` if the key is in the set, else 0.
    const fn bits(self, key: Key, bits: u64) -> u64 {
        if self.has(key) { bits } else { 0 }
    }

    /// The bits of [`small`] that the set reads, given the keys of protocol and ports.
    const fn small(self, proto: Key, source: Key, destination: Key) -> u64 {
        self.bits(proto, PROTO) | self.bits(source, PROTO_SRC) | self.bits(destination, PROTO_DST)
    }
}

impl fmt::Display for KeySet {
    /// Its keys, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{key}")?;
        }
        Ok(())
    }
}

/// A text with a word that is neither a key nor the name of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKeys(UnknownKey);

impl fmt::Display for UnknownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; and for several", self.0)?;
        for (name, _) in KeySet::NAMED {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownKeys {}

impl FromStr for KeySet {
    type Err = UnknownKeys;

    /// Reads keys and named sets, separated by commas: `src,dst,proto`, `host`, `flow,dscp`.
    fn from_str(text: &str) -> Result<Self, UnknownKeys> {
        let mut set = KeySet::default();
        for name in text.split(',') {
            let name = name.trim();
            let named = KeySet::NAMED.iter().find(|(known, _)| *known == name);
            set.0 |= match named {
                Some((_, keys)) => keys.0,
                None => KeySet::of(&[name.parse().map_err(UnknownKeys)?]).0,
            };
        }
        Ok(set)
    }
}

/// `tc`'s `flow hash`: a packet's keys, spread over buckets by a function that depends on a seed.
///
/// Packets with equal keys get the same bucket until the seed changes. A sender that does not know the seed cannot
/// choose keys that collide. Only the keys in the set are read.
#[derive(Debug, Clone)]
pub struct Hash {
    keys: KeySet,
    outer: Lane,
    inner: Lane,
    innermost: Lane,
    /// Whether the set has keys of the outer header or of that within a tunnel.
    layers: bool,
    /// Whether the set has DSCP, mark or VLAN.
    others: bool,
    /// The bits of DSCP and VLAN that it reads.
    link: u64,
    /// Bits of the mark.
    mark: u64,
    secret: [u64; SECRETS],
    divisor: u32,
    baseclass: u32,
}

/// The parts of one header that it reads.
#[derive(Debug, Clone, Copy)]
struct Lane {
    source: bool,
    destination: bool,
    /// Bits of [`small`].
    small: u64,
}

/// Six for each header, two for the keys outside headers, two for the end.
const SECRETS: usize = 22;

const VLAN: u64 = 0xffff;
const DSCP: u64 = 0xfc_0000;

impl Hash {
    /// Spreads packets by `keys` over `divisor` buckets, which are the classes from `baseclass` on. A `divisor` of 0
    /// means all 65,536 possible classes. The same seed gives the same function on every machine.
    #[must_use]
    pub fn new(keys: KeySet, divisor: u32, seed: u64, baseclass: u32) -> Hash {
        let others = [Key::Dscp, Key::Mark, Key::Vlan];
        let outer = Lane {
            source: keys.has(Key::Src),
            destination: keys.has(Key::Dst),
            small: keys.small(Key::Proto, Key::ProtoSrc, Key::ProtoDst),
        };
        let inner = Lane {
            source: keys.has(Key::TunnelSrc),
            destination: keys.has(Key::TunnelDst),
            small: keys.small(Key::TunnelProto, Key::TunnelProtoSrc, Key::TunnelProtoDst),
        };
        Hash {
            keys,
            outer,
            inner,
            layers: outer.is_asked() || inner.is_asked(),
            innermost: Lane {
                source: keys.has(Key::InnermostSrc),
                destination: keys.has(Key::InnermostDst),
                small: keys.small(
                    Key::InnermostProto,
                    Key::InnermostProtoSrc,
                    Key::InnermostProtoDst,
                ),
            },
            others: others.into_iter().any(|key| keys.has(key)),
            link: keys.bits(Key::Dscp, DSCP) | keys.bits(Key::Vlan, VLAN),
            mark: keys.bits(Key::Mark, u64::from(u32::MAX)),
            secret: secret(seed),
            divisor,
            baseclass,
        }
    }

    /// Changes the seed: every key may have another bucket from now on.
    pub fn perturb(&mut self, seed: u64) {
        self.secret = secret(seed);
    }

    /// The keys that it reads.
    #[must_use]
    pub fn keys(&self) -> KeySet {
        self.keys
    }

    /// The numbers that the seed gives: six for each header (two for the source, two for the destination, two for protocol
    /// and ports), outer, tunnel and innermost; two for DSCP, VLAN and mark; two for the end.
    #[must_use]
    pub fn secrets(&self) -> &[u64; SECRETS] {
        &self.secret
    }

    /// A hash of 64 bits, equal for equal keys; each bit depends on every key.
    #[must_use]
    #[inline]
    pub fn value(&self, keys: &Keys) -> u64 {
        let secret = &self.secret;
        let mut hash = 0;
        if self.layers {
            hash ^= self.outer.hash(&keys.outer, secret, 0);
            hash ^= self.inner.hash(&keys.inner, secret, 6);
        }
        if self.innermost.is_asked() {
            hash ^= self.innermost.hash(keys.innermost(), secret, 12);
        }
        if self.others {
            let link = u64::from(keys.traffic_class) << 16 | u64::from(keys.vlan);
            let mark = u64::from(keys.mark);
            hash ^= fold(link & self.link ^ secret[18], mark & self.mark ^ secret[19]);
        }
        fold(hash ^ secret[20], secret[21])
    }

    /// The packet's bucket, below the divisor.
    #[must_use]
    #[inline]
    pub fn bucket(&self, keys: &Keys) -> u32 {
        let value = (self.value(keys) >> 32) as u32;
        match self.divisor {
            0 => value,
            divisor => ((u64::from(value) * u64::from(divisor)) >> 32) as u32,
        }
    }

    /// The packet's class.
    #[must_use]
    #[inline]
    pub fn class(&self, keys: &Keys) -> u32 {
        counted(self.baseclass, self.bucket(keys))
    }
}

impl Lane {
    #[inline(always)]
    fn is_asked(self) -> bool {
        self.source || self.destination || self.small != 0
    }

    /// Each part has its own secrets, so that no two parts are interchangeable.
    #[inline(always)]
    fn hash(self, flow: &Flow, secret: &[u64; SECRETS], at: usize) -> u64 {
        let mut hash = 0;
        if self.source {
            let [high, low] = halves(flow.source);
            hash ^= fold(high ^ secret[at], low ^ secret[at + 1]);
        }
        if self.destination {
            let [high, low] = halves(flow.destination);
            hash ^= fold(high ^ secret[at + 2], low ^ secret[at + 3]);
        }
        if self.small != 0 {
            hash ^= fold(small(flow) & self.small ^ secret[at + 4], secret[at + 5]);
        }
        hash
    }
}

/// Folds the two halves of a product into one: each bit depends on all bits of both factors.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Pseudo-random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014).
fn secret(seed: u64) -> [u64; SECRETS] {
    let mut state = seed;
    core::array::from_fn(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}
