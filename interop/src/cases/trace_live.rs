//! `headend trace --live` on a wire between two namespaces, with tcpdump and the interface's own counters beside it.

use crate::net::{LNS, Namespace, join};
use crate::process::Process;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const START_MAX: Duration = Duration::from_secs(40);

/// How long a transfer and the reports about it may take.
const RUN_MAX: Duration = Duration::from_secs(60);

/// tcpdump and headend receive frames in blocks; after this time they have received the last one.
const SETTLE: Duration = Duration::from_millis(500);

/// Receives all data of one connection, slowly if a pause is given.
const RECEIVER: &str = "
import socket, sys, time
server = socket.create_server(('', 5001))
print('listening', flush=True)
connection, _ = server.accept()
while connection.recv(65536): time.sleep(float(sys.argv[1]))
";

/// Sends for so many seconds.
const SENDER: &str = "
import socket, sys, time
end = time.time() + float(sys.argv[1])
connection = socket.create_connection((sys.argv[2], 5001))
while time.time() < end: connection.sendall(bytes(65536))
";

/// Datagrams that the flood sends, more than fit the smallest ring.
const FLOOD: u64 = 10_000;

/// Frames of the host's own that may pass between two looks at the counters, such as neighbour discovery.
const STRAY_MAX: u64 = 30;

/// Starts a Python program.
fn python(
    namespace: &Namespace,
    directory: &Path,
    name: &str,
    program: &str,
    arguments: &[&str],
) -> Result<Process> {
    let mut command = namespace.command("python3");
    command.args(["-c", program]).args(arguments);
    Process::start(command, name, directory)
}

/// Starts `headend trace` with these words at the LAC's end of the wire.
fn trace(bench: &Bench<'_>, words: &[&str]) -> Result<Process> {
    let mut command = bench.wire.lac.command(bench.headend);
    command.arg("trace").args(words).args(["--live", "wire"]);
    command.current_dir(&bench.directory);
    Process::start(command, "trace", &bench.directory)
}

/// One transfer through the wire to an address of `to`, for so many seconds. The receiver pauses between its reads.
/// Returns headend's lines.
fn transfer(
    bench: &Bench<'_>,
    (to, address): (&Namespace, &str),
    seconds: &str,
    pause: &str,
) -> Result<Vec<Value>> {
    let lac = &bench.wire.lac;
    let mut receiver = python(to, &bench.directory, "receiver", RECEIVER, &[pause])?;
    receiver.wait_for("listening", START_MAX)?;
    let words = ["why", "--json", "--every", "1s", "--write", "headend.pcap"];
    let mut headend = trace(bench, &words)?;
    headend.wait_for("why_interval", START_MAX)?;
    let mut command = lac.command("tcpdump");
    command.args(["-Z", "root", "-B", "65536", "--immediate-mode"]);
    command.args(["-i", "wire", "-w"]);
    command.arg(bench.directory.join("tcpdump.pcap"));
    let mut tcpdump = Process::start(command, "tcpdump", &bench.directory)?;
    tcpdump.wait_for("listening on", START_MAX)?;
    let mut sender = python(lac, &bench.directory, "sender", SENDER, &[seconds, address])?;
    sender.wait_for_end(RUN_MAX)?;
    receiver.wait_for_end(RUN_MAX)?;
    std::thread::sleep(SETTLE);
    for process in [&mut tcpdump, &mut headend] {
        process.signal(Signal::INT)?;
        let status = process.wait_for_end(RUN_MAX)?;
        ensure!(status.success(), "{status}");
    }
    let printed = headend.printed();
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The causes that the intervals name for the transfer's sender, and whether each names its process.
fn causes(lines: &[Value]) -> Result<Vec<String>> {
    let intervals = lines.iter().filter(|line| line["kind"] == "why_interval");
    let worst = intervals.flat_map(|line| line["worst"].as_array().into_iter().flatten());
    let mut causes = Vec::new();
    for connection in worst {
        let end = match &connection["a_port"] == 5001 {
            true => "b",
            false => "a",
        };
        let process = connection[format!("{end}_process")]["name"].as_str();
        let process = process.with_context(|| format!("no process: {connection}"))?;
        ensure!(process.starts_with("python"), "{process}: {connection}");
        causes.push(connection["cause"].as_str().context("a cause")?.to_owned());
    }
    Ok(causes)
}

fn count(causes: &[String], wanted: &str) -> usize {
    causes.iter().filter(|cause| *cause == wanted).count()
}

/// Checks that both captures have the same TCP packets, and that headend counted what it wrote.
fn agree(bench: &Bench<'_>, lines: &[Value]) -> Result<()> {
    let packets = |name: &str| -> Result<(Value, Value)> {
        let output = Command::new(bench.headend)
            .args(["trace", "--json", name])
            .current_dir(&bench.directory)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let summary: Value = serde_json::from_str(text.lines().last().context("a summary")?)?;
        Ok((summary["tcp_packets"].clone(), summary["packets"].clone()))
    };
    let (ours, all) = packets("headend.pcap")?;
    let (theirs, _) = packets("tcpdump.pcap")?;
    ensure!(
        ours == theirs && ours.as_u64() > Some(100),
        "TCP packets: headend {ours}, tcpdump {theirs}"
    );
    let capture = lines.iter().find(|line| line["kind"] == "capture");
    let capture = capture.context("the counts of the capture")?;
    ensure!(
        capture["captured"].as_u64() >= all.as_u64() && capture["dropped"] == 0,
        "{capture}, and {all} packets are written"
    );
    Ok(())
}

/// A namespace behind the wire's other end, which routes to it through a token bucket.
fn behind_a_queue(bench: &Bench<'_>) -> Result<Namespace> {
    let (lac, router) = (&bench.wire.lac, &bench.wire.lns);
    let far = Namespace::new("trace-live-far".to_owned())?;
    join((router, "far"), (&far, "far"))?;
    for (namespace, address) in [(router, "10.9.1.1/24"), (&far, "10.9.1.2/24")] {
        namespace.ip(&["address", "add", address, "dev", "far"])?;
        namespace.ip(&["link", "set", "far", "up"])?;
    }
    lac.ip(&["route", "add", "10.9.1.0/24", "via", LNS])?;
    far.ip(&["route", "add", "10.9.0.0/24", "via", "10.9.1.1"])?;
    let bucket = "echo 1 > /proc/sys/net/ipv4/ip_forward && \
                  tc qdisc add dev far root tbf rate 20mbit burst 32k latency 200ms";
    let status = router.command("sh").args(["-c", bucket]).status()?;
    ensure!(status.success(), "{bucket}");
    Ok(far)
}

/// A token bucket on the path: the reports name its queue and the sender's process.
pub(crate) fn names_the_queue_and_its_sender(bench: &Bench<'_>) -> Result<()> {
    let far = behind_a_queue(bench)?;
    let lines = transfer(bench, (&far, "10.9.1.2"), "7", "0")?;
    let causes = causes(&lines)?;
    ensure!(
        count(&causes, "queue") >= 3,
        "the intervals name {causes:?}"
    );
    agree(bench, &lines)
}

/// A receiver that reads slowly: the reports name its window.
pub(crate) fn names_the_window_of_a_slow_reader(bench: &Bench<'_>) -> Result<()> {
    let lines = transfer(bench, (&bench.wire.lns, LNS), "5", "0.02")?;
    let causes = causes(&lines)?;
    ensure!(
        count(&causes, "receiver_window") >= 3,
        "the intervals name {causes:?}"
    );
    agree(bench, &lines)
}

/// Frames received and sent at the LAC's end of the wire.
fn passed(namespace: &Namespace) -> Result<u64> {
    let output = namespace.command("cat").arg("/proc/net/dev").output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("wire:"));
    let fields: Vec<&str> = line.context("the wire")?.split_whitespace().collect();
    let field = |at: usize| -> Result<u64> { Ok(fields.get(at).context("a counter")?.parse()?) };
    Ok(field(1)? + field(9)?)
}

