//! freeradius decides by RFC 2868 to which LNS a session is handed over: tagged tunnels with preferences, encrypted
//! passwords, names and assignments.
//!
//! ```text
//! client (namespace "lac") ==== headend and freeradius (namespace "lns") ==== two headends, xl2tpd (namespace "far")
//! ```

use super::SOON;
use crate::freeradius::{FreeRadius, Record, Replies, SECRET, coa, disconnect};
use crate::headend::Headend;
use crate::net::{Namespace, join};
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{
    address, client_settings, lns_settings, move_in, ping_answered, private_file, radius_settings,
    users,
};
use crate::xl2tpd::{Setup, VERBOSE, Xl2tpd, lns_section};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Sessions whose two tunnels have equal preferences. The chance that all of them take one is 1 in 32,768.
const SHARED: usize = 16;

/// The first LNS of user1 is not there. user2 goes to xl2tpd, user3 back to the daemon that asks.
const USERS: &str = r#"
user1 Cleartext-Password := "sesame"
	Tunnel-Type:1 = L2TP, Tunnel-Medium-Type:1 = IPv4, Tunnel-Server-Endpoint:1 = "10.8.0.9", Tunnel-Preference:1 = 10,
	Tunnel-Password:1 = "no such secret",
	Tunnel-Type:2 = L2TP, Tunnel-Medium-Type:2 = IPv4, Tunnel-Server-Endpoint:2 = "10.8.0.2", Tunnel-Preference:2 = 20,
	Tunnel-Password:2 = "alpha secret", Tunnel-Assignment-Id:2 = "gold", Tunnel-Client-Auth-Id:2 = "gold-lac"
user2 Cleartext-Password := "sesame"
	Tunnel-Type:7 = L2TP, Tunnel-Medium-Type:7 = IPv4, Tunnel-Server-Endpoint:7 = "10.8.0.3",
	Tunnel-Password:7 = "beta secret", Tunnel-Client-Auth-Id:7 = "silver-lac"
user3 Cleartext-Password := "sesame"
	Tunnel-Type:1 = L2TP, Tunnel-Medium-Type:1 = IPv4, Tunnel-Server-Endpoint:1 = "10.8.0.1"
DEFAULT User-Name =~ "^user", Cleartext-Password := "sesame"
	Tunnel-Type:1 = L2TP, Tunnel-Medium-Type:1 = IPv4, Tunnel-Server-Endpoint:1 = "10.8.0.2", Tunnel-Preference:1 = 5,
	Tunnel-Password:1 = "alpha secret", Tunnel-Assignment-Id:1 = "blue", Tunnel-Client-Auth-Id:1 = "blue-lac",
	Tunnel-Type:2 = L2TP, Tunnel-Medium-Type:2 = IPv4, Tunnel-Server-Endpoint:2 = "10.8.0.4", Tunnel-Preference:2 = 5,
	Tunnel-Password:2 = "gamma secret", Tunnel-Assignment-Id:2 = "blue", Tunnel-Client-Auth-Id:2 = "blue-lac",
	Fall-Through = no
"#;

/// The daemons beyond the wire.
struct Far {
    alpha: Headend,
    gamma: Headend,
    xl2tpd: Xl2tpd,
    namespace: Namespace,
}

/// The LNSs, behind a second wire of the namespace with our daemon.
fn far(bench: &Bench<'_>) -> Result<Far> {
    let test = bench.directory.file_name().context("a test's name")?;
    let namespace = Namespace::new(format!("{}-far", test.to_string_lossy()))?;
    join((&bench.wire.lns, "core"), (&namespace, "core"))?;
    for (side, addresses) in [
        (&bench.wire.lns, &["10.8.0.1/24"][..]),
        // No process listens on the last one.
        (
            &namespace,
            &["10.8.0.2/24", "10.8.0.3/24", "10.8.0.4/24", "10.8.0.9/24"],
        ),
    ] {
        side.ip(&["link", "set", "core", "up"])?;
        for address in addresses {
            side.ip(&["address", "add", address, "dev", "core"])?;
        }
    }
    private_file(bench, "far.toml", &users(3 + SHARED))?;
    let lns = |name: &str, at: &str, tun: &str, pool: &str| {
        let text = lns_settings(
            "authenticate = [\"chap\"]",
            "",
            "[users]\nfile = \"far.toml\"\n",
        );
        let text = text
            .replace("\"inside\"", &format!("\"{tun}\""))
            .replace("10.64.0.", pool);
        let head = format!("[lns]\nlisten = [\"{at}:1701\"]\nsecret = \"{name} secret\"\n");
        Headend::in_namespace(bench, &namespace, name, &format!("{head}{text}"))
    };
    let setup = Setup {
        name: "xl2tpd",
        address: "10.8.0.3",
        secret: Some("beta secret"),
        global: VERBOSE,
        sections: lns_section(true),
    };
    Ok(Far {
        alpha: lns("alpha", "10.8.0.2", "inside", "10.64.0.")?,
        gamma: lns("gamma", "10.8.0.4", "inside2", "10.66.0.")?,
        xl2tpd: Xl2tpd::start(&namespace, &bench.directory, &setup)?,
        namespace,
    })
}

