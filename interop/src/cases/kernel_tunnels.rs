//! `headend trace diff` of captures inside and outside of a tunnel, for each kind of tunnel that Debian's kernel makes: the
//! packets that nftables dropped between both are exactly those that it lists. TCP over IPv4 and over IPv6 goes through
//! each tunnel in turn, in both directions.
//!
//! ```text
//! client c0 == r0 nftables drops 4 %, tunnel w0 ==== w1 tunnel l0 == s0 server
//!      NAME.a.pcap                       NAME.b.pcap
//! ```
//!
//! L2TPv3 and NAT are those of [`kernel_diff`](super::kernel_diff), L2TPv2 and PPPoE those of
//! [`edge_diff`](super::edge_diff).

use super::kernel_diff::{RECORD, diff, records};
use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The path without a tunnel, and the functions that make tunnels. The kernel logs each dropped packet; its buffer holds a
/// few hundred lines, so they are read as they come.
const PATH: &str = r#"set -e
work=$PWD; cd /tmp
modprobe -a veth nft_numgen nft_log nf_log_syslog sch_tbf 8021q ip_gre ip6_gre vxlan geneve ipip sit ip6_tunnel mpls_router mpls_iptunnel
on() { ip netns exec "$@"; }
r() { ip -n r "$@"; }
l() { ip -n l "$@"; }
for n in c r l s; do
ip netns add $n; ip -n $n link set lo up
on $n sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.forwarding=1 net.ipv4.ip_forward=1
on $n sysctl -qw net.mpls.platform_labels=1000 net.mpls.conf.lo.input=1
done
# A segment joined by an offload would be one packet to nftables and several to a capture.
plain() { on $1 ethtool -K $2 gso off tso off gro off > /dev/null; }
wire() { ip -n $1 link add name $2 type veth peer name $4 netns $3; ip -n $1 link set $2 up; ip -n $3 link set $4 up; plain $1 $2; plain $3 $4; }
wire c c0 r r0; wire r w0 l w1; wire l l0 s s0
has() { ip -n $1 addr add $3 dev $2; ip -n $1 addr add $4 dev $2 nodad; }
has c c0 10.0.0.2/24 fd00::2/64; has r r0 10.0.0.1/24 fd00::1/64
has r w0 203.0.113.2/24 fd20::2/64; has l w1 203.0.113.1/24 fd20::1/64
has l l0 198.51.100.1/24 fd99::1/64; has s s0 198.51.100.7/24 fd99::7/64
# Segments fit into every tunnel, so that no packet is lost for its size.
ip -n c route add default via 10.0.0.1 advmss 1200; ip -n c route add default via fd00::1 advmss 1200
ip -n s route add default via 198.51.100.1 advmss 1200; ip -n s route add default via fd99::1 advmss 1200
on r sysctl -qw net.mpls.conf.w0.input=1; on l sysctl -qw net.mpls.conf.w1.input=1
on r tc qdisc add dev w0 root tbf rate 20mbit burst 8kb limit 4000000
on l tc qdisc add dev w1 root tbf rate 20mbit burst 8kb limit 4000000
sysctl -qw net.netfilter.nf_log_all_netns=1
# via GATEWAY GATEWAY6 GATEWAY GATEWAY6: from r to the server, and from l to the client.
via() {
r route replace 198.51.100.0/24 via $1; r -6 route replace fd99::/64 via $2
l route replace 10.0.0.0/24 via $3; l -6 route replace fd00::/64 via $4
}
up() {
for n in r l; do ip -n $n link set t0 up; plain $n t0; done
has r t0 172.16.0.2/24 fd16::2/64; has l t0 172.16.0.1/24 fd16::1/64
via 172.16.0.1 fd16::1 172.16.0.2 fd16::2
}
# KIND ARGUMENTS: a tunnel over IPv4, or over IPv6.
over4() { over 203.0.113.2 203.0.113.1 "$@"; }
over6() { over fd20::2 fd20::1 "$@"; }
over() {
r link add name t0 type "${@:3}" local $1 remote $2; l link add name t0 type "${@:3}" local $2 remote $1; up
}
geneve() {
r link add name t0 type geneve id 9 remote 203.0.113.1; l link add name t0 type geneve id 9 remote 203.0.113.2; up
}
# LINK LINK NAME ARGUMENTS: a VLAN of r's and of l's device.
tag() { r link add link $1 name $3 up type vlan "${@:4}"; l link add link $2 name $3 up type vlan "${@:4}"; }
# LABEL/...: a stack of MPLS labels, which each end takes off one by one.
labels() {
r route replace 198.51.100.0/24 encap mpls $1 via inet 203.0.113.1 dev w0
r -6 route replace fd99::/64 encap mpls $1 via inet6 fd20::1 dev w0
l route replace 10.0.0.0/24 encap mpls $1 via inet 203.0.113.2 dev w1
l -6 route replace fd00::/64 encap mpls $1 via inet6 fd20::2 dev w1
for n in r l; do for label in ${1//\// }; do ip -n $n -f mpls route add $label dev lo; done; done
}
capture() { on $1 tcpdump --time-stamp-precision=nano -s 200 -B 8192 -i $2 -w $3 2> $3.log & }
greet() { for to; do on c ping -q -n -c 2 -i 0.1 -W 1 $to; done; }
# carry NAME SERVER...
carry() {
name=$1; shift
on r nft -f - <<END
table inet lossy; delete table inet lossy
table inet lossy { chain f { type filter hook forward priority 0; tcp flags & syn == 0 numgen random mod 100 < 4 counter log prefix "DROP $name " flags tcp sequence,options drop; }; }
END
greet "$@"; capture c c0 $name.a.pcap; capture r w0 $name.b.pcap; sleep 0.5; greet "$@"
for to; do on c iperf3 -c $to -n 150K --bidir; done
# tcpdump gets the packets of up to a second at once.
greet "$@"; sleep 1.5; kill $(pidof tcpdump); sleep 0.3
on r nft list table inet lossy > $name.rules
for n in r l; do for i in t0 o0; do ip -n $n link del $i 2> /dev/null || true; done; done
}
on s iperf3 -s > server &
dmesg -C; dmesg -w > drops & logger=$!
"#;

/// A tunnel.
struct Tunnel {
    name: &'static str,
    /// Shell commands that make it.
    make: &'static str,
    /// Bytes before the inner IP header: from IEEE 802.1Q and 802.1ad (4 each), RFC 3032 (4 for each label), RFC 2784 and 2890
    /// (4, and 4 for each of checksum, key and sequence number), RFC 7348 and 8926 (8, UDP 8), IPv4 (20), IPv6 (40).
    outer: usize,
    /// What the report calls it.
    kind: &'static str,
    /// The server's addresses that it leads to.
    servers: &'static [&'static str],
}

