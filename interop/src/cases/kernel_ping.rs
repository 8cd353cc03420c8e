//! Pings over a guest's wires: headend's measurements compared with those of tcpdump, ping and fping.
//!
//! ```text
//! (namespace "s")  s0 ==== r0 (the guest forwards) a0 ==== b0  (namespace "b")
//! the pings                delays each way, losses            who replies
//! ```

use crate::kernel;
use crate::kernel::captured::{self, Echo, Seen};
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

/// Programs are read into memory before anything is timed; `capture` ends once tcpdump has received the
/// kernel's last block.
const GUEST: &str = r#"set -e
work=$PWD
ip netns add s; ip netns add b
ip link add r0 address 02:00:00:00:00:0a type veth peer name s0 address 02:00:00:00:00:0a netns s
ip link add a0 address 02:00:00:00:00:0a type veth peer name b0 address 02:00:00:00:00:0a netns b
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for i in r0 a0; do ip link set $i arp off up; done
for n in s b; do ip -n $n link set ${n}0 arp off up; ip -n $n link set lo up; done
ip addr add 10.0.0.1/30 dev r0; ip -n s addr add 10.0.0.2/30 dev s0
ip addr add 10.0.0.5/30 dev a0; ip -n b addr add 10.0.0.6/30 dev b0
ip -6 addr add fd00::1/64 nodad dev r0; ip -n s -6 addr add fd00::2/64 nodad dev s0
ip -6 addr add fd01::1/64 nodad dev a0; ip -n b -6 addr add fd01::2/64 nodad dev b0
for n in s b; do ip -n $n route add default dev ${n}0; ip -n $n -6 route add default dev ${n}0; done
for program in headend $(which ping fping tcpdump); do
  cp $program /tmp; cat $(ldd $program | grep -o '/[^ ]*') > /dev/null
done
cd /tmp
s() { ip netns exec s ./"$@"; }
delay() { tc qdisc replace dev a0 root netem delay $1 limit 9999; tc qdisc replace dev r0 root netem delay $2 limit 9999; }
capture() {
  ip netns exec $1 ./tcpdump -Z root -B 8192 -i ${1}0 --time-stamp-precision=nano -w $2 ip or ip6 2> $2.log & dump=$!
  until grep -q listening $2.log 2> /dev/null; do sleep 0.1; done
}
captured() { sleep 1.5; kill -INT $dump; wait $dump; cp $1 $work; }
delay 10ms 10ms
for again in 1 2; do
  capture s warm.pcap
  s headend ping -c 4 -i 0.05 10.0.0.6 fd01::2 > /dev/null
  s ping -c 4 -i 0.05 10.0.0.6 > /dev/null; s fping -c 4 -p 50 10.0.0.6 > /dev/null 2>&1
  captured warm.pcap
done
"#;

/// Three programs at the same time, distinguished by packet size.
const ROUND_TRIPS: &str = "capture s trip.pcap
s headend ping -c 200 -i 0.05 -s 56 -o trip.json 10.0.0.6 > trip.headend & h=$!
s ping -c 200 -i 0.05 -s 57 10.0.0.6 > trip.ping & p=$!
s fping -c 200 -p 50 -b 58 10.0.0.6 > trip.fping 2>&1 & f=$!
wait $h; wait $p; wait $f; captured trip.pcap; cp trip.* $work
";

/// Classes, two of them with ECN bits, and sizes.
const SPACING: &str = "capture b four.pcap
s headend ping -q -c 200 -i 0.01 -Q 0x02,ef,0x27 -s 16,56,1472 -o four.json 10.0.0.6 > four.headend
captured four.pcap; capture b six.pcap
s headend ping -q -c 200 -i 0.01 -Q 0x02,ef -s 16,1452 -o six.json fd01::2 > six.headend
captured six.pcap; delay 5ms 15ms
ip netns exec b ./headend ping --responder 7007 > responder & responder=$!
sleep 0.3; s headend ping -q -c 4 -i 0.01 --udp 7007 -s 100 10.0.0.6 > /dev/null; capture b udp.pcap
s headend ping -q -c 200 -i 0.01 --udp 7007 -Q ef -s 100,1472 -o udp.json 10.0.0.6 > udp.headend
captured udp.pcap; kill -INT $responder; wait $responder || true; cp four.* six.* udp.* $work
";

