//! flent's data files (<https://flent.org>), version 4: JSON, usually compressed as `.flent.gz`.
//!
//! A file of ours has the names of flent's test `rrul_be_nflows`, so that flent draws it, and under `HEADEND` in its
//! metadata what flent has no place for: phases, faults, names. With that, a run is read back as it was. In a file of
//! flent itself the phases are deduced: flent waits before its load, and after it, half of what `TOTAL_LENGTH` exceeds
//! `LENGTH`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::file::{ReadError, check};
use super::run::{Kind, Load, Phase, Pings, Run};

/// The version of flent's files that we write and read.
const VERSION: u64 = 4;
/// The test whose series ours are named after.
const NAME: &str = "rrul_be_nflows";
/// flent's usual step between two values of a series.
const STEP_S: f64 = 0.2;
/// Longest run of a foreign file.
const SECONDS_MAX: f64 = 86_400.0;
/// Most streams of load in each direction.
const STREAMS_MAX: u32 = 1_024;
/// Most packets or readings of a series.
const VALUES_MAX: usize = 10_000_000;

/// What flent has no place for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    tool: String,
    address: String,
    started_unix_ns: u64,
    streams: u32,
    congestion: String,
    interrupted: bool,
    faults: Vec<String>,
    one_way_error_us: Option<u64>,
    phases: Vec<Phase>,
    /// Series, name and TOS of each ping stream.
    pings: Vec<(String, String, u8)>,
    load_at_us: Vec<u64>,
}

/// A run as a flent file, uncompressed. `title` tells runs apart in flent's legends.
#[must_use]
pub fn write(run: &Run, title: &str) -> String {
    let names = series_names(run);
    let end_us = run.phases.last().map_or(0, |phase| phase.to_us);
    let start_us = run.started_unix_ns / 1_000;
    let length_s = end_us as f64 / 1e6;
    let steps = (length_s / STEP_S) as usize + 1;
    let (mut results, mut raw, mut meta) = (Map::new(), Map::new(), Map::new());
    let mut add = |name: String, units: &str, values: Vec<(u64, f64)>, entries: Vec<Value>| {
        let mean = values.iter().map(|value| value.1).sum::<f64>() / values.len().max(1) as f64;
        results.insert(name.clone(), series(&values, steps));
        if !entries.is_empty() {
            raw.insert(name.clone(), entries.into());
        }
        meta.insert(name, json!({ "UNITS": units, "MEAN_VALUE": mean }));
    };
    for (pings, name) in run.pings.iter().zip(&names) {
        add(name.clone(), "ms", trips(pings), raw_pings(pings, start_us));
    }
    let all: Vec<(u64, f64)> = run.pings.iter().flat_map(trips).collect();
    add("Ping (ms) avg".to_owned(), "ms", all, Vec::new());
    for (way, streams, kind) in [
        ("download", &run.load.down_bps, Kind::Down),
        ("upload", &run.load.up_bps, Kind::Up),
    ] {
        for (number, rates) in (1..).zip(streams) {
            let values = rates_of(run, rates, kind);
            let entries = run.load.at_us.iter().zip(rates).map(
                |(at, bps)| json!({ "t": seconds(start_us, *at as i64), "val": *bps as f64 / 1e6 }),
            );
            let name = format!("TCP {way} BE::{number}");
            add(name, "Mbits/s", values, entries.collect());
        }
        let sums = run.load.sum(streams);
        let values = rates_of(run, &sums, kind);
        let count = streams.len().max(1) as f64;
        let means = values.iter().map(|(at, rate)| (*at, rate / count));
        add(
            format!("TCP {way} avg"),
            "Mbits/s",
            means.collect(),
            Vec::new(),
        );
        add(format!("TCP {way} sum"), "Mbits/s", values, Vec::new());
    }
    let x_values: Vec<f64> = (0..steps).map(|step| step as f64 * STEP_S).collect();
    let file = json!({
        "version": VERSION,
        "metadata": metadata(run, title, length_s, &names, meta),
        "x_values": x_values,
        "results": results,
        "raw_values": raw,
    });
    file.to_string()
}

