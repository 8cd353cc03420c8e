//! Our LNS is killed while accounting records wait, and restarted: which records freeradius receives.

use super::SOON;
use crate::freeradius::{FreeRadius, Record, Replies};
use crate::headend::Headend;
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{client_settings, lns_settings, private_file, radius_settings, users};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Subscribers whose accounting starts before the server stops, while it is down, and as the LNS is killed.
const BEFORE: usize = 40;
const AWAY: usize = 40;
const LAST: usize = 40;

/// A SIGKILL may lose only records younger than the commit interval plus the time of two commits
/// (docs/accounting-records.md); a busy machine gets one second more.
const BOUND: Duration = Duration::from_millis(1_070);

/// User names by accounting session id.
type Accounts = BTreeMap<String, String>;

/// Records older than the bound arrive in order; duplicates are reported.
pub(crate) fn loses_no_record_that_is_older_than_the_bound(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(BEFORE + AWAY + LAST))?;
    let sections = format!("[users]\nfile = \"users.toml\"\n{}", radius_settings());
    let settings = lns_settings("interim_interval_s = 1", "", &sections);
    let start_server = || FreeRadius::start(&bench.wire.lns, &bench.directory, "", Replies::Proven);
    let server = start_server()?;
    let lns = Headend::lns(bench, &settings)?;
    let lac = Headend::lac(bench, &client_settings())?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, BEFORE)?;
    lns.all_on_line(BEFORE)?;
    until(SOON, || {
        let records = server.records();
        let starts = records.iter().filter(|one| one.status() == "Start");
        Ok((starts.count() == BEFORE).then_some(()))
    })?
    .context("freeradius was not told of the first")?;
    server.stop()?;

    let (begun, ended) = change_without_server(&lns, &lac, &tunnel)?;
    std::thread::sleep(BOUND);
    // Records that are too young to be safe.
    let last = LAST.to_string();
    lac.verb(&[
        "session",
        "create",
        "--tunnel",
        &tunnel,
        "--count",
        &last,
        "--no-wait",
    ])?;
    std::thread::sleep(Duration::from_millis(60));
    lns.process.signal(Signal::KILL)?;
    drop(lns);
    drop(lac);

    // It is killed again while freeradius receives them; the last ones acknowledged may be sent twice.
    let server = start_server()?;
    let had = server.records().len();
    let lns = Headend::lns(bench, &settings)?;
    until(SOON, || Ok((server.records().len() > had).then_some(())))?
        .context("freeradius got no record after the restart")?;
    lns.process.signal(Signal::KILL)?;
    drop(lns);
    let lns = Headend::lns(bench, &settings)?;
    let records = records_after(&server, &begun)?;
    lns.stop()?;
    judge(bench, &records, &begun, &ended)
}

/// While no server accepts records, the first subscribers continue, others start, and half of all end. Returns the
/// accounts that began, and those of them that ended.
fn change_without_server(
    lns: &Headend,
    lac: &Headend,
    tunnel: &str,
) -> Result<(Accounts, Accounts)> {
    lac.dial(tunnel, AWAY)?;
    lns.all_on_line(BEFORE + AWAY)?;
    let leaving: Vec<String> = (1..=BEFORE + AWAY)
        .step_by(2)
        .map(|n| format!("user{n}"))
        .collect();
    for name in &leaving {
        lns.verb(&["session", "drop", name])?;
    }
    lns.all_on_line(BEFORE + AWAY - leaving.len())?;
    let ended = accounts(lns, &["subscribers", "--ended"])?;
    let mut begun = ended.clone();
    for row in lns.show(&["subscribers"])? {
        let name = row["name"].as_str().context("a name")?.to_owned();
        let detail = lns.show(&["subscriber", &name])?.remove(0);
        begun.insert(
            detail["account"].as_str().context("an account")?.into(),
            name,
        );
    }
    ensure!(ended.len() == leaving.len() && begun.len() == BEFORE + AWAY);
    Ok((begun, ended))
}

