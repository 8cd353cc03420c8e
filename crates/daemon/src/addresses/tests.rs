#[path = "../../../reactor/tests/common/mod.rs"]
mod common;

use std::io;

use reactor::namespace::{Namespace, veth};
use reactor::netlink::{Monitor, ORIGIN_STATIC, Route, Way};

use super::*;
use common::privileged;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn v4(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 64, 0, last)
}

fn key(token: u64) -> SubscriberKey {
    SubscriberKey::from_token(token)
}

/// The LNS, which the host reaches through its router.
const LNS: &str = "203.0.113.9";

/// A host with a router at 192.0.2.2, and client sessions on `device`, which may carry the default
/// route.
struct Host {
    netlink: Netlink,
    clients: Addresses,
    monitor: Monitor,
    now: Instant,
    router: Way,
    device: Way,
    /// The host's namespace, and the one at the far end of its links.
    _namespaces: [Namespace; 2],
}

impl Host {
    /// `default` is the metric of the default route through the router.
    fn new(default: u32, metric: Option<u32>) -> Self {
        let namespaces = [(); 2].map(|()| Namespace::new().unwrap());
        let [here, there] = &namespaces;
        for name in ["wire", "device"] {
            veth((here, name), (there, name)).unwrap();
            here.netlink().unwrap().set_up(name, true).unwrap();
            there.netlink().unwrap().set_up(name, true).unwrap();
        }
        let mut netlink = here.netlink().unwrap();
        netlink
            .add_address("wire", address("192.0.2.1"), 24)
            .unwrap();
        let router = Way {
            via: Some(address("192.0.2.2")),
            interface: netlink.index("wire").unwrap(),
        };
        let device = Way {
            via: None,
            interface: netlink.index("device").unwrap(),
        };
        let route = Route {
            to: (address("0.0.0.0"), 0),
            way: router,
            metric: default,
            source: None,
            origin: ORIGIN_STATIC,
        };
        netlink.add(&route).unwrap();
        let open = || {
            let clients = Addresses::open("device", metric).unwrap();
            let monitor = Monitor::open(&[clients.netlink_port().unwrap()]).unwrap();
            (clients, monitor)
        };
        let (clients, monitor) = here.run(open).unwrap();
        Self {
            netlink,
            clients,
            monitor,
            now: Instant::ZERO,
            router,
            device,
            _namespaces: namespaces,
        }
    }

    fn set(&mut self, client: u64, has: Option<Ipv4Addr>) {
        self.clients
            .set(key(client), has.map(|own| (own, Some(address(LNS)))));
        self.settle();
    }

    /// Hands the daemon's part the notifications, and lets it work until it rests.
    fn settle(&mut self) {
        let mut notices = Vec::new();
        while self.monitor.read(&mut notices).unwrap() {}
        self.now += Duration::from_secs(1);
        for notice in notices {
            self.clients.notice(&notice, self.now);
        }
        self.now += Duration::from_secs(1);
        let now = self.now;
        self._namespaces[0]
            .run(|| {
                while self.clients.has_work(now) {
                    self.clients.work(now);
                }
            })
            .unwrap();
    }

    fn way_to(&mut self, text: &str) -> io::Result<Option<Way>> {
        self.netlink.way_to(address(text))
    }

    fn has_default_route(&self) -> bool {
        self.clients
            .default_route()
            .is_some_and(DefaultRoute::is_there)
    }

    fn is_own(&mut self, own: Ipv4Addr) -> bool {
        self.netlink.way_to(own.into()).unwrap().is_none()
    }
}

#[test]
fn an_address_is_the_hosts_own_until_its_client_has_it_no_more() {
    let name =
        "daemon::addresses::tests::an_address_is_the_hosts_own_until_its_client_has_it_no_more";
    privileged(name, || {
        let mut host = Host::new(0, None);
        host.set(1, Some(v4(1)));
        host.set(2, Some(v4(2)));
        assert!(host.is_own(v4(1)) && host.is_own(v4(2)));
        assert_eq!(host.clients.len(), 2);
        // The new address replaces the first.
        host.set(1, Some(v4(3)));
        assert!(!host.is_own(v4(1)) && host.is_own(v4(3)));
        host.set(1, None);
        host.set(1, None);
        assert!(!host.is_own(v4(3)) && host.is_own(v4(2)));
        assert_eq!((host.clients.len(), host.clients.refused()), (1, 0));
        let router = host.router;
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(router));
    });
}

#[test]
fn more_changes_than_the_kernel_is_told_at_once_are_all_made() {
    let name =
        "daemon::addresses::tests::more_changes_than_the_kernel_is_told_at_once_are_all_made";
    privileged(name, || {
        let mut host = Host::new(0, None);
        let all = LOCAL_MAX as u32 * 2 + 1;
        let own = |n: u32| Ipv4Addr::from_bits(v4(0).to_bits() + n);
        for has in [true, false] {
            for n in 0..all {
                let client = has.then(|| (own(n), Some(address(LNS))));
                host.clients.set(key(n.into()), client);
            }
            host.settle();
            assert!((0..all).all(|n| host.is_own(own(n)) == has), "{has}");
        }
        assert_eq!((host.clients.len(), host.clients.refused()), (0, 0));
    });
}

