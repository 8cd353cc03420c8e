//! `headend trace diff` across a NAT and an L2TP tunnel: the packets that nftables dropped are those that it lists, also if
//! one capture's clock is 3 s and 50 ppm off.
//!
//! ```text
//! client c0 == r0 NAT, L2TPv3 w0 ==== w1 L2TPv3, nftables drops 2 % l0 == s0 server
//!      a.pcap                   wire.pcap                               b.pcap
//! ```

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// The kernel logs each dropped packet. Its buffer holds a few hundred lines, so they are read as they come.
const SCRIPT: &str = r#"set -e
work=$PWD; cd /tmp
modprobe -a veth nf_conntrack nft_chain_nat nft_nat nft_masq nft_ct nft_numgen nft_log nf_log_syslog l2tp_netlink l2tp_eth sch_tbf
on() { ip netns exec "$@"; }
for n in c r l s; do
ip netns add $n; ip -n $n link set lo up
on $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=1
done
plain() { on $1 ethtool -K $2 gso off tso off gro off > /dev/null; }
wire() { ip -n $1 link add name $2 type veth peer name $4 netns $3; ip -n $1 link set $2 up; ip -n $3 link set $4 up; plain $1 $2; plain $3 $4; }
wire c c0 r r0; wire r w0 l w1; wire l l0 s s0
ip -n c addr add 10.0.0.2/24 dev c0; ip -n r addr add 10.0.0.1/24 dev r0; ip -n c route add default via 10.0.0.1
ip -n r addr add 203.0.113.2/24 dev w0; ip -n l addr add 203.0.113.1/24 dev w1
ip -n l addr add 198.51.100.1/24 dev l0; ip -n s addr add 198.51.100.7/24 dev s0; ip -n s route add default via 198.51.100.1
tunnel() {
ip -n $1 l2tp add tunnel tunnel_id $4 peer_tunnel_id $5 encap udp local $2 remote $3 udp_sport 1701 udp_dport 1701
ip -n $1 l2tp add session name t0 tunnel_id $4 session_id $4 peer_session_id $5; ip -n $1 link set t0 mtu 1400 up
}
tunnel r 203.0.113.2 203.0.113.1 1 2; tunnel l 203.0.113.1 203.0.113.2 2 1
ip -n r addr add 172.16.0.2/24 dev t0; ip -n l addr add 172.16.0.1/24 dev t0; ip -n r route add default via 172.16.0.1
on r nft -f - <<END
table ip nat { chain leaving { type nat hook postrouting priority 100; oifname t0 masquerade; }; }
table ip mss { chain f { type filter hook forward priority 0; tcp flags syn tcp option maxseg size set 1300; }; }
END
sysctl -qw net.netfilter.nf_log_all_netns=1
on l nft -f - <<END
table ip lossy { chain f { type filter hook forward priority 0; tcp flags & syn == 0 numgen random mod 100 < 2 counter log prefix "DROP " flags tcp sequence drop; }; }
END
on l tc qdisc add dev l0 root tbf rate 20mbit burst 8kb limit 100000
on r tc qdisc add dev w0 root tbf rate 30mbit burst 8kb limit 200000
on c ping -c 2 -i 0.2 -W 1 198.51.100.7
dmesg -C; dmesg -w > drops & logger=$!
capture() { on $1 tcpdump --time-stamp-precision=nano -s 200 -B 8192 -i $2 -w $3 ip 2> $3.log & }
capture c c0 a.pcap; capture r w0 wire.pcap; capture s s0 b.pcap; sleep 1
on s iperf3 -s -p 5201 > server & sleep 0.5
on c ping -c 5 -i 0.1 -W 1 198.51.100.7
on c iperf3 -c 198.51.100.7 -p 5201 -P 2 -t 1; on c iperf3 -c 198.51.100.7 -p 5201 -P 2 -t 1 -R
sleep 1; on c ping -c 5 -i 0.2 -W 1 198.51.100.7; sleep 1
kill $(pidof tcpdump) $logger; sleep 0.5
on l nft list table ip lossy > rules; cp *.pcap drops rules $work/
"#;

/// What B's clock is off by, in nanoseconds, and how much faster it runs.
const OFFSET_NS: u64 = 3_000_000_000;
const DRIFT: f64 = 50e-6;

/// Bytes before the first packet of a capture, before each packet, and of Ethernet's header.
const FILE: usize = 24;
pub(super) const RECORD: usize = 16;
const ETHERNET: usize = 14;

/// A packet by what no router here rewrites: identification and sequence number.
type Name = (u16, u32);