/// Of each sixteen packets, by the low bits of the sequence number: 1 arrives after its timeout, 10 after the
/// next packet's; 3 is lost on the way out, 5 on the way back; 7 is duplicated on the way out, 8 on the way
/// back.
const PATTERN: &str = "delay 5ms 5ms; tc qdisc del dev a0 root
tc qdisc add dev a0 root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
tc qdisc add dev a0 parent 1:1 netem delay 5ms limit 9999
tc qdisc add dev a0 parent 1:2 netem delay 20ms limit 9999
tc qdisc add dev a0 parent 1:3 netem delay 120ms limit 9999
tc qdisc add dev r0 ingress; tc qdisc add dev a0 ingress
of() { echo \"protocol ip u32 match ip protocol 1 0xff match u16 $1 0x000f at 26\"; }
tc filter add dev a0 parent 1: $(of 10) classid 1:2
tc filter add dev a0 parent 1: $(of 1) classid 1:3
tc filter add dev r0 parent ffff: $(of 3) action drop
tc filter add dev a0 parent ffff: $(of 5) action drop
tc filter add dev r0 parent ffff: $(of 7) action mirred egress mirror dev a0
tc filter add dev a0 parent ffff: $(of 8) action mirred egress mirror dev r0
capture s pattern.pcap
s headend ping -c 320 -i 0.01 -W 0.1 -s 56 -o pattern.json 10.0.0.6 > pattern.headend & h=$!
s ping -c 320 -i 0.01 -s 57 10.0.0.6 > pattern.ping & p=$!
wait $h; wait $p; captured pattern.pcap; cp pattern.* $work
tc qdisc del dev r0 ingress; tc qdisc del dev a0 ingress; tc qdisc del dev a0 root
";

/// At random, in both directions. The second stream stays in the namespace and keeps headend running for late
/// packets.
const CHANCE: &str = "tc qdisc add dev a0 root netem delay 10ms loss 5% duplicate 5% reorder 80% limit 9999
tc qdisc replace dev r0 root netem delay 10ms loss 5% duplicate 5% limit 9999
capture s chance.pcap
s headend ping -o chance.json 10.0.0.6,count=1000,interval=0.002 10.0.0.2,count=25,interval=0.1 > chance.headend
captured chance.pcap; cp chance.* $work
";

/// The round-trip time of the guest's wires.
const TRIP_MS: f64 = 20.0;

/// Tolerance of a measured round-trip time.
const TRIP_ERROR_MS: f64 = 0.05;

/// Tolerance between a round-trip time and tcpdump's, which takes its timestamps one step earlier on the way
/// out and later on the way in.
const STAMP_ERROR_NS: u64 = 10_000;

/// Tolerance of a packet's send time: for most packets, and for any. In the guest each instruction takes time, and the
/// profile `quick` needs more of them than `release`: 11 to 69 us were seen. The goal of `headend ping` is 1 ms.
const SPACING_MOST_NS: u64 = 120_000;
const SPACING_WORST_NS: u64 = 150_000;

/// Boots once, and compares each part with tcpdump's capture.
pub(crate) fn measures_what_the_wire_does(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let script = [GUEST, ROUND_TRIPS, SPACING, PATTERN, CHANCE].concat();
    kernel::boot(bench, &script)?;
    let mut notes = String::new();
    let compared = [round_trips, spacing, each_way, pattern, chance]
        .into_iter()
        .try_for_each(|part| part(&bench.directory, &mut notes));
    // The results are kept beside the logs, even after a success.
    std::fs::write(bench.directory.join("compared.txt"), &notes)?;
    compared.with_context(|| notes)
}

fn text(directory: &Path, name: &str) -> Result<String> {
    std::fs::read_to_string(directory.join(name)).with_context(|| name.to_owned())
}

/// The streams in a result file.
fn streams(directory: &Path, name: &str) -> Result<Vec<Value>> {
    let mut result: Value = serde_json::from_str(&text(directory, name)?).context("a result")?;
    match result["streams"].take() {
        Value::Array(streams) => Ok(streams),
        _ => bail!("{name} has no streams"),
    }
}

fn column(stream: &Value, name: &str) -> Result<Vec<u64>> {
    let column = stream["samples"][name].as_array().context("a column")?;
    let numbers = column.iter().map(Value::as_u64).collect::<Option<_>>();
    numbers.with_context(|| format!("numbers in {name}"))
}

/// `min`, `avg`, `max` as ping and fping print them.
fn printed_rtt(text: &str, before: &str) -> Result<[f64; 3]> {
    let numbers = text.lines().find_map(|line| line.split_once(before));
    let numbers = numbers.with_context(|| format!("'{before}' in {text}"))?.1;
    let numbers: Vec<f64> = numbers
        .split(['/', ' '])
        .take(3)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    numbers.try_into().ok().context("three numbers")
}

/// The round-trip time of each request of `length` bytes, as seen on the wire.
fn wire_trips(seen: &[Seen], length: usize) -> Vec<u64> {
    let mut sent = HashMap::new();
    let mut trips = Vec::new();
    for packet in seen.iter().filter(|packet| packet.length == length) {
        match packet.echo() {
            Some(Echo::Request(sequence)) => _ = sent.insert(sequence, packet.at_ns),
            Some(Echo::Reply(sequence)) => {
                trips.extend(sent.get(&sequence).map(|at| packet.at_ns - at));
            }
            None => {}
        }
    }
    trips
}

fn round_trips(directory: &Path, notes: &mut String) -> Result<()> {
    let stream = &streams(directory, "trip.json")?[0];
    let percentile = |name: &str| -> Result<f64> {
        let ns = stream["summary"]["rtt_percentiles"][name].as_f64();
        Ok(ns.context("a percentile")? / 1e6)
    };
    let (median, p99) = (percentile("p50_ns")?, percentile("p99_ns")?);
    let ours = printed_rtt(&text(directory, "trip.headend")?, "rtt min/avg/max/mdev = ")?;
    let ping = printed_rtt(&text(directory, "trip.ping")?, "rtt min/avg/max/mdev = ")?;
    let fping = printed_rtt(&text(directory, "trip.fping")?, "min/avg/max = ")?;
    let seen = captured::read(&directory.join("trip.pcap"))?;
    let own = column(stream, "rtt_ns")?;
    let wire = wire_trips(&seen, 56 + 28);
    ensure!(own.len() == 200 && wire.len() == 200, "packets are missing");
    let apart = own.iter().zip(&wire).map(|(a, b)| a.abs_diff(*b)).max();
    let apart = apart.unwrap_or(u64::MAX);
    let mut sorted = wire;
    sorted.sort_unstable();
    writeln!(
        notes,
        "round trip of {TRIP_MS:.2} ms, three programs at the same time\n  \
         headend: p50 {median:.3} p99 {p99:.3}, printed min/avg/max {ours:.3?}\n  \
         ping: printed min/avg/max {ping:.3?}\n  fping: printed min/avg/max {fping:.1?}\n  \
         tcpdump: p50 {:.3} p99 {:.3}; a packet of headend's is at most {apart} ns from tcpdump's",
        sorted[99] as f64 / 1e6,
        sorted[197] as f64 / 1e6,
    )?;
    for measured in [median, p99, ours[0], ours[1]] {
        ensure!((measured - TRIP_MS).abs() <= TRIP_ERROR_MS, "{measured} ms");
    }
    // Their times include processing in their own process.
    ensure!((ours[1] - TRIP_MS).abs() <= (ping[1] - TRIP_MS).abs());
    ensure!((fping[1] - TRIP_MS).abs() <= 0.1, "{fping:?}");
    ensure!(apart <= STAMP_ERROR_NS, "{apart} ns from tcpdump's");
    Ok(())
}

/// On the far side, each stream has its class and length, and each packet its send time.
fn spacing(directory: &Path, notes: &mut String) -> Result<()> {
    for (name, headers) in [("four", 28), ("six", 48), ("udp", 28)] {
        let seen = captured::read(&directory.join(format!("{name}.pcap")))?;
        let streams = streams(directory, &format!("{name}.json"))?;
        let (mut most, mut worst, mut known) = (0, 0, HashSet::new());
        for stream in &streams {
            let plan = |key: &str| stream["plan"][key].as_u64().context("a plan");
            let (class, length) = (plan("tos")?, plan("size")? + headers);
            ensure!(known.insert((class, length)), "two streams alike");
            let times: Vec<u64> = seen
                .iter()
                .filter(|packet| {
                    let is = (packet.traffic_class.into(), packet.length as u64);
                    is_asking(packet) && is == (class, length)
                })
                .map(|packet| packet.at_ns)
                .collect();
            ensure!(
                times.len() == 200,
                "{name}: {} of class {class}, length {length}",
                times.len()
            );
            // The schedule is based on the median packet, so that a late first one does not shift all others.
            let interval = plan("interval_ns")?;
            let mut begins: Vec<u64> = (0..)
                .zip(&times)
                .map(|(turn, at)| at - turn * interval)
                .collect();
            begins.sort_unstable();
            let begin = begins[100];
            let mut off: Vec<u64> = begins.iter().map(|at| at.abs_diff(begin)).collect();
            off.sort_unstable();
            (most, worst) = (most.max(off[197]), worst.max(off[199]));
            ensure!(
                column(stream, "tos")?.iter().all(|reply| *reply == class),
                "{name}: a reply of another class"
            );
        }
        let asked = seen.iter().filter(|packet| is_asking(packet)).count();
        ensure!(asked == 200 * streams.len(), "{name}: {asked} packets");
        writeln!(
            notes,
            "{name}: {} streams of 200 have their class and length on the wire; off their turns: 99 % {:.1} us, worst {:.1} us",
            streams.len(),
            most as f64 / 1e3,
            worst as f64 / 1e3
        )?;
        ensure!(
            most <= SPACING_MOST_NS && worst <= SPACING_WORST_NS,
            "{name}: {most}, {worst} ns"
        );
    }
    Ok(())
}

/// Whether it goes from headend to the responder.
fn is_asking(packet: &Seen) -> bool {
    matches!(packet.echo(), Some(Echo::Request(_))) || packet.udp_to() == Some(7_007)
}

/// 5 ms out and 15 ms back, by the responder's timestamps.
fn each_way(directory: &Path, notes: &mut String) -> Result<()> {
    for stream in streams(directory, "udp.json")? {
        let (trips, turns) = (column(&stream, "rtt_ns")?, column(&stream, "turn_ns")?);
        let up = column(&stream, "up_ns")?;
        let mut down: Vec<u64> = (0..up.len())
            .map(|at| trips[at] - turns[at] - up[at])
            .collect();
        let mut up = up;
        up.sort_unstable();
        down.sort_unstable();
        let (up_ms, down_ms) = (up[100] as f64 / 1e6, down[100] as f64 / 1e6);
        writeln!(
            notes,
            "  {}: 5 ms there: {up_ms:.3}, 15 ms back: {down_ms:.3}",
            stream["plan"]["name"]
        )?;
        // The responder takes its send time before its system call.
        ensure!((up_ms - 5.0).abs() <= 0.05 && (down_ms - 15.0).abs() <= 0.1);
    }
    Ok(())
}

/// The outcome of a stream's packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    transmitted: u64,
    received: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    late: u64,
}

