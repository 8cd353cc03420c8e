//! Tests the reports in each format.

use serde_json::Value;

use crate::home::{Home, source};

#[test]
fn the_brief_report_is_tcptraces() {
    for capture in [
        "reno.epeek.gz",
        "psc.fddi.dmp.gz",
        "urgent.dmp.gz",
        "udpping.dmp.gz",
    ] {
        let home = Home::new(&format!("brief-{capture}")).with(capture);
        let golden = std::fs::read_to_string(source(&format!("{capture}.short"))).unwrap();
        assert_eq!(home.good(capture), golden, "{capture}");
        assert_eq!(home.good(&format!("-b {capture}")), golden);
    }
}

#[test]
fn a_loss_of_the_capture_is_reported_once_however_often_the_report_reads_it() {
    let home = Home::new("lost").with("urgent.dmp.gz");
    for flags in [
        "",
        "-b ",
        "-lr ",
        "--csv ",
        "--json ",
        "--json -c ",
        "--json --parquet=x.parquet ",
    ] {
        let said = home.run(&format!("{flags}urgent.dmp.gz"));
        let expected = "headend: the capture lost packets: 16206 bytes in 1 connections were acknowledged and are \
                        not in the capture (unseen_bytes of --json)\n";
        assert_eq!((said.status, said.err.as_str()), (0, expected), "{flags}");
    }
}

#[test]
fn the_long_report_has_the_blocks_that_are_asked_for() {
    let home = Home::new("long").with("fast_reuse.dmp.gz");
    let plain = home.good("-l fast_reuse.dmp.gz");
    assert!(plain.contains("\n18 TCP connections traced:\n"));
    assert!(plain.contains("\nTCP connection 1:\n\thost a:        132.235.67.21:9080\n"));
    assert!(plain.contains("\tfilename:      fast_reuse.dmp.gz\n"));
    assert_eq!(
        plain.matches("================================\n").count(),
        17
    );
    assert!(!plain.contains("RTT samples") && !plain.contains("max owin"));
    let all = home.good("-lnrW fast_reuse.dmp.gz");
    assert!(all.contains("RTT samples") && all.contains("max owin"));
    assert_eq!(
        home.good("-lrW +l fast_reuse.dmp.gz"),
        home.good("fast_reuse.dmp.gz")
    );
}

#[test]
fn separated_values_have_a_heading_and_a_row_for_each_connection() {
    let home = Home::new("values").with("fast_reuse.dmp.gz");
    for (flag, separator) in [("--csv", ","), ("--tsv", "\t"), ("--sv=;", ";")] {
        let out = home.good(&format!("-lr {flag} fast_reuse.dmp.gz"));
        let rows = out
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows: Vec<&str> = rows.collect();
        assert!(
            rows[0].starts_with(&format!("conn_#{separator}host_a{separator}")),
            "{flag}"
        );
        assert_eq!(rows.len(), 1 + 18, "{flag}");
        assert!(rows[18].starts_with(&format!("18{separator}132.235.67.36")));
    }
}

#[test]
fn json_lines_can_be_read_back() {
    let home = Home::new("json")
        .with("fast_reuse.dmp.gz")
        .with("udpping.dmp.gz");
    let out = home.good("--json -u fast_reuse.dmp.gz udpping.dmp.gz");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 18 + 1 + 1);
    let kinds = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(
        (kinds("connection"), kinds("udp_flow"), kinds("summary")),
        (18, 1, 1)
    );
    let summary = lines.last().unwrap();
    assert_eq!(summary["packets"], 613);
    assert_eq!(summary["seen"]["UDP packets"], 100);
}

#[test]
fn quiet_leaves_only_what_was_seen() {
    let home = Home::new("quiet").with("reno.epeek.gz");
    let out = home.good("-q reno.epeek.gz");
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.contains("packets seen"));
}

#[test]
fn udp_flows_follow_the_connections_and_share_their_letters() {
    let home = Home::new("udp")
        .with("fast_reuse.dmp.gz")
        .with("udpping.dmp.gz");
    let out = home.good("-u udpping.dmp.gz fast_reuse.dmp.gz");
    // The UDP capture is from 2001, the other from 1998.
    assert!(
        out.contains(" 18: 132.235.67.36:3330 - 132.235.67.21:9080 (ai2aj) "),
        "{out}"
    );
    let flows = "\n  1: 132.235.3.141:57945 - 132.235.1.12:7 (ak2al)   50>   50<\n";
    assert!(out.ends_with(flows), "{out}");
    let alone = home.good("-u udpping.dmp.gz");
    assert!(alone.contains("132.235.1.12:7 (a2b)"), "{alone}");
    let long = home.good("-lu udpping.dmp.gz");
    assert!(
        long.contains("no traced TCP packets\nUDP connection info:\n1 UDP connection traced:\n")
    );
    assert!(
        home.good("-u fast_reuse.dmp.gz")
            .ends_with("no traced UDP packets\n")
    );
    let other = home.good("-u --iUDP1 udpping.dmp.gz");
    assert!(other.ends_with("UDP connection info:\n"), "{other}");
}

#[test]
fn any_number_of_threads_gives_the_same_report() {
    let home = Home::new("threads")
        .with("fast_reuse.dmp.gz")
        .with("urgent.dmp.gz");
    let files = "urgent.dmp.gz fast_reuse.dmp.gz";
    let one = home.good(&format!("-lrW --threads 1 {files}"));
    for threads in [2, 3, 5] {
        assert_eq!(home.good(&format!("-lrW --threads {threads} {files}")), one);
    }
}

