//! Tests which connections and packets are reported.

use crate::home::Home;

/// The numbers of the connections in a brief report.
fn numbers(report: &str) -> Vec<u64> {
    let lines = report.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter_map(|(number, _)| number.trim().parse().ok())
        .collect()
}

fn home(name: &str) -> Home {
    Home::new(name).with("fast_reuse.dmp.gz")
}

#[test]
fn lists_of_connections_choose_and_ignore() {
    let home = home("lists");
    home.put("list", b"4,6-7\n");
    for (flags, chosen) in [
        ("-o3", vec![3]),
        ("-o3-5,9", vec![3, 4, 5, 9]),
        ("-o3 -o 5", vec![3, 5]),
        ("-olist", vec![4, 6, 7]),
        ("--oTCP2-3", vec![2, 3]),
        ("-i2-18", vec![1]),
        ("-o1-4 -i2,3", vec![1, 4]),
        ("--iTCP1-16", vec![17, 18]),
    ] {
        let report = home.good(&format!("{flags} fast_reuse.dmp.gz"));
        assert_eq!(numbers(&report), chosen, "{flags}");
        assert!(report.contains("513 TCP packets traced"), "{flags}");
    }
    assert!(!home.has("PF"));
}

#[test]
fn complete_connections_are_noted_in_pf_for_the_next_run() {
    let home = home("complete");
    let report = home.good("-c fast_reuse.dmp.gz");
    assert_eq!(numbers(&report), (2..=18).collect::<Vec<_>>());
    let list: Vec<String> = (2..=18).map(|number| number.to_string()).collect();
    assert_eq!(home.text("PF"), list.join(",") + "\n");
    assert_eq!(numbers(&home.good("-oPF fast_reuse.dmp.gz")).len(), 17);
}

#[test]
fn a_filter_chooses_by_what_is_known_at_the_end() {
    let home = home("filter");
    let report = home
        .run_words(&["-fc_segs>50 and c_segs<60", "fast_reuse.dmp.gz"])
        .out;
    assert!(
        report.starts_with("Output filter: ((c_segs>50)AND(c_segs<60))\n"),
        "{report}"
    );
    let chosen = numbers(&report);
    assert!(!chosen.is_empty() && chosen.len() < 18);
    let list: Vec<String> = chosen.iter().map(u64::to_string).collect();
    assert_eq!(home.text("PF"), list.join(",") + "\n");
    let none = home.run_words(&["-f", "s_port=1", "fast_reuse.dmp.gz"]);
    assert_eq!((none.status, home.text("PF").as_str()), (0, "\n"));
}

#[test]
fn packets_before_and_after_a_number_are_left_out() {
    let home = home("range");
    let all = home.good("fast_reuse.dmp.gz");
    assert!(all.contains("\n513 packets seen, 513 TCP packets traced\n"));
    let some = home.good("-B100 -E199 fast_reuse.dmp.gz");
    assert!(
        some.contains("\n199 packets seen, 100 TCP packets traced\n"),
        "{some}"
    );
    assert!(
        home.good("-E10 fast_reuse.dmp.gz")
            .contains("\n10 packets seen, 10 TCP")
    );
    assert!(
        home.good("-B600 fast_reuse.dmp.gz")
            .contains("no traced TCP packets")
    );
}

#[test]
fn time_outs_end_connections() {
    let home = home("idle");
    assert_eq!(numbers(&home.good("fast_reuse.dmp.gz")).len(), 18);
    let short = numbers(&home.good("--idle 200ms --idle-closed 100ms fast_reuse.dmp.gz"));
    assert!(short.len() > 18, "{short:?}");
    let home = Home::new("theirs").with("urgent.dmp.gz");
    let theirs = "--endpoint_reuse_interval=1 --remove_closed_conn_interval=1 urgent.dmp.gz";
    assert_eq!(numbers(&home.good("urgent.dmp.gz")).len(), 2);
    assert!(numbers(&home.good(theirs)).len() > 2);
}

#[test]
fn a_number_without_a_connection_is_an_error_and_the_report_covers_the_others() {
    let home = home("absent");
    home.put("empty", b"\n");
    for (flags, chosen, why) in [
        (
            "-o99",
            vec![],
            "-o99: there is no such TCP connection; their numbers are 1 to 18",
        ),
        (
            "-o3,20-30",
            vec![3],
            "-o20-30: there is no such TCP connection",
        ),
        (
            "-u --oUDP1",
            (1..=18).collect(),
            "--oUDP1: the capture has no UDP flow",
        ),
    ] {
        let said = home.run(&format!("{flags} fast_reuse.dmp.gz"));
        assert_eq!((said.status, numbers(&said.out)), (1, chosen), "{flags}");
        assert!(said.err.contains(why), "{flags}: {}", said.err);
    }
    assert_eq!(numbers(&home.good("-o17-99 fast_reuse.dmp.gz")), [17, 18]);
    assert_eq!(numbers(&home.good("-oempty fast_reuse.dmp.gz")), [0_u64; 0]);
}
