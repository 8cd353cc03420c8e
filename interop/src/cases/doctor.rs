//! `headend doctor` and Debian's freeradius: a server that is off, the right secret and a wrong one. On the way, the
//! printed mends are carried out.

use crate::freeradius::{FreeRadius, Replies, SECRET};
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long freeradius may take to start.
const SOON: Duration = Duration::from_secs(20);

/// The users of a server that nobody asks for one.
const USERS: &str = "ann Cleartext-Password := \"sesame\"\n";

/// Writes an LNS's configuration with that secret, and additional keys of `[ppp]` and of the server.
fn configure(bench: &Bench<'_>, secret: &str, (ppp, server): (&str, &str)) -> Result<PathBuf> {
    let file = bench.directory.join("lns.toml");
    let socket = bench.directory.join("lns.sock");
    let text = format!(
        "[control]\nsocket = {socket:?}\n[lns]\nlisten = [\"127.0.0.1:0\"]\n[ppp]\naddress = \"10.64.255.1\"\n{ppp}\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[radius]\naccounting_store = \"accounting.redb\"\n\
         [[radius.server]]\nname = \"one\"\nauthentication = \"127.0.0.1:1812\"\naccounting = \"127.0.0.1:1813\"\n\
         secret = {secret:?}\n{server}"
    );
    std::fs::write(&file, text)?;
    rustix::fs::chmod(&file, rustix::fs::Mode::from_raw_mode(0o600))?;
    Ok(file)
}

/// The findings of a check.
fn findings(bench: &Bench<'_>, check: &str, more: &[&str]) -> Result<Vec<Value>> {
    let mut command = bench.wire.lns.command(bench.headend);
    command.args(["doctor", "--json", "--config"]);
    command.arg(bench.directory.join("lns.toml")).args(more);
    let output = command.output().context("headend doctor")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(!text.contains(SECRET), "the secret is printed: {text}");
    let rows = text.lines().map(serde_json::from_str);
    let rows = rows.collect::<Result<Vec<Value>, _>>()?;
    Ok(rows
        .into_iter()
        .filter(|row| row["check"] == check)
        .collect())
}

/// Requires the state, and texts that the sentence or the mend contains.
fn is(finding: &Value, state: &str, parts: &[&str]) -> Result<()> {
    let text = finding.to_string();
    ensure!(finding["state"] == state, "it is no {state}: {text}");
    for part in parts {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    Ok(())
}

/// Runs a mend in the LNS's namespace, with the programs of `place` first.
fn mend(bench: &Bench<'_>, finding: &Value) -> Result<()> {
    let line = finding["mend"].as_str().context("a mend")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = bench.wire.lns.command("sh");
    shell.env("PATH", format!("{}:{path}", bench.directory.display()));
    let status = shell.args(["-c", line]).status()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// A `systemctl` that starts the server with the settings of this directory: there is no systemd here.
fn stand_in(bench: &Bench<'_>) -> Result<PathBuf> {
    let file = bench.directory.join("systemctl");
    let place = bench.directory.display();
    let text = format!(
        "#!/bin/sh\n[ \"$*\" = \"start freeradius\" ] || exit 1\n\
         freeradius -f -l stdout -d {place}/raddb > {place}/started.log 2>&1 < /dev/null &\necho $! > {place}/pid\n"
    );
    std::fs::write(&file, text)?;
    rustix::fs::chmod(&file, rustix::fs::Mode::from_raw_mode(0o755))?;
    Ok(bench.directory.join("pid"))
}

/// A server that requires signed requests: off, then started as printed, then with another secret.
pub(crate) fn asks_a_strict_freeradius(bench: &Bench<'_>) -> Result<()> {
    configure(bench, SECRET, ("", ""))?;
    // This writes its settings.
    FreeRadius::start(&bench.wire.lns, &bench.directory, USERS, Replies::Proven)?.stop()?;
    let file = bench.directory.join("raddb/radiusd.conf");
    let text = std::fs::read_to_string(&file)?;
    std::fs::write(
        &file,
        text.replace("security {\n", "security {\n status_server = yes\n"),
    )?;
    let pid = stand_in(bench)?;
    let off = findings(bench, "radius", &[])?;
    ensure!(off.len() == 2, "{off:?}");
    for (finding, purpose) in off.iter().zip(["authentication", "accounting"]) {
        let command = "systemctl start freeradius";
        is(finding, "fault", &[purpose, "is not running", command])?;
    }
    mend(bench, &off[0])?;
    let started = until(SOON, || {
        let found = findings(bench, "radius", &[])?;
        Ok(found
            .iter()
            .all(|row| row["state"] == "ok")
            .then_some(found))
    })?;
    let found = started.with_context(|| format!("{:?}", findings(bench, "radius", &[])))?;
    // This server signs replies to Access-Requests only, which is what the daemon sends.
    for (finding, kind) in found.iter().zip(["Access-Request", "Status-Server"]) {
        is(finding, "ok", &["answers", kind, "the reply verifies"])?;
    }

    configure(bench, "another secret", ("", ""))?;
    let found = findings(bench, "radius", &[])?;
    // It drops every request that it cannot verify, so nothing more can be known.
    let drops = "drops requests that it cannot verify";
    is(
        &found[0],
        "fault",
        &["is silent", "the secrets differ", drops],
    )?;
    is(&found[1], "advice", &["does not answer Status-Server"])?;
    let pid = std::fs::read_to_string(pid)?.trim().parse()?;
    kill_process(Pid::from_raw(pid).context("a process id")?, Signal::TERM)?;
    Ok(())
}

/// A server that answers unsigned requests: its reply shows that the secrets differ. The path is narrower than the
/// configuration says.
pub(crate) fn asks_an_open_freeradius(bench: &Bench<'_>) -> Result<()> {
    let server = FreeRadius::start(&bench.wire.lns, &bench.directory, USERS, Replies::Bare)?;
    configure(bench, SECRET, ("", ""))?;
    let found = findings(bench, "radius", &[])?;
    let unsigned = "answers Access-Request, but without Message-Authenticator";
    let key = "require_message_authenticator = false";
    is(
        &found[0],
        "fault",
        &["one (authentication, 127.0.0.1:1812)", unsigned, key],
    )?;
    // It has no Status-Server, as configured here.
    let no_status = ["one (accounting, 127.0.0.1:1813)", "status_server = yes"];
    is(&found[1], "advice", &no_status)?;
    configure(bench, SECRET, ("", &format!("{key}\n")))?;
    let found = findings(bench, "radius", &[])?;
    is(
        &found[0],
        "ok",
        &["answers Access-Request in", "the reply verifies"],
    )?;
    configure(bench, "another secret", ("", ""))?;
    let found = findings(bench, "radius", &[])?;
    let to = "answers Access-Request without Message-Authenticator";
    is(
        &found[0],
        "fault",
        &[to, "does not verify: the secrets differ"],
    )?;
    is(&found[1], "advice", &["does not answer Status-Server"])?;
    server.stop()?;

    bench.wire.lns.ip(&["link", "set", "wire", "mtu", "1400"])?;
    let to = ["--peer", LAC];
    let found = findings(bench, "path", &to)?;
    let keys = "path_mtu = 1400 and mru = 1362";
    is(&found[0], "advice", &["carries 1400 bytes", keys])?;
    configure(bench, SECRET, ("path_mtu = 1400\nmru = 1362\n", ""))?;
    is(
        &findings(bench, "path", &to)?[0],
        "ok",
        &["1400 bytes reach 10.9.0.1"],
    )
}
