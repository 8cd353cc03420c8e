//! Linux's conntrack with source NAT as the oracle of the crate `nat`: the same packets, one by one.

use crate::kernel;
use crate::runner::Bench;
use crate::translation::{Schedule, compare, play_ours};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A namespace for each side, and a new one with the NAT for each schedule. The external address is on no interface and
/// its route leads nowhere, so the router itself answers nothing. Packets that conntrack takes for invalid are dropped, as
/// a carrier's are; a connection starts with a SYN.
pub(super) const ROUTER: &str = "set -e
modprobe -a nf_conntrack nft_chain_nat nft_nat nft_ct veth
ip netns add inside; ip netns add outside
router() {
  ip netns del nat 2> /dev/null || true
  ip netns add nat
  ip link add i0 address 02:00:00:00:00:0a netns nat type veth peer name i1 address 02:00:00:00:00:0a netns inside
  ip link add o0 address 02:00:00:00:00:0b netns nat type veth peer name o1 address 02:00:00:00:00:0b netns outside
  for i in 'nat i0' 'nat o0' 'inside i1' 'outside o1'; do set -- $i; ip -n $1 link set $2 arp off up; done
  ip -n inside addr add 10.0.0.2/30 dev i1; ip -n outside addr add 10.0.0.6/30 dev o1
  ip -n nat addr add 10.0.0.1/30 dev i0; ip -n nat addr add 10.0.0.5/30 dev o0
  ip -n inside route add default dev i1; ip -n outside route add default dev o1
  ip -n nat route add 100.64.0.0/10 dev i0; ip -n nat route add default dev o0
  ip -n nat route add blackhole 203.0.113.1/32
  nat() { ip netns exec nat \"$@\"; }
  nat sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.i0.rp_filter=0 net.ipv4.conf.o0.rp_filter=0
  for n in inside outside; do ip netns exec $n sysctl -qw net.ipv4.ip_forward=0; done
  nat nft -f - <<END
table ip nat { chain after { type nat hook postrouting priority 100; oifname o0 snat to 203.0.113.1; }; }
table ip filter { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }
END
  nat sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0
}
ours() {
  c=net.netfilter.nf_conntrack
  nat sysctl -qw ${c}_udp_timeout=300 ${c}_udp_timeout_stream=300 ${c}_icmp_timeout=60
  nat sysctl -qw ${c}_tcp_timeout_established=7440 ${c}_tcp_timeout_fin_wait=7440 ${c}_tcp_timeout_close_wait=7440
  for s in syn_sent syn_recv last_ack time_wait close; do nat sysctl -qw ${c}_tcp_timeout_$s=240; done
}
cp probe /tmp/probe; cat $(ldd probe | grep -o '/[^ ]*') > /dev/null
";

/// Runs each schedule in the guest and here, and compares what became of each packet.
pub(crate) fn translates_alike(bench: &Bench<'_>) -> Result<()> {
    // A guest's own /tmp hides the host's, so the program is copied.
    std::fs::copy(std::env::current_exe()?, bench.directory.join("probe"))?;
    let mut script = ROUTER.to_owned();
    for schedule in Schedule::ALL {
        let timeouts = match schedule {
            Schedule::Defaults => "",
            Schedule::Mixed(_) | Schedule::Patient => "ours",
        };
        let name = schedule.name();
        writeln!(
            script,
            "router; {timeouts}\n/tmp/probe translate {name} /tmp/{name}.conntrack; cp /tmp/{name}.conntrack ."
        )?;
    }
    kernel::boot(bench, &script)?;
    let (mut seen, mut notes) = (BTreeMap::new(), String::new());
    for schedule in Schedule::ALL {
        let name = schedule.name();
        let theirs = std::fs::read_to_string(bench.directory.join(format!("{name}.conntrack")))?;
        let ours = play_ours(schedule)?;
        let found = compare::compare(&theirs, &ours).with_context(|| name.clone())?;
        writeln!(notes, "{name}: {} steps, {found:?}", ours.len())?;
        for (name, count) in found {
            *seen.entry(name).or_insert(0) += count;
        }
    }
    std::fs::write(bench.directory.join("compared.txt"), &notes)?;
    let unseen = compare::unseen(&seen);
    ensure!(unseen.is_empty(), "no step shows {unseen:?}\n{notes}");
    Ok(())
}
