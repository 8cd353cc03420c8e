//! TUNNEL-MIB: RFC 4087, and the tables of RFC 2667 that it deprecates, which RFC 3371 refers to. A tunnel of either
//! version of L2TP has a row.
//!
//! tunnelInetConfigID distinguishes tunnels with the same endpoints: it is the config id of `[l2tp] config_ids`, and leads
//! to the tunnel's ifIndex. Without config ids, tunnelConfigTable and tunnelInetConfigTable are empty.
//!
//! Tunnels by addresses and config id are sorted in slices while a manager asks, so that tunnels cost nothing more while
//! none asks. Left out: tunnelIfHopLimit, which is the kernel's, and tunnelIfFlowLabel.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use agentx::pdu::Value;
use base::{Duration, Instant};
use l2tp::{ConfigIds, TunnelView};
use reactor::Slice;

use super::TUNNELS;
use super::index::{Bound, INDEX_MAX, Index, lift};
use crate::core::Core;

/// Sub-identifiers of an index of tunnelConfigTable: two addresses, the encapsulation and the id.
pub(super) const ARITY: usize = 10;
/// Those of tunnelInetConfigTable: the type, two addresses with their lengths, the encapsulation and the id.
const ARITY_V4: usize = 13;
const ARITY_V6: usize = 37;

/// IANAtunnelType: l2tp
const L2TP: u32 = 5;
/// InetAddressType
const IPV4: u32 = 1;
const IPV6: u32 = 2;

/// How long sorted tunnels are used, besides [`FRESH_PER_ROW_US`] for each of them: sorting takes at most some percent of the
/// time.
const FRESH: Duration = Duration::from_secs(2);
const FRESH_PER_ROW_US: u64 = 20;
/// Tunnels that are visited between two looks at the clock.
const BATCH: usize = 256;

/// Our address, the peer's, and the config id: the order of IpAddr is that of the indices.
type Key = (IpAddr, IpAddr, u32);
type Sorted = BTreeMap<Key, u32>;

/// The places of tunnels by addresses and config id.
#[derive(Default)]
pub(super) struct Ids {
    sorted: Sorted,
    /// When they were sorted.
    at: Option<Instant>,
    /// The tunnels that are being sorted, and the place to go on from.
    next: Option<(u32, Sorted)>,
    /// Those that were sorted before; freed in slices too.
    old: Sorted,
}

impl Ids {
    /// Frees what was kept for questions.
    pub(super) fn forget(&mut self) {
        *self = Self {
            old: core::mem::take(&mut self.sorted),
            ..Self::default()
        };
    }

    /// Sorts the tunnels again if that was long ago; `false` if the slice is over before.
    pub(super) fn refresh(&mut self, core: &Core, slice: Slice) -> bool {
        let l2tp = core.edge.endpoint().l2tp();
        let fresh = FRESH + Duration::from_micros(FRESH_PER_ROW_US * self.sorted.len() as u64);
        if self.at.is_some_and(|at| core.now.since(at) < fresh) {
            return true;
        }
        if l2tp.config().config_ids == ConfigIds::Off {
            return true;
        }
        while !self.old.is_empty() {
            for _ in 0..BATCH {
                self.old.pop_first();
            }
            if slice.is_over() {
                return false;
            }
        }
        let (mut from, mut sorted) = self.next.take().unwrap_or_default();
        loop {
            for _ in 0..BATCH {
                let Some((place, view)) = l2tp.any_tunnel_from(from) else {
                    self.old = core::mem::replace(&mut self.sorted, sorted);
                    self.at = Some(core.now);
                    return true;
                };
                if let Some(id) = view.config_id {
                    let (local, remote) = ends(core, &view);
                    sorted.insert((local, remote, id), place);
                }
                from = place + 1;
            }
            if slice.is_over() {
                self.next = Some((from, sorted));
                return false;
            }
        }
    }

    /// The index and the place of the first row that is not before `bound`.
    pub(super) fn next_from(&self, bound: Bound, is_inet: bool) -> Option<(Index, u32)> {
        let first = match is_inet {
            true => inet_key(bound.ids())?,
            false => {
                let mut ids: [u32; ARITY] = bound.ids().try_into().ok()?;
                key_v4(&mut ids, 0)?
            }
        };
        let (key, place) = self.sorted.range(first..).next()?;
        let is_listed = is_inet || key.0.is_ipv4();
        is_listed.then(|| (index(key, is_inet), *place))
    }
}

