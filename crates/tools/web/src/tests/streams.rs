//! Streams and lookups: what viewers see, and what they cost the daemon.

use serde_json::{Value, json};

use super::client::{Viewer, get};
use super::fake::{Fake, Reply};
use super::{Directory, start};

fn answer(request: &Value, number: u64) -> Reply {
    match request["do"].as_str().unwrap() {
        "show.now" => Ok(vec![json!({"schema": "now/1", "at_s": number, "bgp": {}})]),
        "show.subscriber" if request["of"]["who"] == "nobody" => {
            Err(("not-found", "no subscriber has this name".into()))
        }
        "show.subscriber" => {
            let name = &request["of"]["who"];
            Ok(vec![json!({"schema": "subscriber.detail/1", "name": name})])
        }
        "show.subscribers" => {
            let rows = 0..request["limit"].as_u64().unwrap().min(300);
            Ok(rows
                .map(|i| json!({"schema": "subscriber/1", "name": format!("s{i}")}))
                .collect())
        }
        "show.ended.subscribers" => Ok(vec![json!({"name": "a\"b"}), json!({"name": "c"})]),
        "qos.show" => Ok(vec![
            json!({"schema": "qos.run/1"}),
            json!({"schema": "qos.node/1"}),
        ]),
        "show.history" => Ok(vec![
            json!({"series": request["series"], "step_s": request["step_s"]}),
        ]),
        "show.bgp.route" => Err((
            "bad-request",
            format!("{} is neither a prefix nor an address", request["prefix"]),
        )),
        verb => Err(("bad-request", format!("no answer for {verb}"))),
    }
}

#[test]
fn a_hundred_viewers_cost_the_daemon_as_one() {
    let directory = Directory::new("hundred");
    let fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let mut viewers: Vec<Viewer> = (0..100)
        .map(|_| Viewer::open(server, "/api/stream/now"))
        .collect();
    for viewer in &mut viewers {
        assert_eq!(viewer.event().1["daemon"], "up");
        while viewer.next("row")["at_s"].as_u64().unwrap() < 3 {}
    }
    // Each reply has a number: while the viewers saw the third, at most one more was asked for in each second.
    let newest = viewers[99].next("row")["at_s"].as_u64().unwrap();
    let asked = fake.asked("show.now");
    assert!(asked <= newest + 1, "{asked} polls for row {newest}");
    // One for streams, and one for what is asked at the start.
    assert_eq!(fake.connections(), 2);
}

#[test]
fn without_viewers_nothing_is_polled() {
    let directory = Directory::new("nobody");
    let fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let mut first = Viewer::open(server, "/api/stream/now");
    first.next("row");
    drop(first);
    // A subscriber's stream takes the same second and shows that time passes.
    let mut other = Viewer::open(server, "/api/stream/subscriber?who=alice");
    for _ in 0..3 {
        assert_eq!(other.next("rows")[0]["name"], "alice");
    }
    let asked = fake.asked("show.now");
    assert!(asked <= 2, "{asked} polls");
}

#[test]
fn a_stream_goes_on_when_the_daemon_is_back() {
    let directory = Directory::new("back");
    let server = start(&directory.socket(), &[]);
    let mut viewer = Viewer::open(server, "/api/stream/now");
    let (event, state) = viewer.event();
    assert_eq!(
        (event.as_str(), &state["daemon"]),
        ("state", &json!("gone"))
    );
    assert!(state["reason"].as_str().unwrap().contains("no such socket"));
    for _ in 0..2 {
        let fake = Fake::start(&directory.socket(), 1, answer);
        assert_eq!(
            viewer.next("state"),
            json!({"daemon": "up", "reason": null})
        );
        assert_eq!(viewer.next("row")["schema"], "now/1");
        drop(fake);
        assert_eq!(viewer.next("state")["daemon"], "gone");
    }
    let info = get(server, "/api/info");
    assert_eq!(
        (info.status, &info.json()["state"]["daemon"]),
        (200, &json!("gone"))
    );
    assert_eq!(get(server, "/api/pools").status, 502);
}

#[test]
fn a_daemon_of_another_version_is_named() {
    let directory = Directory::new("version");
    let _fake = Fake::start(&directory.socket(), 2, answer);
    let server = start(&directory.socket(), &[]);
    let state = Viewer::open(server, "/api/stream/now").next("state");
    let reason = state["reason"].as_str().unwrap();
    assert!(reason.contains("the daemon speaks version 2"), "{reason}");
    let info = get(server, "/api/info").json();
    assert_eq!(info["state"]["reason"], reason);
}

#[test]
fn what_the_daemon_does_not_know_is_an_answer() {
    let directory = Directory::new("refused");
    let _fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let mut viewer = Viewer::open(server, "/api/stream/subscriber?who=nobody");
    let reason = json!("no subscriber has this name");
    assert_eq!(
        viewer.next("state"),
        json!({"daemon": "up", "reason": reason})
    );
    assert_eq!(viewer.next("rows"), json!([]));
}

