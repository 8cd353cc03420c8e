//! net-snmp's snmpd asks headend by AgentX: tables of 10,000 tunnels, config ids, BGP, a context over TCP, a restart of
//! snmpd, and masters that misbehave.

use super::SOON;
use crate::headend::Headend;
use crate::net::LNS;
use crate::process::{Process, until};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TUNNELS: usize = 10_000;

/// Limit for the tunnels to come up, without optimisation and beside other tests.
const UP_MAX: Duration = Duration::from_secs(240);

/// The agent waits twice as long after each failure: 1, 2, 4, 8 and 16 s in these tests.
const RETRY_MAX: Duration = Duration::from_secs(40);

/// L2TP-MIB (RFC 3371).
const L2TP: &str = ".1.3.6.1.2.1.10.95";
/// l2tpTunnelStatsEntry
const TUNNEL_STATS: &str = ".1.3.6.1.2.1.10.95.1.5.1";
/// tunnelIfEntry and tunnelInetConfigEntry of TUNNEL-MIB (RFC 4087)
const TUNNEL_IF: &str = ".1.3.6.1.2.1.10.131.1.1.1.1";
const TUNNEL_IDS: &str = ".1.3.6.1.2.1.10.131.1.1.3.1";
/// bgp of BGP4-MIB (RFC 4273)
const BGP: &str = ".1.3.6.1.2.1.15";

/// The address at which snmpd answers.
const AGENT: &str = "udp:127.0.0.1:10161";

/// Debian's snmpd as master agent in the LNS's namespace.
fn snmpd(bench: &Bench<'_>) -> Result<(Process, PathBuf)> {
    let socket = bench.directory.join("agentx");
    let process = snmpd_at(bench, &socket.to_string_lossy(), "")?;
    Ok((process, socket))
}

/// The same, with its address for subagents and further lines of its configuration.
fn snmpd_at(bench: &Bench<'_>, agentx: &str, more: &str) -> Result<Process> {
    let file = bench.directory.join("snmpd.conf");
    let text = format!(
        "agentaddress {AGENT}\nrocommunity public 127.0.0.1\ndontLogTCPWrappersConnects yes\nmaster agentx\nagentXSocket {agentx}\nagentXTimeout 5\n{more}"
    );
    std::fs::write(&file, text)?;
    let mut command = bench.wire.lns.command("snmpd");
    command.env("SNMP_PERSISTENT_DIR", &bench.directory);
    command.args(["-f", "-Lo", "-C", "-c"]).arg(&file);
    let mut process = Process::start(command, "snmpd", &bench.directory)?;
    let started = 1;
    process.wait_for_lines("NET-SNMP version", started, SOON)?;
    Ok(process)
}

