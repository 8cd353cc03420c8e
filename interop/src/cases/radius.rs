//! Debian's freeradius authenticates subscribers of our LNS, and receives their accounting records.

use super::SOON;
use crate::capture::Capture;
use crate::freeradius::{FreeRadius, Record, Replies};
use crate::headend::Headend;
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{
    OWN, address, client_settings, lns_settings, move_in, ping, ping_answered, private_file,
    radius_settings,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// freeradius's users, in the order in which they dial in.
const USERS: &str = r#"
user1 Cleartext-Password := "sesame"
	Service-Type = Framed-User, Framed-Protocol = PPP, Framed-IP-Address = 10.64.9.9, Class = "gold"
user2 Cleartext-Password := "sesame"
	Framed-Pool = "guests"
user3 Cleartext-Password := "sesame"
	Framed-Route = "10.70.0.0/24 0.0.0.0 1"
user4 Cleartext-Password := "sesame"
	Filter-Id = "closed"
user5 Cleartext-Password := "sesame"
	Session-Timeout = 3
user6 Cleartext-Password := "another"
	Reply-Message = "not you"
"#;

/// The users of [`USERS`] that are accepted, and two that are not.
const LET_IN: usize = 5;
const DIALLED: usize = 7;

/// A filter by this name, and a second pool.
const SECTIONS: &str =
    "[[pool]]\nname = \"guests\"\nranges = [\"10.65.0.0/24\"]\n[filter]\nfile = \"filters.txt\"\n";
const FILTERS: &str = "filter closed\nin\n    deny icmp from any to any\n    default accept\n";

/// Networks outside the pools that the LNS's namespace routes through it.
const ROUTES: &str = "routes = [\"10.64.9.9/32\", \"10.70.0.0/24\"]";

/// By CHAP.
pub(crate) fn decides_by_chap(bench: &Bench<'_>) -> Result<()> {
    decides(bench, "chap")
}

/// By PAP.
pub(crate) fn decides_by_pap(bench: &Bench<'_>) -> Result<()> {
    decides(bench, "pap")
}

fn decides(bench: &Bench<'_>, way: &str) -> Result<()> {
    private_file(bench, "filters.txt", FILTERS)?;
    let server = FreeRadius::start(&bench.wire.lns, &bench.directory, USERS, Replies::Proven)?;
    let ppp = format!("authenticate = [\"{way}\"]\ninterim_interval_s = 1");
    let sections = format!("{SECTIONS}{}", radius_settings());
    let lns = Headend::lns(bench, &lns_settings(&ppp, ROUTES, &sections))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let capture = Capture::start(&bench.wire.lns, &bench.directory)?;
    let tunnel = lac.dial_tunnel()?;
    for _ in 0..DIALLED {
        // One at a time, so that the numbers are known.
        lac.dial(&tunnel, 1)?;
    }
    lns.on_line("user5")?;
    lns.all_on_line(LET_IN)?;

    reads_what_is_granted(bench, &lns)?;
    refuses_the_others(&server, &lns, way)?;
    let over = lns.gone("user5")?;
    ensure!(over["terminate_cause"] == 5, "{over}");
    let third = lns.on_line("user3")?;
    let first = lac.on_line("user1")?;
    let session = first["session"].to_string();
    lac.verb(&[
        "session",
        "delete",
        "--tunnel",
        &tunnel,
        "--session",
        &session,
    ])?;
    lns.gone("user1")?;
    lac.verb(&["tunnel", "delete", &tunnel])?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    goes_to_the_network(capture, &third)?;
    lns.stop()?;
    has_accounts(&server)
}

/// Addresses, a network and a filter, as packets show them.
fn reads_what_is_granted(bench: &Bench<'_>, lns: &Headend) -> Result<()> {
    let (inside, outside) = (&bench.wire.lns, &bench.wire.lac);
    let fixed = address(&lns.on_line("user1")?)?;
    ensure!(fixed == "10.64.9.9", "{fixed}");
    let pooled = address(&lns.on_line("user2")?)?;
    ensure!(pooled.starts_with("10.65.0."), "{pooled}");
    let closed = lns.on_line("user4")?;
    ensure!(closed["filter"] == "closed", "{closed}");
    let closed = address(&closed)?;
    for home in [&fixed, &pooled, &closed] {
        move_in(outside, home)?;
    }
    // 100 bytes with their headers, in both directions: the amount that accounting must report.
    let hundred = ["-c", "5", "-s", "72", "-I"];
    ping_answered(inside, &fixed, &[&hundred[..], &[OWN]].concat())?;
    ping_answered(inside, &pooled, &["-c", "2"])?;
    let before = lns.counter("edge_filtered")?;
    let printed = ping(inside, &closed, &["-c", "3"])?;
    ensure!(
        printed.contains("3 packets transmitted, 0 received"),
        "{printed}"
    );
    let filtered = lns.counter("edge_filtered")? - before;
    ensure!(filtered == 3, "{filtered} packets were filtered");
    // No host answers: only the packets' route matters.
    ping(inside, "10.70.0.9", &["-c", "2"]).map(drop)
}

/// A wrong password and an unknown name, in freeradius's output and in ours.
fn refuses_the_others(server: &FreeRadius, lns: &Headend, way: &str) -> Result<()> {
    let wrong = match way {
        "pap" => "Cleartext password does not match",
        _ => "Password comparison failed",
    };
    let printed = server.process.printed();
    ensure!(printed.contains(wrong), "freeradius did not say {wrong:?}");
    for name in ["user6", "user7"] {
        let refused = lns.gone(name)?;
        let reason = refused["reason"].as_str().unwrap_or_default();
        ensure!(
            reason.contains("not let in") && reason.contains("reject"),
            "{refused}"
        );
        ensure!(refused["up_s"].is_null(), "{refused}");
        let account = refused["account"].as_str().unwrap_or_default();
        let told = server
            .records()
            .iter()
            .any(|record| record.session() == account);
        ensure!(!told, "{name} has an account: {refused}");
    }
    Ok(())
}

/// Packets to the framed network entered the session of its subscriber.
fn goes_to_the_network(capture: Capture, third: &Value) -> Result<()> {
    let decoded = capture.finish()?;
    // Our LAC, which has no such network, sends errors that quote them.
    let sent = "ip.dst == 10.70.0.9 && !(icmp.type == 3)";
    let rows = decoded.fields(sent, &["l2tp.tunnel", "l2tp.session"])?;
    ensure!(rows.len() == 2, "{rows:?}");
    let sessions: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    let all = decoded.fields("icmp && ip.dst == 10.64.9.9", &["l2tp.session"])?;
    let first = all.first().context("pings of user1")?[0].as_str();
    ensure!(
        sessions[0] == sessions[1] && sessions[0] != first,
        "{sessions:?} {first}"
    );
    ensure!(third["packets_out"] == 2, "{third}");
    Ok(())
}

/// freeradius's records of all accepted users, after they have disconnected.
fn has_accounts(server: &FreeRadius) -> Result<()> {
    let all_there = until(SOON, || {
        let records = server.records();
        let off = records.iter().any(|one| one.status() == "Accounting-Off");
        Ok(off.then_some(records))
    })?;
    let records = all_there.context("freeradius was not told Accounting-Off")?;
    ensure!(records[0].status() == "Accounting-On", "{:?}", records[0]);
    for n in 1..=LET_IN {
        let name = format!("user{n}");
        let own: Vec<&Record> = records.iter().filter(|one| one.user() == name).collect();
        let statuses: Vec<&str> = own.iter().map(|one| one.status()).collect();
        ensure!(
            statuses.first() == Some(&"Start") && statuses.last() == Some(&"Stop"),
            "{name}: {statuses:?}"
        );
        ensure!(
            statuses
                .iter()
                .filter(|one| **one == "Interim-Update")
                .count()
                + 2
                == own.len(),
            "{name}: {statuses:?}"
        );
        let same = own.iter().all(|one| one.session() == own[0].session());
        ensure!(same, "{name} has several accounts");
    }
    let of = |name: &str, status: &str| {
        let mut found = records
            .iter()
            .filter(|one| one.user() == name && one.status() == status);
        found
            .next_back()
            .with_context(|| format!("{status} of {name}"))
    };
    for status in ["Interim-Update", "Stop"] {
        let record = of("user1", status)?;
        for direction in ["Input", "Output"] {
            let octets = record.number(&format!("Acct-{direction}-Octets"));
            let packets = record.number(&format!("Acct-{direction}-Packets"));
            ensure!(
                (octets, packets) == (500, 5),
                "{status} {direction}: {record:?}"
            );
        }
        // "gold", as granted.
        ensure!(record.get("Class") == "0x676f6c64", "{record:?}");
        ensure!(record.get("Framed-IP-Address") == "10.64.9.9", "{record:?}");
    }
    for (name, cause) in [
        ("user5", "Session-Timeout"),
        ("user1", "User-Request"),
        ("user2", "Lost-Carrier"),
    ] {
        let stop = of(name, "Stop")?;
        ensure!(stop.get("Acct-Terminate-Cause") == cause, "{stop:?}");
    }
    let time = of("user5", "Stop")?.number("Acct-Session-Time");
    ensure!((3..=4).contains(&time), "user5 stayed for {time} s");
    Ok(())
}

/// Replies without Message-Authenticator are rejected, and reported.
pub(crate) fn must_prove_its_replies(bench: &Bench<'_>) -> Result<()> {
    let users = "user1 Cleartext-Password := \"sesame\"\n";
    let mut server = FreeRadius::start(&bench.wire.lns, &bench.directory, users, Replies::Bare)?;
    let lns = Headend::lns(bench, &lns_settings("", "", &radius_settings()))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    server.process.wait_for("Sent Access-Accept", SOON)?;
    let refused = lns.gone("user1")?;
    let reason = refused["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("Message-Authenticator"), "{refused}");
    ensure!(server.records().iter().all(|one| one.user() != "user1"));
    lns.stop()
}

/// Users with rates in the formats of several vendors, each with what `show subscriber` prints about them.
const SHAPED: &str = r#"
user1 Cleartext-Password := "sesame"
	WISPr-Bandwidth-Max-Down = 20000000, WISPr-Bandwidth-Max-Up = 2000000
user2 Cleartext-Password := "sesame"
	Mikrotik-Rate-Limit = "5M/40M 8M/60M"
user3 Cleartext-Password := "sesame"
	Cisco-AVPair = "ip:sub-qos-policy-out=gold", Cisco-AVPair += "ip:sub-qos-policy-in=slow"
user4 Cleartext-Password := "sesame"
	Filter-Id = "gold"
user5 Cleartext-Password := "sesame"
	Attr-26.32473.2 = 0x37306d626974, Attr-26.32473.4 = 0x6163636573732d37, Mikrotik-Rate-Limit = "1M"
user6 Cleartext-Password := "sesame"
	Mikrotik-Rate-Limit = "fast"
"#;

const QUEUES: &str = "[queue.default]\nrate_up = \"9mbit\"\n\
    [[queue.template]]\nname = \"gold\"\nrate_down = \"50mbit\"\n\
    [[queue.template]]\nname = \"slow\"\nrate_up = \"1mbit\"\n\
    [[queue.link]]\nname = \"access-7\"\ndown = \"100mbit\"\n";

/// Rates, templates and links in attributes of several vendors, and a value that cannot be read.
pub(crate) fn gives_rates(bench: &Bench<'_>) -> Result<()> {
    let server = FreeRadius::start(&bench.wire.lns, &bench.directory, SHAPED, Replies::Proven)?;
    let radius = radius_settings().replace("[radius]\n", "[radius]\naccounting_queue = true\n");
    let sections = format!("{QUEUES}{radius}");
    let lns = Headend::lns(bench, &lns_settings("", "", &sections))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let tunnel = lac.dial_tunnel()?;
    for _ in 0..6 {
        lac.dial(&tunnel, 1)?;
    }
    lns.on_line("user6")?;
    lns.all_on_line(6)?;
    for (name, lines) in [
        ("user1", "20 Mbit/s (radius)|2 Mbit/s (radius)|default|"),
        ("user2", "40 Mbit/s (radius)|5 Mbit/s (radius)|default|"),
        (
            "user3",
            "50 Mbit/s (radius)|1 Mbit/s (radius)|gold (radius)|",
        ),
        (
            "user4",
            "50 Mbit/s (radius)|9 Mbit/s (default)|gold (radius)|",
        ),
        (
            "user5",
            "70 Mbit/s (radius)|1 Mbit/s (radius)|default|access-7 (radius)",
        ),
        ("user6", "|9 Mbit/s (default)|default|"),
    ] {
        let page = lns.verb(&["show", "subscriber", name])?;
        let value = |label: &str| {
            let mut lines = page.lines();
            let line = lines.find_map(|line| line.strip_prefix(label));
            line.unwrap_or_default().trim().to_owned()
        };
        let shown = ["rate down", "rate up", "template", "link"].map(value);
        ensure!(shown.join("|") == lines, "{name}: {shown:?}\n{page}");
    }
    let faults = lns.counter("subscriber_queue_faults")?;
    ensure!(faults == 1, "{faults} values were left out");
    let told = lns.verb(&["session", "set", "user5", "--rate-down", "30mbit"])?;
    ensure!(told.contains("70 Mbit/s -> 30 Mbit/s"), "{told}");
    lac.verb(&["tunnel", "delete", &tunnel])?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    lns.stop()?;
    let stopped = until(SOON, || {
        let records = server.records();
        let mut stops = records.into_iter().filter(|one| one.status() == "Stop");
        Ok(stops.find(|one| one.user() == "user5"))
    })?;
    let stop = stopped.context("no Stop of user5")?;
    for attribute in 16..20 {
        let name = format!("Attr-26.32473.{attribute}");
        ensure!(stop.get(&name) == "0x00000000", "{name}: {stop:?}");
    }
    Ok(())
}
