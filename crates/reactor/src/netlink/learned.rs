//! Routes learned by a routing protocol, installed in the kernel in batches.

use std::io;
use std::net::IpAddr;

use super::{LOCAL_MAX, Netlink, Request, family, octets};

/// `RTPROT_BGP`: the origin of the route, as `ip route` shows it.
pub const ORIGIN: u8 = 186;

/// A change of a learned route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedRoute {
    /// The destination: an address and a prefix length.
    pub to: (IpAddr, u8),
    /// The new router, which replaces the old one; `None` removes the route.
    pub via: Option<IpAddr>,
}

/// Where learned routes are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedTable {
    /// The kernel's routing table, 254 for the main one.
    pub table: u32,
    /// Of several routes to one network, the kernel takes the one with the lowest metric.
    pub metric: u32,
}

impl Netlink {
    /// Makes these changes by one system call. Returns how many the kernel refused, and its last error: for example
    /// that a router is on no network of the host. Give at most [`LOCAL_MAX`].
    ///
    /// # Errors
    /// The kernel's error for the whole call.
    pub fn change_learned(
        &mut self,
        place: LearnedTable,
        changes: &[LearnedRoute],
    ) -> io::Result<(u32, Option<io::Error>)> {
        debug_assert!(changes.len() <= LOCAL_MAX, "refusals fit the buffer");
        let requests = changes.iter().map(|change| change.request(place));
        self.send_unacknowledged(requests)
    }
}

impl LearnedRoute {
    fn request(&self, place: LearnedTable) -> Request {
        let (destination, prefix) = self.to;
        let (kind, flags) = match self.via {
            Some(_) => (libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE),
            None => (libc::RTM_DELROUTE, 0),
        };
        let mut request = Request::unacknowledged(kind, flags);
        // The table in `struct rtmsg` has eight bits, so the attribute carries it.
        let table = u8::try_from(place.table).unwrap_or(libc::RT_TABLE_COMPAT);
        let scope = libc::RT_SCOPE_UNIVERSE;
        // `struct rtmsg`.
        request
            .0
            .extend([family(destination), prefix, 0, 0, table, ORIGIN, scope]);
        let unicast = if self.via.is_some() {
            libc::RTN_UNICAST
        } else {
            libc::RTN_UNSPEC
        };
        request.0.extend([unicast, 0, 0, 0, 0]);
        if prefix > 0 {
            request.attribute(libc::RTA_DST, &octets(destination));
        }
        if let Some(via) = self.via {
            if via.is_ipv4() == destination.is_ipv4() {
                request.attribute(libc::RTA_GATEWAY, &octets(via));
            } else {
                // `struct rtvia`: an IPv4 network by an IPv6 router (RFC 8950).
                let mut value = u16::from(family(via)).to_ne_bytes().to_vec();
                value.extend(octets(via));
                request.attribute(super::RTA_VIA, &value);
            }
        }
        request.number(libc::RTA_PRIORITY, place.metric);
        request.number(libc::RTA_TABLE, place.table);
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;

    const PLACE: LearnedTable = LearnedTable {
        table: 254,
        metric: 200,
    };

    fn route(to: &str, bits: u8, via: Option<&str>) -> LearnedRoute {
        LearnedRoute {
            to: (to.parse().unwrap(), bits),
            via: via.map(|via| via.parse().unwrap()),
        }
    }

    #[test]
    fn routes_come_move_and_go_and_what_cannot_be_is_counted() {
        // Without the privilege this test cannot check anything.
        let Ok(namespace) = Namespace::new() else {
            return;
        };
        namespace
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink.add_veth("a", "b", None).unwrap();
                netlink.set_up("a", true).unwrap();
                netlink.set_up("b", true).unwrap();
                netlink
                    .add_address("a", "192.0.2.1".parse().unwrap(), 24)
                    .unwrap();
                let to = "198.51.100.7".parse().unwrap();
                let mut change = |changes: &[LearnedRoute]| {
                    let (refused, _) = netlink.change_learned(PLACE, changes).unwrap();
                    let way = netlink.way_to(to).ok().flatten();
                    (
                        refused,
                        way.and_then(|way| way.via).map(|via| via.to_string()),
                    )
                };
                let to_seven = |via| route("198.51.100.0", 24, via);
                let there = change(&[
                    to_seven(Some("192.0.2.7")),
                    route("10.0.0.0", 8, Some("203.0.113.1")),
                ]);
                assert_eq!(
                    there,
                    (1, Some("192.0.2.7".into())),
                    "nobody reaches 203.0.113.1"
                );
                assert_eq!(
                    change(&[to_seven(Some("192.0.2.8"))]),
                    (0, Some("192.0.2.8".into()))
                );
                assert_eq!(change(&[to_seven(None)]), (0, None));
                assert_eq!(change(&[to_seven(None)]), (1, None), "it is gone already");
            })
            .unwrap();
    }
}
