//! `headend qos apply` in a guest whose kernel has fq_codel, drr with flow filters, and cake.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};

const POLICY: &str = r#"[link]
up = "9.4mbit"
down = "47mbit"
overhead = "pppoe-ptm"
[[first]]
name = "ssh"
proto = "tcp"
port = 22
[[first]]
name = "calls"
dscp = ["ef", "va"]
share = "25%"
# tc cannot load the programs, and this case compares what its lines make.
[kernel]
classifier = "u32"
"#;

const CAKE: &str = r#"[link]
up = "9mbit"
down = "40mbit"
overhead = "docsis"
[kernel]
queue = "cake"
nat = true
ack_filter = true
wash = true
"#;

/// Each policy is applied, applied again, changed, and removed; then the printed lines of tc make the same. Between,
/// three hosts send datagrams.
const SCRIPT: &str = r#"set -e
cp headend htb.toml cake.toml /tmp; work=$PWD; cd /tmp
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add name wan0 type veth peer name far0; ip link set wan0 up; ip link set far0 up
for n in 12 13 14; do ip addr add 192.0.2.$n/24 dev wan0; done
ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:09 dev wan0
qos() { /tmp/headend qos "$@" --wan wan0; }
list() {
for i in wan0 ifb4wan0; do
tc -d qdisc show dev $i | sed 's/direct_packets_stat [0-9]*//' | sort
tc class show dev $i | grep -v fq_codel | sort
for p in 1: 10: 11: 20:; do tc filter show dev $i parent $p 2> /dev/null || true; done
done
tc filter show dev wan0 ingress
}
before() { tc qdisc show dev wan0; tc filter show dev wan0 ingress 2> /dev/null || true; }
sent() { tc -s class show dev wan0 classid 1:20 | awk '/Sent/ { print $4 }'; }
before > before
for policy in htb cake; do
qos apply $policy.toml --dry-run > $policy.lines
echo "$policy $(qos apply $policy.toml)"
list > $policy.applied
echo "$policy again $(qos apply $policy.toml)"
for host in 12 13 14; do ping -q -c 5 -i 0.01 -W 0.01 -I 192.0.2.$host 192.0.2.2 > /dev/null || true; done
tc -s class show dev wan0 > $policy.counted; tc -s qdisc show dev wan0 >> $policy.counted
test $policy = cake || count=$(sent)
sed 's/^up = "9/up = "8/' $policy.toml > other.toml
echo "$policy changed $(qos apply other.toml)"
test $policy = cake || test "$(sent)" -ge "$count" -a "$count" -ge 15
tc -s qdisc show dev wan0 > $policy.changed
echo "$policy removed $(qos remove)"
before | diff before -
! ip link show ifb4wan0 2> /dev/null
sh -e $policy.lines
list | diff $policy.applied - && echo "$policy lines make the same"
tc qdisc del dev wan0 root; tc qdisc del dev wan0 ingress; ip link delete ifb4wan0
done
cp *.applied *.lines *.counted *.changed $work
"#;

/// Boots once, and applies two policies.
pub(crate) fn applies_what_tc_lists(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    std::fs::write(bench.directory.join("htb.toml"), POLICY)?;
    std::fs::write(bench.directory.join("cake.toml"), CAKE)?;
    let said = kernel::boot(bench, SCRIPT)?;
    for policy in ["htb", "cake"] {
        for expected in [
            format!("{policy} wan0: up 9"),
            format!("{policy} changed wan0: up 8"),
            format!("{policy} removed wan0: as it was"),
            format!("{policy} lines make the same"),
        ] {
            ensure!(said.contains(&expected), "no \"{expected}\" in {said}");
        }
        let again = said
            .lines()
            .find(|line| line.starts_with(&format!("{policy} again")));
        let again = again.context("the second time")?;
        ensure!(again.contains(" 0 changes"), "{again}");
    }
    let text =
        |name: &str| std::fs::read_to_string(bench.directory.join(name)).context(name.to_owned());
    // Neighbouring addresses have a class each: 192.0.2.12 to 14 are the 13th to 15th of 16.
    let counted = text("htb.counted")?;
    for class in ["20:d", "20:e", "20:f"] {
        let mut lines = counted.lines();
        let found = lines.find(|line| line.starts_with(&format!("class drr {class} ")));
        ensure!(found.is_some(), "no class {class}: {counted}");
        let sent = lines.next().context("its counters")?;
        ensure!(sent.contains(" 5 pkt"), "class {class}: {sent}");
    }
    let cake = text("cake.counted")?;
    for word in [
        "bandwidth 9Mbit",
        "dual-srchost",
        "nat",
        "ack-filter",
        "overhead 18",
        "mpu 64",
    ] {
        ensure!(cake.contains(word), "no \"{word}\": {cake}");
    }
    ensure!(
        text("cake.changed")?.contains("bandwidth 8Mbit"),
        "the rate of cake"
    );
    Ok(())
}
