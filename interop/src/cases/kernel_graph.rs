//! A real configuration in a guest, as tc prints it and as `headend qos graph` draws it.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Interfaces of the guest, each with a different tree.
const INTERFACES: [&str; 7] = ["q0", "q1", "q2", "q3", "q4", "q5", "i0"];

/// q0: htb, its leaves, hashed u32 tables, filters of each kind, clsact with chains. q1: mq, of whose queues two are the
/// kernel's own. q2: multiq. q3: prio, ingress, a leaf with 64 classes. q4: hfsc, hhf, cake. q5: what the kernel put
/// there. i0: ets, choke.
const CONFIGURATION: &str = "set -e
cp headend /tmp
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
dummy() { ip link add q$1 $2 type dummy; ip link set q$1 arp off up; ip addr add 10.9.$1.1/24 dev q$1; }
dummy 0; dummy 1 'numtxqueues 4'; dummy 2 'numtxqueues 4'; dummy 3; dummy 4; dummy 5 'numtxqueues 3'
ip link add i0 type ifb; ip link set i0 up
tc -batch - <<END
qdisc add dev q0 root handle 1: htb default 30 r2q 100
class add dev q0 parent 1: classid 1:1 htb rate 100mbit
class add dev q0 parent 1:1 classid 1:10 htb rate 20mbit ceil 100mbit prio 0
class add dev q0 parent 1:1 classid 1:20 htb rate 30mbit ceil 100mbit prio 1
class add dev q0 parent 1:1 classid 1:30 htb rate 40mbit ceil 100mbit prio 2
class add dev q0 parent 1:1 classid 1:40 htb rate 10mbit
qdisc add dev q0 parent 1:10 handle 10: fq_codel limit 1000 target 5ms ecn
qdisc add dev q0 parent 1:20 handle 20: sfq perturb 10
qdisc add dev q0 parent 1:30 handle 30: drr
class add dev q0 parent 30: classid 30:1 drr quantum 1500
class add dev q0 parent 30: classid 30:2 drr quantum 3000
qdisc add dev q0 parent 30:1 handle 31: pfifo limit 3
qdisc add dev q0 parent 30:2 handle 32: codel
qdisc add dev q0 parent 1:40 handle 40: netem delay 250s limit 10
filter add dev q0 parent 1: protocol ip pref 5 handle 3: u32 divisor 16
filter add dev q0 parent 1: protocol ip pref 5 u32 ht 3:7: match ip dport 7 0xffff flowid 1:10
filter add dev q0 parent 1: protocol ip pref 5 u32 match ip dst 10.9.0.128/25 hashkey mask 0xf at 20 link 3:
filter add dev q0 parent 1: protocol ip pref 6 u32 match ip dport 53 0xffff flowid 1:10
filter add dev q0 parent 1: protocol ip pref 6 u32 match ip dport 54 0xffff flowid 1:20
filter add dev q0 parent 1: protocol ip pref 7 u32 match ip dport 99 0xffff flowid 1:40
filter add dev q0 parent 1: protocol ip pref 8 u32 match ip dport 80 0xffff flowid 1:1
filter add dev q0 parent 1:1 protocol ip pref 1 u32 match ip dport 80 0xffff flowid 1:20
filter add dev q0 parent 1: protocol all pref 9 handle 6 fw classid 1:20
filter add dev q0 parent 1: protocol ip pref 10 flower ip_proto tcp dst_port 22 classid 1:10
filter add dev q0 parent 1: protocol ip pref 11 basic match 'cmp(u8 at 1 layer network eq 0xb8)' classid 1:10
filter add dev q0 parent 20: protocol all pref 1 handle 1 flow hash keys src,dst divisor 1024
filter add dev q0 parent 30: protocol all pref 1 handle 1 flow map key proto-dst and 1 baseclass 30:1
qdisc add dev q0 clsact
filter add dev q0 ingress protocol all pref 1 matchall action mirred egress redirect dev i0
filter add dev q0 egress protocol ip pref 1 flower ip_proto udp dst_port 5000 action goto chain 4
filter add dev q0 egress protocol ip chain 4 pref 1 flower dst_ip 10.9.0.7 action drop
filter add dev q0 egress protocol ip chain 4 pref 2 matchall action pass
qdisc add dev q1 root handle 1: mq
qdisc add dev q1 parent 1:1 handle 11: fq_codel
qdisc add dev q1 parent 1:2 handle 12: tbf rate 8mbit burst 10k limit 30k
qdisc add dev q1 parent 12: handle 121: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02 bandwidth 8mbit
qdisc add dev q2 root handle 2: multiq
qdisc add dev q2 parent 2:1 handle 21: pfifo limit 10
filter add dev q2 parent 2: protocol ip pref 1 u32 match ip dport 1 0xffff action skbedit queue_mapping 3
qdisc add dev q3 root handle 3: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
qdisc add dev q3 parent 3:1 handle 310: tbf rate 1mbit burst 5k latency 50ms
qdisc add dev q3 parent 3:2 handle 320: skbprio limit 32
qdisc add dev q3 parent 3:3 handle 330: pie ecn
filter add dev q3 parent 3: protocol ip pref 2 u32 match ip dport 53 0xffff flowid 3:1
qdisc add dev q3 ingress
filter add dev q3 parent ffff: protocol ip pref 3 u32 match ip src 0.0.0.0/0 police rate 1mbit burst 10k drop flowid :1
qdisc add dev q4 root handle 4: hfsc default 2
class add dev q4 parent 4: classid 4:1 hfsc sc rate 10mbit ul rate 10mbit
class add dev q4 parent 4:1 classid 4:2 hfsc sc rate 5mbit
class add dev q4 parent 4:1 classid 4:3 hfsc ls rate 5mbit
qdisc add dev q4 parent 4:2 handle 42: hhf
qdisc add dev q4 parent 4:3 handle 43: cake bandwidth 5mbit
filter add dev q4 parent 4: protocol ip pref 1 u32 match ip dport 53 0xffff flowid 4:3
qdisc add dev i0 root handle 9: ets bands 3 strict 1 quanta 3000 1500
qdisc add dev i0 parent 9:1 handle 91: choke limit 100 min 10 max 30 bandwidth 10mbit
END
";

