use std::path::Path;

use clap::{CommandFactory, Parser};

use super::*;
use cli::values::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("headend").chain(line.split_ascii_whitespace()))
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn the_list_of_verbs_says_that_the_demo_has_subscribers_and_traffic() {
    let help = Cli::command().render_help().to_string();
    let line = help.lines().find(|line| line.starts_with("  demo"));
    let line = line.expect("demo is a verb");
    assert!(line.contains("subscribers") && line.contains("traffic"));
}

/// The pages of `docs/`, each with its name.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(root).expect("docs/");
    let pages = pages.map(|entry| entry.expect("an entry").path());
    let mut documents: Vec<(String, String)> = pages
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "md"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a page");
            (path.display().to_string(), text)
        })
        .collect();
    documents.sort();
    documents
}

/// Whether `text` has `flag` as a whole word: `--out` is not in `--output`.
fn names(text: &str, flag: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    text.match_indices(flag).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + flag.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// Every visible flag below `command`, with the first verb that it belongs to and the whole verb.
fn flags(command: &clap::Command, verbs: &[&str], found: &mut Vec<(String, String, String)>) {
    if let Some(first) = verbs.first() {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
        for arg in flags.filter(|arg| !arg.is_positional()) {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            let flag = long.or(short).expect("a flag has a name");
            found.push((format!("headend {first}"), verbs.join(" "), flag));
        }
    }
    for below in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        flags(below, &[verbs, &[below.get_name()]].concat(), found);
    }
}

#[test]
fn each_flag_is_named_on_a_page_that_shows_its_verb() {
    let documents = documents();
    let mut found = Vec::new();
    flags(&Cli::command(), &[], &mut found);
    assert!(found.len() > 100, "{} flags", found.len());
    let missing: Vec<String> = found
        .iter()
        .filter(|(verb, _, flag)| {
            let has_both = |page: &(String, String)| names(&page.1, verb) && names(&page.1, flag);
            !documents.iter().any(has_both)
        })
        .map(|(_, verbs, flag)| format!("{verbs} {flag}"))
        .collect();
    assert!(missing.is_empty(), "no page names {missing:#?}");
}

#[test]
fn every_documented_verb_is_taken() {
    for line in [
        "demo",
        "demo --tunnels 100 --version 2 --json",
        "demo street --lines 500 --quick --load tcp --json",
        "demo street -o street",
        "run --config headend.toml",
        "check headend.toml",
        "tunnel create --peer 127.0.0.1",
        "tunnel create --peer [::1]:1702 --version 2 --count 9 --from 127.1.0.0/16 --session --no-wait --timeout 2.5",
        "tunnel delete 7",
        "tunnel delete --all --socket /tmp/x.sock",
        "session create --tunnel 7 --count 2 --outgoing --pseudowire vlan --called 5551234 --calling 1",
        "session delete --tunnel 7 --session 9",
        "session answer --tunnel 7 --session 9 --version 2",
        "show tunnels --json",
        "show tunnels --ended",
        "show --socket /tmp/x.sock sessions",
        "show sessions --ended --json",
        "show subscribers --name @example.net --state up --tunnel 7 --json",
        "show subscribers --sort rate --limit 20 --reverse",
        "show subscribers --ended",
        "show subscriber alice --history 3",
        "show subscriber --tunnel 7 --session 9 --version 2 --json",
        "show pools",
        "show radius --json",
        "show filters",
        "show filter residential",
        "session drop alice --json",
        "session drop --tunnel 7 --session 9",
        "session set alice --rate-down 20mbit --rate-up none",
        "session set --tunnel 7 --session 9 --template gold --link access-7 --json",
        "session set alice --reset",
        "session set alice --garden unpaid --filter slow --json",
        "session set alice --garden none --session-timeout 3600 --idle-timeout none",
        "session set alice --interim-interval 300 --route 10.1.0.0/16 --route 10.2.0.0/16",
        "session set alice --route none",
        "capture subscriber alice alice.pcapng --count 9 --seconds 1.5 --snap 96 --wait",
        "capture subscriber 10.0.0.1 - --socket /tmp/x.sock",
        "show peers",
        "show counters",
        "show ended",
        "show server",
        "show kernel --json",
        "show event poll",
        "show event timers",
        "show event cpu --json",
        "top",
        "top --view subscribers --filter @example.net --interval 0.5",
        "top --once --view queues --socket /tmp/x.sock --qos-socket /tmp/y.sock",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
}

#[test]
fn wrong_usage_is_refused_with_status_2() {
    for line in [
        "",
        "walk",
        "run",
        "check",
        "tunnel create",
        "tunnel create --peer localhost",
        "tunnel create --peer 127.0.0.1 --version 4",
        "tunnel create --peer 127.0.0.1 --count 0",
        "tunnel create --peer 127.0.0.1 --from 10.0.0.0",
        "tunnel create --peer 127.0.0.1 --timeout 0",
        "tunnel delete",
        "tunnel delete 7 --all",
        "session create",
        "session delete --tunnel 1",
        "show",
        "show event",
        "show subscriber",
        "show subscriber alice --tunnel 7 --session 9",
        "show subscriber --session 9",
        "show subscribers --state on",
        "session drop",
        "session set alice",
        "session set alice --rate-down fast",
        "session set alice --session-timeout 1.5",
        "capture",
        "capture subscriber alice",
        "capture subscriber alice x --count 0",
        "demo --tunnels 0",
        "demo --tunnels 7 street",
        "demo street --lines 1",
        "demo street --load wget",
    ] {
        let error = parse(line).err().unwrap_or_else(|| panic!("taken: {line}"));
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn a_peer_without_a_port_has_l2tps() {
    assert_eq!(peer("192.0.2.1").unwrap().to_string(), "192.0.2.1:1701");
    assert_eq!(peer("::1").unwrap().to_string(), "[::1]:1701");
    assert_eq!(peer("[::1]").unwrap().to_string(), "[::1]:1701");
    assert_eq!(peer("192.0.2.1:99").unwrap().to_string(), "192.0.2.1:99");
    assert!(peer("example.org").is_err());
}
