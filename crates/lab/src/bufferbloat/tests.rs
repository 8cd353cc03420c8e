//! Grades, accounts, files and flent's files of an invented run.

use proptest::prelude::*;

use super::*;

/// Idle 20 ms; down 120 ms at 9.6 Mbit/s; up 320 ms at 1.9 Mbit/s; every tenth ping of the last phase lost.
fn run() -> Run {
    let phase = |kind, from: u64, to: u64| Phase {
        kind,
        from_us: from * 1_000_000,
        counts_from_us: (from + u64::from(kind != Kind::Idle)) * 1_000_000,
        to_us: to * 1_000_000,
        complete: true,
    };
    let phases = vec![
        phase(Kind::Idle, 0, 5),
        phase(Kind::Down, 5, 15),
        phase(Kind::Up, 17, 27),
    ];
    let at_us: Vec<i64> = (0..540).map(|index| index * 50_000 + 7).collect();
    let rtt = |at: &i64| match *at / 1_000_000 {
        0..5 => Some(20_000 + (*at as u64 / 50_000) % 3),
        5..15 => Some(120_001),
        17..27 if at / 50_000 % 10 == 3 => None,
        17..27 => Some(320_001),
        _ => Some(20_000),
    };
    let rtt_us: Vec<Option<u64>> = at_us.iter().map(rtt).collect();
    let half = |rtt: &Option<u64>| rtt.map(|rtt| rtt as i64 / 2 - 3);
    let pings = Pings {
        name: "be".to_owned(),
        tos: 0,
        up_us: rtt_us.iter().map(half).collect(),
        down_us: rtt_us.iter().map(half).collect(),
        at_us,
        rtt_us,
    };
    let voice = Pings {
        name: "ef".to_owned(),
        tos: 184,
        up_us: Vec::new(),
        down_us: Vec::new(),
        ..pings.clone()
    };
    let at_us: Vec<u64> = (1..=270).map(|index| index * 100_000).collect();
    let rates = |from: u64, to: u64, bps: u64| -> Vec<u64> {
        let inside = |at: &u64| (from * 1_000_000 + 1..=to * 1_000_000).contains(at);
        at_us
            .iter()
            .map(|at| if inside(at) { bps } else { 0 })
            .collect()
    };
    let load = Load {
        down_bps: vec![rates(5, 15, 4_800_000), rates(5, 15, 4_800_123)],
        up_bps: vec![rates(17, 27, 950_000), rates(17, 27, 950_001)],
        at_us,
    };
    Run {
        tool: "headend 0.1.0".to_owned(),
        host: "far.example".to_owned(),
        address: "2001:db8::1".to_owned(),
        started_unix_ns: 1_795_401_000_123_456_000,
        streams: 2,
        congestion: "cubic".to_owned(),
        interrupted: false,
        faults: vec!["both: refused".to_owned()],
        one_way_error_us: Some(10_000),
        phases,
        pings: vec![pings, voice],
        load,
    }
}

#[test]
fn grades_are_those_of_the_source() {
    for (added, grade) in [
        (-3.0, "A+"),
        (4.99, "A+"),
        (5.0, "A"),
        (29.9, "A"),
        (30.0, "B"),
        (60.0, "C"),
        (199.9, "C"),
        (200.0, "D"),
        (400.0, "F"),
        (f64::INFINITY, "F"),
    ] {
        assert_eq!(Grade::of(added).name(), grade, "{added} ms");
        assert_eq!(grade.parse(), Ok(Grade::of(added)));
    }
    assert!(Grade::APlus < Grade::A && Grade::D < Grade::F);
    assert!(
        "E".parse::<Grade>()
            .unwrap_err()
            .contains("A+, A, B, C, D and F")
    );
}

