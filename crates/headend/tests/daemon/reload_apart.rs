//! Tests that a reload whose files cannot be read yet blocks nothing else. The filter file is a FIFO, so that its
//! reader waits in open() until the test opens it for writing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Directory};

const FILTERS: &str = "filter home\nin\n  accept ip\n";

/// An edge whose filter file is a FIFO once it has started.
fn edge(directory: &Directory) -> (Daemon, PathBuf) {
    let path = directory.write("filters.txt", FILTERS);
    let sections = "[ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
        [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[filter]\nfile = \"filters.txt\"\n";
    let (edge, _) = Daemon::lns(directory, sections);
    fs::remove_file(&path).unwrap();
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    (edge, path)
}

/// Lets the reader of the FIFO have the rules. Returns when it has opened it.
fn serve(path: &PathBuf, rules: &str) {
    fs::write(path, rules).unwrap();
}

fn await_log(edge: &Daemon, text: &str, times: usize) {
    edge.client()
        .await_stats(text, |_| edge.log().matches(text).count() == times);
}

/// The rows of the reload with this id, and its last line.
fn answer(client: &mut Client, id: u64) -> (Vec<Value>, Value) {
    let mut rows = Vec::new();
    loop {
        let mut line = client.next().expect("the connection stays open");
        assert_eq!(line["id"], id, "{line}");
        match line.get_mut("row") {
            Some(row) => rows.push(row.take()),
            None => return (rows, line),
        }
    }
}

#[test]
fn requests_are_answered_while_the_files_of_a_reload_are_read() {
    let directory = Directory::new();
    let (edge, fifo) = edge(&directory);
    let mut asker = edge.client();
    let reload = asker.send(json!({"do": "reload"}));
    await_log(&edge, "headend reload: reading", 1);
    // Both of other clients and of the one that waits.
    assert_eq!(edge.client().stats()["reloads"], 0);
    assert_eq!(asker.stats()["pid"], edge.pid());
    let second = edge.client().ask(json!({"do": "reload"}));
    let told = second[0]["error"]["message"].as_str().unwrap();
    assert!(
        told.contains("a reload is in progress: \"headend reload\" asked for it"),
        "{told}"
    );
    edge.signal("HUP");
    await_log(&edge, "SIGHUP: a reload is in progress", 1);
    assert_eq!(edge.client().rows("show.filters").len(), 1);

    serve(
        &fifo,
        "filter home\nin\n  deny ip\nfilter guests\nin\n  accept ip\n",
    );
    let (rows, end) = answer(&mut asker, reload);
    assert_eq!(end["rows"], 2, "{end}");
    assert_eq!(
        (&rows[0]["key"], &rows[0]["effect"]),
        (&json!("filter.file"), &json!("applied"))
    );
    assert_eq!(rows[1]["schema"], "reload/1");
    assert_eq!(edge.client().rows("show.filters").len(), 2);

    // The signal was remembered: the file is read once more.
    serve(&fifo, FILTERS);
    await_log(&edge, "configuration reloaded", 2);
    assert_eq!(edge.client().stats()["reloads"], 2);
    let filters = edge.client().rows("show.filters");
    let in_file = filters.iter().filter(|row| row["in_file"] == true);
    assert_eq!(in_file.count(), 1, "{filters:?}");
}

#[test]
fn a_reload_is_applied_although_its_client_has_gone() {
    let directory = Directory::new();
    let (edge, fifo) = edge(&directory);
    let mut asker = edge.client();
    asker.send(json!({"do": "reload"}));
    await_log(&edge, "headend reload: reading", 1);
    drop(asker);
    edge.client()
        .await_stats("it has gone", |stats| stats["clients"] == 1);
    serve(&fifo, "filter guests\nin\n  accept ip\n");
    edge.client()
        .await_stats("it is applied", |stats| stats["reloads"] == 1);
    assert!(
        edge.log().contains("filter.file: filters.txt"),
        "{}",
        edge.log()
    );
    // A client that only closed its sending side gets the answer.
    let mut asker = edge.client();
    let reload = asker.send(json!({"do": "reload", "timeout_s": 600.0}));
    asker.say_no_more();
    await_log(&edge, "headend reload: reading", 2);
    serve(&fifo, FILTERS);
    let (rows, _) = answer(&mut asker, reload);
    let left = edge.client().stats()["undo_in_s"].as_f64().unwrap();
    assert!(left > 0.0, "{rows:?}");
    assert_eq!(rows[1]["undo_in_s"], 600.0);
}

#[test]
fn a_fault_in_a_file_that_came_late_changes_nothing() {
    let directory = Directory::new();
    let (edge, fifo) = edge(&directory);
    let mut asker = edge.client();
    let reload = asker.send(json!({"do": "reload"}));
    serve(&fifo, "filter home\nin\n  allow ip\n");
    let (rows, end) = answer(&mut asker, reload);
    assert!(rows.is_empty());
    let told = end["error"]["message"].as_str().unwrap();
    assert!(told.contains("filters.txt:3:"), "{told}");
    assert_eq!(asker.stats()["reloads"], 0);
    assert!(
        edge.log()
            .contains("headend reload: no setting was changed")
    );
}

#[test]
fn a_daemon_ends_although_its_configuration_is_still_being_read() {
    let directory = Directory::new();
    let (mut edge, _fifo) = edge(&directory);
    let mut asker = edge.client();
    let reload = asker.send(json!({"do": "reload"}));
    await_log(&edge, "headend reload: reading", 1);
    edge.signal("TERM");
    let (rows, end) = answer(&mut asker, reload);
    assert!(rows.is_empty());
    let told = end["error"]["message"].as_str().unwrap();
    assert!(told.contains("the daemon is shutting down"), "{told}");
    assert_eq!(edge.wait().code(), Some(0), "{}", edge.log());
    assert!(!edge.log().contains("configuration reloaded"));
}
