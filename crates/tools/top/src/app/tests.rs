//! Rows and keys go in, and the screen as text is compared with a file of `testdata/`. `WRITE_GOLDENS=1` writes the files.

use std::collections::BTreeMap;
use std::path::Path;

use control::rows::{
    Now, NowBgp, NowLoop, NowPool, NowRadius, NowSubscribers, NowTraffic, NowTunnels,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::*;
use crate::draw;
use crate::rows::{
    Handler, Listing, LoopRows, Neighbor, Overrun, PeerRows, Subscriber, Summary, Timers,
};

fn app(view: View) -> App {
    App::new(Settings {
        view,
        filter: String::new(),
        interval: Duration::from_secs(1),
        is_coloured: false,
        is_ascii: true,
    })
}

fn drawn(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw::screen(app, frame.buffer_mut(), draw::Frame::Live))
        .unwrap();
    draw::text(terminal.backend().buffer())
}

/// Compares a screen with its file.
fn golden(name: &str, screen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    if std::env::var_os("WRITE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, screen).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(screen, known, "{name}: WRITE_GOLDENS=1 writes it anew");
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// Counters of a map.
fn map<const N: usize>(parts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    parts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// A daemon's state, `second` seconds after the first reading.
fn now(second: u64) -> Now {
    let s = second;
    let busy = 0.23 * s as f64;
    let pool = |name: &str, size, used| NowPool {
        name: name.to_owned(),
        size,
        used,
    };
    Now {
        schema: Now::SCHEMA.to_owned(),
        at_s: 1.7e9 + s as f64,
        uptime_s: 273_600.0 + s as f64,
        subscribers: NowSubscribers {
            by_state: map([
                ("up", 9_874),
                ("link", 12),
                ("asking", 3),
                ("networks", 4),
                ("ending", 1),
            ]),
            by_version: map([("ipv4", 9_000), ("ipv6", 4), ("both", 870)]),
            came_up: 120_000 + 41 * s,
            ended: map([("User-Request", 100 + 2 * s), ("Lost-Carrier", 7)]),
            refused: map([("pool full", 3), ("no such user", 12)]),
        },
        tunnels: NowTunnels {
            by_state: map([("established", 12), ("opening", 1)]),
            sessions: 9_889,
            retransmissions: 17 + s,
        },
        pools: vec![
            pool("main", 10_000, 9_640),
            pool("guests", 512, 120),
            pool("third", 100, 85),
        ],
        prefix_pools: vec![pool("homes", 65_536, 870)],
        radius: Some(NowRadius {
            outstanding: 2,
            waiting: 0,
            failed: 1,
            round_trips: map([("1000", 30 * s), ("4000", 10 * s), ("16000", s), ("inf", 0)]),
            round_trips_us: 1e5,
        }),
        traffic: NowTraffic {
            packets_in: 210_000 * s,
            octets_in: 154_300_000 * s,
            packets_out: 310_000 * s,
            octets_out: 420_000_000 * s,
            dropped: map([("filter", 10 * s), ("no route", 9)]),
        },
        event_loop: NowLoop {
            waited_s: s as f64 - busy,
            busy_s: busy,
            handlers_s: BTreeMap::from([("udp".to_owned(), busy)]),
            lateness: map([("100", 980 * s), ("1000", 15 * s), ("inf", 5 * s)]),
            lateness_us: 1e4,
            overruns: 2,
        },
        bgp: Some(NowBgp {
            peers: 4,
            established: 3,
            prefixes: 1_000_000,
            updates_in: 12 * s,
            updates_out: 3 * s,
            hold_margin_s: Some(61.25),
        }),
        rss_bytes: 412_000_000,
    }
}

fn subscriber(i: u32, second: u64) -> Subscriber {
    let rate = u64::from(i * 7 % 31);
    Subscriber {
        name: format!("user{i:03}@example.net"),
        state: if i % 9 == 4 { "asking" } else { "up" }.into(),
        address: Some(format!("10.64.0.{i}")),
        prefix: Some(format!("2001:db8:1:{i:x}::/64")),
        delegated: Some(format!("2001:db8:4000:{i:x}00::/56")),
        tunnel: 1_000,
        session: i,
        age_s: f64::from(100 * i) + second as f64,
        up_s: (i % 9 != 4).then(|| f64::from(100 * i) + second as f64),
        octets_in: 125_000 * rate * second,
        octets_out: 1_250_000 * rate * second,
        dropped: if i == 5 { 3 * second } else { 0 },
        echo_rtt_us: (i != 7).then(|| f64::from(1_000 + 130 * i)),
    }
}

/// Answers one round of requests as a daemon would.
fn answer(app: &mut App, second: u64, answers: impl Fn(&Want) -> Outcome) {
    let wants = app.due(seconds(second)).expect("it is time to ask");
    let outcomes = wants.into_iter().map(|want| {
        let outcome = answers(&want);
        (want, outcome)
    });
    let report = Report {
        view: app.view,
        outcomes: outcomes.collect(),
    };
    app.take(report, seconds(second));
}

/// A daemon with `count` subscribers.
fn daemon(count: u32, second: u64) -> impl Fn(&Want) -> Outcome {
    move |want| {
        Outcome::Answer(match want {
            Want::Now => Answer::Now(Box::new(now(second))),
            Want::History => return Outcome::Refused("unknown verb".into()),
            Want::Subscribers(listing) => {
                let all = (0..count.min(LIST_MAX)).map(|i| subscriber(i, second));
                let name = listing.name.clone().unwrap_or_default();
                let found = all.filter(|row| row.name.contains(&name)).collect();
                Answer::Subscribers(listing.clone(), found)
            }
            Want::Subscriber(who) => {
                Answer::Subscriber(who.key, Some(detail(second)), vec![ended()])
            }
            Want::Loop => Answer::Loop(event_loop(second)),
            Want::Peers => Answer::Peers(peers(second)),
            Want::Queues => Answer::Queues(Box::new(queues(second))),
        })
    }
}

fn detail(second: u64) -> serde_json::Value {
    json!({
        "schema": "subscriber.detail/1", "name": "user026@example.net", "state": "up", "role": "network", "ending": null,
        "tunnel": {"id": 1000, "remote_id": 7, "version": 2, "state": "established", "host_name": "lac\u{1b}[2J"},
        "session": {"id": 26, "remote_id": 9},
        "ppp": {"lcp": {"state": "Opened", "local": {"mru": 1500}, "peer": {"mru": 1492}}, "ipcp": "Opened"},
        "ipv4": {"address": "10.64.0.26", "dns": ["192.0.2.53"], "pool": "main"}, "ipv6": null,
        "mtu": 1460, "routes": ["10.9.0.0/24", "10.9.1.0/24", "10.9.2.0/24", "10.9.3.0/24", "10.9.4.0/24"], "routes_missing": [], "filter": "web",
        "times": {"age_s": 2600.0, "idle_timeout_s": 600.0},
        "traffic": {"packets_in": 9, "octets_in": 1000 * second, "packets_out": 8, "octets_out": 9000 * second, "dropped": 2},
        "echo_rtt_us": 4380.0, "a_later_field": 5
    })
}

fn ended() -> serde_json::Value {
    json!({"schema": "subscriber.ended/1", "name": "user026@example.net", "ended_s_ago": 7200.0, "up_s": 60.0,
        "reason": "the peer hung up", "terminate_cause": "User-Request"})
}

fn event_loop(second: u64) -> LoopRows {
    let handler = |name: &str, calls: u64, us: f64| Handler {
        name: name.into(),
        calls: calls * second,
        total_us: us * second as f64,
        mean_us: us / calls as f64,
        longest_us: us / 9.0,
    };
    LoopRows {
        handlers: vec![
            handler("timers", 20, 310.0),
            handler("udp", 900, 151_000.0),
            handler("tun", 510, 79_000.0),
        ],
        overruns: vec![Overrun {
            handler: "bgp".into(),
            s_ago: 12.5,
            wall_ms: 24.2,
            cpu_ms: 11.0,
            waiting: "udp 3".into(),
            timer: Some("hello".into()),
            timer_late_ms: Some(21.0),
        }],
        timers: Some(Timers {
            armed: 30_000,
            next_ms: Some(3.2),
            next_timer: Some("lcp echo".into()),
            late_p99_us: 640.0,
            late_max_us: 21_000.0,
        }),
        shards: Vec::new(),
    }
}

fn peers(second: u64) -> PeerRows {
    let peer = |i: u32| Neighbor {
        address: format!("192.0.2.{}", 9 + i),
        name: Some(format!("peer-{i}")),
        asn: Some(64_500 + i),
        messages_in: 12 * second,
        messages_out: second,
        since_s: (i != 3).then_some(3_700.0),
        state: if i == 3 { "Active" } else { "Established" }.into(),
        prefixes_in: u64::from(i) * 250_000,
        prefixes_out: 3,
    };
    PeerRows {
        summary: Summary {
            router_id: "192.0.2.1".into(),
            asn: 64_512,
            peers: 4,
            established: 3,
            prefixes: map([("ipv4-unicast", 900_000), ("ipv6-unicast", 100_000)]),
            deferring: false,
        },
        neighbors: (0..4).map(peer).collect(),
    }
}

fn queues(second: u64) -> control::rows::QosRun {
    let sums = |share: u64| {
        json!({"bytes": 125_000 * share * second, "packets": 100 * share * second, "drops": share / 4 * second,
            "overlimits": 0, "requeues": 0, "backlog": 3_028 * share, "qlen": 2, "ecn_mark": second})
    };
    let merged = |mut object: serde_json::Value, sums: serde_json::Value| {
        let fields = sums.as_object().unwrap().clone();
        object.as_object_mut().unwrap().extend(fields);
        object
    };
    let node = |way: &str, handle: &str, parent: Option<&str>, name: Option<&str>, share| {
        let object = json!({"way": way, "kind": "hfsc", "is_class": name.is_some(), "handle": handle, "parent": parent,
            "name": name, "options": "", "details": {}});
        merged(object, sums(share))
    };
    let lane = json!({"packets": 0, "past": 0, "cut": 0, "too_long": 0, "full": 0, "overlimit": 0, "late": 0,
        "unclassified": 0, "no_room": 0, "marked": 0, "down": 0});
    let port = |name| {
        json!({"name": name, "received": 0, "received_bytes": 0, "received_large": 0, "missed": 0, "no_room": 0,
            "sent": 0, "sent_bytes": 0, "refused": 0, "blocked": 0, "downs": 0})
    };
    let way = |way: &str, share| {
        let nodes = [
            node(way, "1:", None, None, share),
            node(way, "1:1", Some("1:"), Some("voice"), 1),
            node(way, "1:2", Some("1:"), Some("bulk"), share - 1),
        ];
        merged(
            json!({"rate_bps": 20_000_000, "lane": lane, "nodes": nodes}),
            sums(share),
        )
    };
    serde_json::from_value(json!({"schema": "qos.run/1", "pid": 7, "policy": "home.toml", "policy_age_s": 99.0,
        "reloads": 0, "uptime_s": 500.0 + second as f64, "taken_ns": 1_000_000_000 * second, "up": way("up", 2),
        "down": way("down", 18), "lan": port("lan0"), "wan": port("wan0"), "frames": 20, "frames_max": 4096}))
    .unwrap()
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let press = |char| {
        let code = match char {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            '\t' => KeyCode::Tab,
            'v' => KeyCode::Down,
            '^' => KeyCode::Up,
            other => KeyCode::Char(other),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE))
    };
    keys.chars().filter_map(press).collect()
}

#[test]
fn the_overview_shows_the_whole_daemon() {
    let mut app = app(View::Overview);
    assert!(drawn(&app, 80, 24).contains("connecting"));
    (0..5).for_each(|second| answer(&mut app, second, daemon(9, second)));
    golden("overview-80x24.txt", &drawn(&app, 80, 24));
    golden("overview-132x40.txt", &drawn(&app, 132, 40));
    golden("overview-60x16.txt", &drawn(&app, 60, 16));
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let app = app(View::Overview);
    assert_eq!(
        drawn(&app, 59, 24).lines().next(),
        Some("59x24 is too small")
    );
    assert_eq!(drawn(&app, 80, 15).lines().nth(1), Some("top needs 60x16"));
    for (width, height) in [(1, 1), (2, 9), (200, 1)] {
        drawn(&app, width, height);
    }
}

#[test]
fn subscribers_are_sorted_by_rate_and_the_selection_follows_its_subscriber() {
    let mut app = app(View::Subscribers);
    (0..3).for_each(|second| answer(&mut app, second, daemon(30, second)));
    golden("subscribers-80x24.txt", &drawn(&app, 80, 24));
    golden("subscribers-132x40.txt", &drawn(&app, 132, 40));
    press(&mut app, "vv");
    let followed = app.subscribers.selected().unwrap().name.clone();
    press(&mut app, "s");
    assert_eq!(app.subscribers.order, Order::Name);
    assert_eq!(app.subscribers.selected().unwrap().name, followed);
    press(&mut app, "<<");
    assert_eq!(app.subscribers.order, Order::Drops);
    assert_eq!(
        app.subscribers.shown().next().unwrap().row.name,
        "user005@example.net"
    );
    press(&mut app, "<r");
    let first = app.subscribers.shown().next().unwrap();
    assert_eq!(
        first.row.echo_rtt_us, None,
        "the shortest round trip, reversed: none"
    );
}

#[test]
fn a_filter_narrows_with_each_key() {
    let mut app = app(View::Subscribers);
    (0..2).for_each(|second| answer(&mut app, second, daemon(30, second)));
    press(&mut app, "/user02");
    assert_eq!(app.subscribers.keys().len(), 10);
    assert!(drawn(&app, 80, 24).contains("filter: user02   Enter keeps it, Esc removes it"));
    // The daemon is asked at once, whatever the interval.
    answer(&mut app, 1, |want| {
        let listing = match want {
            Want::Subscribers(listing) => listing.clone(),
            _ => Listing::default(),
        };
        if matches!(want, Want::Subscribers(_)) {
            assert_eq!(listing.name.as_deref(), Some("user02"));
        }
        daemon(30, 2)(want)
    });
    press(&mut app, "9q");
    assert_eq!(
        app.subscribers.keys().len(),
        0,
        "q is a letter of the filter"
    );
    assert!(drawn(&app, 80, 24).contains("no subscriber matches the filter"));
    press(&mut app, "\u{8}\n");
    assert_eq!(app.subscribers.keys().len(), 1);
    assert!(!app.is_typing);
    press(&mut app, "\u{1b}");
    assert_eq!(app.filter(), Some(""));
}

#[test]
fn a_long_list_asks_for_a_part_and_for_the_worst() {
    let mut app = app(View::Subscribers);
    let wanted = |app: &mut App, second| {
        let asked = std::cell::RefCell::new(Vec::new());
        answer(app, second, |want| {
            asked.borrow_mut().push(want.clone());
            daemon(100_000, second)(want)
        });
        asked.into_inner()
    };
    wanted(&mut app, 0);
    let first = wanted(&mut app, 1);
    let sorted = |order, is_reversed| Listing {
        sort: Some((order, is_reversed)),
        ..Listing::default()
    };
    assert_eq!(first[1], Want::Subscribers(sorted("rate", false)));
    let screen = drawn(&app, 80, 24);
    let title = "the first 1,000 of 9,894, by rate";
    assert!(screen.contains(title), "{screen}");
    let keys = |app: &App| app.subscribers.keys().to_vec();
    let place = keys(&app);
    assert!(place.is_sorted(), "as the daemon sent them, without a rate");
    for (key, order, title) in [
        ("r", ("rate", true), "of 9,894, by rate, reversed"),
        ("s", ("name", false), "of 9,894, by name"),
        ("s", ("age", false), "of 9,894, by age"),
        ("r", ("age", true), "of 9,894, by age, reversed"),
        ("s", ("round-trip", false), "of 9,894, by round trip"),
        ("s", ("dropped", false), "of 9,894, by drops"),
    ] {
        press(&mut app, key);
        assert!(
            drawn(&app, 80, 24).contains("among these"),
            "before the list arrives"
        );
        let asked = wanted(&mut app, 2);
        assert_eq!(asked[1], Want::Subscribers(sorted(order.0, order.1)));
        let screen = drawn(&app, 80, 24);
        assert!(
            screen.contains(&format!("the first 1,000 {title}")),
            "{screen}"
        );
    }
    // The daemon looks through all its subscribers for that, so it is not asked each second.
    assert_eq!(wanted(&mut app, 3), [Want::Now]);
    assert_eq!(wanted(&mut app, 6), [Want::Now]);
    assert_eq!(wanted(&mut app, 7).len(), 2);
    press(&mut app, "/u");
    assert_eq!(wanted(&mut app, 7).len(), 2, "a key asks at once");
}

#[test]
fn one_subscriber_has_curves_and_every_field() {
    let mut app = app(View::Subscribers);
    (0..2).for_each(|second| answer(&mut app, second, daemon(30, second)));
    press(&mut app, "\n");
    (2..6).for_each(|second| answer(&mut app, second, daemon(30, second)));
    golden("one-80x24.txt", &drawn(&app, 80, 24));
    golden("one-132x60.txt", &drawn(&app, 132, 60));
    press(&mut app, "G");
    assert!(
        drawn(&app, 80, 24).contains("2h00m ago, up for 1m00s, User-Request: the peer hung up")
    );
    press(&mut app, "^");
    assert!(
        !drawn(&app, 80, 24).contains("2h00m ago"),
        "one line up from the end"
    );
    press(&mut app, "g");
    answer(&mut app, 6, |want| match want {
        Want::Subscriber(who) => Outcome::Answer(Answer::Subscriber(who.key, None, vec![ended()])),
        other => daemon(30, 6)(other),
    });
    let gone = drawn(&app, 80, 24);
    assert!(
        gone.contains("not connected") && gone.contains("the peer hung up"),
        "{gone}"
    );
    press(&mut app, "\u{1b}");
    assert!(app.one.is_none());
}

#[test]
fn the_loop_peers_and_queues_are_shown() {
    for (view, name) in [
        (View::Loop, "loop"),
        (View::Peers, "peers"),
        (View::Queues, "queues"),
    ] {
        let mut app = app(view);
        (0..3).for_each(|second| answer(&mut app, second, daemon(9, second)));
        golden(&format!("{name}-80x24.txt"), &drawn(&app, 80, 24));
        golden(&format!("{name}-132x40.txt"), &drawn(&app, 132, 40));
    }
}

#[test]
fn the_help_lists_every_key() {
    let mut app = app(View::Overview);
    press(&mut app, "h");
    golden("help-80x24.txt", &drawn(&app, 80, 24));
    assert_eq!(press(&mut app, "x"), []);
    assert!(!app.is_help);
    assert_eq!(press(&mut app, "?q"), [Effect::Quit]);
}

#[test]
fn only_what_the_view_shows_is_asked_for() {
    let mut app = app(View::Overview);
    assert_eq!(app.due(seconds(0)), Some(vec![Want::Now, Want::History]));
    assert_eq!(app.due(seconds(1)), None, "the replies have not arrived");
    let report = Report {
        view: View::Overview,
        outcomes: Vec::new(),
    };
    app.take(report, seconds(1));
    press(&mut app, "3");
    assert_eq!(
        app.due(seconds(1)),
        Some(vec![Want::Now, Want::Loop, Want::History])
    );
    assert!(drawn(&app, 80, 24).contains("connecting"));
}

#[test]
fn the_poll_waits_for_the_interval_and_for_a_slow_daemon() {
    let mut app = app(View::Loop);
    answer(&mut app, 10, daemon(9, 1));
    assert_eq!(app.left(seconds(10)), Some(seconds(1)));
    assert_eq!(app.due(Duration::from_millis(10_999)), None);
    app.due(seconds(11)).unwrap();
    assert_eq!(app.left(seconds(11)), None);
    app.due(seconds(14));
    assert_eq!(app.overdue(), Some(seconds(3)));
    assert!(drawn(&app, 80, 24).contains("no reply for 3 s"));
    let report = Report {
        view: View::Loop,
        outcomes: Vec::new(),
    };
    app.take(report, seconds(14));
    assert_eq!(app.left(seconds(14)), Some(PAUSE_MAX));
    press(&mut app, "+");
    assert_eq!(
        (app.settings.interval, app.left(seconds(14))),
        (seconds(2), Some(seconds(0)))
    );
    press(&mut app, "---");
    assert_eq!(app.settings.interval, Duration::from_millis(200));
}

#[test]
fn a_pause_stops_the_requests_but_not_the_keys() {
    let mut app = app(View::Subscribers);
    (0..2).for_each(|second| answer(&mut app, second, daemon(9, second)));
    press(&mut app, " ");
    // One reading, so that what is on the screen is of the time of the pause.
    answer(&mut app, 2, daemon(9, 2));
    assert_eq!((app.due(seconds(60)), app.left(seconds(60))), (None, None));
    assert!(drawn(&app, 80, 24).contains("PAUSED"));
    press(&mut app, "2");
    assert_eq!(app.due(seconds(61)), None, "the same view");
    press(&mut app, "1");
    assert!(app.due(seconds(61)).is_some(), "another view is read once");
}

#[test]
fn a_lost_daemon_is_reported_and_its_restart_starts_rates_anew() {
    let mut app = app(View::Overview);
    (0..3).for_each(|second| answer(&mut app, second + 10, daemon(9, second + 10)));
    answer(&mut app, 13, |_| {
        Outcome::Gone("no daemon at /run/x: \u{1b}[31m".into())
    });
    let screen = drawn(&app, 80, 24);
    assert!(
        screen.contains("no connection: no daemon at /run/x: \\u{1b}[31m"),
        "{screen}"
    );
    assert!(screen.contains("9,874 up"), "the last reading stays");
    answer(&mut app, 14, daemon(9, 0));
    let rate = app.pace.rate(|now| now.traffic.octets_in as f64);
    assert_eq!(rate, None, "the counters of the new daemon start at 0");
    answer(&mut app, 15, daemon(9, 1));
    let rate = app.pace.rate(|now| now.traffic.octets_in as f64);
    assert_eq!(rate, Some(154_300_000.0));
}

#[test]
fn a_reply_of_a_view_that_was_left_reports_no_loss() {
    let mut app = app(View::Queues);
    app.due(seconds(0));
    press(&mut app, "1");
    let report = Report {
        view: View::Queues,
        outcomes: vec![(Want::Queues, Outcome::Gone("no shaper".into()))],
    };
    app.take(report, seconds(1));
    assert_eq!(app.link, Link::Waiting);
    assert_eq!(app.left(seconds(1)), Some(seconds(0)));
}

#[test]
fn tab_turns_through_the_views() {
    let mut app = app(View::Overview);
    press(&mut app, "\t\t");
    assert_eq!(app.view, View::Loop);
    let back = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
    (0..3).for_each(|_| assert_eq!(app.key(back), None));
    assert_eq!(app.view, View::Queues);
    let control = |char| KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL);
    assert_eq!(app.key(control('c')), Some(Effect::Quit));
    assert_eq!(app.key(control('z')), Some(Effect::Suspend));
    assert_eq!(app.key(control('l')), Some(Effect::Redraw));
}

#[test]
fn a_long_reason_is_folded_so_that_its_remedy_is_read() {
    let mut app = app(View::Queues);
    let reason = "no shaper at /run/headend-qos.sock: No such file or directory (os error 2); start one with \"headend qos run\", \
                  or name its socket with --qos-socket PATH";
    answer(&mut app, 0, |_| Outcome::Gone(reason.into()));
    let screen = drawn(&app, 80, 24);
    let lines: Vec<&str> = screen.lines().skip(1).take(3).map(str::trim_end).collect();
    assert_eq!(lines.join(" "), format!("no connection: {reason}"));
    assert!(lines.iter().all(|line| line.len() <= 80), "{screen}");
    assert_eq!(screen.trim_end().lines().count(), 24);
}
