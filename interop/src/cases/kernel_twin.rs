//! `headend trace twin` against the kernel: a path with a deep FIFO is captured and its twin made; then the same path
//! has fq_codel in the kernel, and its round trips are compared with the twin's promise.
//!
//! ```text
//! (namespace "s")  s0 ==== r0 (netem: the whole delay, for ACKs)  a0 (tbf: rate and queue) ==== b0  (namespace "b")
//! iperf3 and tcpdump                                                                        iperf3
//! ```

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A path and its traffic.
#[derive(Debug, Clone, Copy)]
struct Lab {
    rate_kbit: u32,
    rtt_ms: u32,
    buffer_ms: u32,
    control: &'static str,
    flows: u32,
    /// Segmentation offloads at both ends.
    is_offloaded: bool,
}

const fn path(
    rate_kbit: u32,
    rtt_ms: u32,
    buffer_ms: u32,
    control: &'static str,
    flows: u32,
    is_offloaded: bool,
) -> Lab {
    Lab {
        rate_kbit,
        rtt_ms,
        buffer_ms,
        control,
        flows,
        is_offloaded,
    }
}

/// The path of the test: an upload through a modem with half a second of buffer.
const UPLOAD: Lab = path(4_000, 40, 500, "cubic", 1, false);

/// The paths of the measurement, drawn once: rates of 1 to 100 Mbit/s, round trips of 10 to 200 ms, and buffers of 50 to
/// 1,000 ms, all evenly on a logarithmic scale.
const PATHS: [Lab; 60] = [
    path(2304, 72, 136, "reno", 4, false),
    path(18045, 17, 121, "cubic", 1, false),
    path(3218, 79, 132, "reno", 1, false),
    path(2177, 18, 149, "reno", 4, false),
    path(2705, 24, 51, "cubic", 1, false),
    path(34961, 33, 140, "cubic", 2, true),
    path(15843, 24, 70, "cubic", 1, false),
    path(9818, 107, 538, "reno", 1, false),
    path(19701, 112, 74, "cubic", 1, false),
    path(66776, 18, 108, "cubic", 4, false),
    path(1504, 15, 78, "reno", 1, false),
    path(19797, 50, 92, "cubic", 1, true),
    path(93211, 14, 394, "reno", 4, false),
    path(6315, 33, 158, "reno", 2, false),
    path(25992, 76, 147, "cubic", 2, false),
    path(28871, 62, 769, "cubic", 1, false),
    path(62698, 35, 499, "cubic", 1, false),
    path(10686, 53, 197, "reno", 1, true),
    path(34461, 100, 177, "cubic", 4, false),
    path(16630, 41, 173, "reno", 1, false),
    path(2209, 104, 880, "cubic", 4, false),
    path(1309, 119, 811, "reno", 1, false),
    path(72476, 21, 62, "reno", 1, false),
    path(71432, 13, 153, "cubic", 2, true),
    path(1505, 22, 141, "reno", 4, false),
    path(25010, 119, 170, "reno", 2, false),
    path(70966, 110, 57, "cubic", 4, false),
    path(3523, 19, 81, "reno", 4, false),
    path(1509, 96, 133, "cubic", 4, false),
    path(11494, 13, 418, "cubic", 2, true),
    path(2112, 186, 66, "cubic", 4, false),
    path(11463, 151, 508, "cubic", 2, false),
    path(8146, 10, 347, "reno", 1, false),
    path(1084, 32, 474, "reno", 1, false),
    path(3638, 20, 76, "cubic", 1, false),
    path(77544, 19, 419, "cubic", 1, true),
    path(11313, 75, 465, "reno", 2, false),
    path(6752, 144, 313, "cubic", 4, false),
    path(1324, 61, 538, "reno", 4, false),
    path(3843, 195, 118, "reno", 1, false),
    path(20969, 135, 275, "reno", 1, false),
    path(2163, 193, 980, "reno", 1, true),
    path(6666, 119, 671, "reno", 4, false),
    path(12298, 21, 64, "cubic", 4, false),
    path(2612, 97, 131, "cubic", 4, false),
    path(3958, 17, 624, "cubic", 2, false),
    path(61693, 30, 55, "reno", 1, false),
    path(6061, 13, 880, "cubic", 2, true),
    path(85794, 41, 709, "cubic", 1, false),
    path(4797, 10, 142, "reno", 2, false),
    path(2626, 20, 86, "reno", 2, false),
    path(42272, 18, 292, "reno", 2, false),
    path(76796, 11, 371, "reno", 2, false),
    path(4052, 52, 513, "cubic", 2, true),
    path(52496, 23, 145, "cubic", 2, false),
    path(6851, 29, 247, "reno", 2, false),
    path(8518, 74, 634, "cubic", 2, false),
    path(2891, 23, 88, "reno", 2, false),
    path(4112, 31, 848, "cubic", 4, false),
    path(4148, 24, 53, "cubic", 1, true),
];