/// tc's output for an interface, with the filters at each attachment point, and the drawn graph. tc does not
/// repeat the attachment point, so `at` prints it. The first pass only loads the programs; the second writes to
/// memory, because the clock jumps while the guest waits for files. Twenty datagrams go to each port of each
/// interface, more than one queue holds; two seconds later everything is idle.
const TRAFFIC_AND_PICTURES: &str = r#"
work=$PWD; cd /tmp
pictures() {
tc -s qdisc show dev $1 > $1.qdisc; tc -s class show dev $1 > $1.class; : > $1.filter
for p in $(awk '/^(qdisc|class)/ && $2 != "skbprio" && $3 != "0:" { print $3 }' $1.qdisc $1.class | sort -u) $(grep -q clsact $1.qdisc && echo ingress egress); do
case $p in *gress) place=$p ;; *) place="parent $p" ;; esac
tc filter show dev $1 $place 2> /dev/null | sed "s/^filter /filter at $p /" >> $1.filter
done
for f in tree svg dot html json; do /tmp/headend qos graph $1 --format $f > $1.$f; done
}
pictures q0
for i in 0 1 2 3 4 5; do for port in 53 54 99 22 7 80 81; do
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do printf %0700d 0 > /dev/udp/10.9.$i.2/$port; done
done; done
sleep 2
for i in q0 q1 q2 q3 q4 q5 i0; do pictures $i; done
cp q?.* i0.* $work
"#;

/// The counters of a queue or a class: bytes, packets, dropped, overlimits, backlog in bytes and packets.
type Counts = [u64; 6];

/// A qdisc, class or filter.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    /// "qdisc", "class", "filter".
    what: String,
    /// "htb 1:10", "u32 800::800 pref 5 ip".
    title: String,
    handle: String,
    /// Its parent: a handle, "ingress", "egress", or nothing.
    parent: String,
    counts: Counts,
    /// A filter's class.
    class: Option<String>,
}

/// Boots once, and compares the graph of each interface with tc's output.
pub(crate) fn draws_what_tc_prints(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    kernel::boot(bench, &[CONFIGURATION, TRAFFIC_AND_PICTURES].concat())?;
    let mut notes = String::new();
    let mut sums = Counts::default();
    for interface in INTERFACES {
        let printed = printed(&bench.directory, interface).with_context(|| interface)?;
        let compared = compare(&bench.directory, interface, &printed).with_context(|| interface);
        let drawn = printed.len();
        writeln!(notes, "{interface}: {drawn} qdiscs, classes and filters")?;
        for (sum, count) in printed
            .iter()
            .flat_map(|thing| thing.counts.iter().enumerate())
        {
            sums[sum] += count;
        }
        std::fs::write(bench.directory.join("compared.txt"), &notes)?;
        compared?;
    }
    writeln!(
        notes,
        "all counts are tc's; their sums: octets, packets, dropped, overlimits, waiting octets, waiting packets {sums:?}"
    )?;
    std::fs::write(bench.directory.join("compared.txt"), &notes)?;
    ensure!(
        sums.iter().all(|sum| *sum > 0),
        "something was never counted: {sums:?}"
    );
    Ok(())
}

