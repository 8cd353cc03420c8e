//! How many connections each source has: one host of the network must not take them all.
//!
//! Loopback addresses have no limit of their own: behind a proxy, every viewer has one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections of a source at a time.
pub(crate) const SOURCE_MAX: usize = 128;

/// The sources with connections: at most as many as there are connections.
#[derive(Default)]
pub(crate) struct Sources(Mutex<HashMap<IpAddr, usize>>);

/// A connection that is counted until this is dropped.
pub(crate) struct Counted {
    sources: Arc<Sources>,
    source: Option<IpAddr>,
}

impl Sources {
    /// Counts a connection of `peer`; `None` if its source has too many.
    pub(crate) fn count(self: &Arc<Self>, peer: IpAddr) -> Option<Counted> {
        let source = source_of(peer);
        if let Some(source) = source {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(source).or_default();
            if *count >= SOURCE_MAX {
                return None;
            }
            *count += 1;
        }
        let sources = Arc::clone(self);
        Some(Counted { sources, source })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(source) = self.source else { return };
        let counts = self.sources.0.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&source);
            }
        }
    }
}

/// What a host can choose its addresses from: for IPv6, a network of 64 bits.
fn source_of(peer: IpAddr) -> Option<IpAddr> {
    let peer = peer.to_canonical();
    if peer.is_loopback() {
        return None;
    }
    Some(match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(sources: &Arc<Sources>, peer: &str) -> Option<Counted> {
        sources.count(peer.parse().unwrap())
    }

    #[test]
    fn a_source_that_has_too_many_leaves_room_for_others() {
        let sources = Arc::new(Sources::default());
        for (own, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"),
        ] {
            let mut all: Vec<_> = (0..SOURCE_MAX)
                .map(|_| count(&sources, own).unwrap())
                .collect();
            assert!(count(&sources, own).is_none() && count(&sources, same).is_none());
            assert!(count(&sources, other).is_some());
            all.pop();
            assert!(count(&sources, same).is_some());
        }
        assert!(sources.0.lock().unwrap().is_empty(), "no source is kept");
    }

    #[test]
    fn loopback_has_no_limit_of_its_own() {
        let sources = Arc::new(Sources::default());
        let all: Vec<_> = (0..=SOURCE_MAX)
            .filter_map(|_| count(&sources, "::1"))
            .collect();
        assert_eq!(all.len(), SOURCE_MAX + 1);
    }
}