/// Bounds of the goal: rate and buffer relative, base round trip in milliseconds, p99 relative.
const RATE: f64 = 0.05;
const BASE_MS: f64 = 2.0;
const BUFFER: f64 = 0.2;
const P99: f64 = 0.25;

/// Memory in megabytes, and seconds of this machine, for a guest that measures.
const ROOMY: [&str; 4] = ["-m", "1024", "-t", "1800"];

/// The smallest buffer: four full frames.
const BUFFER_MIN: u32 = 6_100;

const GUEST: &str = r#"set -e
work=$PWD
ip netns add s; ip netns add b
ip link add r0 address 02:00:00:00:00:0a type veth peer name s0 address 02:00:00:00:00:0a netns s
ip link add a0 address 02:00:00:00:00:0b type veth peer name b0 address 02:00:00:00:00:0b netns b
sysctl -qw net.ipv4.ip_forward=1
for i in r0 a0; do ip link set $i arp off up; done
for n in s b; do ip -n $n link set ${n}0 arp off up; ip -n $n link set lo up; done
ip addr add 10.0.0.1/30 dev r0; ip -n s addr add 10.0.0.2/30 dev s0
ip addr add 10.0.0.5/30 dev a0; ip -n b addr add 10.0.0.6/30 dev b0
for n in s b; do ip -n $n route add default dev ${n}0; done
for program in $(which iperf3 tcpdump ethtool); do cp $program /tmp; cat $(ldd $program | grep -o '/[^ ]*') > /dev/null; done
cd /tmp
plain() {
  for i in s:s0 b:b0; do ip netns exec ${i%:*} ./ethtool -K ${i#*:} tso off gso off gro off; done
  for i in r0 a0; do ./ethtool -K $i tso off gso off gro off; done
}
traffic() { # NAME SECONDS CONTROL FLOWS
  ip netns exec s ip tcp_metrics flush all > /dev/null 2>&1 || true
  ip netns exec s ./tcpdump -Z root -B 65536 -s 96 -i s0 -w $1.pcap tcp 2> $1.log & dump=$!
  until grep -q listening $1.log 2> /dev/null; do sleep 0.1; done
  ip netns exec b ./iperf3 -s -1 > /dev/null & server=$!
  sleep 0.5
  ip netns exec s ./iperf3 -c 10.0.0.6 -t $2 -C $3 -P $4 > $1.iperf
  sleep 3; kill -INT $dump; wait $dump; kill $server 2> /dev/null || true; cp $1.pcap $work
}
"#;

/// The commands of both runs of a path.
fn script(lab: &Lab) -> String {
    let Lab {
        rate_kbit,
        rtt_ms,
        control,
        flows,
        ..
    } = *lab;
    let bytes = lab.buffer_bytes();
    let seconds = if rate_kbit < 30_000 { 25 } else { 15 };
    let plain = if lab.is_offloaded { "" } else { "plain" };
    format!(
        "{GUEST}{plain}
tc qdisc add dev r0 root netem delay {rtt_ms}ms limit 1000000
tc qdisc add dev a0 root tbf rate {rate_kbit}kbit burst 3100 limit {bytes}
traffic fifo {seconds} {control} {flows}
tc qdisc del dev a0 root
tc qdisc add dev a0 root handle 1: tbf rate {rate_kbit}kbit burst 3100 limit 100000000
tc qdisc add dev a0 parent 1:1 handle 10: fq_codel
traffic fq_codel {seconds} {control} {flows}
"
    )
}

impl Lab {
    fn buffer_bytes(&self) -> u32 {
        (self.rate_kbit * self.buffer_ms / 8).max(BUFFER_MIN)
    }
}

/// What the twin found and promised, beside what the kernel did.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// Relative errors of rate and buffer, and that of the base round trip in milliseconds.
    rate: f64,
    base_ms: f64,
    buffer: Option<f64>,
    /// p99 of round trips: promised (if anything was), and of the kernel's fq_codel.
    promised_ms: Option<f64>,
    kernel_ms: f64,
}