/// Fail-over, names and secrets of each tunnel, our own address, and equal preferences.
pub(crate) fn choose_the_lns(bench: &Bench<'_>) -> Result<()> {
    choose(bench, "")
}

/// The same, where frames of both halves of a session arrive on three threads.
pub(crate) fn choose_the_lns_on_three_cores(bench: &Bench<'_>) -> Result<()> {
    choose(bench, "[event]\nshards = 3\nsteer = \"session\"\n")
}

fn choose(bench: &Bench<'_>, event: &str) -> Result<()> {
    let server = FreeRadius::start(&bench.wire.lns, &bench.directory, USERS, Replies::Proven)?;
    let mut far = far(bench)?;
    let settings = lns_settings("authenticate = [\"chap\"]", "", &radius_settings());
    let keys = format!("[lac]\nlisten = [\"10.8.0.1:0\"]\n{event}{settings}");
    let lac = Headend::lns(bench, &keys)?;
    let client = Headend::lac(bench, &client_settings())?;
    let tunnel = client.dial_tunnel()?;

    client.dial(&tunnel, 1)?;
    fails_over(bench, &far, &lac, &server)?;
    client.dial(&tunnel, 1)?;
    reaches_xl2tpd(&mut far)?;
    client.dial(&tunnel, 1)?;
    refuses_ourselves(&lac)?;
    client.dial(&tunnel, SHARED)?;
    shares(&far, &lac)?;
    carries(bench, &far, &lac, !event.is_empty())?;
    changes_and_ends(bench, &far, &lac)?;

    client.stop()?;
    lac.stop()?;
    has_accounts(&server)?;
    far.alpha.stop()?;
    far.gamma.stop()
}

/// The LNS of the lower preference does not answer: the other one has the session, in a tunnel with its own secret and
/// names.
fn fails_over(bench: &Bench<'_>, far: &Far, lac: &Headend, server: &FreeRadius) -> Result<()> {
    let row = lac.on_line("user1")?;
    ensure!(row["lns"] == "10.8.0.2:1701", "{row}");
    ensure!(lac.counter("switched_failed_over")? == 1);
    let there = far.alpha.on_line("user1")?;
    let home = address(&there)?;
    move_in(&bench.wire.lac, &home)?;
    ping_answered(&far.namespace, &home, &["-c", "3"])?;
    let tunnels = far.alpha.show(&["tunnels"])?;
    ensure!(
        tunnels.len() == 1 && tunnels[0]["host_name"] == "gold-lac",
        "{tunnels:?}"
    );
    let printed = server.process.printed();
    for said in [
        "Tunnel-Preference:1 = 10",
        "Tunnel-Server-Endpoint:2 = \"10.8.0.2\"",
        "Tunnel-Client-Auth-Id:2 = \"gold-lac\"",
    ] {
        ensure!(printed.contains(said), "freeradius did not say {said:?}");
    }
    Ok(())
}

/// xl2tpd prints the name and the proof of the tunnel. Its pppd has no kernel to end PPP in here.
fn reaches_xl2tpd(far: &mut Far) -> Result<()> {
    for said in [
        "peer reports hostname 'silver-lac'",
        "chalresp_avp: Challenge reply found",
        "Connection established to 10.8.0.1",
        "Call established with 10.8.0.1",
    ] {
        far.xl2tpd.process.wait_for(said, SOON)?;
    }
    Ok(())
}

fn refuses_ourselves(lac: &Headend) -> Result<()> {
    let ended = lac.gone("user3")?;
    let reason = ended["reason"].as_str().unwrap_or_default();
    ensure!(
        reason.contains("the LNS 10.8.0.1:1701 is our own address"),
        "{ended}"
    );
    ensure!(lac.counter("switched_own_address")? == 1);
    ensure!(lac.counter("switched_not_taken")? >= 1);
    Ok(())
}

