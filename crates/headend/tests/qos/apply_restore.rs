//! Tests that `headend qos apply` leaves alone what is not headend's, and that `remove` restores what operators have made.

use std::net::UdpSocket;

use crate::apply::Router;

/// Redirects every arriving packet, as sqm-scripts do.
const SQM: [&str; 2] = [
    "qdisc add dev wan0 handle ffff: ingress",
    "filter add dev wan0 parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb4wan0",
];

/// Queues of operators, with the word that a kernel without the module says.
const SETUPS: [(&str, &[&str]); 9] = [
    (
        "htb with options, cells, and queues below tbf",
        &[
            "qdisc add dev wan0 root handle 7: stab linklayer atm tsize 128 overhead 40 htb default 0x10 r2q 3 direct_qlen 77",
            "class add dev wan0 parent 7: classid 7:1 htb rate 5mbit burst 20k cburst 20k quantum 3000",
            "class add dev wan0 parent 7:1 classid 7:10 htb rate 1mbit ceil 5mbit burst 9k cburst 9k quantum 2000",
            "qdisc add dev wan0 parent 7:10 handle 70: tbf rate 3mbit burst 10k limit 30000",
            "qdisc add dev wan0 parent 70:1 handle 700: bfifo limit 30000",
        ],
    ),
    (
        "tbf",
        &[
            "qdisc add dev wan0 root handle 1: tbf rate 3mbit peakrate 4mbit minburst 1600 burst 10k limit 30000",
        ],
    ),
    (
        "bfifo",
        &["qdisc add dev wan0 root handle 9: bfifo limit 77000"],
    ),
    (
        "tables of u32, and a filter of an older kind",
        &[
            "qdisc add dev wan0 root handle 7: htb default 1",
            "class add dev wan0 parent 7: classid 7:1 htb rate 5mbit burst 20k cburst 20k quantum 3000",
            "filter add dev wan0 parent 7: protocol ip prio 5 handle 2: u32 divisor 4",
            "filter add dev wan0 parent 7: protocol ip prio 5 u32 ht 2:3: match ip src 192.0.2.3 flowid 7:1",
            "filter add dev wan0 parent 7: protocol ip prio 5 u32 ht 2:1: match ip src 192.0.2.1 flowid 7:1",
            "filter add dev wan0 parent 7: protocol ip prio 5 u32 ht 800:: match ip dst 198.51.100.0/24 hashkey mask 0x3 at 12 link 2:",
            "filter add dev wan0 parent 7: protocol ip prio 4 u32 match ip dport 22 0xffff flowid 7:1",
            "filter add dev wan0 parent 7: protocol ip prio 4 u32 match ip dport 23 0xffff flowid 7:1 action mirred egress mirror dev lo",
            "filter add dev wan0 parent 7: chain 2 protocol ip prio 6 u32 match ip dport 24 0xffff flowid 7:1",
            "filter add dev wan0 parent 7:1 protocol ip prio 7 u32 match ip dport 25 0xffff flowid 7:1",
            "filter add dev wan0 parent 7: protocol ip prio 9 bpf bytecode 1,6#0#0#1 flowid 7:1",
        ],
    ),
    (
        "clsact in both directions",
        &[
            "qdisc add dev wan0 clsact",
            "filter add dev wan0 egress protocol ip prio 3 u32 match ip dport 9 0xffff action mirred egress mirror dev lo",
            "filter add dev wan0 ingress protocol ip prio 3 u32 match ip dport 9 0xffff action mirred egress mirror dev lo",
        ],
    ),
    (
        "prio",
        &[
            "qdisc add dev wan0 root handle 5: prio bands 4",
            "qdisc add dev wan0 parent 5:3 handle 50: sfq perturb 10 divisor 512",
            "filter add dev wan0 parent 5: protocol ip prio 1 flower ip_proto tcp dst_port 22 classid 5:1",
            "filter add dev wan0 parent 5: protocol ip prio 2 u32 match ip dport 9 0xffff police rate 1mbit burst 10k drop flowid 5:2",
            "filter add dev wan0 parent 5: protocol all prio 9 matchall classid 5:4",
        ],
    ),
    (
        "fq_codel",
        &[
            "qdisc add dev wan0 root handle 1: fq_codel limit 999 flows 64 target 7ms interval 90ms ce_threshold 3ms noecn",
        ],
    ),
    (
        "cake",
        &[
            "qdisc add dev wan0 root handle 1: cake bandwidth 9mbit ptm overhead 22 triple-isolate split-gso wash",
        ],
    ),
    (
        "hfsc",
        &["qdisc add dev wan0 root handle 1: hfsc default 1"],
    ),
];