impl Outcome {
    fn of(lab: &Lab, fifo: &Value, fq_codel: &Value) -> Result<Outcome> {
        let path = &fifo["path"];
        let number = |value: &Value| value.as_f64().context("a number");
        let rate = number(&path["rate_bps"]["value"]).with_context(|| fifo.to_string())?;
        let bases = path["base_rtt_ms"].as_array().context("base round trips")?;
        let bases = bases.iter().filter_map(|base| base["value"].as_f64());
        let buffer = path["buffer_bytes"]["value"].as_f64();
        Ok(Outcome {
            rate: rate / f64::from(lab.rate_kbit) / 1e3 - 1.0,
            base_ms: bases.fold(f64::INFINITY, f64::min) - f64::from(lab.rtt_ms),
            buffer: buffer.map(|bytes| bytes / f64::from(lab.buffer_bytes()) - 1.0),
            promised_ms: fifo["promise"]["rtt_p99_ms"].as_f64(),
            kernel_ms: number(&fq_codel["captured"]["rtt_p99_ms"])?,
        })
    }

    fn p99(&self) -> Option<f64> {
        Some(self.promised_ms? / self.kernel_ms - 1.0)
    }

    fn is_kept(&self) -> bool {
        self.p99().is_some_and(|error| error.abs() <= P99)
    }
}

/// The uploads in a capture, as `headend trace twin --json` reports them.
fn twin(bench: &Bench<'_>, capture: &Path) -> Result<Value> {
    let output = Command::new(bench.headend)
        .args(["trace", "twin", "--json"])
        .arg(capture)
        .output()?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let directions = report["directions"].as_array().context("directions")?;
    let up = directions.iter().find(|found| found["direction"] == "up");
    up.cloned().context("no upload")
}

fn compare(bench: &Bench<'_>, lab: &Lab, options: &[&str]) -> Result<Outcome> {
    kernel::boot_fast(bench, &script(lab), options)?;
    let fifo = twin(bench, &bench.directory.join("fifo.pcap"))?;
    let fq_codel = twin(bench, &bench.directory.join("fq_codel.pcap"))?;
    Outcome::of(lab, &fifo, &fq_codel)
}

/// One path, with the bounds of the goal.
pub(crate) fn keeps_its_promise(bench: &Bench<'_>) -> Result<()> {
    let outcome = compare(bench, &UPLOAD, &ROOMY)?;
    std::fs::write(
        bench.directory.join("compared.txt"),
        format!("{outcome:#?}\n"),
    )?;
    ensure!(outcome.rate.abs() <= RATE, "rate: {outcome:?}");
    ensure!(outcome.base_ms.abs() <= BASE_MS, "base: {outcome:?}");
    let buffer = outcome.buffer.context("no loss showed the buffer")?;
    ensure!(buffer.abs() <= BUFFER, "buffer: {outcome:?}");
    ensure!(outcome.is_kept(), "p99 under fq_codel: {outcome:?}");
    Ok(())
}

/// Every path; prints how many promises were kept.
pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    println!(
        "  Mbit/s  RTT  buffer  control  flows  rate    base     buffer   promised  kernel   error"
    );
    let (mut kept, mut count) = (0, 0);
    for lab in &PATHS {
        let percent = |error: Option<f64>| {
            error.map_or("-".to_owned(), |error| format!("{:+.1} %", 100.0 * error))
        };
        let head = format!(
            "  {:6.2} {:4} {:7} {:>8} {:4}{}",
            f64::from(lab.rate_kbit) / 1e3,
            lab.rtt_ms,
            lab.buffer_ms,
            lab.control,
            lab.flows,
            if lab.is_offloaded { " T" } else { "  " }
        );
        count += 1;
        match compare(bench, lab, &ROOMY) {
            Ok(outcome) => {
                kept += u32::from(outcome.is_kept());
                println!(
                    "{head} {:>8} {:+5.1} ms {:>8} {:>8} {:>5.1} ms {:>8}",
                    percent(Some(outcome.rate)),
                    outcome.base_ms,
                    percent(outcome.buffer),
                    outcome
                        .promised_ms
                        .map_or("-".to_owned(), |ms| format!("{ms:.1} ms")),
                    outcome.kernel_ms,
                    percent(outcome.p99())
                );
            }
            Err(error) => println!("{head} {error:#}"),
        }
    }
    println!(
        "  {kept} of {count} promises are within {:.0} %",
        100.0 * P99
    );
    Ok(())
}