#[test]
fn each_phase_has_its_own_account() {
    let accounts = accounts(&run());
    let kinds: Vec<Kind> = accounts.iter().map(|account| account.kind).collect();
    assert_eq!(kinds, [Kind::Idle, Kind::Down, Kind::Up]);
    let [idle, down, up] = &accounts[..] else {
        panic!("three phases");
    };
    assert_eq!((idle.down_bps, idle.up_bps), (None, None));
    assert_eq!((down.down_bps, down.up_bps), (Some(9_600_123), None));
    assert_eq!((up.down_bps, up.up_bps), (None, Some(1_900_001)));
    assert_eq!(idle.pings[0].p50_us, Some(20_001));
    assert_eq!((idle.pings[0].sent, idle.pings[0].lost), (100, 0));
    // The first second of a loaded phase does not count.
    assert_eq!(
        (down.pings[0].sent, down.pings[0].p95_us),
        (180, Some(120_001))
    );
    assert_eq!((up.pings[0].sent, up.pings[0].lost), (180, 18));
    assert_eq!(up.pings[0].up_p95_us, Some(159_997));
    assert_eq!(up.pings[1].up_p95_us, None);
}

#[test]
fn the_verdict_is_one_sentence() {
    let verdict = Verdict::of(&accounts(&run()));
    assert_eq!(verdict.grade, Some(Grade::D));
    assert_eq!(verdict.down_grade, Some(Grade::C));
    assert_eq!(verdict.up_grade, Some(Grade::D));
    assert_eq!(verdict.set.as_deref(), Some("up=1.71mbit,down=8.64mbit"));
    assert_eq!(
        verdict.sentence,
        "Grade D: 20.0 ms idle, +100 ms while downloading at 9.60 Mbit/s and +300 ms while uploading at 1.90 Mbit/s; \
         10 % of the pings lost in phase up."
    );
}

#[test]
fn without_a_phase_the_verdict_is_about_the_rest_or_says_what_is_missing() {
    let mut run = run();
    run.phases.retain(|phase| phase.kind != Kind::Up);
    let verdict = Verdict::of(&accounts(&run));
    assert_eq!((verdict.grade, verdict.up_grade), (Some(Grade::C), None));
    run.phases.truncate(1);
    let verdict = Verdict::of(&accounts(&run));
    assert_eq!(verdict.grade, None);
    assert!(
        verdict
            .sentence
            .contains("no delay under load was measured")
    );
    run.pings[0].rtt_us.fill(None);
    let verdict = Verdict::of(&accounts(&run));
    assert!(verdict.sentence.contains("no ping was answered"));
}

#[test]
fn a_phase_that_loses_most_pings_has_no_grade() {
    let mut run = run();
    let pings = &mut run.pings[0];
    for (at, rtt) in pings.at_us.iter().zip(&mut pings.rtt_us) {
        if (6_000_000..15_000_000).contains(at) && at / 50_000 % 4 == 0 {
            *rtt = None;
        }
    }
    let verdict = Verdict::of(&accounts(&run));
    assert_eq!((verdict.grade, verdict.up_grade), (None, None));
    assert_eq!(
        verdict.sentence,
        "No verdict: 20.0 ms idle; 25 % of the pings lost in phase down, 10 % of the pings lost in phase up."
    );
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let run = run();
    let text = document(&[("before", &run), ("after", &run)], Some("sqm start"));
    let again = read(&text).unwrap();
    assert_eq!(again.len(), 2);
    assert_eq!(again[0], ("before".to_owned(), run));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], SCHEMA);
    assert_eq!(value["runs"][1]["verdict"]["grade"], "D");
    assert_eq!(value["exec"], "sqm start");
    let other = text.replace("lab.bufferbloat/1", "lab.bufferbloat/2");
    assert!(
        read(&other)
            .unwrap_err()
            .to_string()
            .contains("lab.bufferbloat/2")
    );
    let broken = text.replacen("\"rtt_us\":[", "\"rtt_us\":[1,", 1);
    let late = text.replacen("\"to_us\":5000000", "\"to_us\":86400000001", 1);
    assert!(
        read(&late)
            .unwrap_err()
            .to_string()
            .contains("later than a day")
    );
    assert!(
        read(&broken)
            .unwrap_err()
            .to_string()
            .contains("differ in length")
    );
}