fn metadata(
    run: &Run,
    title: &str,
    length_s: f64,
    names: &[String],
    meta: Map<String, Value>,
) -> Value {
    let time = time_text(run.started_unix_ns / 1_000);
    let streams = run.streams.to_string();
    let own = Own {
        tool: run.tool.clone(),
        address: run.address.clone(),
        started_unix_ns: run.started_unix_ns,
        streams: run.streams,
        congestion: run.congestion.clone(),
        interrupted: run.interrupted,
        faults: run.faults.clone(),
        one_way_error_us: run.one_way_error_us,
        phases: run.phases.clone(),
        pings: names
            .iter()
            .zip(&run.pings)
            .map(|(series, pings)| (series.clone(), pings.name.clone(), pings.tos))
            .collect(),
        load_at_us: run.load.at_us.clone(),
    };
    json!({
        "NAME": NAME,
        "TITLE": title,
        "HOST": run.host,
        "HOSTS": [run.host],
        "LOCAL_HOST": Value::Null,
        "NOTE": run.faults.join(" "),
        "TIME": time,
        "T0": time,
        "LENGTH": length_s as u64,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": STEP_S,
        "TEST_PARAMETERS": { "upload_streams": streams, "download_streams": streams },
        "FLENT_VERSION": run.tool,
        "IP_VERSION": if run.address.contains(':') { 6 } else { 4 },
        "SERIES_META": meta,
        "HEADEND": own,
    })
}

/// The series of each ping stream, each name once.
fn series_names(run: &Run) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for pings in &run.pings {
        let name = format!("Ping (ms) {}", class(pings));
        let free = (1..).map(|number| match number {
            1 => name.clone(),
            _ => format!("{name} {number}"),
        });
        names.extend(free.into_iter().find(|name| !names.contains(name)));
    }
    names
}

/// What flent calls a ping stream: "UDP BE", "UDP EF", "ICMP".
fn class(pings: &Pings) -> String {
    if pings.name.starts_with("icmp") {
        return "ICMP".to_owned();
    }
    match pings.tos {
        0 => "UDP BE".to_owned(),
        0x20 => "UDP BK".to_owned(),
        0xa0 => "UDP CS5".to_owned(),
        0xb8 => "UDP EF".to_owned(),
        tos => format!("UDP {tos:#04x}"),
    }
}

fn trips(pings: &Pings) -> Vec<(u64, f64)> {
    let both = pings.at_us.iter().zip(&pings.rtt_us);
    both.filter_map(|(at, rtt)| Some((u64::try_from(*at).ok()?, (*rtt)? as f64 / 1e3)))
        .collect()
}

fn raw_pings(pings: &Pings, start_us: u64) -> Vec<Value> {
    let way = |delays: &[Option<i64>], index| {
        let delay: Option<i64> = delays.get(index).copied().flatten();
        delay.map(|us| us as f64 / 1e3)
    };
    let entry = |(index, (at, rtt)): (usize, (&i64, &Option<u64>))| {
        let mut entry = Map::new();
        entry.insert("t".into(), seconds(start_us, *at).into());
        entry.insert("seq".into(), (index + 1).into());
        // flent leaves out what has no value.
        if let Some(rtt) = rtt {
            entry.insert("val".into(), (*rtt as f64 / 1e3).into());
        }
        if let Some(up) = way(&pings.up_us, index) {
            entry.insert("owd_up".into(), up.into());
        }
        if let Some(down) = way(&pings.down_us, index) {
            entry.insert("owd_down".into(), down.into());
        }
        Value::Object(entry)
    };
    let both = pings.at_us.iter().zip(&pings.rtt_us);
    both.enumerate().map(entry).collect()
}

/// Seconds since 1970. Their 53 bits hold microseconds until the year 2255.
fn seconds(start_us: u64, at_us: i64) -> f64 {
    start_us.saturating_add_signed(at_us) as f64 / 1e6
}

/// Rates in Mbit/s while a phase loads this direction.
fn rates_of(run: &Run, rates: &[u64], kind: Kind) -> Vec<(u64, f64)> {
    let is_loaded = |at: u64| {
        let mut phases = run.phases.iter();
        phases.any(|phase| {
            (phase.kind == kind || phase.kind == Kind::Both)
                && (phase.from_us..=phase.to_us).contains(&at)
        })
    };
    let both = run.load.at_us.iter().zip(rates);
    both.filter(|(at, _)| is_loaded(**at))
        .map(|(at, bps)| (*at, *bps as f64 / 1e6))
        .collect()
}

