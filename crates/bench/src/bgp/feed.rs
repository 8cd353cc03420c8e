//! A table as a feeder sends it: UPDATEs with prefixes that share attribute sets, encoded in
//! advance.
//!
//! An attribute set has an AS path of three to six; most have up to eight communities, and a
//! quarter have a MED. One to eighteen prefixes share a set, six on average. Half of the prefixes
//! are /24, the others /20 to /23. The table is a fixed function of its size, so that every subject
//! gets the same bytes.

use std::net::Ipv4Addr;

use super::octets::{HEADER_LEN, MESSAGE_MAX, prefix, update};

/// The first prefix; the others follow in steps of a /24.
const BASE: u32 = 0x1000_0000;

/// Limit of prefixes: the table ends at 127.0.0.0, which daemons reject.
pub(crate) const PREFIXES_MAX: u32 = (0x7f00_0000 - BASE) >> 8;

/// The next hop of all routes; no subject has to reach it.
const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// An encoded table.
pub(crate) struct Feed {
    pub(crate) prefixes: u32,
    pub(crate) sets: u32,
    /// UPDATEs that announce the whole table, one for each attribute set.
    pub(crate) announce: Vec<u8>,
    /// UPDATEs that withdraw the whole table, each as full as possible.
    pub(crate) withdraw: Vec<u8>,
}

/// Pseudo-random numbers from a seed (xorshift).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The length of prefix number `n` of the table: as short as its address allows, down to /20.
fn bits(n: u32) -> u8 {
    24 - n.trailing_zeros().min(4) as u8
}

/// Address and length of prefix number `n`.
pub(crate) fn at(n: u32) -> (u32, u8) {
    (BASE + (n << 8), bits(n))
}

/// The number of a prefix in a table of that size; `None` if it is not in the table.
pub(crate) fn place((address, length): (u32, u8), prefixes: u32) -> Option<u32> {
    let n = address.checked_sub(BASE)? >> 8;
    (n < prefixes && at(n) == (address, length)).then_some(n)
}

impl Feed {
    /// A table of `prefixes` prefixes (at most [`PREFIXES_MAX`]) as the AS `feeder` sends it.
    pub(crate) fn new(prefixes: u32, feeder: u32) -> Self {
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        let (mut announce, mut withdraw) = (Vec::new(), Vec::new());
        let (mut attributes, mut nlri) = (Vec::new(), Vec::new());
        let step = stride(prefixes);
        let (mut sets, mut done) = (0, 0);
        while done < prefixes {
            attributes.clear();
            set(sets, feeder, &mut draws, &mut attributes);
            nlri.clear();
            let count = members(&mut draws).min(prefixes - done);
            for n in done..done + count {
                let (address, bits) = at(scattered(n, step, prefixes));
                prefix(address, bits, &mut nlri);
            }
            update(&[], &attributes, &nlri, &mut announce);
            done += count;
            sets += 1;
        }
        nlri.clear();
        for n in 0..prefixes {
            let (address, bits) = at(scattered(n, step, prefixes));
            prefix(address, bits, &mut nlri);
            if nlri.len() + HEADER_LEN + 4 + 5 > MESSAGE_MAX || n + 1 == prefixes {
                update(&nlri, &[], &[], &mut withdraw);
                nlri.clear();
            }
        }
        Self {
            prefixes,
            sets,
            announce,
            withdraw,
        }
    }
}

/// A number from one to eighteen, six on average; large numbers are rare.
fn members(draws: &mut Draws) -> u32 {
    match draws.below(100) {
        0..30 => 1,
        30..50 => 2 + draws.below(3) as u32,
        50..75 => 4 + draws.below(6) as u32,
        _ => 10 + draws.below(9) as u32,
    }
}