#[test]
fn a_flent_file_of_ours_is_read_as_it_was() {
    let run = run();
    let text = write_flent(&run, "before");
    assert_eq!(read_flent(&text).unwrap(), run);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["version"], 4);
    assert_eq!(value["metadata"]["T0"], "2026-11-23T02:30:00.123456Z");
    assert_eq!(value["metadata"]["IP_VERSION"], 6);
    let steps = value["x_values"].as_array().unwrap().len();
    for (name, series) in value["results"].as_object().unwrap() {
        assert_eq!(series.as_array().unwrap().len(), steps, "{name}");
    }
    let at = |name: &str, step: usize| value["results"][name][step].clone();
    assert_eq!(at("TCP download sum", 60), 9.600_123);
    assert_eq!(at("TCP upload sum", 60), serde_json::Value::Null);
    assert_eq!(at("Ping (ms) UDP BE", 60), 120.001);
}

#[test]
fn a_file_of_flent_itself_is_read() {
    // What flent 2 writes for a short `tcp_1up`, without the series that are not read.
    let text = r#"{"version": 4, "metadata": {"NAME": "tcp_1up", "HOST": "far.example", "LENGTH": 10, "TOTAL_LENGTH": 20,
        "FLENT_VERSION": "2.1.1", "TIME": "2026-11-23T02:30:00.000000Z", "T0": "2026-11-23T02:30:00.000000Z"},
        "x_values": [0.0, 4.0, 8.0, 12.0, 16.0, 20.0],
        "results": {"TCP upload": [null, null, 2.0, 1.9, null, null], "Ping (ms) ICMP": [20, 20, 300, 310, 20, 20]},
        "raw_values": {"Ping (ms) ICMP": [{"t": 1795401000.0, "val": 20.0, "seq": 1}, {"t": 1795401004.0, "val": 21.0},
        {"t": 1795401008.0, "val": 300.0}, {"t": 1795401012.5, "val": 310.5}, {"t": 1795401016.0, "val": 20.0}]}}"#;
    let run = read_flent(text).unwrap();
    let verdict = Verdict::of(&accounts(&run));
    assert_eq!(verdict.idle_ms, Some(20.0));
    assert_eq!(verdict.up_added_ms, Some(290.5));
    assert_eq!(verdict.down_added_ms, None);
    assert_eq!(
        run.pings[0].at_us,
        [0, 4_000_000, 8_000_000, 12_500_000, 16_000_000]
    );
}

#[test]
fn what_is_no_flent_file_is_refused_with_its_reason() {
    for (text, why) in [
        ("[]", "invalid"),
        ("{}", "no version"),
        (r#"{"version": 3}"#, "version 3"),
        (r#"{"version": 4}"#, "missing field `metadata`"),
        (
            r#"{"version": 4, "metadata": {}, "x_values": [], "results": {}}"#,
            "no raw values of pings",
        ),
    ] {
        let error = read_flent(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_run_survives_both_files(
        started_us in 0_u64..4_000_000_000_000_000,
        pings in proptest::collection::vec((0_i64..100_000_000, proptest::option::of(0_u64..60_000_000)), 0..50),
        rates in proptest::collection::vec(0_u64..100_000_000_000, 0..20),
        tos: u8,
    ) {
        let mut run = run();
        run.started_unix_ns = started_us * 1_000;
        run.pings.truncate(1);
        run.pings[0] = Pings {
            name: "udp".to_owned(),
            tos,
            at_us: pings.iter().map(|ping| ping.0).collect(),
            rtt_us: pings.iter().map(|ping| ping.1).collect(),
            up_us: Vec::new(),
            down_us: Vec::new(),
        };
        run.load = Load {
            at_us: (0..rates.len() as u64).map(|index| index * 100_000).collect(),
            down_bps: vec![rates.clone(); 2],
            up_bps: vec![rates; 2],
        };
        // A stream without readings leaves no series.
        if run.load.at_us.is_empty() {
            run.load = Load::default();
        }
        let text = write_flent(&run, "");
        prop_assert_eq!(&read_flent(&text).unwrap(), &run);
        let text = document(&[("run", &run)], None);
        prop_assert_eq!(&read(&text).unwrap()[0].1, &run);
        let verdict = Verdict::of(&accounts(&run));
        prop_assert!(verdict.sentence.ends_with('.'));
    }
}