const BOTH: &[&str] = &["198.51.100.7", "fd99::7"];

const fn tunnel(
    name: &'static str,
    make: &'static str,
    outer: usize,
    kind: &'static str,
    servers: &'static [&'static str],
) -> Tunnel {
    Tunnel {
        name,
        make,
        outer: ETHERNET + outer,
        kind,
        servers,
    }
}

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Linux's tunnels over IPv6 announce how deep they may be nested, in a Destination Options header (RFC 2473 4.1.1).
const LIMIT: usize = 8;
const VXLAN: usize = 8 + 8 + ETHERNET;

const TUNNELS: &[Tunnel] = &[
    tunnel(
        "none",
        "via 203.0.113.1 fd20::1 203.0.113.2 fd20::2",
        0,
        "",
        BOTH,
    ),
    tunnel("vlan", "tag w0 w1 t0 id 100; up", 4, "vlan", BOTH),
    tunnel(
        "qinq",
        "tag w0 w1 o0 protocol 802.1ad id 200; tag o0 o0 t0 id 100; up",
        8,
        "vlan, vlan",
        BOTH,
    ),
    tunnel("mpls", "labels 100", 4, "mpls", BOTH),
    tunnel("mpls_two", "labels 101/102", 8, "mpls, mpls", BOTH),
    tunnel("gre", "over4 gre", IPV4 + 4, "ip, gre", BOTH),
    tunnel("gre_key", "over4 gre key 7", IPV4 + 8, "ip, gre", BOTH),
    tunnel(
        "gre_all",
        "over4 gre key 7 csum seq",
        IPV4 + 16,
        "ip, gre",
        BOTH,
    ),
    tunnel(
        "gretap",
        "over4 gretap",
        IPV4 + 4 + ETHERNET,
        "ip, gre",
        BOTH,
    ),
    tunnel("ip6gre", "over6 ip6gre", IPV6 + LIMIT + 4, "ip, gre", BOTH),
    tunnel(
        "vxlan",
        "over4 vxlan id 9 dstport 4789",
        IPV4 + VXLAN,
        "ip, vxlan",
        BOTH,
    ),
    tunnel(
        "vxlan_over_ipv6",
        "over6 vxlan id 9 dstport 4789",
        IPV6 + VXLAN,
        "ip, vxlan",
        BOTH,
    ),
    tunnel("geneve", "geneve", IPV4 + VXLAN, "ip, geneve", BOTH),
    tunnel("ipip", "over4 ipip", IPV4, "ip", &["198.51.100.7"]),
    tunnel("sit", "over4 sit", IPV4, "ip", &["fd99::7"]),
    tunnel("ip6tnl", "over6 ip6tnl mode any", IPV6 + LIMIT, "ip", BOTH),
];

