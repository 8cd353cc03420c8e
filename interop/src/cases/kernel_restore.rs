//! Queues that an operator made with `tc`, in a guest whose kernel has them: `headend qos apply` puts its own in their place,
//! and `headend qos remove` makes them again as they were.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;

const POLICY: &str = "[link]\nup = \"9mbit\"\ndown = \"40mbit\"\n[[first]]\nname = \"names\"\nport = 53\n\
                      [kernel]\nclassifier = \"u32\"\n";

/// A name, and the lines of `tc`. `wan0` is the only interface.
const SETUPS: [(&str, &str); 6] = [
    (
        "prio",
        "qdisc add dev wan0 root handle 1: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 3 3 3 3
qdisc add dev wan0 parent 1:1 handle 10: pfifo limit 50
qdisc add dev wan0 parent 1:2 handle 20: fq_codel limit 1000 flows 256 target 8ms interval 80ms quantum 500 memory_limit 3mb drop_batch 16 ce_threshold 2ms noecn
qdisc add dev wan0 parent 1:3 handle 30: cake unlimited diffserv8 dual-dsthost nonat nowash ingress autorate-ingress ack-filter-aggressive split-gso rtt 100ms ptm overhead -4
qdisc add dev wan0 parent 1:4 handle 40: sfq limit 60 perturb 10 quantum 1600
filter add dev wan0 parent 1: protocol ip prio 3 u32 match ip dport 22 0xffff flowid 1:1
",
    ),
    (
        "police",
        "qdisc add dev wan0 root handle 1: prio
filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff police rate 1mbit burst 10k mtu 1600 conform-exceed drop/pipe flowid 1:1
filter add dev wan0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff police rate 2mbit peakrate 3mbit burst 20k mtu 2000 conform-exceed continue flowid 1:2
filter add dev wan0 parent 1: protocol all prio 9 matchall action police rate 5mbit burst 30k conform-exceed drop
",
    ),
    (
        "flower",
        "qdisc add dev wan0 root handle 1: htb default 0x20
class add dev wan0 parent 1: classid 1:1 htb rate 20mbit burst 20k cburst 20k quantum 3000
class add dev wan0 parent 1:1 classid 1:20 htb rate 5mbit ceil 20mbit burst 20k cburst 20k quantum 3000 prio 2
filter add dev wan0 parent 1: protocol ip prio 1 flower ip_proto tcp dst_port 22 src_ip 192.0.2.0/24 classid 1:20
filter add dev wan0 parent 1: protocol ip prio 2 flower ip_proto udp dst_port 5000-5010 ip_tos 0xb8/0xfc classid 1:20
filter add dev wan0 parent 1: protocol ipv6 prio 3 flower dst_ip 2001:db8::/32 ip_proto icmpv6 type 128 classid 1:20
filter add dev wan0 parent 1: protocol 802.1q prio 4 flower vlan_id 7 vlan_prio 3 classid 1:20
filter add dev wan0 parent 1: protocol 802.1q prio 5 flower vlan_id 8 vlan_ethtype ipv4 dst_ip 192.0.2.9 classid 1:20
filter add dev wan0 parent 1: chain 5 protocol ip prio 1 flower ip_flags frag classid 1:20 action drop
filter add dev wan0 parent 1: protocol ip prio 6 flower tcp_flags 0x2/0x3 ip_proto tcp action goto chain 5
",
    ),
    (
        "cake",
        "qdisc add dev wan0 root handle 9: cake bandwidth 5mbit diffserv3 dual-srchost nat wash ack-filter no-split-gso rtt 50ms atm overhead 44 mpu 84 memlimit 2mb fwmark 0xff
",
    ),
    (
        "others",
        "qdisc add dev wan0 root handle 1: hfsc default 3
class add dev wan0 parent 1: classid 1:1 hfsc sc rate 9mbit ul rate 9mbit
class add dev wan0 parent 1:1 classid 1:2 hfsc rt m1 2mbit d 10ms m2 1mbit ls rate 3mbit
class add dev wan0 parent 1:1 classid 1:3 hfsc ls m1 1mbit d 20ms m2 4mbit ul rate 8mbit
qdisc add dev wan0 parent 1:2 handle 20: codel limit 200 target 6ms interval 70ms ecn
qdisc add dev wan0 parent 1:3 handle 30: drr
class add dev wan0 parent 30: classid 30:1 drr quantum 2000
qdisc add dev wan0 parent 30:1 handle 31: pie limit 300 target 20ms tupdate 30ms alpha 3 beta 21 ecn
filter add dev wan0 parent 30: protocol all prio 1 handle 1 flow hash keys src,dst divisor 1 baseclass 30:1 perturb 10
filter add dev wan0 parent 1: protocol ip prio 1 handle 6 fw classid 1:2
filter add dev wan0 parent 1: protocol ip prio 2 basic match 'meta(priority eq 6)' classid 1:2
",
    ),
    (
        "arriving packets",
        "qdisc add dev wan0 clsact
filter add dev wan0 ingress protocol ip prio 1 flower ip_proto tcp dst_port 25 action police rate 1mbit burst 10k conform-exceed drop
filter add dev wan0 ingress protocol ip prio 2 u32 match ip dport 9 0xffff action skbedit mark 7 pipe action drop
filter add dev wan0 egress protocol ip prio 1 flower ip_proto udp dst_port 5060 action skbedit priority 1:1
qdisc add dev wan0 root handle 8: fq_codel limit 600 flows 512 target 4ms interval 90ms quantum 700 memory_limit 2mb drop_batch 32 ecn
",
    ),
];

