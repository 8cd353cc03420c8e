//! Runs in real time, over TCP on loopback.

use std::time::{Duration as Wall, Instant as Moment};

use base::Duration;
use bgp::{DynamicConfig, PeerId, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};
use emulate::{Fleet, Scenario};
use reactor::PollerKind;

/// Each test has an address range of its own, so that tests may run at the same time.
fn scenario(rest: &str, port: u16) -> Scenario {
    let text = format!(
        "clock = \"real\"\nrun_s = 600\nseed = 5\n[routers]\nhold_time_s = 3\nport = {port}\nconnect_retry_s = 0.2\n{rest}"
    );
    Scenario::load(&text, "test.toml").unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Waits far longer than needed: only a fault makes it time out.
fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let end = Moment::now() + Wall::from_secs(60);
    while !is_done() {
        assert!(Moment::now() < end, "{what} did not come about");
        std::thread::sleep(Wall::from_millis(10));
    }
}

fn knows(fleet: &Fleet, router: &str, prefix: &str) -> bool {
    let prefix = prefix.parse().unwrap();
    fleet
        .with_router(router, move |speaker, _| {
            speaker.rib().best(prefix).is_some()
        })
        .unwrap_or(false)
}

#[test]
fn a_mesh_over_tcp_comes_up_hears_an_event_and_loses_nobody() {
    let mesh = "[topology]\nkind = \"mesh\"\nrouters = 12\n[links]\ntransport = \"tcp\"\n";
    let mut fleet = Fleet::start(scenario(mesh, 17_901), PollerKind::Epoll).unwrap();
    until("132 ends", || fleet.progress().endpoints_up == 132);
    fleet
        .inject("kind = \"announce\"\nrouter = \"r3\"\nprefix = \"198.51.100.0/24\"")
        .unwrap();
    until("the route everywhere", || {
        (1..=12).all(|router| knows(&fleet, &format!("r{router}"), "198.51.100.0/24"))
    });
    // Longer than the hold time.
    std::thread::sleep(Wall::from_secs(4));
    assert_eq!(fleet.progress().sessions_lost, 0);
    let loops = fleet.loops();
    assert!(loops.iter().map(|one| one.watched).sum::<usize>() >= 132);
    let results = fleet.finish();
    assert_eq!((results.endpoints_up, results.routers), (132, 12));
    let announced = results
        .events
        .iter()
        .find(|event| event.kind == "announce")
        .unwrap();
    assert!(
        announced.changes == 12 && announced.updates >= 11,
        "{announced:?}"
    );
    let shares = &results.addresses[0].shares;
    assert!(
        (shares.last().unwrap().owner - 1.0).abs() < 1e-9,
        "{shares:?}"
    );
    let received: u32 = results
        .per_router
        .iter()
        .map(|router| router.updates_received)
        .sum();
    assert!(received >= 11, "{received}");
}

#[test]
fn a_mesh_in_memory_keeps_its_sessions_in_real_time() {
    let mesh = "keepalive_s = 1\n[topology]\nkind = \"mesh\"\nrouters = 18\n";
    let fleet = Fleet::start(scenario(mesh, 17_950), PollerKind::Epoll).unwrap();
    until("306 ends", || fleet.progress().endpoints_up == 306);
    // Longer than the hold time.
    std::thread::sleep(Wall::from_secs(4));
    assert_eq!(fleet.progress().sessions_lost, 0);
    let received = fleet.with_router("r7", |speaker, now| {
        let next = |from| speaker.next_neighbor(from, now);
        let views = std::iter::successors(next(PeerId(0)), |view| next(PeerId(view.id.0 + 1)));
        views
            .map(|view| view.counts.keepalives_in)
            .collect::<Vec<_>>()
    });
    let received = received.expect("r7 runs");
    assert_eq!(received.len(), 17);
    assert!(received.iter().all(|count| *count >= 3), "{received:?}");
}

