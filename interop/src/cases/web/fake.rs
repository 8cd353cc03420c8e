//! A daemon that only seems to be one: it answers requests for rows on its control socket as a daemon with many
//! subscribers would.

use anyhow::Result;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Its subscribers.
pub(super) const SUBSCRIBERS: u64 = 100_000;

/// The name of a subscriber. The first ones are hostile.
pub(super) fn name(number: u64) -> String {
    match number {
        0 => "<img src=x onerror=\"window.broken=1\">".to_owned(),
        1 => "\u{202e}gnp.exe".to_owned(),
        2 => "a".repeat(200),
        _ => format!("user{number:06}@isp.example"),
    }
}

/// Listens until the program ends.
pub(super) fn listen(directory: &Path) -> Result<PathBuf> {
    let test = directory.file_name().unwrap_or_default().to_string_lossy();
    let socket = Path::new("/run").join(format!("{test}.sock"));
    let listener = UnixListener::bind(&socket)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that leaves ends its thread.
            std::thread::spawn(move || serve(&stream));
        }
    });
    Ok(socket)
}

fn serve(stream: &UnixStream) -> Result<()> {
    let mut out = BufWriter::new(stream.try_clone()?);
    for line in BufReader::new(stream.try_clone()?).lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let id = &request["id"];
        match rows(&request) {
            Some(rows) => {
                for row in &rows {
                    writeln!(out, "{}", json!({ "v": 1, "id": id, "row": row }))?;
                }
                let end = json!({ "v": 1, "id": id, "end": true, "rows": rows.len() });
                writeln!(out, "{end}")?;
            }
            None => {
                let error = json!({ "code": "not-found", "message": "there is no such row" });
                let refusal = json!({ "v": 1, "id": id, "ok": false, "error": error });
                writeln!(out, "{refusal}")?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

fn now_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.as_ref().map_or(0.0, Duration::as_secs_f64)
}

fn rows(request: &Value) -> Option<Vec<Value>> {
    match request["do"].as_str()? {
        "show.now" => Some(vec![now()]),
        "show.history" => Some(history(request["step_s"].as_u64().unwrap_or(1))),
        "show.subscribers" => Some(found(request)),
        "show.worst" => Some((3..13).map(subscriber).collect()),
        "show.ended.subscribers" => Some(Vec::new()),
        _ => None,
    }
}

fn subscriber(number: u64) -> Value {
    json!({
        "schema": "subscriber/1", "name": name(number), "state": "up", "role": "network",
        "address": format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255), "tunnel": 7, "session": number + 1,
        "peer": "192.0.2.1:1701", "filter": null, "age_s": 61.5, "up_s": 60.0, "packets_in": number, "octets_in": number * 900,
        "packets_out": number * 2, "octets_out": number * 1800, "dropped": number % 7, "echo_rtt_us": 900 + number,
    })
}

/// The subscribers whose name has a substring, as many as the request takes.
fn found(request: &Value) -> Vec<Value> {
    let part = request["name"].as_str().unwrap_or_default();
    let limit = request["limit"].as_u64().unwrap_or(u64::MAX);
    (0..SUBSCRIBERS)
        .filter(|&number| name(number).contains(part))
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .map(subscriber)
        .collect()
}

/// All counters rise with the time, so that each second has rates.
fn now() -> Value {
    let at_s = now_s();
    let count = |per_second: f64| (at_s * per_second) as u64;
    json!({
        "schema": "now/1", "at_s": at_s, "uptime_s": 5000.0,
        "subscribers": {
            "by_state": { "link": 0, "asking": 0, "networks": 0, "up": SUBSCRIBERS, "ending": 0 },
            "came_up": count(300.0), "ended": { "Lost Carrier": count(120.0), "User Request": count(170.0) },
            "refused": { "rejected": count(40.0), "no-server": count(5.0), "timeout": count(2.0) },
        },
        "tunnels": { "by_state": { "opening": 0, "established": 9, "closing": 0 }, "sessions": SUBSCRIBERS, "retransmissions": 4 },
        "pools": [{ "name": "home", "size": 131_072, "used": SUBSCRIBERS }, { "name": "<b>guests", "size": 256, "used": 256 }],
        "radius": {
            "outstanding": 12, "waiting": 0, "failed": 1, "round_trips_us": at_s,
            "round_trips": { "1024": count(200.0), "4096": count(90.0), "inf": count(1.0) },
        },
        "traffic": {
            "packets_in": count(1e6), "octets_in": count(1e8), "packets_out": count(2e6), "octets_out": count(1e9),
            "dropped": { "filtered": count(9e4), "source_address": count(4e4), "no_route": count(1e3), "backlog": count(10.0) },
        },
        "event_loop": {
            "waited_s": at_s * 0.4, "busy_s": at_s * 0.6, "overruns": 0, "lateness_us": at_s,
            "handlers_s": { "udp": at_s * 0.3, "tun": at_s * 0.2, "control": at_s * 0.1 },
            "lateness": { "1.024": count(100.0), "1024": count(900.0), "inf": count(1.0) },
        },
        "bgp": null, "rss_bytes": 700_000_000,
    })
}

/// As many series as the daemon keeps, all of their full length.
fn history(step_s: u64) -> Vec<Value> {
    let steps = if step_s == 1 { 600 } else { 1440 };
    let first_s =
        (now_s() / step_s as f64).floor() * step_s as f64 - (steps - 1) as f64 * step_s as f64;
    let series = |name: &str, is_rate: bool, value: f64| {
        let values: Vec<f64> = (0..steps)
            .map(|at| value * (1.0 + f64::from(at % 50) / 100.0))
            .collect();
        json!({ "schema": "history/1", "series": name, "is_rate": is_rate, "step_s": step_s, "first_s": first_s, "values": values })
    };
    let step = step_s as f64;
    let mut all = vec![
        series("subscribers.by_state.up", false, 60_000.0),
        series("radius.round_trips.p50", false, 900.0),
        series("radius.round_trips.p99", false, 4000.0),
        series("event_loop.lateness.p99", false, 800.0),
        series("radius.outstanding", false, 10.0),
    ];
    for name in [
        "subscribers.came_up",
        "subscribers.ended",
        "subscribers.refused",
        "subscribers.refused.rejected",
        "subscribers.refused.no-server",
        "traffic.packets_in",
        "traffic.packets_out",
        "traffic.octets_in",
        "traffic.octets_out",
        "traffic.dropped",
        "traffic.dropped.filtered",
        "traffic.dropped.source_address",
        "event_loop.handlers_s.udp",
        "event_loop.handlers_s.tun",
        "event_loop.handlers_s.control",
    ] {
        all.push(series(name, true, 0.2 * step));
    }
    all
}