/// A TCP packet by what no router rewrites. IPv6 has no identification; the options have the time stamps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    id: u16,
    source_port: u16,
    sequence: u32,
    acknowledgment: u32,
    options: String,
}

/// The names of a capture's TCP packets, by number.
fn names(capture: &[u8], outer: usize) -> BTreeMap<u64, Name> {
    let named = (1..).zip(records(capture)).filter_map(|(number, record)| {
        let packet = capture.get(record.start + RECORD + outer..record.end)?;
        Some((number, name(packet)?))
    });
    named.collect()
}

fn name(packet: &[u8]) -> Option<Name> {
    let half =
        |from: &[u8], at: usize| Some(u16::from_be_bytes([*from.get(at)?, *from.get(at + 1)?]));
    let (header, protocol, id) = match packet.first()? >> 4 {
        4 => (
            usize::from(packet[0] & 15) * 4,
            packet.get(9)?,
            half(packet, 4)?,
        ),
        6 => (IPV6, packet.get(6)?, 0),
        _ => return None,
    };
    let tcp = packet.get(header..)?;
    let word = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
    let end = usize::from(tcp.get(12)? >> 4) * 4;
    let mut options = String::new();
    for octet in tcp.get(20..end)? {
        write!(options, "{octet:02X}").ok()?;
    }
    (*protocol == 6).then_some(Name {
        id,
        source_port: half(tcp, 0)?,
        sequence: word(4)?,
        acknowledgment: word(8)?,
        options,
    })
}