/// The sub-identifiers of an index of tunnelInetConfigTable that starts like `index`.
pub(super) fn inet_arity(index: &[u32]) -> usize {
    match index.first() {
        Some(&IPV6) => ARITY_V6,
        _ => ARITY_V4,
    }
}

/// The addresses of a tunnel's ends. Ours is 0.0.0.0 or :: as long as any of the host's addresses may be used.
fn ends(core: &Core, view: &TunnelView<'_>) -> (IpAddr, IpAddr) {
    let remote = view.route.peer.ip().to_canonical();
    let bound = || core.sockets.local_addr(view.route.socket);
    let local = view.route.local.or_else(|| bound().map(|bound| bound.ip()));
    let local = local.map(|local| local.to_canonical());
    let same_family = local.filter(|local| local.is_ipv4() == remote.is_ipv4());
    let any = match remote {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    (same_family.unwrap_or(any), remote)
}

/// The first key that an index of tunnelInetConfigTable allows.
fn inet_key(ids: &[u32]) -> Option<Key> {
    let [kind, rest @ ..] = ids else { return None };
    let v6 = || {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        Some((any, any, 0))
    };
    match *kind {
        0 => key_v4(&mut [0; ARITY], 0),
        IPV4 => {
            let mut ids: [u32; ARITY_V4 - 1] = rest.try_into().ok()?;
            key_v4(&mut ids, 1).or_else(v6)
        }
        IPV6 => match <[u32; ARITY_V6 - 1]>::try_from(rest) {
            Ok(mut ids) => key_v6(&mut ids),
            // The first index of that type.
            Err(_) => v6(),
        },
        _ => None,
    }
}

/// The range of a sub-identifier in two addresses of so many octets, each after `lengths` sub-identifiers with its length,
/// the encapsulation and the id.
fn range(at: usize, octets: usize, lengths: usize) -> (u32, u32) {
    let address = lengths + octets;
    match at {
        _ if at < 2 * address && at % address < lengths => (octets as u32, octets as u32),
        _ if at < 2 * address => (0, 255),
        _ if at == 2 * address => (L2TP, L2TP),
        _ => (1, i32::MAX as u32),
    }
}

fn octet(id: &u32) -> u8 {
    u8::try_from(*id).unwrap_or(u8::MAX)
}

fn key_v4<const N: usize>(ids: &mut [u32; N], lengths: usize) -> Option<Key> {
    if !lift(ids, |at| range(at, 4, lengths)) {
        return None;
    }
    let address = |at: usize| {
        let mut octets = [0; 4];
        let from = ids.get(at + lengths..at + lengths + 4)?;
        octets
            .iter_mut()
            .zip(from)
            .for_each(|(to, id)| *to = octet(id));
        Some(IpAddr::from(octets))
    };
    Some((address(0)?, address(lengths + 4)?, *ids.last()?))
}

fn key_v6(ids: &mut [u32; ARITY_V6 - 1]) -> Option<Key> {
    if !lift(ids, |at| range(at, 16, 1)) {
        return None;
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        let from = ids.get(at + 1..at + 17)?;
        octets
            .iter_mut()
            .zip(from)
            .for_each(|(to, id)| *to = octet(id));
        Some(IpAddr::from(octets))
    };
    Some((address(0)?, address(17)?, *ids.last()?))
}

/// The index of a row.
fn index(key: &Key, is_inet: bool) -> Index {
    let (local, remote, id) = key;
    let mut ids = [0; INDEX_MAX];
    let mut len = 0;
    let mut push = |id: u32| {
        ids[len] = id;
        len += 1;
    };
    if is_inet {
        push(if local.is_ipv4() { IPV4 } else { IPV6 });
    }
    for address in [local, remote] {
        let octets = octets(*address);
        if is_inet {
            push(octets.len() as u32);
        }
        octets.iter().for_each(|octet| push(u32::from(*octet)));
    }
    push(L2TP);
    push(*id);
    Index::of(&ids[..len])
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// tunnelConfigTable and tunnelInetConfigTable
pub(super) fn id(place: u32, is_inet: bool, column: u32) -> Option<Value> {
    // tunnelConfigIfIndex and tunnelConfigStatus have the numbers of the other table's less one.
    Some(match column + u32::from(!is_inet) {
        6 => Value::Integer((TUNNELS + place) as i32),
        // active
        7 => Value::Integer(1),
        // tunnelInetConfigStorageType: readOnly
        8 => Value::Integer(5),
        _ => return None,
    })
}

/// tunnelIfTable
pub(super) fn interface(core: &Core, view: &TunnelView<'_>, column: u32) -> Option<Value> {
    let (local, remote) = ends(core, view);
    let v4 = |address: IpAddr| match address {
        IpAddr::V4(address) => Value::IpAddress(address.octets()),
        IpAddr::V6(_) => Value::IpAddress([0; 4]),
    };
    Some(match column {
        1 => v4(local),
        2 => v4(remote),
        3 => Value::Integer(L2TP as i32),
        // tunnelIfSecurity: none
        5 => Value::Integer(1),
        // tunnelIfTOS: the codepoint of control messages
        6 => Value::Integer(0),
        8 => Value::Integer(if remote.is_ipv4() { IPV4 } else { IPV6 } as i32),
        9 => Value::Octets(octets(local)),
        10 => Value::Octets(octets(remote)),
        // tunnelIfEncapsLimit: no limit
        11 => Value::Integer(-1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(rows: &[(&str, &str, u32)]) -> Ids {
        let row = |(place, row): (u32, &(&str, &str, u32))| {
            (
                (row.0.parse().unwrap(), row.1.parse().unwrap(), row.2),
                place,
            )
        };
        Ids {
            sorted: (0..).zip(rows).map(row).collect(),
            ..Ids::default()
        }
    }

    /// A walk by GetNext: the next row after the last one.
    fn walk(ids: &Ids, is_inet: bool) -> Vec<(Vec<u32>, u32)> {
        let arity = |index: &[u32]| match is_inet {
            true => inet_arity(index),
            false => ARITY,
        };
        let mut found: Vec<(Vec<u32>, u32)> = Vec::new();
        let mut bound = Some(Bound::first(arity(&[])));
        while let Some((index, place)) = bound.and_then(|bound| ids.next_from(bound, is_inet)) {
            bound = Bound::after(arity(index.ids()), index.ids(), false);
            found.push((index.ids().to_vec(), place));
        }
        found
    }

    #[test]
    fn a_walk_lists_each_id_once_in_order() {
        let ids = ids(&[
            ("10.0.0.1", "10.0.0.2", 1),
            ("10.0.0.1", "10.0.0.2", 2),
            ("10.0.0.1", "10.0.0.2", 300),
            ("10.0.0.1", "192.0.2.255", 1),
            ("255.255.255.255", "255.255.255.255", i32::MAX as u32),
            ("2001:db8::1", "2001:db8::2", 1),
            ("2001:db8::1", "2001:db8::2", 2),
        ]);
        let all = walk(&ids, true);
        assert!(all.is_sorted());
        let places = |rows: &[(Vec<u32>, u32)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
        assert_eq!(places(&all), [0, 1, 2, 3, 4, 5, 6]);
        // InetAddressType, and an address after its length (RFC 4001 and RFC 2578, section 7.7).
        assert_eq!(all[2].0, [1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 5, 300]);
        let v6 = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let index = [&[2, 16][..], &v6, &[1, 16], &v6, &[2, 5, 2]].concat();
        assert_eq!(all[6].0, index);
        let v4 = walk(&ids, false);
        assert!(v4.is_sorted());
        assert_eq!(places(&v4), [0, 1, 2, 3, 4]);
        assert_eq!(v4[2].0, [10, 0, 0, 1, 10, 0, 0, 2, 5, 300]);
    }

    #[test]
    fn any_name_finds_the_first_row_after_it() {
        let ids = ids(&[
            ("10.0.0.1", "10.0.0.2", 1),
            ("10.0.0.1", "10.0.0.3", 1),
            ("2001:db8::1", "2001:db8::2", 1),
        ]);
        let next = |index: &[u32]| {
            let bound = Bound::after(inet_arity(index), index, false)?;
            ids.next_from(bound, true).map(|(_, place)| place)
        };
        for (index, expected) in [
            (&[][..], Some(0)),
            (&[0, 9, 9], Some(0)),
            (&[1], Some(0)),
            (&[1, 3, 255], Some(0)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 4], Some(0)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 5], Some(0)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 5, 1], Some(1)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 6], Some(1)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 2, 5, 1, 0], Some(1)),
            (&[1, 4, 10, 0, 0, 1, 4, 10, 0, 0, 999], Some(2)),
            (&[1, 5], Some(2)),
            (&[1, u32::MAX, u32::MAX], Some(2)),
            (&[2], Some(2)),
            (&[2, 16, 0x20, 0x01, 0x0d, 0xb9], None),
            (&[2, 17], None),
            (&[3], None),
        ] {
            assert_eq!(next(index), expected, "{index:?}");
        }
    }
}