/// Sessions with two LNSs of equal preference: both LNSs get some, each in one tunnel.
fn shares(far: &Far, lac: &Headend) -> Result<()> {
    let names: Vec<String> = (4..4 + SHARED).map(|n| format!("user{n}")).collect();
    let rows: Vec<Value> = (names.iter())
        .map(|name| lac.on_line(name))
        .collect::<Result<_>>()?;
    let at = |address: &str| {
        let there = rows.iter().filter(|row| row["lns"] == address);
        there.count()
    };
    let (alpha, gamma) = (at("10.8.0.2:1701"), at("10.8.0.4:1701"));
    ensure!(
        alpha > 0 && gamma > 0 && alpha + gamma == SHARED,
        "{alpha} and {gamma}: {rows:?}"
    );
    for (lns, count, tunnels) in [
        // user1 has a tunnel of its own there: another assignment.
        (&far.alpha, alpha + 1, &["blue-lac", "gold-lac"][..]),
        (&far.gamma, gamma, &["blue-lac"]),
    ] {
        lns.all_on_line(count)?;
        let shown = lns.show(&["tunnels"])?;
        let mut hosts: Vec<&str> = (shown.iter())
            .filter(|row| row["state"] == "established")
            .filter_map(|row| row["host_name"].as_str())
            .collect();
        hosts.sort_unstable();
        ensure!(hosts == tunnels, "{shown:?}");
    }
    Ok(())
}

/// Packets to all subscribers of an LNS, and their replies. With several threads, others than the first switch some.
fn carries(bench: &Bench<'_>, far: &Far, lac: &Headend, is_threaded: bool) -> Result<()> {
    for row in far.alpha.show(&["subscribers"])? {
        let home = address(&row)?;
        move_in(&bench.wire.lac, &home)?;
        ping_answered(&far.namespace, &home, &["-c", "5"])?;
    }
    let rows = lac.show(&["event", "shards"])?;
    let sum = |rows: &[Value], key: &str| -> u64 {
        let values = rows.iter().filter_map(|row| row[key].as_u64());
        values.sum()
    };
    ensure!(rows.len() == if is_threaded { 3 } else { 1 }, "{rows:?}");
    ensure!(sum(&rows, "left_dropped") == 0, "{rows:?}");
    ensure!(
        !is_threaded || sum(&rows[1..], "packets_in") > 0,
        "{rows:?}"
    );
    Ok(())
}

/// RFC 5176: what is the LNS's is refused, times are changed, and both halves end.
fn changes_and_ends(bench: &Bench<'_>, far: &Far, lac: &Headend) -> Result<()> {
    let outside = &bench.wire.lns;
    let route = "User-Name = \"user1\", Framed-Route = \"10.70.0.0/24 0.0.0.0 1\"\n";
    let printed = coa(outside, route, SECRET)?;
    ensure!(printed.contains("Received CoA-NAK"), "{printed}");
    let cause = "Error-Cause = Unsupported-Attribute";
    ensure!(printed.contains(cause), "{printed}");
    let time = "User-Name = \"user1\", Session-Timeout = 3600\n";
    let printed = coa(outside, time, SECRET)?;
    ensure!(printed.contains("Received CoA-ACK"), "{printed}");
    let printed = disconnect(outside, "User-Name = \"user1\"\n", SECRET)?;
    ensure!(printed.contains("Received Disconnect-ACK"), "{printed}");
    let ended = lac.gone("user1")?;
    let reason = ended["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("Disconnect-Request"), "{ended}");
    far.alpha.gone("user1").map(drop)
}

/// RFC 2867: the records name the tunnel that the session was in.
fn has_accounts(server: &FreeRadius) -> Result<()> {
    let found = until(SOON, || {
        let records = server.records();
        let stop = (records.iter()).any(|one| one.user() == "user1" && one.status() == "Stop");
        Ok(stop.then_some(records))
    })?;
    let records = found.context("no record of the end of user1")?;
    let own: Vec<&Record> = records.iter().filter(|one| one.user() == "user1").collect();
    for record in [own.first(), own.last()].into_iter().flatten() {
        for (name, value) in [
            ("Tunnel-Type:0", "L2TP"),
            ("Tunnel-Server-Endpoint:0", "10.8.0.2"),
            ("Tunnel-Client-Endpoint:0", "10.8.0.1"),
            ("Tunnel-Assignment-Id:0", "gold"),
            ("Tunnel-Client-Auth-Id:0", "gold-lac"),
        ] {
            ensure!(record.get(name) == value, "{name}: {record:?}");
        }
    }
    let refused = records.iter().any(|one| one.user() == "user3");
    ensure!(!refused, "user3 has an account: {records:?}");
    Ok(())
}