/// The packets of a tunnel that the kernel logged: those from the client, and those to it.
fn dropped(log: &str, tunnel: &str) -> Result<[Vec<Name>; 2]> {
    let mut dropped = [Vec::new(), Vec::new()];
    let prefix = format!("DROP {tunnel} ");
    for line in log.lines().filter(|line| line.contains(&prefix)) {
        let words = || line.split(' ');
        let find = |name: &str| {
            words()
                .filter_map(|word| word.strip_prefix(name))
                .next_back()
        };
        let field = |name: &str| find(name).with_context(|| line.to_owned());
        let options = words().skip_while(|word| *word != "OPT").nth(1);
        let options = options.unwrap_or_default().trim_matches(['(', ')']);
        let name = Name {
            id: find("ID=").unwrap_or("0").parse()?,
            source_port: field("SPT=")?.parse()?,
            sequence: field("SEQ=")?.parse()?,
            acknowledgment: field("ACK=")?.parse()?,
            options: options.to_owned(),
        };
        dropped[usize::from(!line.contains("IN=r0 "))].push(name);
    }
    dropped.iter_mut().for_each(|names| names.sort_unstable());
    Ok(dropped)
}

/// Compares the lost packets of each tunnel with the dropped ones, with either capture as A.
pub(crate) fn finds_drops_in_every_tunnel(bench: &Bench<'_>) -> Result<()> {
    let mut script = PATH.to_owned();
    for tunnel in TUNNELS {
        let servers = tunnel.servers.join(" ");
        writeln!(script, "{}; carry {} {servers}", tunnel.make, tunnel.name)?;
    }
    script.push_str("kill $logger; sleep 0.5; cp *.pcap *.log *.rules drops $work/\n");
    kernel::boot(bench, &script)?;
    let log = std::fs::read(bench.directory.join("drops")).context("drops")?;
    let log = String::from_utf8_lossy(&log);
    let mut total = 0;
    for tunnel in TUNNELS {
        let dropped = dropped(&log, tunnel.name)?;
        total += dropped.iter().map(Vec::len).sum::<usize>();
        compare(bench, tunnel, &dropped).with_context(|| tunnel.name)?;
    }
    ensure!(total > 200, "only {total} packets were dropped");
    Ok(())
}

fn compare(bench: &Bench<'_>, tunnel: &Tunnel, dropped: &[Vec<Name>; 2]) -> Result<()> {
    let read = |end: &str| {
        let name = format!("{}.{end}", tunnel.name);
        std::fs::read(bench.directory.join(&name)).context(name)
    };
    let rules = String::from_utf8_lossy(&read("rules")?).into_owned();
    let total = dropped.iter().map(Vec::len).sum::<usize>();
    ensure!(
        total > 0 && rules.contains(&format!("counter packets {total} ")),
        "{total} packets were logged: {rules}"
    );
    for side in ["a", "b"] {
        let said = read(&format!("{side}.pcap.log"))?;
        let said = String::from_utf8_lossy(&said);
        ensure!(said.contains("\n0 packets dropped by kernel"), "{said}");
    }
    let files = ["a", "b"].map(|side| format!("{}.{side}.pcap", tunnel.name));
    let named = [
        names(&read("a.pcap")?, ETHERNET),
        names(&read("b.pcap")?, tunnel.outer),
    ];
    for [inside, outside] in [["A", "B"], ["B", "A"]] {
        let mut order = [files[0].as_str(), files[1].as_str()];
        if inside == "B" {
            order.reverse();
        }
        let lines = diff(bench, &["-q", order[0], order[1]])?;
        for ((point, named), dropped) in [inside, outside].iter().zip(&named).zip(dropped) {
            let lost = lines
                .iter()
                .filter(|line| line["kind"] == "diff_lost" && line["seen_at"] == *point)
                .map(|line| named.get(&line["packet"].as_u64()?).cloned());
            let mut lost: Vec<Name> = lost
                .collect::<Option<_>>()
                .context("a lost packet is not TCP")?;
            lost.sort_unstable();
            ensure!(
                lost == *dropped,
                "{order:?}: seen at {point}: {} lost, {} dropped",
                lost.len(),
                dropped.len()
            );
        }
        let found = &lines.last().context("no summary")?[outside.to_lowercase()];
        let kinds = found["encapsulations"].as_array();
        ensure!(
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| *kind == tunnel.kind)),
            "{found}"
        );
    }
    Ok(())
}
