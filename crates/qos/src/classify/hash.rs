//! Several keys, spread over buckets by a hash.

use core::fmt;
use core::str::FromStr;

use wire::flow::{Flow, Keys};

use super::map::counted;
use super::{Key, UnknownKey};

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

    /// The set without the keys of the innermost header that its other keys determine: with both addresses within the
    /// tunnel it is known whether there is a tunnel, so `src` and `tunnel-src` determine `innermost-src`.
    #[must_use]
    pub const fn without_determined(self) -> KeySet {
        const FIELDS: [[Key; 3]; 5] = [
            [Key::Src, Key::TunnelSrc, Key::InnermostSrc],
            [Key::Dst, Key::TunnelDst, Key::InnermostDst],
            [Key::Proto, Key::TunnelProto, Key::InnermostProto],
            [Key::ProtoSrc, Key::TunnelProtoSrc, Key::InnermostProtoSrc],
            [Key::ProtoDst, Key::TunnelProtoDst, Key::InnermostProtoDst],
        ];
        let mut set = self;
        if self.has(Key::TunnelSrc) && self.has(Key::TunnelDst) {
            let mut index = 0;
            while index < FIELDS.len() {
                let [outer, tunnel, innermost] = FIELDS[index];
                if self.has(outer) && self.has(tunnel) {
                    set.0 &= !(1 << innermost as u32);
                }
                index += 1;
            }
        }
        set
    }

    /// `bits` if the key is in the set, else 0.
    const fn bits(self, key: Key, bits: u64) -> u64 {
        if self.has(key) { bits } else { 0 }
    }

    /// The bits of protocol and ports that the set reads, given the keys of these.
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
///
/// The function is NH of UMAC (Black, Halevi, Krawczyk, Krovetz and Rogaway, 1999), of the words that
/// [`Hash::secrets`] lists, followed by a bijection that mixes the sum: for any two packets with other keys, at most one
/// seed in about 2^32 gives both the same sum. The classifiers that the crate `bpf` emits compute it too. It has only
/// operations that eBPF has, so no product of more than 64 bits, and no jump depends on a key.
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
    /// Bits of the mark, in the upper half.
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
    /// Bits of the protocol, and of the ports.
    small: [u32; 2],
}

/// Five for each header, one for the keys outside headers.
const SECRETS: usize = 16;

/// The factors that mix the sum, of SplitMix64.
const MIX: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

const VLAN: u64 = 0xffff;
const DSCP: u64 = 0xfc_0000;

impl Hash {
    /// The keys of each header: source, destination, protocol, source port, destination port.
    pub const HEADERS: [[Key; 5]; 3] = [
        [Key::Src, Key::Dst, Key::Proto, Key::ProtoSrc, Key::ProtoDst],
        [
            Key::TunnelSrc,
            Key::TunnelDst,
            Key::TunnelProto,
            Key::TunnelProtoSrc,
            Key::TunnelProtoDst,
        ],
        [
            Key::InnermostSrc,
            Key::InnermostDst,
            Key::InnermostProto,
            Key::InnermostProtoSrc,
            Key::InnermostProtoDst,
        ],
    ];

