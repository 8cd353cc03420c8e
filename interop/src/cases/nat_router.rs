//! A router with NAT in a guest, two hosts behind it, and `headend qos apply` on the router.
//!
//! ```text
//! (namespace "a") eth0 ==== port-a \                                (namespace "provider")      (namespace "far")
//!                                    lan0, a bridge | NAT | wan0 ==== line0 | forwards | core0 ==== far0
//! (namespace "b") eth0 ==== port-b /
//! ```

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write as _;

/// 10 ms of delay downstream, because the kernel's TCP queues large packets where round trips are short.
pub(super) const ROUTER: &str = r#"set -e
cp headend *.toml /tmp; work=$PWD; cd /tmp
sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=1
for n in a b provider far; do ip netns add $n; ip -n $n link set lo up; done
on() { ip netns exec "$@"; }
ip link add name lan0 type bridge; ip link set lan0 up; ip addr add 192.168.1.1/24 dev lan0
host=11
for n in a b; do
ip link add name eth0 netns $n type veth peer name port-$n
ip -n $n addr add 192.168.1.$host/24 dev eth0; ip -n $n link set eth0 up; ip -n $n route add default via 192.168.1.1
ip link set port-$n master lan0 up; host=$((host + 1))
done
ip link add name wan0 type veth peer name line0 netns provider
ip addr add 203.0.113.2/24 dev wan0; ip link set wan0 up; ip route add default via 203.0.113.1
ip -n provider addr add 203.0.113.1/24 dev line0; ip -n provider link set line0 up
ip -n provider link add name core0 type veth peer name far0 netns far
ip -n provider addr add 198.51.100.1/24 dev core0; ip -n provider link set core0 up
on provider sysctl -qw net.ipv4.ip_forward=1
ip -n far addr add 198.51.100.7/24 dev far0; ip -n far link set far0 up; ip -n far route add default via 198.51.100.1
for place in a:eth0 b:eth0 provider:line0 provider:core0 far:far0; do
on ${place%:*} ethtool -K ${place#*:} gso off tso off gro off > /dev/null
done
for name in wan0 port-a port-b lan0; do ethtool -K $name gso off tso off gro off > /dev/null; done
on far tc qdisc add dev far0 root netem delay 10ms limit 1000
"#;

const MASQUERADE: &str = r#"
echo 'table ip nat { chain leaving { type nat hook postrouting priority 100; oifname "wan0" masquerade; }; }' | nft -f -
"#;

/// Nine connections of `a` and one of `b`, up and then down, under each policy.
const NINE_TO_ONE: &str = r#"
for port in 5201 5202; do on far iperf3 -s -p $port > server.$port & done; sleep 0.5
load() {
on a iperf3 -c 198.51.100.7 -p 5201 -P 9 -t 3 -J $2 > a.json & a=$!
on b iperf3 -c 198.51.100.7 -p 5202 -t 3 -J $2 > b.json & b=$!
wait $a; wait $b; for n in a b; do cp $n.json $work/$1.$n.json; done
}
while read -r name policy lan; do
./headend qos apply $policy.toml --wan wan0 $lan 2> said; sed "s/^/$name: /" said
load $name.up; load $name.down -R
./headend qos remove --wan wan0 | grep 'as it was'
done < $work/runs
"#;

/// A run's name, its policy, and its further arguments.
const RUNS: [(&str, &str, &str); 4] = [
    ("off", "off", "--lan lan0"),
    ("lan", "drr", "--lan lan0"),
    ("cake", "cake", ""),
    ("wan", "drr", ""),
];

const LINK: &str = "[link]\nup = \"10mbit\"\ndown = \"20mbit\"\n";
const NAT: &str = "[kernel]\nnat = true\n";

/// The provider's queues are 100 ms long. The policy is applied on the router, whose namespace is that of the guest's first
/// process.
const LOADED: &str = r#"
on provider tc qdisc add dev line0 root tbf rate 24mbit burst 8kb limit 300000
on provider tc qdisc add dev core0 root tbf rate 12mbit burst 4kb limit 150000
on far ./headend ping --responder 7007 --load > responder & sleep 1
echo 'exec nsenter --net=/proc/1/ns/net /tmp/headend qos apply home.toml --wan wan0 --lan lan0 >&2' > shape
on a ./headend lab bufferbloat 198.51.100.7 --idle 2 --seconds 5 --load down,up --exec 'sh shape' --json \
--plot run.svg --plot run.html > run.json
cp run.* $work
"#;

/// Bytes that arrived of the connections of a host: at the far end, or at the host.
fn arrived(bench: &Bench<'_>, run: &str, host: &str) -> Result<f64> {
    let name = format!("{run}.{host}.json");
    let text = std::fs::read(bench.directory.join(&name)).context(name)?;
    let printed: Value = serde_json::from_slice(&text)?;
    let bytes = printed["end"]["sum_received"]["bytes"].as_f64();
    bytes.with_context(|| printed["error"].to_string())
}

/// The index of two shares: 1 if they are equal, 0.5 if one has everything.
fn jain(a: f64, b: f64) -> f64 {
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}

/// With the hosts' own addresses before NAT, nine connections of one host get no more than one of the other, in both
/// directions. Without `--lan`, arriving packets still have the router's address: cake looks it up, drr cannot.
pub(crate) fn shares_by_host(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let write = |name: &str, text: &str| std::fs::write(bench.directory.join(name), text);
    write("off.toml", &format!("{LINK}[shape]\nhosts = \"off\"\n"))?;
    write("drr.toml", &format!("{LINK}{NAT}"))?;
    write("cake.toml", &format!("{LINK}{NAT}queue = \"cake\"\n"))?;
    let runs = RUNS.map(|(name, policy, flags)| format!("{name} {policy} {flags}\n"));
    write("runs", &runs.concat())?;
    let said = kernel::boot(bench, &[ROUTER, MASQUERADE, NINE_TO_ONE].concat())?;
    let mut notes = String::new();
    let mut indices = Vec::new();
    for (name, _, _) in RUNS {
        for way in ["up", "down"] {
            let run = format!("{name}.{way}");
            let (a, b) = (arrived(bench, &run, "a")?, arrived(bench, &run, "b")?);
            let index = jain(a, b);
            writeln!(notes, "{run}: {a} and {b} bytes, index {index:.4}")?;
            indices.push((run, index));
        }
    }
    write("shares.txt", &notes)?;
    for (run, index) in indices {
        let is_fair = match run.as_str() {
            "off.up" | "off.down" => index <= 0.8,
            "wan.down" => index <= 0.8,
            // cake as it is.
            "cake.up" | "cake.down" => index >= 0.95,
            _ => index >= 0.99,
        };
        ensure!(is_fair, "{run}: {index}\n{notes}{said}");
    }
    let advice = "downloads know the hosts behind NAT only with --lan IF, or with cake";
    let advised: Vec<&str> = said.lines().filter(|line| line.contains(advice)).collect();
    ensure!(advised == [format!("wan: {advice} (advice)")], "{said}");
    ensure!(said.matches("as it was").count() == RUNS.len(), "{said}");
    Ok(())
}

/// `headend lab bufferbloat` of a host behind the router, before and after a policy on the router.
pub(crate) fn lowers_the_delay(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let policy = format!("[link]\nup = \"11mbit\"\ndown = \"22mbit\"\n{NAT}");
    std::fs::write(bench.directory.join("home.toml"), policy)?;
    kernel::boot(bench, &[ROUTER, MASQUERADE, LOADED].concat())?;
    let document: Value =
        serde_json::from_slice(&std::fs::read(bench.directory.join("run.json"))?)?;
    let verdicts = [0, 1].map(|run| &document["runs"][run]["verdict"]);
    let said = verdicts.map(|verdict| verdict["sentence"].to_string());
    for way in ["down_added_ms", "up_added_ms"] {
        let [before, after] = verdicts.map(|verdict| verdict[way].as_f64());
        let (before, after) = (before.context(way)?, after.context(way)?);
        ensure!((60.0..=130.0).contains(&before), "{way}: {said:?}");
        ensure!(after < before / 10.0, "{way}: {said:?}");
    }
    let accounts = document["runs"][1]["accounts"]
        .as_array()
        .context("accounts")?;
    for (kind, rate, policy) in [("down", "down_bps", 22e6), ("up", "up_bps", 11e6)] {
        let account = accounts.iter().find(|account| account["kind"] == kind);
        let bps = account
            .and_then(|account| account[rate].as_f64())
            .context(rate)?;
        // Payload: 1,448 bytes of 1,538 on the line.
        ensure!(
            (0.85..=0.95).contains(&(bps / policy)),
            "{kind}: {bps} bit/s"
        );
    }
    // One picture on one axis.
    let picture = std::fs::read_to_string(bench.directory.join("run.svg"))?;
    ensure!(
        picture.contains("before: udp be") && picture.contains("after: udp be"),
        "{picture}"
    );
    Ok(())
}
