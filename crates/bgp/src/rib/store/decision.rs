//! The decision process: RFC 4271, section 9.1.2.2, with the changes of RFC 4456, section 9.
//!
//! Left out: step e, the interior cost, and the check that a next hop is reachable. Without an interior protocol all
//! next hops count as equally near.

use std::cmp::Ordering;
use std::cmp::Ordering::Equal;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::attrs::{AttributeStore, Digest};
use super::paths::{LOCAL, PathInfo, PathStore};
use super::peer::Peers;
use crate::rib::number::NONE;

/// Why a route is not the best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is the best.
    Best,
    /// The import policy denied it.
    Denied,
    /// The best route is our own.
    Local,
    /// Its local preference is lower.
    LocalPref {
        /// Its value.
        own: u32,
        /// The best route's value.
        best: u32,
    },
    /// Its AS path is longer.
    PathLength {
        /// Its value.
        own: u16,
        /// The best route's value.
        best: u16,
    },
    /// Its origin is worse: a higher number.
    Origin {
        /// Its value.
        own: u8,
        /// The best route's value.
        best: u8,
    },
    /// Another route from the same neighbouring AS, not always the best, has a lower MULTI_EXIT_DISC.
    Med {
        /// Its value.
        own: u32,
        /// The lowest value.
        lowest: u32,
        /// The neighbouring AS; 0 if the paths start with none.
        neighbour_asn: u32,
    },
    /// It is from an internal peer, and the best route is not.
    Internal,
    /// The best route was the best before, and is not replaced by an equally good external route (RFC 5004).
    Older,
    /// The BGP identifier of its originator is higher.
    RouterId {
        /// Its value.
        own: u32,
        /// The best route's value.
        best: u32,
    },
    /// Its cluster list is longer (RFC 4456, section 9).
    ClusterLength {
        /// Its value.
        own: u8,
        /// The best route's value.
        best: u8,
    },
    /// Its peer's address is higher.
    PeerAddress {
        /// Its value.
        own: IpAddr,
        /// The best route's value.
        best: IpAddr,
    },
    /// From the same peer, its path identifier is higher (RFC 7911).
    PathId {
        /// Its value.
        own: u32,
        /// The best route's value.
        best: u32,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = |number: &u8| match number {
            0 => "IGP",
            1 => "EGP",
            _ => "incomplete",
        };
        match self {
            Reason::Best => f.write_str("best"),
            Reason::Denied => f.write_str("denied by import policy"),
            Reason::Local => f.write_str("the best is our own"),
            Reason::LocalPref { own, best } => write!(f, "local preference {own} < {best}"),
            Reason::PathLength { own, best } => write!(f, "AS path {own} > {best}"),
            Reason::Origin { own, best } => {
                write!(f, "origin {} > {}", origin(own), origin(best))
            }
            Reason::Med {
                own,
                lowest,
                neighbour_asn,
            } => write!(f, "MED {own} > {lowest} of AS {neighbour_asn}"),
            Reason::Internal => f.write_str("internal, the best is external"),
            Reason::Older => f.write_str("the best is older"),
            Reason::RouterId { own, best } => {
                let [own, best] = [own, best].map(|id| Ipv4Addr::from_bits(*id));
                write!(f, "router id {own} > {best}")
            }
            Reason::ClusterLength { own, best } => write!(f, "cluster list {own} > {best}"),
            Reason::PeerAddress { own, best } => write!(f, "peer address {own} > {best}"),
            Reason::PathId { own, best } => write!(f, "path id {own} > {best}"),
        }
    }
}

/// What the decision process reads.
#[derive(Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub(crate) attributes: &'a AttributeStore,
    pub(crate) paths: &'a PathStore,
    pub(crate) peers: &'a Peers,
    /// Whether the current best external route wins against one that is better by identifiers only (RFC 5004).
    pub(crate) prefers_oldest: bool,
}

