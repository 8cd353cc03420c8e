//! The queues that a policy can choose (`template` of `[shape]`, `queue` of a class), and the keys that they take.
//!
//! A discipline's file lists its queues in [`crate::plan::About::queues`]. The policy's reader checks keys and ranges by
//! these declarations alone.

use base::Duration;

use crate::classify::KeySet;

/// A queue that a policy can choose, made from a plan `P`.
#[derive(Debug)]
pub struct Queue<P: 'static> {
    /// What the policy's reader needs to know.
    pub offer: Offer,
    /// The plan for what the policy says.
    pub plan: fn(&Given<'_>) -> P,
}

/// What a policy's reader knows of a queue.
#[derive(Debug)]
pub struct Offer {
    /// Its name as `queue` of a class.
    pub name: &'static str,
    /// Its name as `template` of `[shape]`.
    pub template: &'static str,
    /// Keys of `[shape]` that have an effect on it.
    pub settings: &'static [&'static Setting],
    /// The limit where none is given.
    pub limit: LimitBy,
    /// Whether it drops packets that waited too long, so that a large limit does no harm.
    pub bounds_delay: bool,
}

/// A key of `[shape]`.
#[derive(Debug)]
pub struct Setting {
    /// The key.
    pub name: &'static str,
    /// Its values.
    pub takes: Takes,
    /// Advice for a value other than zero: what happens, and what to do instead.
    pub caution: Option<[&'static str; 2]>,
}

/// Values of a [`Setting`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// One of two names: that for `true`, and that for `false`.
    Switch(&'static str, &'static str),
    /// A time, in nanoseconds from the first to the second.
    Time(u64, u64),
    /// A size, in bytes from the first to the second.
    Size(u64, u64),
    /// Keys that tell flows apart.
    Keys,
}

/// A value of a [`Setting`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Of [`Takes::Flag`] and [`Takes::Switch`].
    Flag(bool),
    /// Of [`Takes::Time`].
    Time(Duration),
    /// Of [`Takes::Size`].
    Size(u64),
    /// Of [`Takes::Keys`].
    Keys(KeySet),
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitBy {
    /// In packets.
    Packets(u32),
    /// In bytes on the line.
    Octets(u64),
    /// As many bytes as the rate carries in this time.
    Time(Duration),
}

/// The values of the settings that a policy gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(&'static str, Value)>);

/// The settings that a policy gives one queue.
#[derive(Debug, Clone, Copy)]
pub struct Given<'g> {
    /// Keys of `[shape]`.
    pub settings: &'g Settings,
    /// Its limit.
    pub limit: LimitBy,
    /// Bits per second of the link.
    pub link_bps: u64,
    /// Bytes on the line of the longest packet.
    pub mtu: u32,
    /// Whether it is for packets to the provider.
    pub is_up: bool,
    /// The quantum where none is set.
    pub quantum: u32,
}

/// `quantum`: what a flow sends in its turn.
pub static QUANTUM: Setting = Setting {
    name: "quantum",
    takes: Takes::Size(64, 1 << 20),
    caution: None,
};

/// `memory`: what may wait, in bytes.
pub static MEMORY: Setting = Setting {
    name: "memory",
    takes: Takes::Size(16 << 10, 1 << 32),
    caution: None,
};

/// `flow_keys`: what tells flows apart.
pub static FLOW_KEYS: Setting = Setting {
    name: "flow_keys",
    takes: Takes::Keys,
    caution: None,
};

impl Offer {
    /// Whether `setting` has an effect on the queue.
    #[must_use]
    pub fn has(&self, setting: &Setting) -> bool {
        self.settings.iter().any(|own| own.name == setting.name)
    }
}

impl Value {
    /// Whether it is false, or zero, or no key.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Flag(flag) => !flag,
            Self::Time(time) => *time == Duration::ZERO,
            Self::Size(size) => *size == 0,
            Self::Keys(keys) => keys.is_empty(),
        }
    }
}

impl LimitBy {
    /// Full packets of `mtu` bytes that it comes to, at a rate of `link_bps`.
    #[must_use]
    pub fn packets(self, link_bps: u64, mtu: u32) -> u32 {
        let packets = |octets: u64| u32::try_from(octets / u64::from(mtu)).unwrap_or(u32::MAX);
        match self {
            Self::Packets(count) => count,
            Self::Octets(octets) => packets(octets),
            Self::Time(time) => packets(octets_in(link_bps, time)),
        }
    }
}

impl Settings {
    /// Adds the value of a setting.
    pub fn set(&mut self, setting: &Setting, value: Value) {
        self.0.push((setting.name, value));
    }

    /// The value of a setting, if the policy gives it.
    #[must_use]
    pub fn get(&self, setting: &Setting) -> Option<Value> {
        let mut given = self.0.iter().filter(|(name, _)| *name == setting.name);
        given.next().map(|(_, value)| *value)
    }

    /// A flag or switch; it is `true` where none is given.
    #[must_use]
    pub fn is_on(&self, setting: &Setting) -> bool {
        self.get(setting) != Some(Value::Flag(false))
    }

    /// A time.
    #[must_use]
    pub fn time(&self, setting: &Setting) -> Option<Duration> {
        match self.get(setting) {
            Some(Value::Time(time)) => Some(time),
            _ => None,
        }
    }

    /// A size in bytes.
    #[must_use]
    pub fn size(&self, setting: &Setting) -> Option<u64> {
        match self.get(setting) {
            Some(Value::Size(size)) => Some(size),
            _ => None,
        }
    }
}

impl Given<'_> {
    /// The limit in packets, at least one.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.limit.packets(self.link_bps, self.mtu).max(1)
    }

    /// [`QUANTUM`].
    #[must_use]
    pub fn quantum(&self) -> u32 {
        let given = self.settings.size(&QUANTUM);
        given.map_or(self.quantum, |quantum| quantum as u32)
    }

    /// [`MEMORY`]; by default what the link carries in 0.4 s, from 256 KiB to 32 MiB.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let given = self.settings.size(&MEMORY);
        given.unwrap_or_else(|| {
            octets_in(self.link_bps, Duration::from_millis(400)).clamp(256 << 10, 32 << 20)
        })
    }

    /// [`FLOW_KEYS`]; by default those of the innermost header.
    #[must_use]
    pub fn flow_keys(&self) -> KeySet {
        match self.settings.get(&FLOW_KEYS) {
            Some(Value::Keys(keys)) => keys,
            _ => KeySet::INNERMOST,
        }
    }
}

/// Bytes that a rate carries in a time.
#[must_use]
pub fn octets_in(link_bps: u64, time: Duration) -> u64 {
    let units = u128::from(link_bps) * u128::from(time.as_nanos());
    u64::try_from(units / 8_000_000_000).unwrap_or(u64::MAX)
}