/// The server's records, once all expected ones are there, or after [`SOON`]: [`judge`] reports those still missing.
fn records_after(server: &FreeRadius, begun: &Accounts) -> Result<Vec<Record>> {
    until(SOON, || {
        let records = server.records();
        // A record may arrive twice.
        let count = |status: &str| {
            let all = records.iter().filter(|one| one.status() == status);
            let sessions: BTreeSet<&str> = all.map(Record::session).collect();
            let is_one = |account: &&String| sessions.contains(account.as_str());
            begun.keys().filter(is_one).count()
        };
        let on = records.iter().filter(|one| one.status() == "Accounting-On");
        let all = count("Start") == begun.len() && count("Stop") == begun.len();
        Ok((all && on.count() >= 2).then_some(()))
    })?;
    Ok(server.records())
}

fn accounts(lns: &Headend, what: &[&str]) -> Result<Accounts> {
    let rows = lns.show(what)?;
    let account = |field: &serde_json::Value| field.as_str().map(str::to_owned);
    rows.iter()
        .map(|row| {
            let pair = account(&row["account"]).zip(account(&row["name"]));
            pair.with_context(|| format!("an account in {row}"))
        })
        .collect()
}

/// What is missing of the records of one account; `has_ended`: its session ended before the kill.
fn missing_of(own: &[&Record], name: &str, has_ended: bool) -> Vec<String> {
    let is = |status: &str| own.iter().filter(|one| one.status() == status).count();
    // Sessions that the kill ended get their Stop at the next start (NAS-Reboot).
    let is_reboot = |one: &&&Record| one.get("Acct-Terminate-Cause") == "NAS-Reboot";
    let reboots = own.iter().filter(is_reboot).count();
    let counts = [
        ("Start", is("Start"), 1),
        ("Stop", is("Stop"), 1),
        ("Stop by NAS-Reboot", reboots, usize::from(!has_ended)),
    ];
    let wrong = counts.iter().filter(|(_, count, wanted)| count != wanted);
    wrong
        .map(|(what, count, _)| format!("{count} {what} of {name}"))
        .collect()
}

/// Compares freeradius's records with the expected ones.
fn judge(bench: &Bench<'_>, records: &[Record], begun: &Accounts, ended: &Accounts) -> Result<()> {
    let mut by_account: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|one| !one.user().is_empty()) {
        by_account.entry(record.session()).or_default().push(record);
    }
    let mut twice: BTreeMap<&str, u64> = BTreeMap::new();
    for own in by_account.values_mut() {
        let mut seen = BTreeSet::new();
        own.retain(|one| {
            let what = (
                one.status(),
                one.get("Event-Timestamp"),
                one.number("Acct-Session-Time"),
            );
            let is_new = seen.insert((what.0.to_owned(), what.1.to_owned(), what.2));
            if !is_new {
                *twice.entry(what.0).or_insert(0) += 1;
            }
            is_new
        });
    }
    let mut missing = Vec::new();
    for (account, name) in begun {
        let own = by_account
            .get(account.as_str())
            .map_or(&[][..], Vec::as_slice);
        missing.extend(missing_of(own, name, ended.contains_key(account)));
        // Session times grow from record to record, starting with Start and ending with Stop.
        let times: Vec<u64> = own
            .iter()
            .map(|one| one.number("Acct-Session-Time"))
            .collect();
        ensure!(times.is_sorted(), "{name}: {times:?}");
        let statuses: Vec<&str> = own.iter().map(|one| one.status()).collect();
        let start = statuses.iter().position(|one| *one == "Start");
        let stop = statuses.iter().position(|one| *one == "Stop");
        ensure!(
            start.is_none_or(|at| at == 0) && stop.is_none_or(|at| at + 1 == own.len()),
            "{name}: {statuses:?}"
        );
    }
    let young = by_account
        .keys()
        .filter(|one| !begun.contains_key(**one))
        .count();
    let interim = records
        .iter()
        .filter(|one| one.status() == "Interim-Update")
        .count();
    let told = format!(
        "records of {} accounts that were older than {} ms: {} Start, {} Stop, {interim} Interim-Update; missing: {missing:?}\n\
         of {LAST} sessions started as it was killed: {young} have an account\n\
         came again: {twice:?}\n",
        begun.len(),
        BOUND.as_millis(),
        begun.len() - missing.iter().filter(|one| one.contains("Start")).count(),
        begun.len() - missing.iter().filter(|one| one.contains("Stop")).count(),
    );
    print!("{told}");
    std::fs::write(bench.directory.join("counts.txt"), &told)?;
    ensure!(missing.is_empty(), "{told}");
    Ok(())
}
