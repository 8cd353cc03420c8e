//! Measurements, which `cargo xtask interop --measure` runs: instructions of headend beside those of Linux's kernel and of
//! other daemons. The guest counts instructions, two nanoseconds of its clock each, so that a time in it is a number of
//! instructions, whatever this machine does meanwhile. Caches and memory do not count.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// Sizes of the table of connections.
const CONNECTIONS: [u32; 3] = [1_024, 16_384, 262_144];

/// The namespaces of [`super::kernel_nat`], with time-outs that no measurement reaches, and buckets for each connection.
const PREPARE: &str = "
sysctl -qw net.netfilter.nf_conntrack_max=400000
echo 262144 > /sys/module/nf_conntrack/parameters/hashsize
plain() { router; nat nft flush ruleset; nat ip route del blackhole 203.0.113.1/32; nat ip route add 203.0.113.1/32 dev i0; }
full() { router; nat sysctl -qw net.netfilter.nf_conntrack_udp_timeout=9000 net.netfilter.nf_conntrack_udp_timeout_stream=9000; }
one() { echo \"$1 $2 $(/tmp/probe flood inside $2 1) $(/tmp/probe flood inside $2 1) $(/tmp/probe flood outside $2 1)\" >> translation.txt; }
";

/// A translated packet and a new connection: conntrack with `snat`, over forwarding alone; and the crate `nat`.
pub(crate) fn translation(bench: &Bench<'_>) -> Result<()> {
    std::fs::copy(std::env::current_exe()?, bench.directory.join("probe"))?;
    kernel::bring_headend(bench)?;
    let mut script = [super::kernel_nat::ROUTER, PREPARE].concat();
    script.push_str("rm -f translation.txt; plain; one warm 1024; one forwarding 16384\n");
    for count in CONNECTIONS {
        writeln!(script, "full; one conntrack {count}")?;
    }
    let sizes = CONNECTIONS.map(|count| count.to_string()).join(",");
    writeln!(
        script,
        "cp headend /tmp; cd /tmp; ./headend bench nat --sizes {sizes} --rounds 1 --json > bench.json; cd - > /dev/null; cp /tmp/bench.json ."
    )?;
    kernel::boot(bench, &script)?;
    let text = std::fs::read_to_string(bench.directory.join("translation.txt"))?;
    let row = |name: &str, count: u32| -> Result<[f64; 3]> {
        let start = format!("{name} {count} ");
        let line = text.lines().find(|line| line.starts_with(&start));
        let line = line.with_context(|| start.clone())?;
        let words: Vec<f64> = line[start.len()..]
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        words.try_into().ok().context("three figures")
    };
    let [_, base_out, base_in] = row("forwarding", 16_384)?;
    println!("instructions over forwarding alone ({base_out:.0} out, {base_in:.0} in):");
    println!("  connections  conntrack: new, out, in   headend: new, out, in");
    let bench_json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(
        bench.directory.join("bench.json"),
    )?)?;
    let rows = bench_json["tables"][0]["rows"].as_array();
    let rows = rows.context("a table of headend bench nat")?;
    for count in CONNECTIONS {
        let [new, out, back] = row("conntrack", count)?;
        let ours = |what: &str| -> Result<f64> {
            let mut own = rows.iter().map(|row| &row["cells"]);
            let cells = own.find(|cells| cells[0] == what && cells[1] == count);
            let ns = cells.and_then(|cells| cells[2].as_f64());
            ns.map(|ns| ns / 2.0).with_context(|| what.to_owned())
        };
        println!(
            "  {count:>11}  {:>9.0} {:>6.0} {:>6.0}  {:>15.0} {:>5.0} {:>5.0}",
            new - base_out,
            out - base_out,
            back - base_in,
            ours("new mapping")?,
            ours("packet out")?,
            ours("packet in")?
        );
    }
    Ok(())
}