#[test]
fn times_are_local() {
    let home = Home::new("zone").with("urgent.dmp.gz");
    let at = |zone: &str| {
        let output = home
            .command("-l -o1 urgent.dmp.gz")
            .env("TZ", zone)
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let line = out
            .lines()
            .find(|line| line.contains("first packet"))
            .unwrap();
        line.trim().to_owned()
    };
    assert_eq!(
        at("EST5EDT"),
        "first packet:  Tue Jul 24 12:34:10.118897 2001"
    );
    assert_eq!(at("UTC"), "first packet:  Tue Jul 24 16:34:10.118897 2001");
}

#[test]
fn names_of_ports_are_looked_up_only_when_asked() {
    let home = Home::new("names").with("urgent.dmp.gz");
    assert!(home.good("-o1 urgent.dmp.gz").contains("132.235.1.12:19 "));
    // The name of port 19 depends on the system.
    let named = home.good("-o1 --res_port urgent.dmp.gz");
    let known = std::fs::read_to_string("/etc/services")
        .is_ok_and(|services| services.contains("\nchargen\t\t19/tcp"));
    assert_eq!(named.contains("132.235.1.12:chargen "), known, "{named}");
}

#[test]
fn finished_connections_wait_in_a_file_where_memory_is_short() {
    let home = Home::new("memory").with("fast_reuse.dmp.gz");
    let said = home.run("-l --memory 1000 fast_reuse.dmp.gz");
    assert_eq!(said.status, 0);
    assert_eq!(said.out, home.good("-l fast_reuse.dmp.gz"));
    assert!(said.err.contains("temporary file"), "{}", said.err);
}

/// Lines of JSON of one kind.
fn of_kind(out: &str, kind: &str) -> Vec<serde_json::Value> {
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &serde_json::Value| line["kind"] == kind)
        .collect()
}

#[test]
fn columns_are_chosen_by_name_in_every_format() {
    let home = Home::new("columns").with("fast_reuse.dmp.gz");
    let list = "--columns connection,b_port,a2b_rtt_min_ns,community_id";
    let json = home.good(&format!("-o1 --json {list} fast_reuse.dmp.gz"));
    let row = &of_kind(&json, "connection")[0];
    assert_eq!(row.as_object().unwrap().len(), 6);
    assert!(row["community_id"].as_str().unwrap().starts_with("1:"));
    let csv = home.good(&format!("-o1 --csv {list} fast_reuse.dmp.gz"));
    let (port, id) = (&row["b_port"], row["community_id"].as_str().unwrap());
    let rtt = &row["a2b_rtt_min_ns"];
    let rtt = if rtt.is_null() {
        String::new()
    } else {
        rtt.to_string()
    };
    assert_eq!(
        csv,
        format!("connection,b_port,a2b_rtt_min_ns,community_id\n1,{port},{rtt},{id}\n")
    );
    home.good(&format!("-q --parquet c.parquet {list} fast_reuse.dmp.gz"));
    assert!(home.has("c.parquet"));
    for (flags, why) in [
        ("--json --columns a2b_rtt_mni_ns", "near are a2b_rtt_min_ns"),
        ("--columns connection", "--columns needs --json"),
        ("--details", "--details needs --json"),
        (
            "--csv --intervals 1s",
            "--intervals needs --json or --parquet",
        ),
        ("--json --intervals 0s", "--intervals: "),
    ] {
        let said = home.run(&format!("{flags} fast_reuse.dmp.gz"));
        assert_eq!(said.status, 2, "{flags}");
        assert!(said.err.contains(why), "{flags}: {}", said.err);
    }
}

#[test]
fn intervals_add_up_and_are_the_same_from_parts() {
    let home = Home::new("intervals").with("fast_reuse.dmp.gz");
    let flags = "--json --details --intervals 100ms";
    let whole = home.good(&format!("{flags} fast_reuse.dmp.gz"));
    let connections = of_kind(&whole, "connection");
    let intervals = of_kind(&whole, "interval");
    assert!(intervals.len() > 20);
    for connection in &connections {
        for direction in ["a2b", "b2a"] {
            let mine = intervals.iter().filter(|row| {
                row["connection"] == connection["connection"] && row["direction"] == direction
            });
            for (name, column) in [("packets", "packets"), ("bytes", "data_bytes")] {
                let sum: u64 = mine.clone().map(|row| row[name].as_u64().unwrap()).sum();
                assert_eq!(
                    connection[format!("{direction}_{column}")],
                    sum,
                    "{connection}"
                );
            }
        }
    }
    for part in 0..3 {
        home.good(&format!(
            "{flags} --part {part}/3 --part-file {part} fast_reuse.dmp.gz"
        ));
    }
    assert_eq!(home.good(&format!("{flags} --merge 0 1 2")), whole);
    let said = home.run("--json --intervals 1s --merge 0 1 2");
    assert_eq!(said.status, 1);
    assert!(said.err.contains("--intervals"), "{}", said.err);
    home.good("-q --parquet c.parquet --intervals 1s fast_reuse.dmp.gz");
    assert!(home.has("c.intervals.parquet"));
}
