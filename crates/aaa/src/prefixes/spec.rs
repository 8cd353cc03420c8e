//! The specification of prefix pools, and its faults.

use core::fmt;

use super::bits;
use crate::profile::Prefix;

/// The most prefix pools.
pub const PREFIX_POOLS_MAX: usize = 256;

/// The most bits between the length of a range and that of the pool's prefixes.
const DEPTH_MAX: u8 = 32;

/// A prefix pool as an operator describes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PrefixSpec {
    /// Its name, unique among prefix pools.
    pub name: Box<str>,
    /// The IPv6 networks that it divides.
    pub ranges: Vec<Prefix>,
    /// The length of the prefixes that it leases: 128 for single addresses.
    pub length: u8,
    /// Networks whose prefixes it does not lease.
    pub excluded: Vec<Prefix>,
    /// Whether it remembers each user's last prefix.
    pub sticky: bool,
}

/// A fault in a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixFault {
    /// Index of the pool.
    pub pool: usize,
    /// The faulty key.
    pub key: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for PrefixFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Checks specifications.
pub(super) fn check(specs: &[PrefixSpec]) -> Result<(), Vec<PrefixFault>> {
    let mut faults = Vec::new();
    let mut ranges: Vec<(Prefix, usize)> = Vec::new();
    for (pool, spec) in specs.iter().enumerate() {
        let mut fault = |key, message| faults.push(PrefixFault { pool, key, message });
        if pool >= PREFIX_POOLS_MAX {
            let message = format!("is the pool beyond {PREFIX_POOLS_MAX}; give fewer");
            fault("name", message);
        }
        if spec.name.is_empty() {
            fault("name", "is empty; give the pool a name".to_owned());
        }
        if specs[..pool].iter().any(|other| other.name == spec.name) {
            let message = format!("\"{}\" is given twice; give each its own", spec.name);
            fault("name", message);
        }
        if spec.ranges.is_empty() {
            let message = "has no network; give one such as \"2001:db8::/40\"".to_owned();
            fault("ranges", message);
        }
        for &range in &spec.ranges {
            if let Some(message) = range_fault(range, spec.length, &ranges, specs) {
                fault("ranges", message);
            }
            ranges.push((range, pool));
        }
        if let Some(other) = spec.excluded.iter().find(|one| bits(**one).is_none()) {
            let message = format!("{other} is no IPv6 network");
            fault("excluded", message);
        }
        let covers = |range: &Prefix| {
            let excluded = spec.excluded.iter();
            let mut all = excluded.filter(|one| one.length() <= range.length());
            all.any(|one| one.contains(range.address()))
        };
        if !spec.ranges.is_empty() && spec.ranges.iter().all(covers) {
            let message = "covers all ranges; leave some prefixes to lease".to_owned();
            fault("excluded", message);
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn range_fault(
    range: Prefix,
    length: u8,
    before: &[(Prefix, usize)],
    specs: &[PrefixSpec],
) -> Option<String> {
    if bits(range).is_none() {
        return Some(format!("{range} is no IPv6 network"));
    }
    if !(1..=128).contains(&length) || length < range.length() {
        return Some(format!(
            "{range} has no prefixes of length {length}; give a length from {} to 128",
            range.length().max(1)
        ));
    }
    if length - range.length() > DEPTH_MAX {
        return Some(format!(
            "{range} has more than 2^{DEPTH_MAX} prefixes of length {length}; give a longer network"
        ));
    }
    let overlaps = |other: Prefix| {
        let (short, long) = match other.length() <= range.length() {
            true => (other, range),
            false => (range, other),
        };
        short.contains(long.address())
    };
    let other = before.iter().find(|(other, _)| overlaps(*other))?;
    let name = &specs[other.1].name;
    Some(format!(
        "{range} overlaps {} of pool \"{name}\"; let each prefix be of one range only",
        other.0
    ))
}
