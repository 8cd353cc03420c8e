//! `headend top` in a terminal of tmux: its keys and screens with an invented daemon, and the terminal afterwards.

mod fake;
mod tmux;

use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use fake::Fake;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::Duration;
use tmux::Pane;

/// How long a process may take to end.
const SOON: Duration = Duration::from_secs(10);

/// A daemon's socket, and the command that shows it.
fn place(bench: &Bench<'_>) -> (PathBuf, String) {
    let socket = bench.directory.join("daemon");
    let command = format!(
        "{} top --interval 0.2 --socket {}",
        bench.headend.display(),
        socket.display()
    );
    (socket, command)
}

/// A line of the screen that contains `text`.
fn line<'a>(screen: &'a str, text: &str) -> Result<&'a str> {
    let found = screen.lines().find(|line| line.contains(text));
    found.with_context(|| format!("no line has {text:?}:\n{screen}"))
}

/// Keys change the screen, and a daemon that is started again is found.
pub(crate) fn shows_a_daemon(bench: &Bench<'_>) -> Result<()> {
    let (socket, command) = place(bench);
    let daemon = Fake::start(&socket)?;
    let pane = Pane::start(&bench.directory)?;
    pane.run(&command)?;
    let screen = pane.sees("1 Gbit/s")?;
    for text in [
        "297 up, 3 asking",
        "filter 12/s",
        "960 of 1,000",
        "25 % busy",
        "hold margin 61.2 s",
    ] {
        line(&screen, text)?;
    }
    ensure!(line(&screen, "came up")?.contains("41/s"), "{screen}");
    ensure!(
        screen.trim_end().lines().count() == 24,
        "the last line has keys:\n{screen}"
    );
    subscribers(&pane, &daemon)?;

    pane.press(&["3"])?;
    let screen = pane.sees("datagrams")?;
    line(&screen, "LATENESS P99         <128 us")?;
    line(&screen, "24 ms, CPU 11 ms, hello 21 ms late")?;
    pane.press(&["4"])?;
    pane.sees("refused: the daemon is of another version than this program")?;
    pane.press(&["h"])?;
    pane.sees("stop; fg continues")?;
    pane.press(&["x", "1"])?;
    pane.sees("297 up")?;

    drop(daemon);
    pane.sees("no connection: no daemon at")?;
    let _daemon = Fake::start(&socket)?;
    pane.becomes("a connection", |screen| !screen.contains("no connection"))?;
    pane.sees("1 Gbit/s")?;
    pane.press(&["q"])?;
    pane.is_back()?;
    pane.run("echo status=$?")?;
    pane.sees("\nstatus=0")?;
    Ok(())
}

/// The list, the filter and an opened subscriber.
fn subscribers(pane: &Pane, daemon: &Fake) -> Result<()> {
    pane.press(&["2"])?;
    let is_sorted = |screen: &str| {
        screen
            .lines()
            .nth(3)
            .is_some_and(|line| line.starts_with("user299@"))
    };
    let screen = pane.becomes("the fastest first", is_sorted)?;
    line(&screen, "300 of 300, by rate")?;
    pane.press(&["s"])?;
    pane.becomes("an order by name", |screen| {
        screen.contains("by name")
            && screen
                .lines()
                .nth(3)
                .is_some_and(|line| line.starts_with("user000@"))
    })?;
    pane.press(&["/", "u", "s", "e", "r", "0", "1", "7"])?;
    pane.sees("filter: user017")?;
    pane.sees("1 of 300, by name")?;
    daemon.asked();
    pane.press(&["Enter", "Enter"])?;
    let screen = pane.sees("round trip       1.02 ms")?;
    line(&screen, "user017@example.net  up")?;
    pane.press(&["Down", "NPage", "NPage"])?;
    pane.sees("access-7")?;
    daemon.asked();
    let polled = until(SOON, || {
        let asked = daemon.asked();
        Ok((!asked.is_empty()).then_some(asked))
    })?;
    ensure!(
        polled.is_some_and(|asked| asked
            .iter()
            .all(|verb| verb == "show.now" || verb == "show.subscriber")),
        "the opened subscriber alone is asked for"
    );
    pane.press(&["Escape"])?;
    pane.sees("1 of 300")?;
    pane.press(&["Escape"])?;
    pane.sees("300 of 300")?;
    Ok(())
}

