use std::path::Path;

use super::*;
use crate::config::{Settings, parse};

const EDGE: &str = "[control]\nsocket = \"/run/h.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n\
                    [ppp]\naddress = \"10.255.0.1\"\nauthenticate = \"nobody\"\n\
                    [[pool]]\nname = \"home\"\nranges = [\"100.64.0.0/24\"]\n";

const LISTS: &str = "[nat]\ninside = [\"100.64.0.0/10\"]\nexternal = [\"203.0.113.0/28\"]\n";

fn read(text: &str) -> Result<Settings, String> {
    let read = parse(
        Path::new("/etc/headend/headend.toml"),
        format!("{EDGE}{text}").as_bytes(),
    );
    read.map_err(|faults| faults.to_string())
}

fn nat(text: &str) -> Nat {
    let settings = read(text).unwrap_or_else(|faults| panic!("{faults}"));
    settings.subscribers.nat.expect("a NAT")
}

#[test]
fn the_documented_example_shows_every_key_with_its_default() {
    let page = include_str!("../../../../../docs/configuration.md");
    let mut examples = page.split("```toml\n");
    let example = examples.find(|part| part.starts_with("[nat]\n")).unwrap();
    let shown = nat(example.split("```").next().unwrap());
    let smallest = nat(&format!(
        "{LISTS}[[nat.forward]]\nprotocol = \"tcp\"\nexternal = \"203.0.113.1:80\"\ninside = \"100.64.0.7:8080\"\n\
         [nat.log]\nstore = \"nat-log\"\nipfix = \"192.0.2.9:4739\"\nsyslog = \"192.0.2.9:514\"\n"
    ));
    assert_eq!(shown, smallest);
    assert_eq!(
        shown.log.store.as_deref(),
        Some(Path::new("/etc/headend/nat-log"))
    );
    let mut defaults = Config::new(smallest.config.externals.clone(), [0; 3]);
    defaults.limits.subscribers_max = smallest.config.limits.subscribers_max;
    assert_eq!(smallest.config, defaults);
}

// long: a row for each fault
#[test]
fn faults_name_their_key_and_a_remedy() {
    let within = |text: &str| format!("{LISTS}{text}");
    let forward = |external: &str, inside: &str| {
        within(&format!(
            "[[nat.forward]]\nprotocol = \"tcp\"\nexternal = \"{external}\"\ninside = \"{inside}\"\n"
        ))
    };
    let twice = [
        forward("203.0.113.1:80", "100.64.0.7:80"),
        "[[nat.forward]]\nprotocol = \"tcp\"\nexternal = \"203.0.113.1:80\"\ninside = \"100.64.0.8:80\"\n".into(),
    ]
    .concat();
    for (text, expected) in [
        ("[nat]\n".into(), "nat.inside: is missing; give addresses"),
        (
            "[nat]\ninside = [\"100.64.0.1/10\"]\nexternal = [\"203.0.113.1\"]\n".into(),
            "12:11: nat.inside: \"100.64.0.1/10\" is neither an IPv4 address, nor ADDRESS/LENGTH, nor FIRST-LAST; write it as",
        ),
        (
            LISTS.replace("203.0.113.0/28", "100.64.0.0/28"),
            "nat.external: 100.64.0.0-100.64.0.15 and the inside addresses 100.64.0.0-100.127.255.255 overlap",
        ),
        (
            LISTS.replace("203.0.113.0/28", "10.255.0.0/24"),
            "nat.external: 10.255.0.0-10.255.0.255 has 10.255.0.1, which is [ppp] address",
        ),
        (
            within("udp_timeout_s = 30\n"),
            "nat.udp_timeout_s: 30 is out of range; it must be 120 to 604800",
        ),
        (
            within("block_ports = 8\n"),
            "nat.block_ports: 8 is out of range; it must be 16 to 64512 ports",
        ),
        (
            within("dynamic_factor = 2\n"),
            "nat.dynamic_factor: has no effect in dynamic mode",
        ),
        (
            within("mode = \"deterministic\"\n"),
            "nat.mode: 4194304 inside addresses on 16 external ones",
        ),
        (
            within("exempt = [\"10.0.0.0/8:9-5\"]\n"),
            "nat.exempt: \"10.0.0.0/8:9-5\" is no destination",
        ),
        (
            within("log = 3\n"),
            "nat.log: is no section; write it as [nat.log]",
        ),
        (
            within("[nat.log]\nipfix = \"collector\"\n"),
            "nat.log.ipfix: \"collector\" is not an address and port",
        ),
        (
            forward("203.0.113.1:8080", "100.64.0.7:80"),
            "port 8080 cannot be forwarded here: ports from 1 to 1023 can",
        ),
        (
            forward("203.0.114.1:80", "100.64.0.7:80"),
            "203.0.114.1 is not one of [nat] external",
        ),
        (
            forward("203.0.113.1:80", "10.64.0.7:80"),
            "10.64.0.7 is not one of [nat] inside",
        ),
        (twice, "203.0.113.1:80 is forwarded already"),
        (
            within("inisde = []\n"),
            "nat.inisde: unknown key; did you mean inside?",
        ),
    ] {
        let faults = read(&text).err().unwrap_or_default();
        assert!(faults.contains(expected), "{text}\n{faults}");
    }
}

#[test]
fn each_core_needs_a_port_block() {
    let text = |cores: u16, ports: u16| {
        let lists = LISTS.replace("203.0.113.0/28", "203.0.113.0/31");
        format!("[event]\nshards = {cores}\n{lists}block_ports = {ports}\n")
    };
    // Two blocks of each of two addresses: the second address starts with the second core.
    assert!(read(&text(3, 32_000)).is_ok());
    let faults = read(&text(4, 32_000)).err().unwrap_or_default();
    let expected =
        "event.shards: the port blocks are enough for 3 of 4 cores: give more external addresses";
    assert!(faults.contains(expected), "{faults}");
    assert!(read(&text(64, 512)).is_ok());
}

#[test]
fn networks_behind_the_translation_are_hidden_and_others_are_not() {
    let nat = nat(LISTS);
    let networks: Vec<_> = nat.networks().collect();
    assert_eq!(networks, [("203.0.113.0".parse().unwrap(), 28)]);
    for (network, length, hidden) in [
        ("100.64.0.0", 24, true),
        ("100.64.0.0", 10, true),
        ("100.0.0.0", 8, false),
        ("203.0.113.0", 28, false),
        ("2001:db8::", 32, false),
    ] {
        assert_eq!(
            nat.hides(network.parse().unwrap(), length),
            hidden,
            "{network}"
        );
    }
}