#[test]
fn links_in_memory_and_over_tcp_stand_side_by_side_and_both_fail_and_are_mended() {
    let ring = "[topology]\nkind = \"ring\"\nrouters = 4\n[[link]]\nbetween = [\"r1\", \"r2\"]\ntransport = \"tcp\"\n\
                [[link]]\nbetween = [\"r3\", \"r4\"]\ntransport = \"tcp\"\n";
    let mut fleet = Fleet::start(scenario(ring, 17_902), PollerKind::Epoll).unwrap();
    until("8 ends", || fleet.progress().endpoints_up == 8);
    let failure = |link: &str| format!("kind = \"link_failure\"\nbetween = {link}\nlasts_s = 1");
    for link in ["[\"r1\", \"r2\"]", "[\"r2\", \"r3\"]"] {
        fleet
            .inject(&failure(link))
            .unwrap_or_else(|faults| panic!("{faults:?}"));
        until("a link that is down", || fleet.progress().endpoints_up == 6);
        until("a link that is mended", || {
            fleet.progress().endpoints_up == 8
        });
    }
    fleet
        .inject("kind = \"router_failure\"\nrouter = \"r4\"\nlasts_s = 1")
        .unwrap();
    until("a router that is down", || {
        fleet.progress().endpoints_up == 4
    });
    until("a router that is back", || {
        fleet.progress().endpoints_up == 8
    });
    drop(fleet);
}

#[test]
fn a_daemon_outside_is_a_router_of_the_graph() {
    // The daemon is a speaker of our own on a thread, driven as in the real daemon.
    let address: std::net::SocketAddr = "127.61.7.9:17903".parse().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let outside = std::thread::spawn(move || serve(address, &stopped));
    let graph = "[topology]\nkind = \"ring\"\nrouters = 3\n[[router]]\nname = \"out\"\nasn = 64999\naddress = \"127.61.7.9\"\n\
                 outside = true\n[[link]]\nbetween = [\"out\", \"r2\"]\n";
    let mut fleet = Fleet::start(scenario(graph, 17_903), PollerKind::Epoll).unwrap();
    // Three links in memory, and our end of the one to the daemon.
    until("7 ends", || fleet.progress().endpoints_up == 7);
    until("its route", || knows(&fleet, "r1", "203.0.113.0/24"));
    fleet
        .inject("kind = \"announce\"\nrouter = \"r3\"\nprefix = \"198.51.100.0/24\"")
        .unwrap();
    // The thread ends once it has received 198.51.100.0/24.
    until("the end of the daemon", || outside.is_finished());
    assert!(outside.join().unwrap(), "the daemon received the route");
    drop((fleet, stop));
}

/// Announces 203.0.113.0/24, and serves until it has received 198.51.100.0/24.
fn serve(address: std::net::SocketAddr, stopped: &std::sync::mpsc::Receiver<()>) -> bool {
    let mut config = SpeakerConfig::new(64_999, std::net::Ipv4Addr::new(127, 61, 7, 9));
    let accept = Some(bgp::policy::Policy::accept());
    config.dynamic.push(DynamicConfig {
        prefix: "127.0.0.0/8".parse().unwrap(),
        remote_asn: RemoteAsn::Any,
        peers_max: 10,
        settings: std::sync::Arc::new(PeerSettings {
            hold_time_s: 3,
            import: accept.clone(),
            export: accept,
            ..PeerSettings::default()
        }),
    });
    let mut reactor =
        reactor::Reactor::new(PollerKind::Epoll, reactor::StoreKind::default()).unwrap();
    let mut buffers = peering::Buffers::new();
    let listen = peering::Listen {
        address,
        is_optional: false,
    };
    let mut peering = peering::Peering::open(0, &[listen], Vec::new(), &mut reactor).unwrap();
    let mut speaker = Speaker::new(config, [1; 32]);
    let now = reactor::clock::now();
    let ours = bgp::rib::LocalRoute::default();
    speaker.originate("203.0.113.0/24".parse().unwrap(), &ours);
    speaker.start(now);
    let wanted = "198.51.100.0/24".parse().unwrap();
    while speaker.rib().best(wanted).is_none() {
        if stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected) {
            return false;
        }
        let soon = reactor::clock::now() + Duration::from_millis(20);
        let now = reactor.wait(Some(soon)).unwrap();
        buffers.begin();
        while let Some(ready) = reactor.next_ready() {
            peering.ready(ready, &mut speaker, &mut buffers, &mut reactor, now);
        }
        speaker.drained(now);
        speaker.handle_timeout(now);
        speaker.work(1_000, now);
        let slice = reactor.slice(Duration::from_millis(2));
        peering.write(&mut speaker, &mut buffers, &mut reactor, (now, slice));
        while let Some(event) = speaker.poll_event() {
            peering.act(event, &mut speaker, &mut reactor, now);
        }
    }
    true
}