/// A real daemon with 10,000 neighbours, of which BIRD is one that is up.
pub(crate) fn shows_ten_thousand_peers(bench: &Bench<'_>) -> Result<()> {
    let bird = Router::start(bench, Kind::Bird, &Setup::default())?;
    let mut others = String::new();
    for n in 0..9_999_u32 {
        let (high, low) = (n / 250, n % 250 + 1);
        let name = format!("peer-{n:04}");
        others += &format!(
            "[[bgp.neighbor]]\naddress = \"10.77.{high}.{low}\"\nname = \"{name}\"\nremote_asn = 65002\npassive = true\n"
        );
    }
    let us = Headend::speaker(bench, &super::bgp::settings("", "name = \"bird\"", &others))?;
    us.established(LAC)?;
    let pane = Pane::start(&bench.directory)?;
    let command = format!(
        "{} top --interval 0.5 --view peers --socket {}",
        bench.headend.display(),
        us.socket().display()
    );
    pane.run(&command)?;
    let screen = pane.sees("10,000 of 10,000 peers, by address")?;
    line(&screen, "1 of 10,000 established")?;
    // BIRD announces three prefixes.
    pane.becomes("BIRD's session and prefixes", |screen| {
        let mut rows = screen.lines().filter(|row| row.starts_with("10.9.0.1 "));
        rows.any(|row| {
            let words: Vec<&str> = row.split_whitespace().collect();
            words.get(1..3) == Some(&["65001", "Established"]) && words.contains(&"3")
        })
    })?;
    pane.press(&["G"])?;
    pane.sees("10.77.39.249")?;
    pane.press(&["/", "b", "i", "r", "d"])?;
    pane.sees("1 of 10,000 peers")?;
    pane.press(&["Escape", "Escape", "Home", "s"])?;
    // Sessions that are down come first.
    let screen = pane.sees("by state")?;
    ensure!(!screen.contains("10.9.0.1 "), "{screen}");
    pane.press(&["r"])?;
    pane.becomes("the session that is up first", |screen| {
        screen
            .lines()
            .nth(5)
            .is_some_and(|line| line.starts_with("10.9.0.1 "))
            || screen
                .lines()
                .nth(4)
                .is_some_and(|line| line.starts_with("10.9.0.1 "))
    })?;
    drop(bird);
    pane.sees("0 of 10,000 established")?;
    pane.press(&["q"])?;
    pane.is_back()?;
    us.stop()
}

/// The terminal is as before after a stop, a signal and the end; too small and dumb terminals are refused in words.
pub(crate) fn gives_the_terminal_back(bench: &Bench<'_>) -> Result<()> {
    let (socket, command) = place(bench);
    let _daemon = Fake::start(&socket)?;
    let pane = Pane::start(&bench.directory)?;
    // The process ids of /proc are those outside this namespace, so the shell says its own.
    let [id, end] = ["id", "end"].map(|name| bench.directory.join(name));
    pane.run(&format!(
        "sh -c 'echo $$ > {}; exec {command}'",
        id.display()
    ))?;
    pane.sees("297 up")?;
    ensure!(pane.is_coloured()?, "there are colours");
    let id = std::fs::read_to_string(id)?.trim().parse()?;
    let pid = Pid::from_raw(id).context("a process id")?;
    for way in ["key", "signal"] {
        match way {
            "key" => pane.press(&["C-z"])?,
            _ => kill_process(pid, Signal::TSTP)?,
        }
        pane.sees("Stopped")?;
        pane.is_back()?;
        // In raw mode, the line would not reach the shell.
        pane.run(&format!("clear; echo after-$((1+1))-{way}"))?;
        pane.sees(&format!("after-2-{way}"))?;
        pane.run("fg")?;
        pane.sees("297 up")?;
    }
    pane.resize(59, 24)?;
    pane.sees("59x24 is too small")?;
    pane.resize(80, 24)?;
    pane.sees("297 up")?;
    kill_process(pid, Signal::TERM)?;
    pane.is_back()?;
    pane.run("echo status=$?")?;
    pane.sees("\nstatus=130")?;

    pane.run(&format!("clear; TERM=dumb {command}; echo dumb=$?"))?;
    let screen = pane.sees("\ndumb=1")?;
    ensure!(
        screen.replace('\n', "").contains("cannot place text"),
        "{screen}"
    );
    pane.run(&format!("clear; {command} --once < /dev/null | head -n 3"))?;
    pane.sees("SUBSCRIBERS 297 up")?;
    pane.is_back()?;
    // This shell outlives the terminal and notes how the program ended.
    let noted = format!("NO_COLOR=1 {command}; echo $? > {}", end.display());
    pane.run(&format!(
        "clear; sh -c \"trap '' HUP; {}\"",
        noted.replace('$', "\\$")
    ))?;
    pane.sees("q quit")?;
    ensure!(!pane.is_coloured()?, "NO_COLOR has colours");

    pane.close()?;
    let status = until(SOON, || {
        let status = std::fs::read_to_string(&end).unwrap_or_default();
        Ok((!status.is_empty()).then_some(status))
    })?;
    ensure!(
        status.as_deref() == Some("130\n"),
        "it ended with {status:?}"
    );
    Ok(())
}
