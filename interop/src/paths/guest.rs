//! The script that a guest runs for each path.

use super::generate::{Label, Path, Queue};
use crate::kernel;
use crate::runner::Bench;
use anyhow::Result;
use std::fmt::Write as _;

/// Memory in megabytes, for captures, and seconds of this machine for a guest.
const ROOMY: [&str; 4] = ["-m", "1536", "-t", "1500"];

/// Both ends of a wire have one MAC address, so that no address is resolved. Programs are read into memory before
/// anything is timed, because the clock skips idle time also while the guest waits for this machine's files.
const GUEST: &str = r#"set -e
work=$PWD
for n in s r1 r2 r3 b; do
  ip netns add $n
  ip netns exec $n sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.tcp_no_metrics_save=1 2> /dev/null || true
  ip -n $n link set lo up
done
wire() { ip link add $2 netns $1 address 02:00:00:00:00:0$5 type veth peer name $4 netns $3 address 02:00:00:00:00:0$5
  for w in "$1 $2" "$3 $4"; do set -- $w; ip -n $1 link set $2 arp off up; ip netns exec $1 ethtool -K $2 tso off gso off gro off > /dev/null; done; }
wire s s0 r1 x0 1; wire r1 x1 r2 y0 2; wire r2 y1 r3 z0 3; wire r3 z1 b b0 4
ip -n s addr add 10.0.0.2/32 dev s0; ip -n b addr add 10.0.9.2/32 dev b0
ip -n s route add default dev s0; ip -n b route add default dev b0
for n in "r1 x" "r2 y" "r3 z"; do set -- $n; ip -n $1 route add 10.0.0.2/32 dev ${2}0; ip -n $1 route add default dev ${2}1; done
for m in tcp_bbr sch_fq; do modprobe $m 2> /dev/null || true; done
mkdir /tmp/work; cd /tmp/work
for program in $(which tcpdump tc openssl ethtool); do cp $program /tmp; cat $(ldd $program | grep -o '/[^ ]*') > /dev/null; done
cp $work/probe /tmp; cat $(ldd /tmp/probe | grep -o '/[^ ]*') > /dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 9 -subj /CN=lab 2> /dev/null
capture() { ip netns exec $1 /tmp/tcpdump -Z root -B 16384 -s 128 -n -i $2 --time-stamp-precision=nano -w $3.pcap tcp 2> $3.log & }
heard() { until grep -q listening $1.log 2> /dev/null; do sleep 0.02; done; }
delay() { ip netns exec $1 /tmp/tc qdisc replace dev $2 root netem delay $3us limit 99999 $4; }
queues() { while [ ! -e stop ]; do sleep 0.2; echo "$(cut -d' ' -f1 /proc/uptime) $(ip netns exec r2 /tmp/tc -s qdisc show dev y1 | tr '\n' ' ')" >> $1.queue; done; }
# NAME, half of the near and of the far round trip, faults near and far, offloads
links() {
  delay r1 x1 $2 "$4"; delay r1 x0 $2 ""; delay r3 z1 $3 "$5"; delay r3 z0 $3 ""
  ip netns exec s ethtool -K s0 tso $6 gso $6 > /dev/null; ip netns exec r1 ethtool -K x0 tso $6 gso $6 > /dev/null
  ip netns exec s /tmp/tc qdisc del dev s0 root 2> /dev/null || true
  ip netns exec r2 /tmp/tc qdisc del dev y0 ingress 2> /dev/null || true
  ip netns exec r2 /tmp/tc qdisc del dev y1 root 2> /dev/null || true
}
begin() { rm -f stop; capture s s0 $1.sender; capture r2 y0 $1.middle; capture b b0 $1.receiver
  for v in sender middle receiver; do heard $1.$v; done
  ip netns exec s /tmp/probe why-watch $1.info stop & watch=$!; queues $1 & queues=$!; }
finish() { touch stop; wait $watch; wait $queues || true; sleep 1.2
  for v in $(pidof tcpdump); do kill -INT $v; done
  for v in sender middle receiver; do until grep -q dropped $1.$v.log; do sleep 0.05; done; done
  cp $1.* $work/; rm $1.*; }
"#;

/// Records the paths in one guest: `NAME.{sender,middle,receiver}.pcap`, `NAME.info` and `NAME.queue` in the bench's
/// directory.
///
/// # Errors
/// The guest does not boot, or a command in it fails.
pub(crate) fn record(bench: &Bench<'_>, paths: &[Path]) -> Result<()> {
    std::fs::copy(std::env::current_exe()?, bench.directory.join("probe"))?;
    let mut script = String::from(GUEST);
    for path in paths {
        write_path(path, &mut script)?;
    }
    kernel::boot_fast(bench, &script, &ROOMY)?;
    Ok(())
}