/// Kinds of the objects.
const KINDS: [&str; 18] = [
    "prio", "pfifo", "fq_codel", "cake", "sfq", "u32", "matchall", "htb", "flower", "hfsc",
    "codel", "drr", "pie", "flow", "fw", "basic", "clsact", "police",
];

/// Lists every object before `apply` and after `remove`.
const SCRIPT: &str = r#"set -e
cp headend policy.toml /tmp; work=$PWD; cd /tmp
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip link add name wan0 type veth peer name far0; ip link set wan0 up; ip link set far0 up
one() { echo "{\"of\":\"$1\",\"objects\":"; shift; tc -j -d "$@" | grep . || echo '[]'; echo '},'; }
list() {
echo '['
one qdisc qdisc show dev wan0
one class class show dev wan0
for parent in $(tc qdisc show dev wan0 | grep -v noqueue | awk '{ print $3 }') 1:1; do
test $parent = ffff: || one "filter $parent" filter show dev wan0 parent $parent
done
for hook in ingress egress; do one "filter $hook" filter show dev wan0 $hook; done
echo '{}]'
}
for setup in $(seq 0 $(cat $work/last)); do
tc -batch $work/$setup.tc
list > $work/$setup.before
./headend qos apply policy.toml --wan wan0 2> $work/$setup.advice
tc qdisc show dev wan0 | grep -q '^qdisc htb 1: root'; tc qdisc show dev ifb4wan0 | grep -q '^qdisc htb 1: root'
./headend qos remove --wan wan0 2> $work/$setup.errors || true
list > $work/$setup.after
tc qdisc del dev wan0 root 2> /dev/null || true; tc qdisc del dev wan0 clsact 2> /dev/null || true
done
"#;

/// What `list` printed, without numbers that the kernel counts.
fn kept(bench: &Bench<'_>, name: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(bench.directory.join(name)).context(name.to_owned())?;
    let mut parts: Vec<&str> = text.split("\"refcnt\":").collect();
    for part in parts.iter_mut().skip(1) {
        *part = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    let mut lines: Vec<String> = parts.concat().lines().map(str::to_owned).collect();
    // Classes come in the order of the kernel's table.
    lines.sort_unstable();
    Ok(lines)
}

/// Each set-up is listed after `remove` as before `apply`, object by object.
pub(crate) fn restores_what_tc_made(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let write = |name: &str, text: &str| std::fs::write(bench.directory.join(name), text);
    write("policy.toml", POLICY)?;
    write("last", &(SETUPS.len() - 1).to_string())?;
    for (number, (_, lines)) in SETUPS.iter().enumerate() {
        write(&format!("{number}.tc"), lines)?;
    }
    let said = kernel::boot(bench, SCRIPT)?;
    let mut faults = String::new();
    for (number, (name, lines)) in SETUPS.iter().enumerate() {
        let [before, after] =
            ["before", "after"].map(|when| kept(bench, &format!("{number}.{when}")));
        let (before, after) = (before?, after?);
        // Each kind of object is listed.
        for line in lines.lines() {
            let words = line.split(' ').skip_while(|word| !KINDS.contains(word));
            let kind = words.take(1).collect::<String>();
            ensure!(!kind.is_empty(), "{line}");
            let is_there = before.iter().any(|listed| listed.contains(&kind));
            ensure!(is_there, "{name}: no {kind}: {before:#?}");
        }
        if before != after {
            let errors = std::fs::read_to_string(bench.directory.join(format!("{number}.errors")))?;
            writeln!(faults, "{name}: {before:#?}\nbecame {after:#?}\n{errors}")?;
        }
    }
    ensure!(faults.is_empty(), "{faults}\n{said}");
    ensure!(said.matches("as it was").count() == SETUPS.len(), "{said}");
    Ok(())
}
