//! Rates that change under load: of `headend qos apply` on a router between two hosts, and of a subscriber.

use crate::headend::Headend;
use crate::net::{Namespace, join};
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, private_file, users,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Output;
use std::time::{Duration, Instant};

/// How long a process may take to start or to end.
const SOON: Duration = Duration::from_secs(20);

/// The far host.
const FAR: &str = "10.8.1.2";

/// Rates upstream, one after the other. Rates count IP bytes.
const RATES_MBIT: [u32; 5] = [20, 8, 30, 5, 12];

/// Time over which bytes are counted, and the time before, in which a queue of the old rate drains.
const COUNTED: Duration = Duration::from_secs(3);
const SETTLED: Duration = Duration::from_secs(1);

/// Tolerances of a rate: above, which nothing excuses, and below, which a busy machine may cause.
const ABOVE: f64 = 0.01;
const BELOW: f64 = 0.04;

/// A host, a router, and a far host.
struct Line<'b> {
    bench: &'b Bench<'b>,
    router: Namespace,
}

impl<'b> Line<'b> {
    fn new(bench: &'b Bench<'b>) -> Result<Self> {
        let name = bench.directory.file_name().context("a test's name")?;
        let name: String = name.to_string_lossy().chars().take(20).collect();
        let router = Namespace::new(format!("{name}-router"))?;
        bench.wire.lac.ip(&["link", "delete", "wire"])?;
        let hosts = [
            (&bench.wire.lac, "lan0", "10.8.0.2/24", "10.8.0.1"),
            (&bench.wire.lns, "wan0", "10.8.1.2/24", "10.8.1.1"),
        ];
        for (host, port, address, gateway) in hosts {
            join((host, "eth0"), (&router, port))?;
            for (place, name, address) in [
                (host, "eth0", address),
                (&router, port, &format!("{gateway}/24")),
            ] {
                place.ip(&["address", "add", address, "dev", name])?;
                place.ip(&["link", "set", name, "up"])?;
                // Each segment is a packet of its own.
                let mut ethtool = place.command("ethtool");
                ethtool.args(["-K", name, "gso", "off", "tso", "off", "gro", "off"]);
                ensure!(ethtool.output()?.status.success(), "ethtool -K {name}");
            }
            host.ip(&["route", "add", "default", "via", gateway])?;
        }
        let mut sysctl = router.command("sysctl");
        sysctl.args(["-qw", "net.ipv4.ip_forward=1"]);
        ensure!(sysctl.output()?.status.success(), "sysctl");
        Ok(Self { bench, router })
    }

    /// Applies a policy with this rate upstream. Datagrams to port 5202 go first. A window of TCP never fills the queue.
    fn apply(&self, mbit: u32) -> Result<String> {
        let policy = format!(
            "[link]\nup = \"{mbit}mbit\"\noverhead = \"none\"\n[shape]\ntemplate = \"pfifo\"\nlimit = 1000\n\
             [[first]]\nname = \"calls\"\nproto = \"udp\"\nport = 5202\n"
        );
        let file = self.bench.directory.join("policy.toml");
        std::fs::write(&file, policy)?;
        let mut command = self.qos("apply");
        command.arg(&file);
        text(command.output()?)
    }

    fn qos(&self, verb: &str) -> std::process::Command {
        let mut command = self.router.command(self.bench.headend);
        command
            .args(["qos", verb, "--wan", "wan0", "--state"])
            .arg(self.bench.directory.join("state"));
        command
    }

    /// An iperf3 server on the far host, and a client that sends to it.
    fn iperf3(&self, name: &str, port: &str, words: &[&str]) -> Result<[Process; 2]> {
        let mut server = self.bench.wire.lns.command("iperf3");
        server.args(["-s", "-p", port, "--forceflush"]);
        let mut server = Process::start(server, &format!("server-{name}"), &self.bench.directory)?;
        server.wait_for("Server listening", SOON)?;
        let mut client = self.bench.wire.lac.command("iperf3");
        client.args(["-c", FAR, "-p", port, "-J"]).args(words);
        let client = Process::start(client, name, &self.bench.directory)?;
        Ok([server, client])
    }

    /// IP bytes that the far host has received, and two instants between which they were read.
    fn received(&self) -> Result<(u64, [Instant; 2])> {
        let mut command = self.bench.wire.lns.command("ip");
        command.args(["-s", "-j", "link", "show", "dev", "eth0"]);
        let asked = Instant::now();
        let output = command.output()?;
        let moments = [asked, Instant::now()];
        let links: Value = serde_json::from_slice(&output.stdout).context("ip's JSON")?;
        let counted = &links[0]["stats64"]["rx"];
        let number = |name: &str| counted[name].as_u64().with_context(|| links.to_string());
        Ok((number("bytes")? - 14 * number("packets")?, moments))
    }
}

fn text(output: Output) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a client printed.
fn printed(client: &mut Process) -> Result<Value> {
    let status = client.wait_for_end(SOON)?;
    let printed = client.printed();
    ensure!(status.success(), "iperf3: {status}: {printed}");
    serde_json::from_str(&printed).context("iperf3's JSON")
}

