use reactor::namespace::Namespace;
use reactor::netlink::FoundLink;

use super::*;

const INSTALL: Install = Install {
    table: 254,
    metric: 200,
};

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(1_000 + s)
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn router() -> IpAddr {
    "192.0.2.9".parse().unwrap()
}

/// Runs `work` in a namespace with the interface `a`, 192.0.2.1/24, and a netlink socket of an
/// earlier run.
fn in_namespace(work: impl FnOnce(Netlink) + Send) {
    // Without the privilege these tests cannot check anything.
    let own = ("192.0.2.1".parse().unwrap(), 24);
    if let Ok(namespace) = Namespace::with_interface(("a", "b"), own) {
        namespace.run(|| work(Netlink::open().unwrap())).unwrap();
    }
}

fn leave_behind(netlink: &mut Netlink, metric: u32, prefixes: &[&str]) {
    let place = LearnedTable { table: 254, metric };
    let routes: Vec<_> = prefixes
        .iter()
        .map(|text| LearnedRoute {
            to: (prefix(text).address(), prefix(text).len()),
            via: Some(router()),
        })
        .collect();
    assert_eq!(netlink.change_learned(place, &routes).unwrap().0, 0);
}

/// Destinations and metrics of the kernel's routes of our origin.
fn kernel(netlink: &mut Netlink) -> Vec<(String, u32)> {
    let filter = RouteFilter {
        is_ipv4: true,
        table: 254,
        protocol: Some(LEARNED_ORIGIN),
        interface: None,
    };
    let routes = netlink.routes(filter).unwrap();
    let shown = |route: FoundRoute| (format!("{}/{}", route.to.0, route.to.1), route.metric);
    let mut shown: Vec<_> = routes.into_iter().map(shown).collect();
    shown.sort();
    shown
}

fn settle(installed: &mut Installed, settled: bool, now: Instant) {
    while installed.has_work(settled) || installed.due().is_some_and(|at| at <= now) {
        installed.work(settled, now);
    }
}

#[test]
fn routes_of_an_earlier_run_stay_until_the_peers_have_told_theirs() {
    in_namespace(|mut netlink| {
        leave_behind(&mut netlink, 200, &["10.1.0.0/16", "10.2.0.0/16"]);
        // Another daemon's, by its metric.
        leave_behind(&mut netlink, 20, &["10.3.0.0/16"]);
        let mut installed = Installed::open(INSTALL).unwrap();
        settle(&mut installed, false, at(0));
        assert_eq!(installed.counts().stale, 2);
        assert_eq!(kernel(&mut netlink).len(), 3, "graceful restart runs");
        installed.set(prefix("10.1.0.0/16"), Some(router()));
        settle(&mut installed, false, at(1));
        assert_eq!(installed.counts().stale, 1);
        settle(&mut installed, true, at(2));
        let left = [("10.1.0.0/16".into(), 200), ("10.3.0.0/16".into(), 20)];
        assert_eq!(kernel(&mut netlink), left);
        let counts = installed.counts();
        assert_eq!(
            (counts.stale, counts.swept, counts.present, counts.refused),
            (0, 1, 1, 0)
        );
    });
}

#[test]
fn a_shutdown_removes_what_an_earlier_run_left_too() {
    in_namespace(|mut netlink| {
        let all: Vec<String> = (0..100).map(|n| format!("10.{n}.0.0/16")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        leave_behind(&mut netlink, 200, &all);
        let mut installed = Installed::open(INSTALL).unwrap();
        installed.set(prefix("10.200.0.0/16"), Some(router()));
        installed.withdraw_all();
        assert_eq!(kernel(&mut netlink), []);
    });
}

#[test]
fn routes_that_the_kernel_lost_are_sent_again() {
    in_namespace(|mut netlink| {
        let mut installed = Installed::open(INSTALL).unwrap();
        for text in ["10.1.0.0/16", "10.2.0.0/16"] {
            installed.set(prefix(text), Some(router()));
        }
        settle(&mut installed, true, at(0));
        assert_eq!(kernel(&mut netlink).len(), 2);
        // The kernel drops routes of a link that is set down without a notification for each.
        let index = netlink.index("a").unwrap();
        netlink.set_up("a", false).unwrap();
        installed.notice(
            &Notice::Link(FoundLink {
                index,
                is_up: false,
            }),
            at(10),
        );
        assert!(installed.due() > Some(at(10)));
        settle(&mut installed, true, at(11));
        assert_eq!(kernel(&mut netlink), []);
        let counts = installed.counts();
        assert_eq!(
            (counts.wanted, counts.present),
            (2, 0),
            "no route to the router"
        );
        netlink.set_up("a", true).unwrap();
        installed.notice(&Notice::Link(FoundLink { index, is_up: true }), at(20));
        settle(&mut installed, true, at(21));
        assert_eq!(kernel(&mut netlink).len(), 2);
        assert_eq!(installed.counts().present, 2);
        // Another program removes one.
        let gone = LearnedRoute {
            to: ("10.2.0.0".parse().unwrap(), 16),
            via: None,
        };
        let place = LearnedTable {
            table: 254,
            metric: 200,
        };
        assert_eq!(netlink.change_learned(place, &[gone]).unwrap().0, 0);
        let notice = Notice::Route(FoundRoute {
            to: gone.to,
            via: None,
            interface: index,
            table: 254,
            protocol: LEARNED_ORIGIN,
            metric: 200,
        });
        installed.notice(&notice, at(30));
        settle(&mut installed, true, at(31));
        assert_eq!(kernel(&mut netlink).len(), 2);
        // Nothing is sent if nothing differs.
        let before = installed.counts();
        installed.notice(&Notice::Overflow, at(40));
        settle(&mut installed, true, at(50));
        assert_eq!(installed.counts(), before);
    });
}
