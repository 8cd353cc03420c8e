//! Tests that a capture in parts gives the same report as the whole capture.

use crate::home::{Home, plain, records};

#[test]
fn parts_merge_into_the_report_of_the_whole() {
    let home = Home::new("merge")
        .with("fast_reuse.dmp.gz")
        .with("udpping.dmp.gz");
    let files = "fast_reuse.dmp.gz udpping.dmp.gz";
    for parts in [1, 3] {
        let names: Vec<String> = (0..parts).map(|part| format!("{parts}.{part}")).collect();
        for (part, name) in names.iter().enumerate() {
            let out = home.good(&format!(
                "-u --part {part}/{parts} --part-file {name} {files}"
            ));
            assert_eq!(out, "");
        }
        for flags in [
            "-u",
            "-lrWu",
            "-l --csv",
            "--json",
            "--json -u",
            "-c",
            "-o3-7",
        ] {
            let whole = home.good(&format!("{flags} {files}"));
            let merged = home.good(&format!("{flags} --merge {}", names.join(" ")));
            assert_eq!(merged, whole, "{parts} parts, {flags}");
        }
    }
}

#[test]
fn causes_depend_on_no_order_of_files_threads_or_parts() {
    let home = Home::new("causes")
        .with("fast_reuse.dmp.gz")
        .with("reno.epeek.gz");
    let files = "fast_reuse.dmp.gz reno.epeek.gz";
    let whole = home.good(&format!("why --json {files}"));
    assert!(whole.contains("trace.why/1"));
    for threads in [1, 2, 3] {
        let line = format!("why --json --threads {threads} {files}");
        assert_eq!(home.good(&line), whole, "{threads} threads");
    }
    assert_eq!(
        home.good("why --json reno.epeek.gz fast_reuse.dmp.gz"),
        whole
    );
    for parts in [1, 2, 3] {
        let names: Vec<String> = (0..parts).map(|part| format!("{parts}.{part}")).collect();
        for (part, name) in names.iter().enumerate() {
            home.good(&format!(
                "why --part {part}/{parts} --part-file {name} {files}"
            ));
        }
        let merged = home.good(&format!("why --json --merge {}", names.join(" ")));
        assert_eq!(merged, whole, "{parts} parts");
    }
}

#[test]
fn a_capture_split_at_any_packet_gives_the_report_of_the_whole() {
    let octets = plain("fast_reuse.dmp.gz");
    let (header, records) = records(&octets);
    let home = Home::new("split");
    home.put("whole", &octets);
    let whole = home.good("-lrW --json whole");
    for at in [1, 77, 300, 512] {
        let (first, rest) = records.split_at(at);
        home.put("1", &[header, &first.concat()].concat());
        home.put("2", &[header, &rest.concat()].concat());
        assert_eq!(home.good("-lrW --json 2 1"), whole, "split at {at}");
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let home = Home::new("strangers")
        .with("fast_reuse.dmp.gz")
        .with("udpping.dmp.gz");
    home.good("--part 0/2 --part-file 0 fast_reuse.dmp.gz");
    home.good("--part 1/2 --part-file 1 --idle 1h fast_reuse.dmp.gz");
    for (line, why) in [
        ("--merge 0", "missing"),
        ("--merge 0 1", "--idle"),
        ("--merge 0 0", "part 0 of 2"),
        ("--merge 0 fast_reuse.dmp.gz", "fast_reuse.dmp.gz"),
    ] {
        let said = home.run(line);
        assert_eq!(said.status, 1, "{line}");
        assert!(said.err.contains(why), "{line}: {}", said.err);
    }
    home.good("--part 1/2 --part-file 1 fast_reuse.dmp.gz");
    let said = home.run("-u --merge 0 1");
    assert!(said.status == 1 && said.err.contains("-u"), "{}", said.err);
}

#[test]
fn a_merge_reports_parts_of_a_faulty_capture() {
    let home = Home::new("faulty");
    home.put("cut", &plain("fast_reuse.dmp.gz")[..3000]);
    for part in 0..2 {
        let said = home.run(&format!("--part {part}/2 --part-file {part} cut"));
        assert_eq!(said.status, 1, "{}", said.err);
    }
    let said = home.run("--merge 0 1");
    assert_eq!(said.status, 1);
    let why = "headend: 1: made from a faulty capture: cut: first fault at octet 2920: the file ends inside a record";
    assert!(said.err.contains(why), "{}", said.err);
    assert!(said.out.contains("26 packets seen"), "{}", said.out);
}