fn word(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

/// The records of a capture, as ranges of its bytes.
pub(super) fn records(capture: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut records = Vec::new();
    let mut at = FILE;
    while let Some(length) = word(capture, at + 8) {
        let end = at + RECORD + length as usize;
        records.push(at..end.min(capture.len()));
        at = end;
    }
    records
}

/// The same capture by a clock that is off.
fn shifted(capture: &[u8]) -> Vec<u8> {
    let mut shifted = capture.to_vec();
    let mut first = None;
    for record in records(capture) {
        let at = record.start;
        let (Some(seconds), Some(rest)) = (word(capture, at), word(capture, at + 4)) else {
            break;
        };
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(rest);
        let first = *first.get_or_insert(time);
        let time = time + OFFSET_NS + ((time - first) as f64 * DRIFT) as u64;
        shifted[at..at + 4].copy_from_slice(&((time / 1_000_000_000) as u32).to_le_bytes());
        shifted[at + 4..at + 8].copy_from_slice(&((time % 1_000_000_000) as u32).to_le_bytes());
    }
    shifted
}

/// The names of a capture's TCP packets, by number.
fn names(capture: &[u8]) -> BTreeMap<u64, Name> {
    let named = (1..).zip(records(capture)).filter_map(|(number, record)| {
        let packet = capture.get(record.start + RECORD + ETHERNET..record.end)?;
        let header = usize::from(packet.first()? & 15) * 4;
        let id = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
        let sequence = packet.get(header + 4..header + 8)?.try_into().ok()?;
        (packet.get(9) == Some(&6)).then_some((number, (id, u32::from_be_bytes(sequence))))
    });
    named.collect()
}

/// The packets that the kernel logged, in the direction of each interface that they came in by.
fn dropped(log: &str) -> Result<BTreeMap<&'static str, Vec<Name>>> {
    let mut dropped = BTreeMap::from([("A", Vec::new()), ("B", Vec::new())]);
    for line in log.lines().filter(|line| line.contains("DROP ")) {
        let field = |name: &str| {
            let mut fields = line.split(' ').filter_map(|word| word.strip_prefix(name));
            fields.next_back().with_context(|| line.to_owned())
        };
        let near = if line.contains("IN=l0 ") { "B" } else { "A" };
        let name = (field("ID=")?.parse()?, field("SEQ=")?.parse()?);
        dropped.entry(near).or_default().push(name);
    }
    Ok(dropped)
}

/// Runs `headend trace diff --json`, and returns its lines.
///
/// # Errors
/// It fails, or prints no JSON.
pub(super) fn diff(bench: &Bench<'_>, words: &[&str]) -> Result<Vec<Value>> {
    let output = Command::new(bench.headend)
        .args(["trace", "diff", "--json"])
        .args(words)
        .current_dir(&bench.directory)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    std::fs::write(bench.directory.join("diff.json"), &text)?;
    ensure!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// Compares the lost packets with the dropped ones, and the delays with those of the one clock that there is.
pub(crate) fn finds_what_nftables_dropped(bench: &Bench<'_>) -> Result<()> {
    kernel::boot(bench, SCRIPT)?;
    let read = |name: &str| std::fs::read(bench.directory.join(name)).context(name.to_owned());
    let (a, b) = (read("a.pcap")?, read("b.pcap")?);
    std::fs::write(bench.directory.join("shifted.pcap"), shifted(&b))?;
    let log = String::from_utf8_lossy(&read("drops")?).into_owned();
    let mut dropped = dropped(&log)?;
    let rules = String::from_utf8_lossy(&read("rules")?).into_owned();
    let total = dropped.values().map(Vec::len).sum::<usize>();
    ensure!(
        total > 100 && rules.contains(&format!("counter packets {total} ")),
        "{total} packets were logged: {rules}"
    );
    let lines = diff(bench, &["a.pcap", "shifted.pcap"])?;
    let named = BTreeMap::from([("A", names(&a)), ("B", names(&b))]);
    for (point, dropped) in &mut dropped {
        let lost = lines
            .iter()
            .filter(|line| line["kind"] == "diff_lost" && line["seen_at"] == *point);
        let lost = lost.map(|line| {
            let number = line["packet"].as_u64()?;
            named[point].get(&number).copied()
        });
        let mut lost: Vec<Name> = lost
            .collect::<Option<_>>()
            .context("a lost packet is not TCP")?;
        lost.sort_unstable();
        dropped.sort_unstable();
        ensure!(
            lost == *dropped,
            "seen at {point}: {} lost, {} dropped",
            lost.len(),
            dropped.len()
        );
    }
    let found = lines.last().context("no summary")?;
    let truth = diff(bench, &["--same-clock", "a.pcap", "b.pcap"])?;
    compare_clocks(found, truth.last().context("no summary")?)?;
    // Between the client and the tunnel nothing is dropped.
    let inside = diff(bench, &["-q", "a.pcap", "wire.pcap"])?;
    let inside = inside.last().context("no summary")?;
    ensure!(
        inside["a2b"]["lost"]["packets"] == 0 && inside["b2a"]["lost"]["packets"] == 0,
        "{inside}"
    );
    ensure!(
        inside["b"]["encapsulations"][0] == "ip, l2tpv3",
        "{}",
        inside["b"]
    );
    Ok(())
}

/// The offset and the drift are within their bounds, and the delays within 1 ms.
fn compare_clocks(found: &Value, truth: &Value) -> Result<()> {
    let piece = &found["clock"]["pieces"][0];
    let number = |value: &Value| {
        value
            .as_f64()
            .with_context(|| format!("no number: {value}"))
    };
    let (least, most) = (
        number(&piece["offset_ns"][0])?,
        number(&piece["offset_ns"][1])?,
    );
    let bounds = &piece["drift_bounds_ppm"];
    let drift = number(&bounds[0])?..=number(&bounds[1])?;
    ensure!(
        found["clock"]["steps"] == Value::Array(Vec::new()),
        "{found}"
    );
    ensure!(
        (least - 1e3..=most + 1e3).contains(&(OFFSET_NS as f64)) && drift.contains(&(DRIFT * 1e6)),
        "{piece}"
    );
    for way in ["a2b", "b2a"] {
        let (ours, theirs) = (&found[way]["delay"], &truth[way]["delay"]);
        let range = &ours["least_ns"];
        let middle = (number(&range[0])? + number(&range[1])?) / 2.0;
        for rank in [
            "above_least_p10_ns",
            "above_least_p50_ns",
            "above_least_p99_ns",
            "above_least_max_ns",
        ] {
            let ours = middle + number(&ours[rank])?;
            let theirs = number(&theirs["least_ns"][0])? + number(&theirs[rank])?;
            ensure!(
                (ours - theirs).abs() < 1e6,
                "{way} {rank}: {ours} ns, not {theirs} ns"
            );
        }
    }
    Ok(())
}