impl Account {
    /// From a result file.
    fn of(stream: &Value) -> Result<Account> {
        let number = |key: &str| {
            stream["summary"][key]
                .as_u64()
                .with_context(|| key.to_owned())
        };
        Ok(Account {
            transmitted: number("transmitted")?,
            received: number("received")?,
            lost: number("lost")?,
            duplicates: number("duplicates")?,
            reordered: number("reordered")?,
            late: number("late")?,
        })
    }

    /// Of the packets of `length` bytes on a wire, counted as late after `wait_ns`.
    fn seen(seen: &[Seen], length: usize, wait_ns: u64) -> Account {
        let mut account = Account::default();
        let (mut sent, mut answered, mut highest) = (HashMap::new(), HashSet::new(), 0);
        for packet in seen.iter().filter(|packet| packet.length == length) {
            match packet.echo() {
                Some(Echo::Request(sequence)) => _ = sent.insert(sequence, packet.at_ns),
                Some(Echo::Reply(sequence)) if !answered.insert(sequence) => {
                    account.duplicates += 1
                }
                Some(Echo::Reply(sequence)) => {
                    let trip = sent.get(&sequence).map_or(u64::MAX, |at| packet.at_ns - at);
                    account.received += 1;
                    account.late += u64::from(trip > wait_ns);
                    account.reordered += u64::from(sequence < highest);
                    highest = highest.max(sequence);
                }
                None => {}
            }
        }
        account.transmitted = sent.len() as u64;
        account.lost = account.transmitted - account.received;
        account
    }
}

