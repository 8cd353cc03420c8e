use super::*;
use crate::connection::Connection;
use crate::key::FlowKey;
use crate::udp::{Flow, Sent};
use jiff::tz::TimeZone;

fn address(last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[10], address[11]) = (0xff, 0xff);
    address[12..].copy_from_slice(&[10, 0, 0, last]);
    address
}

fn key(from: u8, to: u8) -> (FlowKey, bool) {
    FlowKey::new(&address(from), 40000, &address(to), 80, 0)
}

fn connection() -> Connection {
    let (key, a_is_low) = key(1, 2);
    Connection {
        number: 7,
        key,
        a_is_low,
        first_time: 1_000_000_005_000,
        last_time: 2_000_500_000_000,
        packets: 5,
        ..Connection::default()
    }
}

fn about<'a>(zone: &'a TimeZone) -> About<'a> {
    About {
        names: &Numeric,
        zone,
        pair: 7,
        file: "some.pcap",
        end: 0,
    }
}

/// What `write` writes.
fn written(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    write(&mut out).unwrap();
    out
}

#[test]
fn hours_go_on_past_a_day() {
    let micro = 1000;
    let hour = 3600 * 1_000_000_000;
    assert_eq!(Elapsed(0).to_string(), "0:00:00.000000");
    assert_eq!(Elapsed(10_438_257 * micro).to_string(), "0:00:10.438257");
    assert_eq!(Elapsed(49 * hour + micro).to_string(), "49:00:00.000001");
    assert_eq!(Elapsed(-1).to_string(), "0:00:00.000000");
    assert_eq!(Elapsed(i64::MAX).to_string(), "2562047:47:16.854775");
}

#[test]
fn elapsed_time_is_the_difference_of_the_times_shown() {
    let micros = |time: i64| time * 1000;
    let elapsed = Elapsed::between(micros(5) + 999, micros(7) + 1);
    assert_eq!(elapsed.to_string(), "0:00:00.000002");
    assert_eq!(Elapsed::between(7, 5).to_string(), "0:00:00.000000");
}

#[test]
fn letters_go_on_after_z() {
    let both = |pair| {
        let (a, b) = letters(pair);
        format!("{a}2{b}")
    };
    assert_eq!([1, 2, 13].map(both), ["a2b", "c2d", "y2z"]);
    assert_eq!([14, 15, 26].map(both), ["aa2ab", "ac2ad", "ay2az"]);
    assert_eq!([27, 351, 352].map(both), ["ba2bb", "zy2zz", "aaa2aab"]);
    assert_eq!(both(0), "a2b");
    assert!(both(u64::MAX).len() > 20);
}

#[test]
fn times_are_local() {
    let zone = TimeZone::posix("EST5EDT,M4.1.0,M10.5.0").unwrap();
    let shown = |time| LocalTime { time, zone: &zone }.to_string();
    assert_eq!(
        shown(912_004_163_422_612_999),
        "Wed Nov 25 09:29:23.422612 1998"
    );
    assert_eq!(
        shown(996_000_000_000_000_000),
        "Tue Jul 24 14:40:00.000000 2001"
    );
    assert_eq!(shown(-1_000_000_000), "Wed Dec 31 18:59:59.000000 1969");
    assert_eq!(
        shown(1 + 3_000_000_000_000),
        "Wed Dec 31 19:50:00.000000 1969"
    );
    assert_eq!(shown(0), "        <the epoch>       ");
}

#[test]
fn a_zone_without_a_rule_has_the_rule_of_the_united_states() {
    let zone = zone_without_rule("EST5EDT").unwrap();
    let shown = |time| LocalTime { time, zone: &zone }.to_string();
    assert_eq!(
        shown(1_710_000_000_000_000_000),
        "Sat Mar  9 11:00:00.000000 2024"
    );
    assert_eq!(
        shown(1_710_100_000_000_000_000),
        "Sun Mar 10 15:46:40.000000 2024"
    );
    for other in ["Europe/Berlin", "EST5EDT,M4.1.0,M10.5.0", "", ":EST5EDT"] {
        assert!(zone_without_rule(other).is_none(), "{other}");
    }
}

#[test]
fn brief_lines_are_aligned_to_the_widest_name() {
    let mut connection = connection();
    connection.a.packets = 4;
    connection.b.packets = 12345;
    let name = written(|out| brief_name(out, &connection, &Numeric, 7));
    assert_eq!(name, "10.0.0.1:40000 - 10.0.0.2:80 (m2n)");
    let line = written(|out| brief(out, &connection, &name, 38, 7));
    assert_eq!(
        line,
        "  7: 10.0.0.1:40000 - 10.0.0.2:80 (m2n)        4> 12345<\n"
    );
}