fn text(directory: &Path, interface: &str, what: &str) -> Result<String> {
    let name = format!("{interface}.{what}");
    std::fs::read_to_string(directory.join(&name)).context(name)
}

/// The word after `key`.
fn after<'w>(words: &[&'w str], key: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| *word == key)?;
    words.get(at + 1).copied()
}

/// Parses tc's output, without headend's code.
fn printed(directory: &Path, interface: &str) -> Result<Vec<Thing>> {
    let mut things: Vec<Thing> = Vec::new();
    for what in ["qdisc", "class", "filter"] {
        for line in text(directory, interface, what)?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["qdisc" | "class", kind, handle, ..] if line.starts_with(what) => {
                    things.push(Thing {
                        what: what.to_owned(),
                        title: format!("{kind} {handle}"),
                        handle: (*handle).to_owned(),
                        parent: after(&words, "parent").unwrap_or_default().to_owned(),
                        counts: Counts::default(),
                        class: None,
                    });
                }
                [
                    "filter",
                    "at",
                    at,
                    "protocol",
                    protocol,
                    "pref",
                    pref,
                    kind,
                    ..,
                ] => {
                    // A line without a handle only announces the following ones.
                    let handle = after(&words, "fh").or_else(|| after(&words, "handle"));
                    things.extend(handle.map(|handle| Thing {
                        what: what.to_owned(),
                        title: format!("{kind} {handle} pref {pref} {protocol}"),
                        handle: handle.to_owned(),
                        parent: (*at).to_owned(),
                        counts: Counts::default(),
                        class: filters_class(&words),
                    }));
                }
                _ if what != "filter" => {
                    let thing = things.last_mut().context("counts of nothing")?;
                    count(&words, &mut thing.counts)?;
                }
                _ => {}
            }
        }
    }
    things.sort();
    Ok(things)
}

fn filters_class(words: &[&str]) -> Option<String> {
    let keys = ["flowid", "*flowid", "classid", "baseclass"];
    let class = keys.iter().find_map(|key| after(words, key))?;
    class.contains(':').then(|| class.to_owned())
}

/// `Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)` and `backlog 1b 2p requeues 3`.
fn count(words: &[&str], counts: &mut Counts) -> Result<()> {
    let mut put = |place: usize, word: &str| -> Result<()> {
        let digits = word.trim_end_matches([',', 'b', 'p']);
        counts[place] = digits.parse().with_context(|| word.to_owned())?;
        Ok(())
    };
    if let ["Sent", octets, "bytes", packets, ..] = words {
        put(0, octets)?;
        put(1, packets)?;
    }
    if let [
        "Sent",
        ..,
        "(dropped",
        dropped,
        "overlimits",
        overlimits,
        _,
        _,
    ]
    | ["(dropped", dropped, "overlimits", overlimits, _, _] = words
    {
        put(2, dropped)?;
        put(3, overlimits)?;
    }
    if let ["backlog", octets, packets, ..] = words {
        put(4, octets)?;
        put(5, packets)?;
    }
    Ok(())
}

/// The same objects from the graph's JSON.
struct Graph {
    nodes: Vec<Value>,
    /// The parent of each node.
    holders: BTreeMap<u64, u64>,
    /// (filter, class) pairs.
    sends: Vec<(u64, u64)>,
}

impl Graph {
    fn read(document: &str) -> Result<Graph> {
        let document: Value = serde_json::from_str(document)?;
        let list = |key: &str| document["tree"][key].as_array().context("a list");
        let (mut holders, mut sends) = (BTreeMap::new(), Vec::new());
        for edge in list("edges")? {
            let end = |key: &str| edge[key].as_u64().context("an edge's end");
            match edge["join"].as_str() {
                Some("holds") => {
                    let other = holders.insert(end("to")?, end("from")?);
                    ensure!(other.is_none(), "held twice: {edge}");
                }
                Some("sends") => sends.push((end("from")?, end("to")?)),
                _ => {}
            }
        }
        Ok(Graph {
            nodes: list("nodes")?.clone(),
            holders,
            sends,
        })
    }

    fn word(&self, id: u64, key: &str) -> &str {
        let node = usize::try_from(id).ok().and_then(|id| self.nodes.get(id));
        node.and_then(|node| node[key].as_str()).unwrap_or_default()
    }