/// A step that visits every entry of the table once, and no two neighbours in succession.
fn stride(prefixes: u32) -> u32 {
    let is_coprime = |step: u32| {
        let (mut a, mut b) = (step, prefixes);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    (prefixes / 5 * 3 + 1..)
        .find(|&n| is_coprime(n))
        .unwrap_or(1)
}

fn scattered(n: u32, step: u32, prefixes: u32) -> u32 {
    (u64::from(n) * u64::from(step) % u64::from(prefixes)) as u32
}

/// The attributes of set `number`; no other set has the same.
fn set(number: u32, feeder: u32, draws: &mut Draws, out: &mut Vec<u8>) {
    // ORIGIN: IGP in most sets, otherwise INCOMPLETE.
    out.extend([0x40, 1, 1, if draws.below(8) == 0 { 2 } else { 0 }]);
    let hops = 3 + draws.below(4) as u8;
    out.extend([0x40, 2, 2 + 4 * hops, 2, hops]);
    out.extend(feeder.to_be_bytes());
    for _ in 0..hops - 3 {
        let transit = 1_000 + draws.below(60) as u32;
        out.extend(transit.to_be_bytes());
    }
    // These two AS numbers make the set unique.
    out.extend((200_000 + number / 500).to_be_bytes());
    out.extend((300_000 + number % 500).to_be_bytes());
    out.extend([0x40, 3, 4]);
    out.extend(NEXT_HOP.octets());
    if draws.below(4) == 0 {
        out.extend([0x80, 4, 4]);
        out.extend((draws.below(200) as u32).to_be_bytes());
    }
    let communities = draws.below(12).saturating_sub(3) as u8;
    if communities > 0 {
        out.extend([0xc0, 8, 4 * communities]);
        for _ in 0..communities {
            let (asn, value) = (1_000 + draws.below(60), draws.below(4_000));
            out.extend((asn as u16).to_be_bytes());
            out.extend((value as u16).to_be_bytes());
        }
    }
}

/// The prefixes of a table that a receiver has, and counts of redundant messages.
pub(crate) struct Tally {
    prefixes: u32,
    have: Vec<u64>,
    /// Prefixes present now.
    pub(crate) count: u32,
    /// Announcements of prefixes already present, and withdrawals of absent ones.
    pub(crate) again: u64,
    /// Prefixes that are not in the table.
    pub(crate) strange: u64,
}

impl Tally {
    pub(crate) fn new(prefixes: u32) -> Self {
        Self {
            prefixes,
            have: vec![0; prefixes.div_ceil(64) as usize],
            count: 0,
            again: 0,
            strange: 0,
        }
    }

    pub(crate) fn note(&mut self, prefix: (u32, u8), announced: bool) {
        let Some(n) = place(prefix, self.prefixes) else {
            self.strange += 1;
            return;
        };
        let (word, bit) = (&mut self.have[(n / 64) as usize], 1 << (n % 64));
        if (*word & bit != 0) == announced {
            self.again += 1;
            return;
        }
        *word ^= bit;
        if announced {
            self.count += 1;
        } else {
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::octets::{KIND_UPDATE, frame, prefixes, routes};
    use super::*;
    use std::collections::HashSet;

    /// The body of each message.
    fn bodies(octets: &[u8]) -> Vec<&[u8]> {
        let (mut rest, mut all) = (octets, Vec::new());
        while let Some((length, kind)) = frame(rest).unwrap() {
            assert!(kind == KIND_UPDATE && length <= MESSAGE_MAX);
            all.push(&rest[HEADER_LEN..length]);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        all
    }

    #[test]
    fn a_table_has_each_prefix_once_and_each_set_once_and_withdraws_all() {
        let feed = Feed::new(20_000, 65_001);
        let mean = f64::from(feed.prefixes) / f64::from(feed.sets);
        assert!((5.7..6.3).contains(&mean), "{mean}");
        let mut tally = Tally::new(feed.prefixes);
        let mut sets = HashSet::new();
        for body in bodies(&feed.announce) {
            let (withdrawn, announced) = routes(body).unwrap();
            assert!(withdrawn.is_empty());
            assert!(sets.insert(&body[4..body.len() - announced.len()]));
            prefixes(announced).for_each(|prefix| tally.note(prefix, true));
        }
        assert_eq!(sets.len(), feed.sets as usize);
        assert_eq!((tally.count, tally.again, tally.strange), (20_000, 0, 0));
        for body in bodies(&feed.withdraw) {
            let (withdrawn, _) = routes(body).unwrap();
            prefixes(withdrawn).for_each(|prefix| tally.note(prefix, false));
        }
        assert_eq!((tally.count, tally.again, tally.strange), (0, 0, 0));
    }

    #[test]
    fn prefixes_have_no_host_bits_and_half_are_a_24() {
        let all: Vec<_> = (0..1_024).map(at).collect();
        for &(address, bits) in &all {
            assert_eq!(
                address & !(u32::MAX << (32 - bits)),
                0,
                "{address:x}/{bits}"
            );
        }
        assert_eq!(all.iter().filter(|(_, bits)| *bits == 24).count(), 512);
        assert!(all.iter().all(|(_, bits)| (20..=24).contains(bits)));
    }

    #[test]
    fn what_comes_twice_or_from_elsewhere_is_counted_apart() {
        let mut tally = Tally::new(10);
        for (prefix, announced) in [(at(3), true), (at(3), true), (at(4), false)] {
            tally.note(prefix, announced);
        }
        tally.note(at(10), true);
        tally.note((at(2).0, 24), true);
        assert_eq!((tally.count, tally.again, tally.strange), (1, 2, 2));
    }
}