#[test]
fn brief_lines_say_how_a_connection_ended() {
    let mut connection = connection();
    connection.a.packets = 4;
    connection.a.hardware_duplicates = 2;
    connection.a.resets = 1;
    for direction in [&mut connection.a, &mut connection.b] {
        (direction.syns, direction.fins) = (1, 1);
    }
    let lines = written(|out| brief(out, &connection, "x", 1, 7));
    assert_eq!(
        lines,
        "  7: x    4>    0<  (complete)  (reset)  (unidirectional)\n    ** Warning, m2n: detected 2 hardware \
         duplicate(s) (same seq # and IP ID)\n"
    );
}

#[test]
fn values_wider_than_their_column_push_the_rest() {
    let mut connection = connection();
    connection.a.packets = 12_345_678_901;
    let options = LongOptions::default();
    let report = written(|out| long(out, &connection, &about(&TimeZone::UTC), options));
    let line = report.lines().find(|line| line.starts_with("     total"));
    assert_eq!(
        line,
        Some("     total packets:     12345678901           total packets:             0      ")
    );
}

#[test]
fn what_no_end_asked_for_is_left_out_of_columns_but_not_of_values() {
    let connection = connection();
    let zone = TimeZone::UTC;
    let options = LongOptions::default();
    let report = written(|out| long(out, &connection, &about(&zone), options));
    for label in [
        "resets sent",
        "req sack",
        "adv wind scale",
        "hardware dups",
        "owin",
        "RTT",
    ] {
        assert!(!report.contains(label), "{label}");
    }
    for (rtt, owin) in [(false, false), (true, false), (false, true), (true, true)] {
        let options = LongOptions { rtt, owin };
        let head = written(|out| values_header(out, ",", options));
        let row = written(|out| values(out, &connection, &about(&zone), ",", options));
        assert!(head.ends_with(",\n\n"));
        assert_eq!(head.matches(',').count(), row.matches(',').count());
    }
}

#[test]
fn values_have_times_with_all_their_digits() {
    let row = written(|out| {
        values(
            out,
            &connection(),
            &about(&TimeZone::UTC),
            "\t",
            LongOptions::default(),
        )
    });
    let head = "7\t10.0.0.1\t10.0.0.2\t40000\t80\t1000.000005 \t 2000.500000 \t              0\t";
    assert!(row.starts_with(head), "{row}");
}

#[test]
fn a_head_counts_in_the_singular_and_the_plural() {
    let one = ReportCounts {
        packets: 3,
        tcp: 2,
        connections: 1,
        files: 1,
        ..ReportCounts::default()
    };
    assert_eq!(
        written(|out| Head::default().write(out, &one)),
        "3 packets seen, 2 TCP packets traced\ntrace file elapsed time: 0:00:00.000000\n\
         TCP connection info:\n1 TCP connection traced:\n"
    );
    let more = ReportCounts {
        connections: 2,
        files: 2,
        udp: Some(1),
        too_short: 1,
        bad_checksums: Some([0, 1, 0]),
        ..one
    };
    let values = Head {
        values: true,
        ..Head::default()
    };
    assert_eq!(
        written(|out| values.write(out, &more)),
        "#3 packets seen, 2 TCP packets traced, 1 UDP packets traced\n\
         #trace files elapsed time: 0:00:00.000000\n#bad IP checksums:  0\n#bad TCP checksums: 1\n\
         #bad UDP checksums: 0\n#TCP connection info:\n#2 TCP connections traced:\n\
         #*** 1 packets were too short to process at some point\n#\t(use -w option to show details)\n"
    );
    let files = written(|out| arguments(out, &["x", "y"], Head::default()));
    assert_eq!(files, "2 args remaining, starting with 'x'\n\n");
    assert!(
        written(|out| Head::default().write(out, &ReportCounts::default()))
            .ends_with("no traced TCP packets\n")
    );
}

#[test]
fn a_flow_is_reported_like_a_connection() {
    let (key, a_is_low) = key(1, 2);
    let flow = Flow {
        number: 1,
        first_packet: 1,
        file: 0,
        key,
        a_is_low,
        first_time: 0,
        last_time: 2_000_000_000,
        a: Sent {
            packets: 2,
            bytes: 100,
        },
        b: Sent::default(),
        quic: None,
        traffic: None,
    };
    let name = written(|out| flow_name(out, &flow, &Numeric, 1));
    let line = written(|out| flow_brief(out, &flow, &name, name.len() + 1));
    assert_eq!(
        line,
        "  1: 10.0.0.1:40000 - 10.0.0.2:80 (a2b)     2>    0<\n"
    );
    let report = written(|out| flow_long(out, &flow, &about(&TimeZone::UTC)));
    assert!(report.ends_with(
        "     total packets:             2           total packets:             0      \n     \
         data bytes sent:         100           data bytes sent:           0      \n     \
         throughput:               50 Bps       throughput:                0 Bps  \n"
    ));
}