/// What `snmpwalk` or `snmpbulkwalk` prints, by name.
fn walk(bench: &Bench<'_>, program: &str, oid: &str) -> Result<Vec<(String, String)>> {
    let mut command = bench.wire.lns.command(program);
    // Names and values as numbers; quick output has them without types.
    command.args(["-v2c", "-cpublic", "-On", "-Oq", "-m", "", "-t10", "-r2"]);
    let output = command.args([AGENT, oid]).output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {oid}: {printed}{error}");
    let rows = printed.lines().filter_map(|line| line.split_once(' '));
    Ok(rows
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// One value.
fn get(bench: &Bench<'_>, oid: &str) -> Result<String> {
    get_by(bench, "public", oid)
}

/// One value, as a community sees it.
fn get_by(bench: &Bench<'_>, community: &str, oid: &str) -> Result<String> {
    let mut command = bench.wire.lns.command("snmpget");
    command.args(["-v2c", "-c", community, "-On", "-Oqv", "-m", "", "-t10"]);
    let output = command.args([AGENT, oid]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The last sub-identifier of each name, and its value as a number.
fn by_row(rows: &[(String, String)]) -> Result<HashMap<u64, u64>> {
    let row = |(name, value): &(String, String)| {
        let (_, last) = name.rsplit_once('.').context("a name")?;
        let number = |text: &str| text.parse().with_context(|| format!("{name} = {value}"));
        Ok((number(last)?, number(value)?))
    };
    rows.iter().map(row).collect()
}

fn lns(bench: &Bench<'_>, socket: &Path, more: &str) -> Result<Headend> {
    let keys = format!("{more}\n[snmp]\nagentx = \"{}\"\n", socket.display());
    Headend::lns(bench, &keys)
}

/// Waits until snmpd has the agent's objects.
fn registered(bench: &Bench<'_>, limit: Duration) -> Result<()> {
    let name = format!("{L2TP}.1.1.1.1.0");
    let known = until(limit, || Ok((get(bench, &name)? == "1").then_some(())))?;
    known.context("snmpd does not know l2tpAdminState")
}

/// Each tunnel that headend shows has a row with its ids. Returns how long a walk and a walk in bulk took.
fn tunnels_are_shown(bench: &Bench<'_>, shown: &[Value]) -> Result<(Duration, Duration)> {
    // Each tunnel has a row; names are in order.
    let start = Instant::now();
    let local = walk(bench, "snmpwalk", &format!("{TUNNEL_STATS}.1"))?;
    let one_by_one = start.elapsed();
    let places: Vec<u64> = by_row(&local)?.into_keys().collect();
    ensure!(local.len() == TUNNELS, "{} rows", local.len());
    ensure!(places.len() == TUNNELS, "a row was listed twice");
    let start = Instant::now();
    let remote = by_row(&walk(bench, "snmpbulkwalk", &format!("{TUNNEL_STATS}.2"))?)?;
    let in_bulk = start.elapsed();
    let states = by_row(&walk(bench, "snmpbulkwalk", &format!("{TUNNEL_STATS}.3"))?)?;
    let local = by_row(&local)?;
    let mut ids = HashMap::new();
    for (row, id) in &local {
        ensure!(
            states.get(row) == Some(&3),
            "tunnel {id} is not established"
        );
        ids.insert(*id, remote[row]);
    }
    for row in shown {
        let number = |key: &str| row[key].as_u64().with_context(|| format!("{key} in {row}"));
        let (id, remote) = (number("id")?, number("remote_id")?);
        ensure!(
            ids.get(&id) == Some(&remote),
            "tunnel {id}: {:?}",
            ids.get(&id)
        );
    }
    Ok((one_by_one, in_bulk))
}

/// L2TP-MIB has a row for each tunnel and session. Returns the number of its variables, and how long they took.
fn all_of_l2tp(bench: &Bench<'_>) -> Result<(usize, Duration)> {
    let start = Instant::now();
    let all = walk(bench, "snmpbulkwalk", L2TP)?;
    let whole = start.elapsed();
    let rows = |prefix: &str| {
        all.iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .count()
    };
    ensure!(rows(&format!("{TUNNEL_STATS}.5.")) == TUNNELS, "host names");
    ensure!(
        rows(&format!("{L2TP}.3.1.2.1.2.")) == TUNNELS,
        "ports of peers"
    );
    // A session in each tunnel, whose own index is that of its tunnel and its id (RFC 3371).
    let sessions = format!("{L2TP}.1.7.1.6.");
    let sessions = all.iter().filter(|(name, _)| name.starts_with(&sessions));
    let established = sessions.filter(|(_, state)| state == "3").count();
    ensure!(
        established == TUNNELS,
        "{established} sessions are established"
    );
    Ok((all.len(), whole))
}

/// BGP4-MIB has the speaker and both peers, in order.
fn bgp_is_shown(bench: &Bench<'_>) -> Result<()> {
    let bgp = walk(bench, "snmpwalk", BGP)?;
    let value = |name: &str| {
        let full = format!("{BGP}.{name}");
        let found = bgp.iter().find(|(name, _)| *name == full);
        found.map_or("", |(_, value)| value.trim())
    };
    ensure!(
        value("1.0").trim_matches('"').trim() == "10",
        "bgpVersion {:?}",
        value("1.0")
    );
    // An autonomous system of four octets is AS_TRANS (RFC 6793, section 9).
    ensure!(value("2.0") == "23456", "bgpLocalAs {:?}", value("2.0"));
    ensure!(
        value("4.0") == "192.0.2.1",
        "bgpIdentifier {:?}",
        value("4.0")
    );
    let peers: Vec<&str> = bgp
        .iter()
        .filter_map(|(name, _)| name.strip_prefix(&format!("{BGP}.3.1.7.")))
        .collect();
    ensure!(peers == ["10.0.0.9", "192.0.2.7"], "{peers:?}");
    ensure!(value("3.1.9.10.0.0.9") == "65002", "bgpPeerRemoteAs");
    Ok(())
}

/// snmpwalk lists 10,000 tunnels as `show` does, and no handler takes long.
pub(crate) fn walks_ten_thousand_tunnels(bench: &Bench<'_>) -> Result<()> {
    let (_snmpd, socket) = snmpd(bench)?;
    let bgp = "[bgp]\nasn = 4200000001\nrouter_id = \"192.0.2.1\"\nlisten = []\n\
               [[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 65001\npassive = true\n\
               [[bgp.neighbor]]\naddress = \"10.0.0.9\"\nremote_asn = 65002\npassive = true\n";
    let limits =
        "[limits]\nhalf_open = 20000\nhalf_open_per_source = 20000\nhalf_open_flood = 20000\n";
    let lns = lns(bench, &socket, &format!("{limits}{bgp}"))?;
    let lac = Headend::lac(bench, "")?;
    registered(bench, SOON)?;
    let count = TUNNELS.to_string();
    let tunnels = [
        "--peer",
        LNS,
        "--version",
        "2",
        "--count",
        &count,
        "--session",
    ];
    lac.verb(&[&["tunnel", "create", "--timeout", "240"], &tunnels[..]].concat())?;
    let shown = lns.wait_for("tunnels", "established", TUNNELS, UP_MAX)?;

    let (one_by_one, in_bulk) = tunnels_are_shown(bench, &shown)?;
    let (variables, whole) = all_of_l2tp(bench)?;
    bgp_is_shown(bench)?;
    println!(
        "snmpwalk of {TUNNELS} tunnels, a column: {:.1} s; in bulk {:.1} s; all {} variables in bulk {:.1} s",
        one_by_one.as_secs_f64(),
        in_bulk.as_secs_f64(),
        variables,
        whole.as_secs_f64()
    );
    let cpu = lns.show(&["event", "cpu"])?;
    for row in cpu
        .iter()
        .filter(|row| row.to_string().contains("\"snmp\""))
    {
        println!("{row}");
    }
    lac.stop()?;
    lns.stop()
}

/// A set is refused, snmpd restarts, and masters that hang or send rubbish cost only their own connection.
pub(crate) fn survives_its_masters(bench: &Bench<'_>) -> Result<()> {
    let (first, socket) = snmpd(bench)?;
    let lns = lns(bench, &socket, "")?;
    registered(bench, SOON)?;
    let mut command = bench.wire.lns.command("snmpset");
    command.args(["-v2c", "-cpublic", "-m", "", AGENT]);
    let set = command
        .args([&format!("{L2TP}.1.1.1.1.0"), "i", "2"])
        .output()?;
    ensure!(!set.status.success(), "a set was taken");

    first.stop().context("snmpd")?;
    let (second, _) = snmpd(bench)?;
    registered(bench, SOON).context("after a restart of snmpd")?;
    second.stop()?;

    // A master that accepts and never answers, and one that sends no AgentX.
    std::fs::remove_file(&socket).ok();
    let listener = UnixListener::bind(&socket)?;
    let (hanging, _) = listener.accept()?;
    let start = Instant::now();
    lns.show(&["tunnels"])?;
    ensure!(start.elapsed() < SOON, "the control socket hangs");
    drop(hanging);
    let (mut rubbish, _) = listener.accept()?;
    let noise: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    // The agent closes the connection after the first header.
    let written = rubbish.write_all(&noise);
    drop((rubbish, listener));
    lns.show(&["tunnels"])?;
    println!("rubbish: {written:?}");

    std::fs::remove_file(&socket).ok();
    let (third, _) = snmpd(bench)?;
    registered(bench, RETRY_MAX).context("after masters that misbehaved")?;
    // headend ends: its objects go.
    lns.stop()?;
    let name = format!("{L2TP}.1.1.1.1.0");
    let gone = until(SOON, || Ok((get(bench, &name)? != "1").then_some(())))?;
    gone.context("snmpd still has the objects")?;
    third.stop().map(drop)
}

/// The config id of a tunnel leads to its ifIndex, and that to its row in L2TP-MIB. L2TPv3 tunnels are counted there only.
pub(crate) fn config_ids_lead_to_tunnels(bench: &Bench<'_>) -> Result<()> {
    let (_snmpd, socket) = snmpd(bench)?;
    let lns = lns(bench, &socket, "[l2tp]\nconfig_ids = \"first-free\"\n")?;
    let lac = Headend::lac(bench, "")?;
    registered(bench, SOON)?;
    for (version, count) in [("2", "3"), ("3", "2")] {
        let tunnels = ["--peer", LNS, "--version", version, "--count", count];
        lac.verb(&[&["tunnel", "create"], &tunnels[..]].concat())?;
    }
    let shown = lns.wait_for("tunnels", "established", 5, SOON)?;
    // The rows of config ids are at most some seconds old.
    let prefix = format!("{TUNNEL_IDS}.6.1.4.");
    let rows = until(SOON, || {
        let rows = walk(bench, "snmpwalk", &format!("{TUNNEL_IDS}.6"))?;
        Ok((rows.len() == 5).then_some(rows))
    })?;
    let rows = rows.context("five rows of tunnelInetConfigTable")?;
    for (name, interface) in &rows {
        let index = name.strip_prefix(&prefix).context("an IPv4 index")?;
        let octets: Vec<&str> = index.split('.').collect();
        let remote = octets[5..9].join(".");
        ensure!(octets[4] == "4" && octets[9] == "5", "index {index}");
        let config_id: u64 = octets[10].parse()?;
        let row = shown.iter().find(|row| row["config_id"] == config_id);
        let row = row.with_context(|| format!("no tunnel has the config id {config_id}"))?;
        let peer = row["peer"].as_str().unwrap_or_default();
        ensure!(
            peer.starts_with(&format!("{remote}:")),
            "{peer} and {remote}"
        );
        ensure!(
            get(bench, &format!("{TUNNEL_IF}.3.{interface}"))? == "5",
            "tunnelIfEncapsMethod"
        );
        let local_id = get(bench, &format!("{TUNNEL_STATS}.1.{interface}"))?;
        match row["version"].as_u64() {
            Some(2) => ensure!(
                local_id.parse().ok() == row["id"].as_u64(),
                "{local_id} and {row}"
            ),
            _ => ensure!(
                local_id.contains("No Such"),
                "L2TPv3 in L2TP-MIB: {local_id}"
            ),
        }
    }
    // l2tpDomainStatsActiveTunnels counts both versions.
    let domain = walk(bench, "snmpwalk", &format!("{L2TP}.1.3.1.4"))?;
    ensure!(domain.len() == 1 && domain[0].1 == "5", "{domain:?}");
    ensure!(
        walk(bench, "snmpwalk", &format!("{TUNNEL_STATS}.1"))?.len() == 3,
        "L2TPv2 rows"
    );
    lac.stop()?;
    lns.stop()
}

/// Over TCP, in a context of its own: only who asks in that context sees the objects.
pub(crate) fn serves_a_context_by_tcp(bench: &Bench<'_>) -> Result<()> {
    const ADDRESS: &str = "tcp:127.0.0.1:10705";
    let more = "view everything included .1\nrocommunity edge 127.0.0.1 -V everything edge\n";
    let first = snmpd_at(bench, ADDRESS, more)?;
    let keys = format!("[snmp]\nagentx = \"{ADDRESS}\"\ncontext = \"edge\"\n");
    let lns = Headend::lns(bench, &keys)?;
    let name = format!("{L2TP}.1.1.1.1.0");
    let is_there = || {
        until(RETRY_MAX, || {
            Ok((get_by(bench, "edge", &name)? == "1").then_some(()))
        })
    };
    is_there()?.context("l2tpAdminState in the context")?;
    let default = get(bench, &name)?;
    ensure!(
        default.contains("No Such"),
        "in the default context: {default}"
    );
    first.stop()?;
    let second = snmpd_at(bench, ADDRESS, more)?;
    is_there()?.context("after a restart of snmpd")?;
    lns.stop()?;
    second.stop().map(drop)
}