/// The mean of the values within each step; null without one.
fn series(values: &[(u64, f64)], steps: usize) -> Value {
    let mut sums = vec![(0.0, 0_u32); steps];
    for (at, value) in values {
        let step = (*at as f64 / 1e6 / STEP_S) as usize;
        if let Some(sum) = sums.get_mut(step) {
            *sum = (sum.0 + value, sum.1 + 1);
        }
    }
    let means = sums.iter().map(|(sum, count)| match count {
        0 => Value::Null,
        count => (sum / f64::from(*count)).into(),
    });
    means.collect()
}

/// `2026-11-23T02:30:00.123456Z`.
fn time_text(unix_us: u64) -> String {
    let (seconds, us) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years: the month of March is the first one.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// What a flent file has, as far as we read it.
#[derive(Deserialize)]
struct File {
    metadata: Map<String, Value>,
    x_values: Vec<f64>,
    results: Map<String, Value>,
    #[serde(default)]
    raw_values: Map<String, Value>,
}

/// Reads an uncompressed flent file, of ours or of flent.
///
/// # Errors
/// It is no flent file of version 4, or has no pings.
pub fn read(text: &str) -> Result<Run, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        version: Option<u64>,
    }
    let Version { version } = serde_json::from_str(text)?;
    if version != Some(VERSION) {
        return Err(ReadError::Flent(match version {
            Some(version) => format!(
                "version {version} of flent's files; version {VERSION} is read, which flent 2 writes"
            ),
            None => "no flent file: it has no version".to_owned(),
        }));
    }
    let file: File = serde_json::from_str(text)?;
    let run = match file.metadata.get("HEADEND") {
        Some(own) => ours(&file, Own::deserialize(own)?)?,
        None => foreign(&file)?,
    };
    check(&run)?;
    Ok(run)
}

fn text_of(file: &File, key: &str) -> String {
    let text = file.metadata.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn ours(file: &File, own: Own) -> Result<Run, ReadError> {
    let start_us = (own.started_unix_ns / 1_000) as f64;
    let pings = own.pings.into_iter().map(|(series, name, tos)| {
        let entries = raw(file, &series)?;
        Ok(pings_in(entries, start_us, name, tos))
    });
    let streams = |way: &str| -> Result<Vec<Vec<u64>>, ReadError> {
        let count = own.streams.min(STREAMS_MAX);
        let names = (1..=count).map(|number| format!("TCP {way} BE::{number}"));
        let found = names.filter(|name| file.raw_values.contains_key(name));
        let read = found.map(|name| {
            let entries = raw(file, &name)?;
            Ok(entries.iter().map(|entry| bps(&entry["val"])).collect())
        });
        read.collect()
    };
    Ok(Run {
        host: text_of(file, "HOST"),
        pings: pings.collect::<Result<_, ReadError>>()?,
        load: Load {
            down_bps: streams("download")?,
            up_bps: streams("upload")?,
            at_us: own.load_at_us,
        },
        tool: own.tool,
        address: own.address,
        started_unix_ns: own.started_unix_ns,
        streams: own.streams,
        congestion: own.congestion,
        interrupted: own.interrupted,
        faults: own.faults,
        one_way_error_us: own.one_way_error_us,
        phases: own.phases,
    })
}

fn raw<'a>(file: &'a File, series: &str) -> Result<&'a [Value], ReadError> {
    match file.raw_values.get(series).and_then(Value::as_array) {
        Some(entries) if entries.len() <= VALUES_MAX => Ok(entries),
        Some(_) => Err(ReadError::Flent(format!(
            "{series}: more than {VALUES_MAX} values"
        ))),
        None => Ok(&[]),
    }
}

/// A rate in Mbit/s as bits per second; what is no rate counts as none.
fn bps(value: &Value) -> u64 {
    (value.as_f64().unwrap_or(0.0) * 1e6).round() as u64
}

fn pings_in(entries: &[Value], start_us: f64, name: String, tos: u8) -> Pings {
    let mut pings = Pings {
        name,
        tos,
        at_us: Vec::new(),
        rtt_us: Vec::new(),
        up_us: Vec::new(),
        down_us: Vec::new(),
    };
    let us = |value: &Value| value.as_f64().map(|ms| (ms * 1e3).round());
    for entry in entries {
        let Some(t) = entry["t"].as_f64() else {
            continue;
        };
        pings.at_us.push(((t * 1e6).round() - start_us) as i64);
        pings.rtt_us.push(us(&entry["val"]).map(|us| us as u64));
        pings.up_us.push(us(&entry["owd_up"]).map(|us| us as i64));
        pings
            .down_us
            .push(us(&entry["owd_down"]).map(|us| us as i64));
    }
    if pings.up_us.iter().all(Option::is_none) {
        pings.up_us.clear();
        pings.down_us.clear();
    }
    pings
}

