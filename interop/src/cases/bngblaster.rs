//! RtBrick's BNG Blaster as hosts of our access concentrator, and as LNS behind our LAC. It is a user-space program on
//! packet sockets, so it needs no guest.
//!
//! ```text
//! (namespace "lac") bngblaster -- hosts ==== wire -- headend (namespace "lns")
//!                              -- core  ==== core -- headend, as LAC
//! ```

use super::SOON;
use crate::headend::Headend;
use crate::net::join;
use crate::process::Process;
use crate::runner::Bench;
use crate::subscribers::{lns_settings, private_file};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Sessions of a run.
const SESSIONS: usize = 200;

/// Starts BNG Blaster in the namespace of the hosts.
fn start(bench: &Bench<'_>, config: &Value) -> Result<Process> {
    let program = bench.bngblaster.context("BNG Blaster")?;
    // It locks its interfaces by a file.
    std::fs::create_dir_all("/run/lock")?;
    let path = bench.directory.join("bngblaster.json");
    std::fs::write(&path, config.to_string())?;
    // Its log is in blocks otherwise.
    let mut command = bench.wire.lac.command("stdbuf");
    command
        .arg("-oL")
        .arg(program)
        .arg("-C")
        .arg(&path)
        .arg("-J")
        .arg(bench.directory.join("report.json"))
        .args(["-j", "sessions"])
        .current_dir(&bench.directory);
    Process::start(command, "bngblaster", &bench.directory)
}

/// Sessions of BNG Blaster, one behind the other on an interface of this name.
fn config(interface: &str, user: &str) -> Value {
    json!({
        "interfaces": {
            "access": [{
                "interface": interface,
                "type": "pppoe",
                "vlan-mode": "N:1",
                "outer-vlan-min": 0,
                "outer-vlan-max": 0,
                "inner-vlan-min": 0,
                "inner-vlan-max": 0,
                "authentication-protocol": "CHAP",
            }],
        },
        "sessions": {"count": SESSIONS, "max-outstanding": 100, "start-rate": 100, "stop-rate": 200},
        "ppp": {
            "mru": 1492,
            "authentication": {"username": user, "password": "sesame"},
            "ipcp": {"enable": true, "request-ip": true, "request-dns1": false, "request-dns2": false},
            "ip6cp": {"enable": false},
        },
        "dhcpv6": {"enable": false},
    })
}

/// Lets BNG Blaster end its sessions, and returns its report.
fn finish(bench: &Bench<'_>, process: Process) -> Result<Value> {
    process.signal(Signal::INT)?;
    let mut process = process;
    process.wait_for_end(SOON)?;
    let text = std::fs::read_to_string(bench.directory.join("report.json"))?;
    let report: Value = serde_json::from_str(&text).context("BNG Blaster's report")?;
    Ok(report["report"].clone())
}

/// A veth pair between the namespaces, for Ethernet alone.
fn wire(bench: &Bench<'_>, near: &str, far: &str) -> Result<()> {
    join((&bench.wire.lac, near), (&bench.wire.lns, far))?;
    bench.wire.lac.ip(&["link", "set", near, "up"])?;
    bench.wire.lns.ip(&["link", "set", far, "up"])
}

const PPPOE: &str = "[pppoe]\nac_name = \"bng1\"\npadi_per_vlan_per_s = 0\npadr_per_s = 0\n[[pppoe.interface]]\nname = \"access\"\n";

/// All sessions connect with CHAP and an address of their own, and end with PADT.
pub(crate) fn connects_sessions(bench: &Bench<'_>) -> Result<()> {
    wire(bench, "hosts1", "access")?;
    private_file(bench, "users.toml", &crate::subscribers::users(SESSIONS))?;
    let settings = lns_settings(
        "authenticate = [\"chap\"]",
        "",
        "[users]\nfile = \"users.toml\"\n",
    );
    let headend = Headend::speaker(bench, &format!("{PPPOE}{settings}"))?;
    let blaster = start(bench, &config("hosts1", "user{session-global}"))?;
    let rows = headend.all_on_line(SESSIONS)?;
    ensure!(rows.iter().all(|row| row["access"] == "pppoe"), "{rows:?}");
    let report = finish(bench, blaster)?;
    ensure!(report["sessions-established"] == SESSIONS, "{report}");
    let ended = headend.show(&["subscribers", "--ended"])?;
    let left = ended
        .iter()
        .filter(|row| row["terminate_cause"] == 1)
        .count();
    ensure!(
        left == SESSIONS,
        "{left} of {} ended by the host",
        ended.len()
    );
    headend.stop()
}

/// The hosts call our access concentrator, which hands each call over to an LNS of BNG Blaster.
pub(crate) fn ends_our_calls(bench: &Bench<'_>) -> Result<()> {
    wire(bench, "hosts2", "access")?;
    wire(bench, "core2", "core")?;
    bench
        .wire
        .lns
        .ip(&["address", "add", "10.8.0.1/24", "dev", "core"])?;
    bench
        .wire
        .lns
        .ip(&["route", "add", "10.7.0.0/24", "via", "10.8.0.2"])?;
    // A packet socket would get datagrams of one length as one large datagram (UDP GSO), of which BNG Blaster reads the
    // first.
    let ethtool = ["-K", "core", "tx-udp-segmentation", "off"];
    let status = bench.wire.lns.command("ethtool").args(ethtool).status()?;
    ensure!(status.success(), "ethtool {ethtool:?}: {status}");
    private_file(bench, "nobody.toml", "")?;
    // BNG Blaster answers only to port 1701, although a LAC may have any port (RFC 2661, section 8.1).
    let settings = format!(
        "[log]\nlevel = \"debug\"\n{PPPOE}[lac]\nlisten = [\"10.8.0.1:1701\"]\n\
         [[tunnel]]\nname = \"isp\"\nlns = [\"10.7.0.11\"]\nsecret = \"lantern\"\nrealms = [\"isp.example\"]\n\
         [ppp]\naddress = \"10.64.255.2\"\nauthenticate = [\"chap\"]\n[users]\nfile = \"nobody.toml\"\n"
    );
    let headend = Headend::speaker(bench, &settings)?;
    let mut config = config("hosts2", "user{session-global}@isp.example");
    config["interfaces"]["network"] =
        json!({"interface": "core2", "address": "10.8.0.2/24", "gateway": "10.8.0.1"});
    config["l2tp-server"] = json!([{"name": "LNS1", "address": "10.7.0.11", "secret": "lantern", "receive-window-size": 8}]);
    let mut blaster = start(bench, &config)?;
    // A session is established once its host has an address, from the LNS.
    blaster.wait_for("ALL SESSIONS ESTABLISHED", SOON)?;
    let rows = headend.show(&["sessions"])?;
    let has_it = |row: &&Value| row["state"] == "established" && row["role"] == "lac-incoming";
    let count = rows.iter().filter(has_it).count();
    ensure!(
        count == SESSIONS,
        "{count} of {} sessions: {:?}",
        rows.len(),
        rows.first()
    );
    let report = finish(bench, blaster)?;
    ensure!(report["sessions-established"] == SESSIONS, "{report}");
    headend.stop()
}
