//! `headend trace why` as a user runs it.

use serde_json::Value;

use super::home::Home;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn causes_add_up_to_the_life_of_each_connection() {
    let home = Home::new("why-sum").with("fast_reuse.dmp.gz");
    let lines = lines(&home.good("why --json fast_reuse.dmp.gz"));
    let (summary, connections) = lines.split_last().unwrap();
    assert_eq!(summary["schema"], "trace.why_summary/1");
    assert!(!connections.is_empty());
    for connection in connections {
        let life = connection["elapsed_ns"].as_i64().unwrap();
        for side in ["a2b", "b2a"] {
            let Some(causes) = connection[side]["causes"].as_object() else {
                continue;
            };
            let times = causes.values().map(|cause| cause["time_ns"].as_i64());
            assert_eq!(times.map(Option::unwrap).sum::<i64>(), life, "{connection}");
        }
    }
}

#[test]
fn neither_parts_nor_threads_change_the_report() {
    let home = Home::new("why-parts").with("fast_reuse.dmp.gz");
    let whole = home.good("why --json --threads 1 fast_reuse.dmp.gz");
    assert_eq!(home.good("why --json --threads 2 fast_reuse.dmp.gz"), whole);
    for part in 0..3 {
        home.good(&format!(
            "why --part {part}/3 --part-file {part} fast_reuse.dmp.gz"
        ));
    }
    assert_eq!(home.good("why --json --merge 2 0 1"), whole);
}

#[test]
fn graphs_have_the_causes_as_a_strip() {
    let home = Home::new("why-strip").with("zwnd.dmp.gz");
    home.good("why -S --svg --html -o1 zwnd.dmp.gz");
    let strip = "<title>receiver_window, ";
    assert!(home.text("a2b_tsg.svg").contains(strip));
    assert!(home.text("a2b.html").contains("causes:[[\"handshake\","));
    home.good("-S --svg -o1 zwnd.dmp.gz");
    assert!(!home.text("a2b_tsg.svg").contains(strip));
    // Without a kind of picture, it is a page.
    let home = Home::new("why-page").with("zwnd.dmp.gz");
    home.good("why -S zwnd.dmp.gz");
    assert!(home.has("a2b.html") && !home.has("a2b_tsg.xpl"));
}

#[test]
fn a_closed_window_is_a_finding() {
    let home = Home::new("why-zero").with("zwnd.dmp.gz");
    let lines = lines(&home.good("why --json zwnd.dmp.gz"));
    // tcptrace counts the same windows of 0.
    assert!(home.good("-l zwnd.dmp.gz").contains("zero win adv"));
    let closed = &lines[0]["findings"]["b"]["zero_window"];
    assert!(closed["count"].as_u64() > Some(0), "{}", lines[0]);
    assert!(closed["longest_ns"].as_u64() > Some(0), "{}", lines[0]);
}