/// A file of flent itself.
fn foreign(file: &File) -> Result<Run, ReadError> {
    let is_ping = |name: &str| name.starts_with("Ping (ms)") && !name.ends_with(" avg");
    let starts = file.raw_values.iter().filter(|(name, _)| is_ping(name));
    let starts = starts.filter_map(|(_, entries)| entries.get(0)?["t"].as_f64());
    let start_us = (starts.fold(f64::INFINITY, f64::min) * 1e6).round();
    let mut pings = Vec::new();
    for name in file.results.keys().filter(|name| is_ping(name)) {
        let entries = raw(file, name)?;
        let short = name.trim_start_matches("Ping (ms)").trim();
        pings.push(pings_in(entries, start_us, short.to_owned(), 0));
    }
    // The verdict is about the first stream: best effort, if the file says which that is.
    pings.sort_by_key(|pings| !pings.name.contains("BE"));
    if pings.iter().all(|pings| pings.at_us.is_empty()) {
        return Err(ReadError::Flent("it has no raw values of pings".to_owned()));
    }
    let number = |key: &str| file.metadata.get(key).and_then(Value::as_f64);
    let last = file.x_values.last().copied().unwrap_or(0.0);
    let length_s = number("LENGTH").unwrap_or(last);
    let total_s = number("TOTAL_LENGTH").unwrap_or(last);
    if ![length_s, total_s]
        .iter()
        .all(|s| (0.0..=SECONDS_MAX).contains(s))
    {
        return Err(ReadError::Flent(
            "LENGTH and TOTAL_LENGTH are 0 to 86400 seconds".to_owned(),
        ));
    }
    let load = foreign_load(file);
    Ok(Run {
        tool: format!("flent {}", text_of(file, "FLENT_VERSION")),
        host: text_of(file, "HOST"),
        address: String::new(),
        started_unix_ns: (start_us.max(0.0) * 1e3) as u64,
        streams: load.down_bps.len().max(load.up_bps.len()) as u32,
        congestion: String::new(),
        interrupted: false,
        faults: Vec::new(),
        one_way_error_us: None,
        phases: foreign_phases(&load, length_s, total_s),
        pings,
        load,
    })
}

fn foreign_load(file: &File) -> Load {
    let usable = file
        .x_values
        .iter()
        .take_while(|x| (0.0..=SECONDS_MAX).contains(*x));
    let at_us: Vec<u64> = usable.map(|x| (x * 1e6).round() as u64).collect();
    let streams = |way: &str| -> Vec<Vec<u64>> {
        let prefix = format!("TCP {way}");
        let is_one = |name: &str| {
            name.starts_with(&prefix) && !name.ends_with(" avg") && !name.ends_with(" sum")
        };
        let found = file.results.iter().filter(|(name, _)| is_one(name));
        found
            .map(|(_, values)| {
                let mut rates: Vec<u64> = (0..at_us.len())
                    .map(|index| values.get(index).map_or(0, bps))
                    .collect();
                rates.resize(at_us.len(), 0);
                rates
            })
            .collect()
    };
    Load {
        down_bps: streams("download"),
        up_bps: streams("upload"),
        at_us,
    }
}

fn foreign_phases(load: &Load, length_s: f64, total_s: f64) -> Vec<Phase> {
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    let delay_s = ((total_s - length_s) / 2.0).max(0.0);
    let idle = Phase {
        kind: Kind::Idle,
        from_us: 0,
        counts_from_us: 0,
        to_us: us(delay_s),
        complete: delay_s > 0.0,
    };
    let has = |streams: &[Vec<u64>]| streams.iter().flatten().any(|rate| *rate > 0);
    let kind = match (has(&load.down_bps), has(&load.up_bps)) {
        (true, true) => Kind::Both,
        (true, false) => Kind::Down,
        (false, true) => Kind::Up,
        (false, false) => return vec![idle],
    };
    let from_us = us(delay_s);
    let loaded = Phase {
        kind,
        from_us,
        counts_from_us: from_us + us(length_s) / 5,
        to_us: us(delay_s + length_s),
        complete: true,
    };
    vec![idle, loaded]
}
