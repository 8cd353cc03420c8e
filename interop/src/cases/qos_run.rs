//! `headend qos run` between two hosts: iperf3's streams through it, ethtool's view of the interfaces, its page
//! in Chromium.

use crate::net::{Namespace, join};
use crate::process::{Process, until};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long a process may take to start.
const SOON: Duration = Duration::from_secs(20);

/// Addresses of the host behind `lan0` and of the one behind `wan0`.
const NEAR: &str = "10.8.0.1";
const FAR: &str = "10.8.0.2";

/// Rates that count IP bytes.
const POLICY: &str = "[link]\nup = \"10mbit\"\ndown = \"20mbit\"\noverhead = \"none\"\n";
const UP_BPS: f64 = 10e6;
const DOWN_BPS: f64 = 20e6;

/// Tolerance of a rate: above, which nothing excuses, and below, which a busy machine may cause.
const ABOVE: f64 = 0.01;
const BELOW: f64 = 0.03;

/// The same for one TCP connection, which occasionally has no packet to send.
const BELOW_TCP: f64 = 0.2;

/// Time over which bytes are counted.
const COUNTED: Duration = Duration::from_secs(5);

/// Two hosts, the machine between them and the shaper on it.
pub(super) struct Gateway<'b> {
    bench: &'b Bench<'b>,
    middle: Namespace,
    /// The shaper's control socket.
    pub(super) socket: PathBuf,
    policy: PathBuf,
}

impl<'b> Gateway<'b> {
    /// The bench's namespaces become the hosts.
    pub(super) fn new(bench: &'b Bench<'b>) -> Result<Self> {
        let name = bench.directory.file_name().context("a test's name")?;
        let name: String = name.to_string_lossy().chars().take(20).collect();
        let middle = Namespace::new(format!("{name}-middle"))?;
        let hosts = [
            (&bench.wire.lac, "lan0", NEAR),
            (&bench.wire.lns, "wan0", FAR),
        ];
        bench.wire.lac.ip(&["link", "delete", "wire"])?;
        for (host, port, address) in hosts {
            join((host, "eth0"), (&middle, port))?;
            host.ip(&["address", "add", &format!("{address}/24"), "dev", "eth0"])?;
            host.ip(&["link", "set", "eth0", "up"])?;
            middle.ip(&["link", "set", port, "up"])?;
        }
        let gateway = Self {
            bench,
            middle,
            socket: bench.directory.join("control"),
            policy: bench.directory.join("policy.toml"),
        };
        std::fs::write(&gateway.policy, POLICY)?;
        Ok(gateway)
    }

    /// Adds to the policy's file.
    pub(super) fn add(&self, text: &str) -> Result<()> {
        let policy = std::fs::read_to_string(&self.policy)?;
        Ok(std::fs::write(&self.policy, policy + text)?)
    }

    /// Starts the shaper and waits until it has printed its settings.
    pub(super) fn start(&self) -> Result<Process> {
        let mut command = self.middle.command(self.bench.headend);
        command
            .args(["qos", "run", "--lan", "lan0", "--wan", "wan0", "--policy"])
            .arg(&self.policy)
            .arg("--control")
            .arg(&self.socket);
        let mut process = Process::start(command, "headend-qos", &self.bench.directory)?;
        process.wait_for("lan0 <-> wan0: up 10Mbit, down 20Mbit", SOON)?;
        // From then on, both hosts have resolved each other's address.
        let is_reached = until(SOON, || {
            let mut ping = self.bench.wire.lac.command("ping");
            ping.args(["-c", "1", "-W", "1", FAR]);
            Ok(ping.output()?.status.success().then_some(()))
        })?;
        is_reached.context("no ping comes through")?;
        Ok(process)
    }