#[test]
fn one_client_has_the_default_route_and_the_lns_is_reached_as_before() {
    let name = "daemon::addresses::tests::one_client_has_the_default_route_and_the_lns_is_reached_as_before";
    privileged(name, || {
        let mut host = Host::new(100, Some(0));
        let (router, device) = (host.router, host.device);
        host.set(1, Some(v4(1)));
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(device));
        assert_eq!(host.way_to(LNS).unwrap(), Some(router));
        // A second client does not take the route over until the first one disconnects.
        host.set(2, Some(v4(2)));
        host.set(1, None);
        assert!(host.has_default_route());
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(device));
        assert_eq!(host.way_to(LNS).unwrap(), Some(router));
        host.set(2, None);
        assert!(!host.has_default_route());
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(router));
        host.set(3, Some(v4(3)));
        assert!(host.has_default_route());
        // The route is removed when the daemon ends.
        let Host {
            mut netlink,
            clients,
            ..
        } = host;
        drop(clients);
        let kept = Route {
            to: (address(LNS), 32),
            way: router,
            metric: 0,
            source: None,
            origin: 0,
        };
        assert!(netlink.remove(&kept).is_err());
    });
}

#[test]
fn a_default_route_of_the_same_metric_stays() {
    let name = "daemon::addresses::tests::a_default_route_of_the_same_metric_stays";
    privileged(name, || {
        let mut host = Host::new(7, Some(7));
        let router = host.router;
        host.set(1, Some(v4(1)));
        assert!(!host.has_default_route() && host.is_own(v4(1)));
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(router));
        // The route to the LNS is removed too.
        let kept = Route {
            to: (address(LNS), 32),
            way: router,
            metric: 0,
            source: None,
            origin: 0,
        };
        assert!(host.netlink.remove(&kept).is_err());
    });
}

#[test]
fn addresses_that_another_program_removes_are_set_again() {
    let name = "daemon::addresses::tests::addresses_that_another_program_removes_are_set_again";
    privileged(name, || {
        let mut host = Host::new(0, None);
        for n in 1..=9 {
            host.set(n.into(), Some(v4(n)));
        }
        let interface = host.device.interface;
        let gone = [(v4(3).into(), false), (v4(7).into(), false)];
        host.netlink.change_local(interface, &gone).unwrap();
        assert!(!host.is_own(v4(3)));
        host.settle();
        assert!((1..=9).all(|n| host.is_own(v4(n))));
        assert_eq!(host.clients.restored(), 2);
        host.settle();
        assert_eq!(host.clients.restored(), 2, "our own changes are no news");
        // An address that a client gave back does not come back.
        host.set(3, None);
        host.netlink
            .change_local(interface, &[(v4(7).into(), false)])
            .unwrap();
        host.settle();
        assert!(!host.is_own(v4(3)) && host.is_own(v4(7)));
    });
}

/// Replaces the host's default route, as a DHCP client does.
fn default_through(host: &mut Host, router: &str) -> Way {
    let way = Way {
        via: Some(address(router)),
        ..host.router
    };
    let mut route = Route {
        to: (address("0.0.0.0"), 0),
        way: host.router,
        metric: 100,
        source: None,
        origin: 0,
    };
    // A link that was set down has lost it.
    let _ = host.netlink.remove(&route);
    route.way = way;
    route.origin = ORIGIN_STATIC;
    host.netlink.add(&route).unwrap();
    way
}

#[test]
fn the_route_to_the_lns_follows_the_hosts_gateway() {
    let name = "daemon::addresses::tests::the_route_to_the_lns_follows_the_hosts_gateway";
    privileged(name, || {
        let mut host = Host::new(100, Some(0));
        let device = host.device;
        host.set(1, Some(v4(1)));
        let other = default_through(&mut host, "192.0.2.3");
        host.settle();
        assert_eq!(host.way_to(LNS).unwrap(), Some(other));
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(device));

        // The link goes down, and with it the route to the LNS.
        host.netlink.set_up("wire", false).unwrap();
        host.settle();
        assert!(!host.has_default_route());
        let route = host.clients.default_route().unwrap();
        assert!(route.reason().unwrap().contains("no route to the LNS"));
        host.netlink.set_up("wire", true).unwrap();
        let back = default_through(&mut host, "192.0.2.4");
        host.settle();
        assert_eq!(host.way_to(LNS).unwrap(), Some(back));
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(device));

        // Another program removes the default route.
        let route = Route {
            to: (address("0.0.0.0"), 0),
            way: device,
            metric: 0,
            source: None,
            origin: 0,
        };
        host.netlink.remove(&route).unwrap();
        host.settle();
        assert_eq!(host.way_to("198.51.100.1").unwrap(), Some(device));
        assert_eq!(host.clients.default_route().unwrap().reason(), None);
    });
}

#[test]
fn the_route_to_the_lns_that_a_killed_daemon_left_is_removed() {
    let name =
        "daemon::addresses::tests::the_route_to_the_lns_that_a_killed_daemon_left_is_removed";
    privileged(name, || {
        let mut host = Host::new(100, Some(0));
        host.set(1, Some(v4(1)));
        let again = host._namespaces[0].run(|| Addresses::open("device", Some(0)).unwrap());
        core::mem::forget(core::mem::replace(&mut host.clients, again.unwrap()));
        // The TUN device of the killed daemon took its default route with it.
        let route = Route {
            to: (address("0.0.0.0"), 0),
            way: host.device,
            metric: 0,
            source: None,
            origin: 0,
        };
        host.netlink.remove(&route).unwrap();
        let other = default_through(&mut host, "192.0.2.3");
        assert_eq!(host.way_to(LNS).unwrap(), Some(host.router), "left over");
        host.set(1, Some(v4(2)));
        assert_eq!(host.way_to(LNS).unwrap(), Some(other));
        host.set(1, None);
        assert_eq!(host.way_to(LNS).unwrap(), Some(other));
    });
}