    /// Spreads packets by `keys` over `divisor` buckets, which are the classes from `baseclass` on. A `divisor` of 0
    /// means all 65,536 possible classes. The same seed gives the same function on every machine.
    #[must_use]
    pub fn new(keys: KeySet, divisor: u32, seed: u64, baseclass: u32) -> Hash {
        let set = keys.without_determined();
        let others = [Key::Dscp, Key::Mark, Key::Vlan];
        let lane = |[source, destination, proto, proto_src, proto_dst]: [Key; 5]| {
            let small = set.small(proto, proto_src, proto_dst);
            Lane {
                source: set.has(source),
                destination: set.has(destination),
                small: [(small >> 32) as u32, small as u32],
            }
        };
        let [outer, inner, innermost] = Hash::HEADERS.map(lane);
        Hash {
            keys,
            outer,
            inner,
            layers: outer.is_asked() || inner.is_asked(),
            innermost,
            others: others.into_iter().any(|key| set.has(key)),
            link: set.bits(Key::Dscp, DSCP) | set.bits(Key::Vlan, VLAN),
            mark: set.bits(Key::Mark, u64::from(u32::MAX) << 32),
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

    /// The numbers that the seed gives, one for each word: for each header of [`Hash::HEADERS`] two for the halves of the
    /// source, as little-endian numbers, two for those of the destination, and one for the protocol (upper half) and the
    /// ports (lower half, the source above); the last for the mark (upper half), DSCP and VLAN (lower half).
    ///
    /// A word and its number are added; the product of the sum's halves is one term of the hash. In the words of protocol
    /// and ports, the halves are added each for itself.
    #[must_use]
    pub fn secrets(&self) -> &[u64; SECRETS] {
        &self.secret
    }

    /// The sum is multiplied by the first, its upper half is added to the lower one without carries, and that is multiplied
    /// by the second.
    #[must_use]
    pub const fn factors() -> [u64; 2] {
        MIX
    }

    /// A hash of 64 bits, equal for equal keys; each bit depends on every key.
    #[must_use]
    #[inline(always)]
    pub fn value(&self, keys: &Keys) -> u64 {
        let secret = &self.secret;
        let mut sum = 0_u64;
        if self.layers {
            let outer = self.outer.sum(&keys.outer, secret, 0);
            let inner = self.inner.sum(&keys.inner, secret, 5);
            sum = outer.wrapping_add(inner);
        }
        if self.innermost.is_asked() {
            let innermost = self.innermost.sum(keys.innermost(), secret, 10);
            sum = sum.wrapping_add(innermost);
        }
        if self.others {
            let link = u64::from(keys.traffic_class) << 16 | u64::from(keys.vlan);
            let mark = u64::from(keys.mark) << 32;
            let word = link & self.link | mark & self.mark;
            sum = sum.wrapping_add(term(word, secret[15]));
        }
        let mixed = sum.wrapping_mul(MIX[0]);
        (mixed ^ mixed >> 32).wrapping_mul(MIX[1])
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
        self.source || self.destination || self.small != [0; 2]
    }

    /// Each word has its own secret, so that no two words are interchangeable.
    #[inline(always)]
    fn sum(self, flow: &Flow, secret: &[u64; SECRETS], at: usize) -> u64 {
        let mut sum = 0_u64;
        if self.source {
            let [first, last] = words(flow.source);
            sum = sum.wrapping_add(term(first, secret[at]));
            sum = sum.wrapping_add(term(last, secret[at + 1]));
        }
        if self.destination {
            let [first, last] = words(flow.destination);
            sum = sum.wrapping_add(term(first, secret[at + 2]));
            sum = sum.wrapping_add(term(last, secret[at + 3]));
        }
        if self.small != [0; 2] {
            // The ports were stored in one go, and are best loaded so.
            let ports = u32::from(flow.source_port) | u32::from(flow.destination_port) << 16;
            let [proto_bits, port_bits] = self.small;
            let secret = secret[at + 4];
            let proto = (flow.protocol & proto_bits).wrapping_add((secret >> 32) as u32);
            let ports = (ports.rotate_left(16) & port_bits).wrapping_add(secret as u32);
            sum = sum.wrapping_add(u64::from(proto) * u64::from(ports));
        }
        sum
    }
}

/// The halves of an address, as they are in the memory of a little-endian machine.
#[inline(always)]
fn words(address: [u8; 16]) -> [u64; 2] {
    let bits = u128::from_le_bytes(address);
    [bits as u64, (bits >> 64) as u64]
}

/// The product of the halves of a sum.
#[inline(always)]
fn term(word: u64, secret: u64) -> u64 {
    let sum = word.wrapping_add(secret);
    (sum >> 32) * u64::from(sum as u32)
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