#[test]
fn lookups_answer_with_rows() {
    let directory = Directory::new("lookups");
    let fake = Fake::start(&directory.socket(), 1, answer);
    let qos = Directory::new("lookups-qos");
    let _shaper = Fake::start(&qos.socket(), 1, answer);
    let server = start(
        &directory.socket(),
        &["--qos-socket", qos.socket().to_str().unwrap()],
    );

    let info = get(server, "/api/info").json();
    assert_eq!(
        (
            &info["schema"],
            &info["has_qos"],
            &info["has_bgp"],
            &info["allow_changes"]
        ),
        (
            &json!("web.info/1"),
            &json!(true),
            &json!(true),
            &json!(false)
        )
    );
    let some = get(server, "/api/subscribers?limit=3").json();
    assert_eq!(
        (some["rows"].as_array().unwrap().len(), &some["more"]),
        (3, &json!(true))
    );
    let all = get(server, "/api/subscribers?limit=1000&name=s").json();
    assert_eq!(
        (all["rows"].as_array().unwrap().len(), &all["more"]),
        (300, &json!(false))
    );
    let ended = get(server, "/api/ended?name=a%22b").json();
    assert_eq!(ended, json!({"rows": [{"name": "a\"b"}], "more": false}));
    let history = get(server, "/api/history?series=traffic&step_s=60").json();
    assert_eq!(
        history["rows"],
        json!([{"series": "traffic", "step_s": 60}])
    );
    let queues = Viewer::open(server, "/api/stream/queues").next("rows");
    assert_eq!(queues[1]["schema"], "qos.node/1");

    let before = fake.asked("show.ended.subscribers");
    let asking = (0..20).map(|_| std::thread::spawn(move || get(server, "/api/ended?name=c")));
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.join().unwrap().json()["rows"], json!([{"name": "c"}]));
    }
    let after = fake.asked("show.ended.subscribers");
    assert!(
        after - before < 20,
        "{} of 20 reached the daemon",
        after - before
    );
}

#[test]
fn a_wrong_question_says_what_would_be_right() {
    let directory = Directory::new("wrong");
    let _fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    for (path, status, message) in [
        ("/api/worst?by=name", 400, "dropped or round-trip"),
        ("/api/worst", 400, "missing field `by`"),
        ("/api/subscribers?state=down", 400, "unknown variant `down`"),
        ("/api/subscribers?limit=0", 400, "1 to 1000"),
        ("/api/subscribers?nane=x", 400, "unknown field `nane`"),
        // A viewer's words do not make the daemon one of another version.
        (
            "/api/routes?prefix=unknown%20variant",
            400,
            "neither a prefix",
        ),
        ("/api/stream/queues", 404, "--qos-socket"),
        ("/api/pools", 400, "no answer for show.pools"),
        ("/api/none", 404, "nothing at this address"),
    ] {
        let got = get(server, path);
        let error = got.json()["error"]["message"].clone();
        assert_eq!(got.status, status, "{path}: {error}");
        assert!(error.as_str().unwrap().contains(message), "{path}: {error}");
    }
}

#[test]
fn a_viewer_that_reads_late_skips_rows_and_delays_nobody() {
    // Each reply has 4 MB, so that a few of them fill every buffer on the way.
    let answer = |_: &Value, number: u64| -> Reply {
        let row = json!({"n": number, "text": "x".repeat(400_000)});
        Ok(vec![row; 10])
    };
    let directory = Directory::new("late");
    let _fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let path = "/api/stream/subscriber?who=alice";
    let (mut late, mut other) = (Viewer::open(server, path), Viewer::open(server, path));
    let next = |viewer: &mut Viewer| viewer.next("rows")[0]["n"].as_u64().unwrap();
    while next(&mut other) < 8 {}
    let mut seen = vec![next(&mut late)];
    while seen.last() < Some(&8) {
        seen.push(next(&mut late));
    }
    assert!(seen.is_sorted() && seen.len() < 8, "{seen:?}");
}

#[test]
fn ten_thousand_peers_make_no_ten_thousand_series() {
    let directory = Directory::new("peers");
    let answer = |request: &Value, _: u64| -> Reply {
        let peer = |number: u32| {
            json!({"schema": "bgp.neighbor/1", "address": format!("10.0.{}.{}", number >> 8, number & 255), "name": "",
                "version": 4, "asn": 65_000, "messages_in": 1, "messages_out": 2, "since_s": 1.0, "state": "Established",
                "state_or_prefixes": "3", "prefixes_in": 3, "prefixes_out": 4})
        };
        match request["do"].as_str().unwrap() {
            "show.now" => Ok(vec![json!({"schema": "now/1", "uptime_s": 1.0,
                "bgp": {"peers": 10_000, "established": 9_999, "prefixes": 7, "updates_in": 5, "updates_out": 6}})]),
            "show.bgp.summary" => {
                let summary = json!({"schema": "bgp.summary/1", "asn": 65_000, "peers": 10_000, "established": 9_999,
                    "router_id": "10.0.0.1"});
                Ok(std::iter::once(summary)
                    .chain((0..10_000).map(peer))
                    .collect())
            }
            verb => Err(("bad-request", format!("no answer for {verb}"))),
        }
    };
    let _fake = Fake::start(&directory.socket(), 1, answer);
    for (flags, series, left_out) in [
        (&[][..], 1_000, 9_000),
        (&["--metrics-peers", "3"], 3, 9_997),
        (&["--metrics-peers", "0"], 0, 10_000),
    ] {
        let server = start(&directory.socket(), flags);
        let text = get(server, "/metrics").body;
        let has = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(
            has("headend_bgp_neighbor_prefixes_in{"),
            series,
            "{flags:?}"
        );
        assert_eq!(
            has(&format!("headend_bgp_neighbors_left_out {left_out}")),
            1,
            "{text}"
        );
        assert_eq!(has("headend_bgp_established 9999"), 1, "the sums have all");
        assert!(
            text.lines().count() < 200 + 10 * series,
            "{}",
            text.lines().count()
        );
    }
}