/// A TCP connection fills the line while its rate changes four times. The line has each new rate within a second, no
/// segment is sent twice, and no datagram of the class with priority is lost.
pub(crate) fn of_apply_under_load(bench: &Bench<'_>) -> Result<()> {
    let line = Line::new(bench)?;
    line.apply(RATES_MBIT[0])?;
    let [_server, mut tcp] = line.iperf3("tcp", "5201", &["-t", "24", "-w", "256K"])?;
    let words = ["-u", "-b", "1M", "-l", "500", "-t", "24"];
    let [_other, mut udp] = line.iperf3("udp", "5202", &words)?;
    until(SOON, || Ok((line.received()?.0 > 2_000_000).then_some(())))?.context("no load")?;
    let mut notes = String::new();
    for (at, mbit) in RATES_MBIT.into_iter().enumerate() {
        if at > 0 {
            let said = line.apply(mbit)?;
            write!(notes, "{said}")?;
        }
        std::thread::sleep(SETTLED);
        let (before, begun) = line.received()?;
        std::thread::sleep(COUNTED);
        let (after, ended) = line.received()?;
        // The exact time at which `ip` read the counter is unknown.
        let over = |span: Duration| 8.0 * (after - before) as f64 / span.as_secs_f64();
        let least = over(ended[1] - begun[0]);
        let most = over(ended[0] - begun[1]);
        writeln!(
            notes,
            "{mbit} Mbit/s: counted {least:.0} to {most:.0} bit/s"
        )?;
        std::fs::write(bench.directory.join("rates.txt"), &notes)?;
        let rate = f64::from(mbit) * 1e6;
        ensure!(least <= rate * (1.0 + ABOVE), "{notes}");
        ensure!(most >= rate * (1.0 - BELOW), "{notes}");
    }
    let tcp = printed(&mut tcp)?;
    let sum = &tcp["end"]["sum_sent"];
    ensure!(sum["retransmits"] == 0, "{sum}");
    let udp = printed(&mut udp)?;
    let sum = &udp["end"]["sum"];
    ensure!(sum["packets"].as_u64() > Some(5_000), "{sum}");
    ensure!(sum["lost_packets"] == 0, "{sum}");
    ensure!(
        udp["end"]["streams"][0]["udp"]["out_of_order"] == 0,
        "{udp}"
    );
    let removed = text(line.qos("remove").output()?)?;
    ensure!(removed.contains("wan0: as it was"), "{removed}");
    Ok(())
}

/// IP bytes that a subscriber's TUN device has passed to its host.
fn arrived(bench: &Bench<'_>) -> Result<u64> {
    let mut command = bench.wire.lac.command("ip");
    command.args(["-s", "-j", "link", "show", "dev", "outside"]);
    let links: Value = serde_json::from_slice(&command.output()?.stdout).context("ip's JSON")?;
    let bytes = links[0]["stats64"]["rx"]["bytes"].as_u64();
    bytes.with_context(|| links.to_string())
}

/// The same for a subscriber's download and `headend session set`: its flow of datagrams, below its share, loses none.
pub(crate) fn of_a_subscriber_under_load(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(1))?;
    let first = format!("rate_down = \"{}mbit\"", RATES_MBIT[0]);
    let sections = format!("[users]\nfile = \"users.toml\"\n[queue.default]\n{first}\n");
    let lns = Headend::lns(bench, &lns_settings("", "", &sections))?;
    // The client's device passes each segment as a packet of its own.
    let lac = Headend::lac(bench, &(client_settings() + "offloads = false\n"))?;
    let far = &bench.wire.lns;
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    let home = address(&lns.on_line("user1")?)?;
    move_in(&bench.wire.lac, &home)?;
    let mut running = Vec::new();
    for (name, port, words) in [
        ("tcp", "5201", &["-t", "24"][..]),
        ("udp", "5202", &["-u", "-b", "1M", "-l", "500", "-t", "24"]),
    ] {
        let mut server = far.command("iperf3");
        server.args(["-s", "-B", BEYOND, "-p", port, "--forceflush"]);
        let mut server = Process::start(server, &format!("server-{name}"), &bench.directory)?;
        server.wait_for("Server listening", SOON)?;
        let mut client = bench.wire.lac.command("iperf3");
        client.args(["-c", BEYOND, "-B", &home, "-p", port, "-R", "-J"]);
        client.args(words);
        running.push((server, Process::start(client, name, &bench.directory)?));
    }
    until(SOON, || Ok((arrived(bench)? > 2_000_000).then_some(())))?.context("no load")?;
    let mut notes = String::new();
    for (at, mbit) in RATES_MBIT.into_iter().enumerate() {
        if at > 0 {
            lns.verb(&[
                "session",
                "set",
                "user1",
                "--rate-down",
                &format!("{mbit}mbit"),
            ])?;
        }
        std::thread::sleep(SETTLED);
        let begun = Instant::now();
        let before = arrived(bench)?;
        std::thread::sleep(COUNTED);
        let after = arrived(bench)?;
        let bps = 8.0 * (after - before) as f64 / begun.elapsed().as_secs_f64();
        writeln!(notes, "{mbit} Mbit/s: counted {bps:.0} bit/s")?;
        std::fs::write(bench.directory.join("rates.txt"), &notes)?;
        let share = bps / (f64::from(mbit) * 1e6);
        // Controlled delay drops segments, and TCP slows down for a moment.
        ensure!((0.94..=1.0 + ABOVE).contains(&share), "{notes}");
    }
    for (_server, client) in &mut running {
        let end = printed(client)?["end"].take();
        let sum = &end["sum"];
        let is_whole =
            sum.is_null() || sum["lost_packets"] == 0 && sum["packets"].as_u64() > Some(5_000);
        ensure!(is_whole, "{end}");
    }
    drop(lac);
    lns.stop()
}
