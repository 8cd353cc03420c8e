//! An operator's specification of a pool, and its validation.

use core::fmt;

use super::range::{NO_HOSTS, Range};

/// The most pools of an edge.
pub const POOLS_MAX: usize = 1_024;
/// The most addresses in all pools together.
pub const ADDRESSES_MAX: u64 = 1 << 24;

/// A pool's specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Its name for users and servers (Framed-Pool).
    pub name: Box<str>,
    /// Its address ranges.
    pub ranges: Vec<Range>,
    /// Addresses in its ranges that it does not lease.
    pub excluded: Vec<Range>,
    /// Exclude the addresses that end in .0 and .255, which some old hosts cannot talk to.
    pub skip_ends: bool,
    /// Lease each user its last address again, if it is free.
    pub sticky: bool,
}

/// A fault in a pool's specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFault {
    /// The pool's index in the list.
    pub pool: usize,
    /// The key at fault: `name`, `ranges` or `excluded`.
    pub key: &'static str,
    /// The index of the value in that key.
    pub place: usize,
    /// What is wrong.
    pub message: String,
    /// What would be valid instead.
    pub right: String,
}

impl fmt::Display for SpecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.right)
    }
}

/// A range of a pool, and the index of its first address in that pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) pool: usize,
    pub(super) base: u32,
}

/// The span that contains the address; the spans are sorted.
pub(super) fn span_of(spans: &[Span], bits: u32) -> Option<Span> {
    let behind = spans.partition_point(|span| span.first <= bits);
    let span = spans[..behind].last()?;
    (bits <= span.last).then_some(*span)
}

/// The ranges of all pools, sorted by address.
///
/// # Errors
/// Every fault found.
pub(super) fn check(specs: &[Spec]) -> Result<Vec<Span>, Vec<SpecFault>> {
    let mut faults = Vec::new();
    for (pool, spec) in specs.iter().enumerate() {
        let mut fault = |key, place, message: String, right: &str| {
            faults.push(SpecFault {
                pool,
                key,
                place,
                message,
                right: right.to_owned(),
            });
        };
        if spec.name.is_empty() || spec.name.len() > 253 {
            let message = format!("has {} octets", spec.name.len());
            fault("name", 0, message, "give it a name of 1 to 253 octets");
        } else if specs[..pool].iter().any(|other| other.name == spec.name) {
            let message = format!("\"{}\" is the name of another pool", spec.name);
            fault("name", 0, message, "give each pool its own");
        }
        if pool == POOLS_MAX {
            let message = format!("is the pool beyond {POOLS_MAX}");
            fault("name", 0, message, "join pools that serve the same users");
        }
        if spec.ranges.is_empty() {
            let right = "give at least one, such as \"10.0.0.0/24\"";
            fault("ranges", 0, "is empty".to_owned(), right);
        }
        for (place, range) in spec.ranges.iter().enumerate() {
            if let Some(wrong) = NO_HOSTS.iter().find(|wrong| wrong.overlaps(*range)) {
                let message = format!("{range} has addresses of {wrong}, which no host can have");
                fault("ranges", place, message, "leave those out");
            }
        }
        for (place, out) in spec.excluded.iter().enumerate() {
            if !spec.ranges.iter().any(|range| range.overlaps(*out)) {
                let message = format!("{out} is in none of the pool's ranges");
                fault("excluded", place, message, "leave it out, or correct it");
            }
        }
    }
    let spans = overlaps(specs, &mut faults);
    sizes(specs, &mut faults);
    if faults.is_empty() {
        Ok(spans)
    } else {
        faults.sort_by_key(|fault| fault.pool);
        Err(faults)
    }
}

/// The sorted ranges, with their pool and index; reports a fault for each that overlaps an earlier one.
fn overlaps(specs: &[Spec], faults: &mut Vec<SpecFault>) -> Vec<Span> {
    let mut all: Vec<(Range, usize, usize)> = Vec::new();
    for (pool, spec) in specs.iter().enumerate() {
        let ranges = spec.ranges.iter().enumerate();
        all.extend(ranges.map(|(place, range)| (*range, pool, place)));
    }
    all.sort();
    let mut bases = vec![0_u32; specs.len()];
    let mut spans = Vec::with_capacity(all.len());
    let mut farthest: Option<(Range, usize)> = None;
    for (range, pool, place) in all {
        if let Some((other, whose)) = farthest.filter(|(other, _)| other.overlaps(range)) {
            faults.push(SpecFault {
                pool,
                key: "ranges",
                place,
                message: format!("{range} overlaps {other} of pool \"{}\"", specs[whose].name),
                right: "let each address be of one range only".to_owned(),
            });
        }
        if farthest.is_none_or(|(other, _)| other.bits().1 < range.bits().1) {
            farthest = Some((range, pool));
        }
        let (first, last) = range.bits();
        let base = bases[pool];
        bases[pool] = base.saturating_add(u32::try_from(range.count()).unwrap_or(u32::MAX));
        spans.push(Span {
            first,
            last,
            pool,
            base,
        });
    }
    spans
}

/// Reports a fault for the pool that exceeds the total size limit.
fn sizes(specs: &[Spec], faults: &mut Vec<SpecFault>) {
    let mut total = 0_u64;
    for (pool, spec) in specs.iter().enumerate() {
        let before = total;
        total += spec.ranges.iter().map(|range| range.count()).sum::<u64>();
        if total > ADDRESSES_MAX && before <= ADDRESSES_MAX {
            faults.push(SpecFault {
                pool,
                key: "ranges",
                place: 0,
                message: format!("bring all pools to {total} addresses"),
                right: format!("all together may have {ADDRESSES_MAX}"),
            });
        }
    }
}

/// The fault of a pool that excludes all of its addresses.
pub(super) fn gives_none(pool: usize) -> SpecFault {
    SpecFault {
        pool,
        key: "ranges",
        place: 0,
        message: "are left out to the last address".to_owned(),
        right: "leave some to give out".to_owned(),
    }
}