/// While headend is stopped, more frames pass than the ring holds: captured and dropped frames are all that passed.
pub(crate) fn counts_what_the_kernel_drops(bench: &Bench<'_>) -> Result<()> {
    const PROGRAM: &str = "
import socket, sys
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])): to.sendto(bytes(1000), ('10.9.0.2', 9))
";
    let lac = &bench.wire.lac;
    // Without --json, a first line shows that the capture runs.
    let mut headend = trace(bench, &["-q", "--ring", "2M"])?;
    headend.wait_for("starting with 'wire'", START_MAX)?;
    let before = passed(lac)?;
    headend.signal(Signal::STOP)?;
    let mut flood = python(
        lac,
        &bench.directory,
        "flood",
        PROGRAM,
        &[&FLOOD.to_string()],
    )?;
    flood.wait_for_end(RUN_MAX)?;
    headend.signal(Signal::CONT)?;
    std::thread::sleep(SETTLE);
    let passed = passed(lac)? - before;
    headend.signal(Signal::INT)?;
    let status = headend.wait_for_end(RUN_MAX)?;
    ensure!(status.success(), "{status}");
    let printed = headend.printed();
    let line = printed
        .lines()
        .find(|line| line.contains("frames captured"));
    let line = line.context("the counts")?;
    let number = |before: &str| -> Result<u64> {
        let words: Vec<&str> = line
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let at = words.iter().position(|word| *word == before);
        let number = at.and_then(|at| words.get(at.checked_sub(1)?));
        Ok(number.context("a number")?.parse()?)
    };
    let (captured, dropped) = (number("frames")?, number("dropped")?);
    ensure!(
        (captured + dropped).abs_diff(passed) <= STRAY_MAX && passed >= FLOOD,
        "{captured} captured, {dropped} dropped, but {passed} passed the interface"
    );
    ensure!(dropped >= FLOOD / 2, "a ring of 2 MiB: {line}");
    Ok(())
}

/// The interface is deleted during the capture: the report comes, and the exit status is 1.
pub(crate) fn ends_with_its_interface(bench: &Bench<'_>) -> Result<()> {
    let mut headend = trace(bench, &["why", "--json", "--every", "1s"])?;
    headend.wait_for("why_interval", START_MAX)?;
    bench.wire.lns.ip(&["link", "delete", "wire"])?;
    let status = headend.wait_for_end(RUN_MAX)?;
    ensure!(status.code() == Some(1), "{status}");
    for text in [
        "wire: the interface no longer exists",
        "why_summary",
        "\"kind\":\"capture\"",
    ] {
        ensure!(headend.lines_with(text) == 1, "no line with {text}");
    }
    Ok(())
}