    fn ask(&self, words: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.bench.headend);
        command
            .arg("qos")
            .args(words)
            .arg("--control")
            .arg(&self.socket);
        Ok(command.output()?)
    }

    pub(super) fn show(&self, words: &[&str]) -> Result<Value> {
        let output = self.ask(&[&["show", "--json"], words].concat())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).context("the printed JSON")
    }

    /// An iperf3 server on the far host, or on the near one for the downward direction.
    fn server(&self, name: &str, way: &str) -> Result<Process> {
        let mut command = self.host(way == "up").command("iperf3");
        command.args(["-s", "--forceflush"]);
        let mut server = Process::start(command, name, &self.bench.directory)?;
        server.wait_for("Server listening", SOON)?;
        Ok(server)
    }

    /// An iperf3 client that sends up, or down.
    fn client(&self, name: &str, way: &str, words: &[&str]) -> Result<Process> {
        let to = if way == "up" { FAR } else { NEAR };
        let mut command = self.host(way != "up").command("iperf3");
        command.args(["-c", to, "--forceflush"]).args(words);
        Process::start(command, name, &self.bench.directory)
    }

    fn host(&self, is_far: bool) -> &Namespace {
        if is_far {
            &self.bench.wire.lns
        } else {
            &self.bench.wire.lac
        }
    }

    /// ethtool's output for an interface of the middle machine.
    fn features(&self, name: &str) -> Result<String> {
        let output = self.middle.command("ethtool").args(["-k", name]).output()?;
        ensure!(output.status.success(), "ethtool -k {name}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// IP bytes that a host has received, without Ethernet headers, and two instants between which they were read.
fn received(host: &Namespace) -> Result<(u64, [Instant; 2])> {
    let mut command = host.command("ip");
    command.args(["-s", "-j", "link", "show", "dev", "eth0"]);
    let asked = Instant::now();
    let output = command.output()?;
    let moments = [asked, Instant::now()];
    let links: Value = serde_json::from_slice(&output.stdout).context("ip's JSON")?;
    let counted = &links[0]["stats64"]["rx"];
    let number = |name: &str| counted[name].as_u64().with_context(|| links.to_string());
    Ok((number("bytes")? - 14 * number("packets")?, moments))
}

/// Twice the permitted rate in each direction, and TCP at full speed: measured at the receiver, and as the
/// shaper reports.
pub(crate) fn holds_the_rate(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    // A queue that never runs empty, however late iperf3 sends.
    let long = format!("{POLICY}[shape]\ntemplate = \"pfifo\"\nlimit = 1000\n");
    std::fs::write(&gateway.policy, long)?;
    let shaper = gateway.start()?;
    let mut notes = String::new();
    let tests = [
        ("up", "flood", &["-u", "-b", "20M"][..], UP_BPS, BELOW),
        ("down", "flood", &["-u", "-b", "40M"], DOWN_BPS, BELOW),
        ("up", "tcp", &[], UP_BPS, BELOW_TCP),
    ];
    for (way, what, words, rate, below) in tests {
        if what == "tcp" {
            std::fs::write(&gateway.policy, POLICY)?;
            ensure!(gateway.ask(&["reload"])?.status.success(), "no reload");
        }
        let _server = gateway.server(&format!("server-{what}-{way}"), way)?;
        let words = [&["-t", "10"], words].concat();
        let mut client = gateway.client(&format!("iperf3-{what}-{way}"), way, &words)?;
        client.wait_for(" connected to ", SOON)?;
        // Slow start has ended by then.
        std::thread::sleep(Duration::from_secs(2));
        let host = gateway.host(way == "up");
        let (before, begun) = received(host)?;
        std::thread::sleep(COUNTED);
        let (after, ended) = received(host)?;
        let told = gateway.show(&["--interval", "1"])?;
        // The exact time at which `ip` read the counter is unknown.
        let over = |span: Duration| 8.0 * (after - before) as f64 / span.as_secs_f64();
        let least = over(ended[1] - begun[0]);
        let most = over(ended[0] - begun[1]);
        let told = told[way]["rates"]["bps"].as_f64().context("a rate")?;
        writeln!(
            notes,
            "{what} {way}: counted {least:.0} to {most:.0} bit/s, told {told}"
        )?;
        std::fs::write(bench.directory.join("rates.txt"), &notes)?;
        ensure!(least.max(told) <= rate * (1.0 + ABOVE), "{notes}");
        ensure!(most.min(told) >= rate * (1.0 - below), "{notes}");
        client.wait_for_end(SOON)?;
    }
    let status = shaper.stop()?;
    ensure!(status.code() == Some(0), "ended with {status}");
    let said = std::fs::read_to_string(bench.directory.join("headend-qos.log"))?;
    ensure!(
        said.contains("\nup: sent ") && said.contains("\ndown: sent "),
        "{said}"
    );
    Ok(())
}

/// A stream below the rate while the policy changes, validly and invalidly; then an interface disappears.
pub(crate) fn reloads_and_restores(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    let before = [gateway.features("lan0")?, gateway.features("wan0")?];
    let mut shaper = gateway.start()?;
    for name in ["lan0", "wan0"] {
        let during = gateway.features(name)?;
        ensure!(
            during.contains("tx-tcp-segmentation: off")
                && during.contains("generic-segmentation-offload: off"),
            "{during}"
        );
    }
    let _server = gateway.server("server", "up")?;
    let words = ["-u", "-b", "1M", "-l", "500", "-t", "5", "-J"];
    let mut client = gateway.client("iperf3-udp", "up", &words)?;
    let is_through = until(SOON, || {
        let shown = gateway.show(&["--totals"])?;
        Ok(shown["up"]["packets"]
            .as_u64()
            .filter(|packets| *packets > 100))
    })?;
    is_through.context("nothing comes through")?;
    for template in ["flows", "sfq", "bands", "gamer"] {
        // Long enough for everything that a delayed sender sends at once.
        let policy = format!("{POLICY}[shape]\ntemplate = \"{template}\"\nlimit = 1000\n");
        std::fs::write(&gateway.policy, policy)?;
        let output = gateway.ask(&["reload"])?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    std::fs::write(&gateway.policy, "[link]\nup = \"fast\"\n")?;
    shaper.signal(Signal::HUP)?;
    let fault = shaper.wait_for("policy.toml:2:6: link.up: ", SOON)?;
    ensure!(fault.contains("\"fast\" is no rate"), "{fault}");
    shaper.wait_for("the policy is kept as it was", SOON)?;
    let shown = gateway.show(&["--totals"])?;
    ensure!(
        shown["reloads"] == 4 && shown["up"]["rate_bps"] == 10_000_000,
        "{shown}"
    );
    let status = client.wait_for_end(SOON)?;
    ensure!(status.success(), "iperf3: {status}");
    let told: Value = serde_json::from_str(&client.printed()).context("iperf3's JSON")?;
    let stream = &told["end"]["streams"][0]["udp"];
    ensure!(
        stream["packets"]
            .as_u64()
            .is_some_and(|packets| packets > 1_000),
        "{stream}"
    );
    ensure!(told["end"]["sum"]["lost_packets"] == 0, "{stream}");
    ensure!(stream["out_of_order"] == 0, "{stream}");

    gateway.middle.ip(&["link", "delete", "wan0"])?;
    let status = shaper.wait_for_end(SOON)?;
    ensure!(status.code() == Some(2), "ended with {status}");
    ensure!(shaper.lines_with("headend qos: wan0: the interface has vanished") == 1);
    let after = gateway.features("lan0")?;
    ensure!(
        after == before[0],
        "before:\n{}\nafter:\n{after}",
        before[0]
    );
    ensure!(!gateway.socket.exists(), "the socket is left");
    Ok(())
}

/// A flood above the rate, which changes while packets are queued: the new rate holds, counters go on, no packet is lost,
/// the host that floods is named, and impossible rates are refused.
pub(crate) fn changes_the_rate(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    // A queue that never drops: what is sent and what waits add up to what came.
    let long =
        format!("{POLICY}line_up = \"12mbit\"\n[shape]\ntemplate = \"pfifo\"\nlimit = 20000\n");
    std::fs::write(&gateway.policy, long)?;
    let shaper = gateway.start()?;
    let _server = gateway.server("server", "up")?;
    let words = ["-u", "-b", "14M", "-l", "1000", "-t", "8"];
    let mut client = gateway.client("iperf3", "up", &words)?;
    client.wait_for(" connected to ", SOON)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = gateway.show(&["--totals"])?;
    let output = gateway.ask(&["rate", "--up", "5mbit"])?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(said.starts_with("up 5Mbit, down 20Mbit: "), "{said}");
    let shown = gateway.show(&["--interval", "3"])?;
    let rate = shown["up"]["rates"]["bps"].as_f64().context("a rate")?;
    ensure!(
        (4.85e6..=5.05e6).contains(&rate),
        "{rate} bit/s at 5 Mbit/s"
    );
    ensure!(
        shown["up"]["rate_bps"] == 5_000_000 && shown["up"]["file_bps"] == 10_000_000,
        "{shown}"
    );
    names_the_host(&gateway)?;
    for (words, reason) in [
        (["--up", "13mbit"], "more than the line carries (12Mbit"),
        (
            ["--down", "1kbit"],
            "takes more than 1 s; give 12Kbit or more",
        ),
    ] {
        let output = gateway.ask(&[&["rate"][..], &words].concat())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code() == Some(2) && said.contains(reason),
            "{said}"
        );
    }
    client.wait_for_end(SOON)?;
    let after = gateway.show(&["--totals"])?;
    let number = |row: &Value, name: &str| row["up"][name].as_u64().context("a counter");
    ensure!(
        number(&after, "packets")? > number(&before, "packets")?,
        "{after}"
    );
    // Everything that came in was sent or still waits.
    let came = after["up"]["lane"]["packets"]
        .as_u64()
        .context("a counter")?;
    let known = number(&after, "packets")? + number(&after, "qlen")?;
    ensure!(
        number(&after, "drops")? == 0 && came == known,
        "{came} came: {after}"
    );
    ensure!(gateway.ask(&["reload"])?.status.success(), "no reload");
    let shown = gateway.show(&["--totals"])?;
    ensure!(shown["up"]["rate_bps"] == 10_000_000, "{shown}");
    shaper.stop()?;
    Ok(())
}

/// `headend qos hosts` has the near host first, with the rate of the line.
fn names_the_host(gateway: &Gateway<'_>) -> Result<()> {
    let output = gateway.ask(&["hosts", "--json"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let host = rows.get(1).with_context(|| text.clone())?;
    let up = host["up_bps"].as_f64().context("a rate")?;
    ensure!(
        host["address"] == NEAR && (4.5e6..=5.5e6).contains(&up),
        "{text}"
    );
    Ok(())
}

/// The page as the browser shows it after several updates of the rates.
pub(crate) fn shows_rates_in_a_page(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    let _shaper = gateway.start()?;
    let _server = gateway.server("server", "up")?;
    let words = ["-u", "-b", "4M", "-l", "1000", "-t", "60"];
    let _client = gateway.client("iperf3-udp", "up", &words)?;
    // The page is served on the browser's loopback.
    let mut command = bench.wire.lac.command(bench.headend);
    command
        .args([
            "qos",
            "graph",
            "--live",
            "--interval",
            "0.3",
            "--listen",
            "127.0.0.1:0",
        ])
        .arg("--control")
        .arg(&gateway.socket);
    let mut page = Process::start(command, "headend-page", &bench.directory)?;
    let address = page.wait_for("http://127.0.0.1:", SOON)?;
    let mut seen = String::new();
    let rate = until(2 * SOON, || {
        seen = in_browser(bench, &address)?;
        std::fs::write(bench.directory.join("page.html"), &seen)?;
        // The first line belongs to the upward root queue.
        Ok(text_of(&seen, "r1")
            .and_then(mbit)
            .filter(|rate| *rate > 0.0))
    })?;
    let rate = rate.context("the page has no rate")?;
    // iperf3 sends 4.1 Mbit/s including the headers that it does not count, in bursts when it is late.
    ensure!((2.0..=8.0).contains(&rate), "{rate} Mbit/s in the page");
    judge_page(&seen)
}

/// The page after its script has run for some virtual seconds.
fn in_browser(bench: &Bench<'_>, address: &str) -> Result<String> {
    let mut browser = bench.wire.lac.command("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    browser.args(["--disable-quic", "--no-first-run", "--disable-sync"]);
    browser.args([
        "--disable-background-networking",
        "--disable-component-update",
    ]);
    let profile = bench.directory.join("chromium");
    browser.arg(format!("--user-data-dir={}", profile.display()));
    browser.args(["--virtual-time-budget=3000", "--dump-dom", address]);
    let output = browser.output().context("chromium")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The page has asked for rates, says over which time they are, and draws the busy queue's line thick.
fn judge_page(page: &str) -> Result<()> {
    let looks = page
        .split("data-looks=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let looks: u32 = looks.context("it never asked")?.parse()?;
    ensure!(looks >= 1, "it asked {looks} times");
    let state = text_of(page, "state").unwrap_or_default();
    ensure!(state.starts_with("rates over 0."), "{state}");
    let thick = page.split("id=\"e1\" style=\"stroke-width:").nth(1);
    let thick = thick
        .and_then(|rest| rest.split("px").next())
        .context("a line's width")?;
    ensure!(
        thick.trim().parse::<f64>()? > 5.0,
        "a line of {thick} pixels"
    );
    Ok(())
}

/// The text of the element with this id.
fn text_of<'p>(page: &'p str, id: &str) -> Option<&'p str> {
    let rest = page.split(&format!("id=\"{id}\"")).nth(1)?;
    rest.split_once('>')?.1.split('<').next()
}

/// "4.11 Mbit/s" as a number.
fn mbit(label: &str) -> Option<f64> {
    label.strip_suffix(" Mbit/s")?.parse().ok()
}