fn pattern(directory: &Path, notes: &mut String) -> Result<()> {
    let ours = Account::of(&streams(directory, "pattern.json")?[0])?;
    let seen = captured::read(&directory.join("pattern.pcap"))?;
    let wire = Account::seen(&seen, 56 + 28, 100_000_000);
    let ordered = Account {
        transmitted: 320,
        received: 280,
        lost: 40,
        duplicates: 40,
        reordered: 40,
        late: 20,
    };
    writeln!(notes, "a known pattern: {ours:?}")?;
    ensure!(wire == ordered, "the guest did otherwise: {wire:?}");
    ensure!(ours == ordered, "{ours:?}");
    for name in ["pattern.headend", "pattern.ping"] {
        let said = text(directory, name)?;
        let line = said
            .lines()
            .find(|line| line.contains("transmitted"))
            .unwrap_or_default();
        writeln!(notes, "  {name} says: {line}")?;
        let counts = "320 packets transmitted, 280 received, +40 duplicates, 12.5% packet loss";
        ensure!(line.starts_with(counts), "{name}: {line}");
    }
    Ok(())
}

fn chance(directory: &Path, notes: &mut String) -> Result<()> {
    let ours = Account::of(&streams(directory, "chance.json")?[0])?;
    let seen = captured::read(&directory.join("chance.pcap"))?;
    let wire = Account::seen(&seen, 56 + 28, 10_000_000_000);
    writeln!(
        notes,
        "by chance: on the wire {wire:?}\n           headend's {ours:?}"
    )?;
    ensure!(ours == wire, "on the wire {wire:?}, headend's {ours:?}");
    // Each fails by chance in fewer than one of a million runs.
    ensure!(
        wire.lost > 30 && wire.duplicates > 30 && wire.reordered > 30,
        "{wire:?}"
    );
    Ok(())
}
