use base::Duration;
use reactor::namespace::Namespace;
use reactor::{PollerKind, Reactor, StoreKind};

use super::*;
use crate::notices::Notices;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1_000_000 + ms)
}

fn read(notices: &mut Notices, keeper: &mut Keeper, now: Instant) {
    for notice in notices.read().unwrap() {
        keeper.notice(notice, now);
    }
}

fn wanted() -> Wanted {
    let network = |text: &str| text.parse::<IpAddr>().unwrap();
    Wanted {
        name: "inside%d".into(),
        mtu: 1400,
        terminates: true,
        addresses: vec![(network("10.255.0.1"), 32), (network("2001:db8::1"), 128)],
        routes: vec![(network("10.64.0.0"), 16), (network("2001:db8:1::"), 48)],
        offloads: Vec::new(),
        options: TunOptions {
            offloads: true,
            queues: 1,
        },
    }
}

/// The route of the pool that [`wanted`] names, over this device.
fn pool_route(interface: u32) -> reactor::netlink::Route {
    reactor::netlink::Route {
        to: ("10.64.0.0".parse().unwrap(), 16),
        way: reactor::netlink::Way {
            via: None,
            interface,
        },
        metric: 0,
        source: None,
        origin: 0,
    }
}

#[test]
fn what_another_program_removes_is_found_and_set_again() {
    // Without the privilege this test cannot check anything.
    let Ok(namespace) = Namespace::new() else {
        return;
    };
    let work = || {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let mut wanted = wanted();
        let _queues = wanted.make().unwrap();
        assert_eq!(wanted.name, "inside0");
        let mut keeper = Keeper::open(wanted).unwrap();
        let mut notices = Notices::open(Vec::new(), &mut reactor).unwrap();
        assert_eq!(keeper.check(at(0)), Found::Same);
        assert_eq!(
            (&keeper.missing, keeper.restored),
            (&Missing::default(), Restored::default())
        );
        assert_eq!(keeper.due(), None);

        let mut netlink = Netlink::open().unwrap();
        let route = pool_route(keeper.index());
        netlink.remove(&route).unwrap();
        read(&mut notices, &mut keeper, at(10));
        assert_eq!(keeper.due(), Some(at(30)), "changes settle first");
        assert_eq!(keeper.check(at(30)), Found::Same);
        assert_eq!((keeper.restored.addresses, keeper.restored.routes), (0, 1));

        // A device that is set down loses its routes, and its IPv6 address.
        netlink.set_up("inside0", false).unwrap();
        read(&mut notices, &mut keeper, at(100));
        assert_eq!(keeper.check(at(200)), Found::Same);
        assert_eq!(keeper.link, Link::Down);
        assert!(keeper.missing.routes.len() == 2, "{:?}", keeper.missing);
        netlink.set_up("inside0", true).unwrap();
        read(&mut notices, &mut keeper, at(300));
        assert_eq!(
            keeper.check(at(400)),
            Found::CameBack,
            "what others set on it is gone too"
        );
        assert_eq!(
            (keeper.link, &keeper.missing),
            (Link::Up, &Missing::default())
        );
        // A new pool's network is routed there, and an old one's stays.
        let new = ("10.65.0.0".parse().unwrap(), 16);
        keeper.want_routes(&[("10.64.0.0".parse().unwrap(), 16), new], at(450));
        assert_eq!(keeper.due(), Some(at(450)));
        keeper.check(at(450));
        assert_eq!(
            (keeper.wanted.routes.len(), &keeper.missing),
            (3, &Missing::default())
        );
        keeper.want_routes(&[new], at(460));
        // Our own changes are notified as well; there is no difference then.
        let restored = keeper.restored;
        read(&mut notices, &mut keeper, at(500));
        assert_eq!(keeper.check(at(600)), Found::Same);
        assert_eq!(keeper.restored, restored);
    };
    namespace.run(work).unwrap();
}

#[test]
fn a_renamed_device_is_followed_and_one_that_left_is_reported() {
    // Without the privilege this test cannot check anything.
    let (Ok(namespace), Ok(elsewhere)) = (Namespace::new(), Namespace::new()) else {
        return;
    };
    let work = || {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let mut wanted = wanted();
        let _queues = wanted.make().unwrap();
        let mut keeper = Keeper::open(wanted).unwrap();
        let mut notices = Notices::open(Vec::new(), &mut reactor).unwrap();
        let mut netlink = Netlink::open().unwrap();
        netlink.set_up("inside0", false).unwrap();
        netlink.rename("inside0", "other").unwrap();
        netlink.set_up("other", true).unwrap();
        read(&mut notices, &mut keeper, at(100));
        assert_eq!(keeper.check(at(200)), Found::CameBack);
        assert_eq!(
            (keeper.name(), &keeper.missing),
            ("other", &Missing::default())
        );
        assert_eq!(keeper.restored.routes, 2);
        // Its descriptor still works there.
        netlink.move_to("other", &elsewhere).unwrap();
        read(&mut notices, &mut keeper, at(300));
        assert_eq!(keeper.check(at(400)), Found::Gone);
        // It is made again, under the name in the configuration.
        let mut wanted = keeper.wanted.clone();
        let _queues = wanted.make().unwrap();
        keeper.made(wanted, at(500)).unwrap();
        assert_eq!(keeper.name(), "inside0");
        read(&mut notices, &mut keeper, at(500));
        // The device was down while it was made, which is notified too.
        assert_ne!(keeper.check(at(600)), Found::Gone);
        assert_eq!(keeper.missing, Missing::default());
    };
    namespace.run(work).unwrap();
}

#[test]
fn an_offload_that_another_program_turns_off_is_set_again() {
    // Without the privilege this test cannot check anything.
    let Ok(namespace) = Namespace::new() else {
        return;
    };
    let work = || {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab).unwrap();
        let mut wanted = wanted();
        let _queues = wanted.make().unwrap();
        let mut keeper = Keeper::open(wanted).unwrap();
        let mut notices = Notices::open(Vec::new(), &mut reactor).unwrap();
        keeper.check(at(0));
        assert_eq!(keeper.wanted.offloads, [Switch::TxChecksum, Switch::Tso]);
        let settings = Settings::of("inside0").unwrap();
        assert!(settings.set(Switch::Tso, false).unwrap());
        read(&mut notices, &mut keeper, at(410));
        keeper.check(at(440));
        assert_eq!(
            (keeper.restored.offloads, keeper.missing.offloads.len()),
            (1, 0)
        );
        assert_eq!(settings.is_on(Switch::Tso).unwrap(), Some(true));
    };
    namespace.run(work).unwrap();
}
