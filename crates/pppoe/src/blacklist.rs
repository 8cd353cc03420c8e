//! Hosts that get no answer: a look-up for each length of a prefix in use, however many prefixes there are.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use wire::pppoe::Mac;

use crate::config::MacPrefix;

pub(crate) struct Blacklist {
    masks: Vec<u64>,
    /// A mask's place and the bits of an address under it.
    prefixes: HashSet<(usize, u64), FixedState>,
}

fn bits(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl Blacklist {
    pub(crate) fn new(list: &[MacPrefix], seed: u64) -> Self {
        let mut masks: Vec<u64> = list.iter().map(|prefix| bits(prefix.mask)).collect();
        masks.sort_unstable();
        masks.dedup();
        let mut prefixes = HashSet::with_hasher(FixedState::with_seed(seed));
        for prefix in list {
            let mask = bits(prefix.mask);
            if let Ok(place) = masks.binary_search(&mask) {
                prefixes.insert((place, bits(prefix.mac) & mask));
            }
        }
        Self { masks, prefixes }
    }

    pub(crate) fn contains(&self, mac: Mac) -> bool {
        let mac = bits(mac);
        let mut masks = self.masks.iter().enumerate();
        masks.any(|(place, mask)| self.prefixes.contains(&(place, mac & mask)))
    }
}