    /// The handle of the parent of `id`, skipping tables and chains; a filter's parent may be a side of clsact.
    fn parent(&self, id: u64) -> &str {
        let is_filter = self.word(id, "kind") == "filter";
        let mut at = id;
        while let Some(above) = self.holders.get(&at) {
            at = *above;
            match (self.word(at, "kind"), self.word(at, "title")) {
                ("group", side @ ("ingress" | "egress")) if is_filter => return side,
                ("filter" | "group", _) => {}
                _ => return self.word(at, "handle"),
            }
        }
        ""
    }

    fn things(&self) -> Result<Vec<Thing>> {
        let mut things = Vec::new();
        for node in &self.nodes {
            let id = node["id"].as_u64().context("an id")?;
            match node["kind"].as_str() {
                Some("qdisc" | "class" | "filter") => {}
                // A tin is a part of cake: tc prints it with the qdisc.
                Some("interface" | "group" | "device" | "tin") => continue,
                _ => bail!("not understood: {node}"),
            }
            let names = [
                "bytes",
                "packets",
                "drops",
                "overlimits",
                "backlog_bytes",
                "backlog_packets",
            ];
            let class = self.sends.iter().find(|(from, _)| *from == id);
            things.push(Thing {
                what: self.word(id, "kind").to_owned(),
                title: self.word(id, "title").to_owned(),
                handle: self.word(id, "handle").to_owned(),
                parent: self.parent(id).to_owned(),
                // `tc filter show` without -s prints no counters of actions.
                counts: match node["kind"].as_str() {
                    Some("filter") => Counts::default(),
                    _ => names.map(|name| node["numbers"][name].as_u64().unwrap_or(0)),
                },
                class: class
                    .filter(|(_, to)| self.word(*to, "kind") == "class")
                    .map(|(_, to)| self.word(*to, "handle").to_owned()),
            });
        }
        things.sort();
        Ok(things)
    }
}

/// The differences that the graph cannot avoid: a class is below its qdisc even if tc says `root`, and a filter
/// that names a missing class has no arrow.
fn as_drawn(printed: &[Thing]) -> Vec<Thing> {
    let is_class = |handle: &str| {
        let mut things = printed.iter();
        things.any(|thing| thing.what == "class" && thing.handle == handle)
    };
    let mut things: Vec<Thing> = printed
        .iter()
        .map(|thing| {
            let major = thing.handle.split(':').next().unwrap_or_default();
            Thing {
                what: thing.what.clone(),
                title: thing.title.clone(),
                handle: thing.handle.clone(),
                parent: match (thing.what.as_str(), thing.parent.as_str()) {
                    ("class", "") => format!("{major}:"),
                    // The hook of ingress and clsact.
                    (_, "ffff:fff1") => String::new(),
                    (_, parent) => parent.to_owned(),
                },
                counts: thing.counts,
                class: thing.class.clone().filter(|class| is_class(class)),
            }
        })
        .collect();
    things.sort();
    things
}

fn compare(directory: &Path, interface: &str, printed: &[Thing]) -> Result<()> {
    let graph = Graph::read(&text(directory, interface, "json")?)?;
    let (drawn, expected) = (graph.things()?, as_drawn(printed));
    for (drawn, expected) in drawn.iter().zip(&expected) {
        ensure!(drawn == expected, "drawn {drawn:?}\ntc says {expected:?}");
    }
    ensure!(
        drawn.len() == expected.len(),
        "{} drawn, {} printed",
        drawn.len(),
        expected.len()
    );
    let mut titles: BTreeMap<&str, usize> = BTreeMap::new();
    for thing in printed {
        *titles.entry(&thing.title).or_default() += 1;
    }
    let read = |what| text(directory, interface, what);
    let (tree, svg, dot, html) = (read("tree")?, read("svg")?, read("dot")?, read("html")?);
    let names: Vec<&str> = tree
        .lines()
        .map(|line| {
            let line = line.trim_start_matches([' ', '│', '├', '└', '─', '\u{a0}']);
            line.split("  ").next().unwrap_or_default()
        })
        .collect();
    for (title, times) in titles {
        let boxed = |picture: &str| picture.matches(&format!(">{title}</text>")).count();
        let found = [
            names.iter().filter(|name| **name == title).count(),
            boxed(&svg),
            boxed(&html),
            dot.matches(&format!("[label = \"{title}\\l")).count(),
        ];
        ensure!(
            found == [times; 4],
            "{title}: printed {times} times; in tree, SVG, HTML, dot: {found:?}"
        );
    }
    Ok(())
}