impl Router {
    /// Runs `tc`; false if this kernel lacks a module.
    fn makes(&self, line: &str) -> bool {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('#', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = self.command("tc", &words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_missing = ["unknown", "not found", "Failed to load"];
        let is_missing = is_missing.iter().any(|text| errors.contains(text));
        assert!(output.status.success() || is_missing, "{line}: {errors}");
        output.status.success()
    }

    /// Sends packets from the other end of `wan0`, which count there.
    fn receives(&self) {
        let mut netlink = self.namespace.netlink().unwrap();
        let _ = netlink.add_address("far0", "192.0.2.9".parse().unwrap(), 24);
        let send = || {
            let socket = UdpSocket::bind("192.0.2.9:0").unwrap();
            socket.set_broadcast(true).unwrap();
            for _ in 0..20 {
                socket.send_to(&[0; 100], "192.0.2.255:9").unwrap();
            }
        };
        self.namespace.run(send).unwrap();
    }

    /// Packets that the filters for arriving packets have counted.
    fn filter_packets(&self) -> u64 {
        let text = self.tc("-s filter show dev wan0 ingress");
        let words: Vec<&str> = text.split_whitespace().collect();
        let places = (0..words.len()).filter(|&at| words[at] == "pkt" && words[at - 2] == "bytes");
        places.map(|at| words[at - 1].parse::<u64>().unwrap()).sum()
    }
}

#[test]
fn filters_of_others_for_arriving_packets_keep_place_and_counters() {
    for parent in ["parent ffff:", "ingress"] {
        let router = Router::new(&format!("apply-others-{}", parent.len()));
        router.tc("qdisc add dev wan0 handle ffff: ingress");
        router.tc(&format!(
            "filter add dev wan0 {parent} protocol ip prio 5 u32 match ip dport 9 0xffff action mirred egress mirror dev lan0"
        ));
        // The kernel lists the number of the last filter's parent, and both mean the same.
        let listed = || router.listed(&["wan0"]).replace("parent ffff: ", "");
        let before = listed();
        router.receives();
        let first = crate::support::until("packets", || {
            Some(router.filter_packets()).filter(|count| *count > 0)
        });
        for _ in 0..2 {
            router.done(&["apply", "home.toml", "--wan", "wan0"]);
            assert!(router.filter_packets() >= first, "counters are kept");
            router.receives();
        }
        let again = router.done(&["apply", "home.toml", "--wan", "wan0"]);
        assert!(again.contains(" 0 changes"), "{again}");
        let arriving = router.tc("filter show dev wan0 ingress");
        assert!(arriving.contains("ifb4wan0"), "{arriving}");
        router.done(&["remove", "--wan", "wan0"]);
        assert!(router.filter_packets() >= first);
        assert_eq!(listed(), before);
    }
}

#[test]
fn a_filter_that_was_added_later_stays_when_headend_goes() {
    let router = Router::new("apply-later");
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let line = "filter add dev wan0 ingress protocol ip prio 40 u32 match ip dport 9 0xffff action mirred egress mirror dev lo";
    router.tc(line);
    // The redirection moves behind it.
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let arriving = router.tc("filter show dev wan0 ingress");
    assert!(arriving.contains("pref 41"), "{arriving}");
    router.done(&["remove", "--wan", "wan0"]);
    let arriving = router.tc("filter show dev wan0 ingress");
    assert!(
        arriving.contains("pref 40") && !arriving.contains("pref 41"),
        "{arriving}"
    );
    assert!(!router.has("ifb4wan0"));
}

#[test]
fn a_filter_that_takes_every_arriving_packet_is_refused_by_name() {
    let router = Router::new("apply-sqm");
    let mut netlink = router.namespace.netlink().unwrap();
    netlink.add_ifb("ifb4wan0").unwrap();
    for line in SQM {
        router.tc(line);
    }
    router.receives();
    let before = router.listed(&["wan0"]);
    let refused = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    for part in [
        "u32 of priority 10 takes every packet",
        "stop sqm",
        "tc qdisc del dev wan0 ingress",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(router.listed(&["wan0"]), before);
    let removed = router.refused(&["remove", "--wan", "wan0"]);
    assert!(removed.contains("has made no queues here"), "{removed}");
    // At another interface headend does not need it.
    router.done(&["apply", "home.toml", "--wan", "wan0", "--lan", "lan0"]);
    router.done(&["remove", "--wan", "wan0"]);
    assert_eq!(router.listed(&["wan0"]), before);
    // The interface of that name is not headend's either.
    router.tc("qdisc del dev wan0 ingress");
    let refused = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(
        refused.contains("ifb4wan0: exists already") && refused.contains("stop sqm"),
        "{refused}"
    );
    netlink.delete("ifb4wan0").unwrap();
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    router.done(&["remove", "--wan", "wan0"]);
    // A filter of the same effect that is not redirecting.
    router.tc(SQM[0]);
    router.tc("filter add dev wan0 parent ffff: protocol ip prio 5 u32 match u32 0 0 flowid 1:1 action mirred egress mirror dev lo");
    let refused = router.refused(&["apply", "home.toml", "--wan", "wan0"]);
    assert!(refused.contains("takes every IPv4 packet"), "{refused}");
}

#[test]
fn queues_of_common_set_ups_come_back() {
    let mut tried = 0;
    for (name, lines) in SETUPS {
        let router = Router::new("apply-set-up");
        if !lines.iter().all(|line| router.makes(line)) {
            println!("{name}: this kernel lacks a module");
            continue;
        }
        tried += 1;
        router.receives();
        let before = router.listed(&["wan0"]);
        let chains = |router: &Router| {
            let chain = router.tc("filter show dev wan0 chain 2");
            let class = router.command("tc", &["filter", "show", "dev", "wan0", "parent", "7:1"]);
            let class = { class }.output().unwrap().stdout;
            chain + &String::from_utf8_lossy(&class)
        };
        let chained = chains(&router);
        for _ in 0..2 {
            router.done(&["apply", "home.toml", "--wan", "wan0"]);
            router.receives();
        }
        assert!(router.listed(&["wan0"]).contains("htb 1: "), "{name}");
        let removed = router.run(&["remove", "--wan", "wan0"]);
        let errors = String::from_utf8_lossy(&removed.stderr);
        assert_eq!(router.listed(&["wan0"]), before, "{name}: {errors}");
        assert_eq!(chains(&router), chained, "{name}");
        assert_eq!(removed.status.code(), Some(0), "{name}: {errors}");
    }
    assert!(tried >= 5, "{tried}");
}

#[test]
fn an_interface_with_a_new_name_is_the_same() {
    let router = Router::new("apply-renamed");
    let mut netlink = router.namespace.netlink().unwrap();
    let mut rename = |old: &str, new: &str| {
        netlink.set_up(old, false).unwrap();
        netlink.rename(old, new).unwrap();
        netlink.set_up(new, true).unwrap();
    };
    let before = router.listed(&["wan0"]);
    for (removed, again) in [("wan0", false), ("dsl0", false), ("dsl0", true)] {
        router.done(&["apply", "home.toml", "--wan", "wan0"]);
        rename("wan0", "dsl0");
        if again {
            router.done(&["apply", "home.toml", "--wan", "dsl0"]);
            assert!(router.has("ifb4dsl0") && !router.has("ifb4wan0"));
        }
        router.done(&["remove", "--wan", removed]);
        assert!(!router.has("ifb4wan0") && !router.has("ifb4dsl0"));
        rename("dsl0", "wan0");
        assert_eq!(router.listed(&["wan0"]), before);
    }
}

#[test]
fn a_replugged_interface_with_a_long_name_leaves_nothing_over() {
    let router = Router::new("apply-replug");
    let mut netlink = router.namespace.netlink().unwrap();
    let name = "provider-vlan77";
    let mut indices = Vec::new();
    for _ in 0..2 {
        netlink.add_veth(name, "far1", None).unwrap();
        indices.push(netlink.index(name).unwrap());
        router.done(&["apply", "home.toml", "--wan", name]);
        netlink.delete(name).unwrap();
    }
    assert_ne!(indices[0], indices[1]);
    assert!(!router.has(&format!("ifb4-{}", indices[0])));
    assert!(router.has(&format!("ifb4-{}", indices[1])));
    router.done(&["remove", "--wan", name]);
    assert!(!router.has(&format!("ifb4-{}", indices[1])));
}

#[test]
fn the_state_of_a_dead_namespace_is_not_believed() {
    let router = Router::new("apply-dead");
    router.done(&["apply", "home.toml", "--wan", "wan0"]);
    let state = router.home.path("state");
    let files = || {
        std::fs::read_dir(&state)
            .unwrap()
            .map(|file| file.unwrap().path())
    };
    let path = files().next().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cookie = value["namespace"]["cookie"].as_u64().expect("Linux 5.14");
    router.done(&["remove", "--wan", "wan0"]);
    value["namespace"]["cookie"] = (cookie + 1_000_000).into();
    std::fs::write(&path, value.to_string()).unwrap();
    let removed = router.refused(&["remove", "--wan", "wan0"]);
    assert!(removed.contains("has made no queues here"), "{removed}");
    assert_eq!(files().count(), 0);
}