// long: one script, in the order in which the guest runs it
fn write_path(path: &Path, script: &mut String) -> Result<()> {
    let name = &path.name;
    let offloads = if path.offloads { "on" } else { "off" };
    let (near, far) = (path.near_us / 2, path.far_us / 2);
    let (near_faults, far_faults) = (&path.near_faults, &path.far_faults);
    let (first, later) = match path.faults_after_ms {
        0 => (format!("'{near_faults}' '{far_faults}'"), None),
        ms => ("'' ''".to_owned(), Some(ms)),
    };
    writeln!(script, "links {name} {near} {far} {first} {offloads}")?;
    let late = path.late_us.unwrap_or(0);
    if late > 0 {
        writeln!(
            script,
            "delay r3 z1 {late} '{far_faults}'; delay r3 z0 {} ''",
            path.far_us
        )?;
    }
    // An old sender: no time-based detection of losses (RFC 8985).
    writeln!(
        script,
        "ip netns exec s sysctl -qw net.ipv4.tcp_recovery={} net.ipv4.tcp_max_reordering={}",
        u32::from(late == 0),
        if late == 0 { 300 } else { 3 }
    )?;
    let bucket = format!(
        "ip netns exec r2 /tmp/tc qdisc add dev y1 root handle 1: tbf rate {}kbit burst {}",
        path.rate_kbit,
        path.burst.max(path.rate_kbit / 8 * 2)
    );
    match path.queue {
        Queue::Fifo { bytes } => writeln!(script, "{bucket} limit {bytes}")?,
        Queue::FqCodel => writeln!(
            script,
            "{bucket} limit 9000000; ip netns exec r2 /tmp/tc qdisc add dev y1 parent 1:1 fq_codel"
        )?,
    }
    if let Some((rate_kbit, burst)) = path.police {
        writeln!(
            script,
            "ip netns exec r2 /tmp/tc qdisc add dev y0 ingress; ip netns exec r2 /tmp/tc filter add dev y0 parent ffff: \
             protocol ip matchall action police rate {rate_kbit}kbit burst {burst} conform-exceed drop/pass"
        )?;
    }
    writeln!(script, "begin {name}")?;
    if let Some(ms) = later {
        writeln!(
            script,
            "( sleep {}; delay r1 x1 {near} '{near_faults}'; delay r3 z1 {far} '{far_faults}' ) &",
            ms as f64 / 1e3
        )?;
    }
    if let Some((start, length)) = path.outage_ms {
        writeln!(
            script,
            "( sleep {}; delay r3 z1 {far} 'loss 100%'; sleep {}; delay r3 z1 {far} '' ) &",
            start as f64 / 1e3,
            length as f64 / 1e3
        )?;
    }
    if let Some(pace_kbit) = path.pace_kbit {
        let super::traffic::Sends::Bulk { bytes } = path.sends else {
            anyhow::bail!("a paced sender sends all at once");
        };
        // SOL_SOCKET with SO_REUSEADDR and SO_MAX_PACING_RATE.
        writeln!(
            script,
            "ip netns exec s python3 -c 'import socket; l = socket.socket(); l.setsockopt(1, 2, 1); l.setsockopt(1, 47, {}); l.bind((\"\", 5001)); \
             l.listen(); c, _ = l.accept(); c.setsockopt(1, 47, {}); c.sendall(bytes({bytes})); c.shutdown(1); c.recv(1)' & sender=$!\n\
             sleep 1; ip netns exec b /tmp/probe why-receive 10.0.0.2 0 all",
            pace_kbit * 125,
            pace_kbit * 125
        )?;
    } else if path.label == Label::Tls {
        let super::traffic::Sends::Bulk { bytes } = path.sends else {
            anyhow::bail!("TLS sends one file");
        };
        writeln!(
            script,
            "head -c {bytes} /dev/zero > page\n\
             ip netns exec s /tmp/openssl s_server -accept 5001 -key key.pem -cert cert.pem -WWW -naccept 1 > /dev/null 2>&1 & sender=$!\n\
             sleep 0.3\n\
             printf 'GET /page HTTP/1.0\\r\\n\\r\\n' | ip netns exec b /tmp/openssl s_client -connect 10.0.0.2:5001 -quiet > /dev/null 2>&1 || true"
        )?;
    } else {
        writeln!(
            script,
            "ip netns exec s /tmp/probe why-send {} {} & sender=$!\n\
             ip netns exec b /tmp/probe why-receive 10.0.0.2 {} {}",
            path.congestion,
            path.sends.words(),
            path.receive_buffer,
            path.takes.words()
        )?;
    }
    writeln!(script, "wait $sender || true; finish {name}")?;
    Ok(())
}
