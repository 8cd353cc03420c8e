//! The bytes of each host that left the queues, counted only while a client asks.
//!
//! The first request starts the count, and each further one takes what was counted since. Without a request for
//! [`KEPT`], the count ends. Then a packet costs one branch, and no memory is in use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use wire::flow::Keys;

/// Hosts of one way that are counted apart; the bytes of further hosts are one sum.
pub const HOSTS_MAX: usize = 4_096;

/// For how long the count goes on after a request.
const KEPT: Duration = Duration::from_secs(5);

/// What the hosts of one way sent or received.
#[derive(Debug, Clone)]
pub struct HostBytes {
    /// When the count began.
    pub since: Instant,
    /// Bytes on the line of each host.
    pub hosts: HashMap<IpAddr, u64>,
    /// Bytes of hosts beyond [`HOSTS_MAX`], and of packets without a readable address.
    pub others: u64,
}

/// The count of one way.
#[derive(Debug)]
pub(super) struct Counting {
    counted: HostBytes,
    until: Instant,
}

impl Counting {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            counted: HostBytes {
                since: now,
                hosts: HashMap::new(),
                others: 0,
            },
            until: now + KEPT,
        }
    }

    /// Whether nobody has asked for some time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now > self.until
    }

    /// Counts a packet that leaves. The host is its source on the way up and its destination on the way down.
    pub(super) fn count(&mut self, keys: &Keys, length: u32, is_up: bool) {
        let flow = &keys.outer;
        let address = if is_up { flow.source } else { flow.destination };
        let length = u64::from(length);
        if address == [0; 16] {
            self.counted.others += length;
            return;
        }
        let address = IpAddr::V6(Ipv6Addr::from(address)).to_canonical();
        let has_room = self.counted.hosts.len() < HOSTS_MAX;
        match self.counted.hosts.entry(address) {
            Entry::Occupied(mut bytes) => *bytes.get_mut() += length,
            Entry::Vacant(place) if has_room => {
                place.insert(length);
            }
            Entry::Vacant(_) => self.counted.others += length,
        }
    }

    /// Returns what was counted, and goes on from 0.
    pub(super) fn take(&mut self, now: Instant) -> HostBytes {
        std::mem::replace(self, Self::new(now)).counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(last: u16) -> Keys {
        let mut keys = Keys::default();
        keys.outer.source = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 0];
        keys.outer.source[14..].copy_from_slice(&last.to_be_bytes());
        keys.outer.destination = [9; 16];
        keys
    }

    #[test]
    fn hosts_have_a_limit_and_the_sum_has_all() {
        let mut counting = Counting::new(Instant::ZERO);
        for host in 1..=HOSTS_MAX as u16 + 10 {
            counting.count(&keys(host), 100, true);
            counting.count(&keys(host), 50, true);
        }
        counting.count(&Keys::default(), 7, true);
        let counted = counting.take(Instant::ZERO + Duration::from_secs(1));
        assert_eq!(counted.hosts.len(), HOSTS_MAX);
        assert_eq!(counted.hosts[&IpAddr::from([10, 0, 0, 1])], 150);
        assert_eq!(counted.others, 10 * 150 + 7);
        let again = counting.take(Instant::ZERO + Duration::from_secs(2));
        assert!(again.hosts.is_empty());
        assert_eq!(again.since, Instant::ZERO + Duration::from_secs(1));
    }

    #[test]
    fn downward_packets_count_for_their_destination() {
        let mut counting = Counting::new(Instant::ZERO);
        counting.count(&keys(1), 100, false);
        let counted = counting.take(Instant::ZERO);
        let only: Vec<_> = counted.hosts.into_iter().collect();
        assert_eq!(only, [(IpAddr::from([9; 16]), 100)]);
    }

    #[test]
    fn a_count_ends_when_nobody_asks() {
        let counting = Counting::new(Instant::ZERO);
        assert!(!counting.is_over(Instant::ZERO + KEPT));
        assert!(counting.is_over(Instant::ZERO + KEPT + Duration::from_nanos(1)));
    }
}