impl Decision<'_> {
    fn digest(&self, path: &PathInfo) -> &Digest {
        self.attributes.digest(path.attributes)
    }

    /// The degree of preference and steps a and b. `Less` is better.
    fn before_med(&self, a: &PathInfo, b: &PathInfo) -> Ordering {
        let own = |path: &PathInfo| path.peer() != LOCAL;
        let (x, y) = (self.digest(a), self.digest(b));
        own(a)
            .cmp(&own(b))
            .then(y.local_pref.cmp(&x.local_pref))
            .then(x.path_len.cmp(&y.path_len))
            .then(x.origin.cmp(&y.origin))
    }

    fn is_internal(&self, path: &PathInfo) -> bool {
        self.peers.source(path.peer()).is_internal
    }

    /// Steps f and g. `Less` is better.
    fn by_identity(&self, a: &PathInfo, b: &PathInfo) -> Ordering {
        let (x, y) = (self.identity(a), self.identity(b));
        x.cmp(&y)
    }

    fn identity(&self, path: &PathInfo) -> (u32, u8, IpAddr, u32, u32) {
        let digest = self.digest(path);
        let source = self.peers.source(path.peer());
        let id = match digest.originator {
            0 => source.router_id,
            originator => originator,
        };
        let cluster_len = digest.cluster_len;
        (id, cluster_len, source.address, path.path_id, path.peer())
    }

    /// Whether `new` is better than `old`, if no route of the prefix has a MULTI_EXIT_DISC.
    pub(crate) fn is_better_without_med(&self, new: u32, old: u32) -> bool {
        let (a, b) = (self.paths.get(new), self.paths.get(old));
        let order = self
            .before_med(a, b)
            .then_with(|| self.is_internal(a).cmp(&self.is_internal(b)));
        if order == Equal && self.prefers_oldest && !self.is_internal(b) {
            return false;
        }
        order.then_with(|| self.by_identity(a, b)).is_lt()
    }

    /// The best of eligible paths; `old` was the best before. `left` is a buffer for the paths that are still equal.
    pub(crate) fn best(&self, paths: &[u32], old: u32, left: &mut Vec<u32>) -> u32 {
        left.clear();
        for &path in paths {
            let order = match left.first() {
                Some(&first) => self.before_med(self.paths.get(path), self.paths.get(first)),
                None => Equal,
            };
            if order.is_lt() {
                left.clear();
            }
            if order.is_le() {
                left.push(path);
            }
        }
        self.eliminate_by_med(left);
        let is_internal = |path: &u32| self.is_internal(self.paths.get(*path));
        if left.len() > 1 && left.iter().any(|path| !is_internal(path)) {
            left.retain(|path| !is_internal(path));
            if self.prefers_oldest && left.contains(&old) {
                return old;
            }
        }
        let best = left
            .iter()
            .min_by(|&&a, &&b| self.by_identity(self.paths.get(a), self.paths.get(b)));
        best.copied().unwrap_or(NONE)
    }

    /// Step c.
    fn eliminate_by_med(&self, left: &mut Vec<u32>) {
        let med = |path: u32| {
            let digest = self.digest(self.paths.get(path));
            (digest.neighbour, digest.med)
        };
        if left.len() < 2 || left.iter().all(|&path| med(path).1 == 0) {
            return;
        }
        left.sort_unstable_by_key(|&path| med(path));
        let mut lowest = med(left[0]);
        left.retain(|&path| {
            let (neighbour, value) = med(path);
            if neighbour != lowest.0 {
                lowest = (neighbour, value);
            }
            value == lowest.1
        });
    }

    /// Sorts all eligible paths, best first, by removing the best one again and again.
    pub(crate) fn rank(&self, paths: &mut [u32], old: u32, left: &mut Vec<u32>, count: usize) {
        for at in 0..paths.len().min(count) {
            let best = self.best(&paths[at..], if at == 0 { old } else { NONE }, left);
            if let Some(found) = paths[at..].iter().position(|&path| path == best) {
                paths.swap(at, at + found);
            }
        }
    }

    /// Why `path` is not the best among `paths`, of which `best` is the best.
    pub(crate) fn reason(&self, path: u32, best: u32, paths: &[u32]) -> Reason {
        let own = self.paths.get(path);
        if !own.is_eligible() {
            return Reason::Denied;
        }
        if path == best || best == NONE {
            return Reason::Best;
        }
        let other = self.paths.get(best);
        let (x, y) = (self.digest(own), self.digest(other));
        if other.peer() == LOCAL && own.peer() != LOCAL {
            return Reason::Local;
        }
        if x.local_pref != y.local_pref {
            let (own, best) = (x.local_pref, y.local_pref);
            return Reason::LocalPref { own, best };
        }
        if x.path_len != y.path_len {
            let (own, best) = (x.path_len, y.path_len);
            return Reason::PathLength { own, best };
        }
        if x.origin != y.origin {
            let (own, best) = (x.origin, y.origin);
            return Reason::Origin { own, best };
        }
        if let Some(lowest) = self.lowest_med(own, paths)
            && lowest < x.med
        {
            return Reason::Med {
                own: x.med,
                lowest,
                neighbour_asn: x.neighbour,
            };
        }
        if self.is_internal(own) && !self.is_internal(other) {
            return Reason::Internal;
        }
        self.reason_by_identity(own, other)
    }

    /// The lowest MULTI_EXIT_DISC among the paths from the same neighbouring AS that reach step c.
    fn lowest_med(&self, own: &PathInfo, paths: &[u32]) -> Option<u32> {
        let neighbour = self.digest(own).neighbour;
        let others = paths.iter().map(|&path| self.paths.get(path));
        others
            .filter(|other| other.is_eligible() && self.before_med(other, own) == Equal)
            .map(|other| self.digest(other))
            .filter(|digest| digest.neighbour == neighbour)
            .map(|digest| digest.med)
            .min()
    }

    fn reason_by_identity(&self, own: &PathInfo, other: &PathInfo) -> Reason {
        let (x, y) = (self.identity(own), self.identity(other));
        if x < y {
            return Reason::Older;
        }
        if x.0 != y.0 {
            let (own, best) = (x.0, y.0);
            return Reason::RouterId { own, best };
        }
        if x.1 != y.1 {
            let (own, best) = (x.1, y.1);
            return Reason::ClusterLength { own, best };
        }
        if x.2 != y.2 {
            let (own, best) = (x.2, y.2);
            return Reason::PeerAddress { own, best };
        }
        let (own, best) = (x.3, y.3);
        Reason::PathId { own, best }
    }
}
