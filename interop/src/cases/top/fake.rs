//! A daemon that is not one: it answers the requests of `headend top` with invented rows. Its time is the number of
//! readings, so that rates do not depend on the clock.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Rows that an answer without a limit has.
const SUBSCRIBERS: u64 = 300;

/// A socket that answers until it is dropped.
pub(super) struct Fake {
    path: PathBuf,
    is_ended: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<UnixStream>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Listens at `path`.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub(super) fn start(path: &Path) -> Result<Self> {
        let listener = UnixListener::bind(path).with_context(|| path.display().to_string())?;
        let fake = Self {
            path: path.to_owned(),
            is_ended: Arc::default(),
            streams: Arc::default(),
            asked: Arc::default(),
        };
        let (is_ended, streams) = (fake.is_ended.clone(), fake.streams.clone());
        let asked = fake.asked.clone();
        thread::spawn(move || {
            let readings = Arc::new(AtomicU64::new(0));
            while let Ok((stream, _)) = listener.accept() {
                if is_ended.load(Ordering::SeqCst) {
                    return;
                }
                if let (Ok(copy), Ok(mut all)) = (stream.try_clone(), streams.lock()) {
                    all.push(copy);
                }
                let (readings, asked) = (readings.clone(), asked.clone());
                // A client that leaves ends its thread.
                thread::spawn(move || serve(&stream, &readings, &asked));
            }
        });
        Ok(fake)
    }

    /// The verbs asked for since the last call, without repetitions.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut verbs = match self.asked.lock() {
            Ok(mut asked) => std::mem::take(&mut *asked),
            Err(_) => Vec::new(),
        };
        verbs.sort();
        verbs.dedup();
        verbs
    }
}

impl Drop for Fake {
    /// Closes the socket and every connection, as the end of a process does.
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::SeqCst);
        // This ends the thread that accepts.
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        for stream in self
            .streams
            .lock()
            .iter()
            .flat_map(|streams| streams.iter())
        {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Answers each line.
fn serve(stream: &UnixStream, readings: &AtomicU64, asked: &Mutex<Vec<String>>) -> Result<()> {
    for line in BufReader::new(stream.try_clone()?).lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let id = &request["id"];
        let verb = request["do"].as_str().unwrap_or_default();
        if let Ok(mut asked) = asked.lock() {
            asked.push(verb.to_owned());
        }
        let mut out = String::new();
        match answer(verb, &request, readings) {
            Some(rows) => {
                for row in &rows {
                    out += &format!("{}\n", json!({"v": 1, "id": id, "row": row}));
                }
                out += &format!(
                    "{}\n",
                    json!({"v": 1, "id": id, "end": true, "rows": rows.len()})
                );
            }
            None => {
                let error =
                    json!({"code": "bad-request", "message": format!("unknown verb {verb}")});
                out += &format!(
                    "{}\n",
                    json!({"v": 1, "id": id, "ok": false, "error": error})
                );
            }
        }
        (&*stream).write_all(out.as_bytes())?;
    }
    Ok(())
}

fn answer(verb: &str, request: &Value, readings: &AtomicU64) -> Option<Vec<Value>> {
    let second = readings.load(Ordering::SeqCst);
    match verb {
        "show.now" => Some(vec![now(readings.fetch_add(1, Ordering::SeqCst))]),
        "show.subscribers" => {
            let name = request["name"].as_str().unwrap_or_default();
            let all = (0..SUBSCRIBERS).map(|i| subscriber(i, second));
            let matches =
                |row: &Value| row["name"].as_str().is_some_and(|text| text.contains(name));
            let limit = request["limit"].as_u64().unwrap_or(u64::MAX) as usize;
            Some(all.filter(matches).take(limit).collect())
        }
        "show.subscriber" => {
            let session = request["of"]["session"].as_u64()?;
            Some(vec![detail(session, second)])
        }
        "show.event.cpu" => Some(vec![
            json!({"schema": "event.handler/1", "name": "datagrams", "calls": 900 * second, "total_us": 150e3 * second as f64,
                "mean_us": 167.0, "longest_us": 9_000.0}),
            json!({"schema": "event.overrun/1", "handler": "routes", "s_ago": 12.5, "wall_ms": 24.0, "cpu_ms": 11.0,
                "calls": 4, "waiting": "udp 3", "timer": "hello", "timer_late_ms": 21.0}),
        ]),
        "show.event.timers" | "show.event.shards" => Some(Vec::new()),
        _ => None,
    }
}

fn now(second: u64) -> Value {
    let busy = 0.25 * second as f64;
    json!({
        "schema": "now/1", "at_s": 1.7e9 + second as f64, "uptime_s": 273_600.0 + second as f64,
        "subscribers": {"by_state": {"up": 297, "asking": 3}, "came_up": 41 * second, "ended": {"User Request": 2 * second},
            "refused": {"no-address": 0}},
        "tunnels": {"by_state": {"established": 12}, "sessions": 300, "retransmissions": 0},
        "pools": [{"name": "main", "size": 1_000, "used": 960}], "radius": null,
        "traffic": {"packets_in": 200_000 * second, "octets_in": 125_000_000 * second, "packets_out": 0,
            "octets_out": 0, "dropped": {"filter": 12 * second}},
        "event_loop": {"waited_s": 3.0 * busy, "busy_s": busy, "handlers_s": {"udp": busy},
            "lateness": {"128": 1_000 * second, "inf": 0}, "lateness_us": 1e4, "overruns": 1},
        "bgp": {"peers": 2, "established": 1, "prefixes": 900_000, "updates_in": 0, "updates_out": 0,
            "hold_margin_s": 61.25},
        "rss_bytes": 412_000_000
    })
}

fn subscriber(i: u64, second: u64) -> Value {
    // The name says the rank by rate, the last first.
    json!({"schema": "subscriber/1", "name": format!("user{i:03}@example.net"), "state": "up", "role": "network",
        "address": format!("10.64.{}.{}", i / 250, i % 250), "tunnel": 7, "session": i + 1, "peer": "192.0.2.1:1701",
        "filter": null, "age_s": 60.0 * i as f64, "up_s": 60.0 * i as f64, "packets_in": 0, "octets_in": 1_000 * i * second,
        "packets_out": 0, "octets_out": 9_000 * i * second, "dropped": 0, "echo_rtt_us": 1_000.0 + i as f64})
}

fn detail(session: u64, second: u64) -> Value {
    let row = subscriber(session - 1, second);
    json!({"schema": "subscriber.detail/1", "name": row["name"], "state": "up", "role": "network", "ending": null,
        "tunnel": {"id": 7, "host_name": "access-7"}, "session": {"id": session}, "mtu": 1460,
        "times": {"age_s": row["age_s"], "idle_timeout_s": 600.0}, "echo_rtt_us": row["echo_rtt_us"],
        "traffic": {"octets_in": row["octets_in"], "octets_out": row["octets_out"], "dropped": 0}})
}
