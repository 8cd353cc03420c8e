use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::config::{Settings, parse};

/// A configuration with every section, and a users file beside it.
const EVERY_SECTION: &str = "\
[control]\nsocket = \"/run/headend.sock\"\n\
[lns]\nlisten = [\"127.0.0.1:1701\"]\n[lac]\n[l2tp]\n[event]\n[limits]\n[log]\n[audit]\nfile = \"audit.jsonl\"\n\
[pppoe]\n[[pppoe.interface]]\nname = \"eth1\"\n\
[ppp]\naddress = \"10.255.0.1\"\n\
[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n\
[[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8::/40\"]\nlength = 56\n[ipv6]\n\
[users]\nfile = \"users.toml\"\n\
[filter]\nfile = \"filters.txt\"\n\
[[garden]]\nname = \"unpaid\"\nportal = \"http://192.0.2.80/\"\nfilter = \"guests\"\ndns = [\"9.9.9.9\"]\n\
[queue]\n[queue.default]\nrate_down = \"9mbit\"\n\
[[queue.template]]\nname = \"gold\"\n\
[[queue.link]]\nname = \"access-7\"\n\
[[queue.line]]\nname = \"north\"\npeer = \"192.0.2.7\"\n\
[[tunnel]]\nname = \"isp\"\nlns = [\"192.0.2.9\"]\nrealms = [\"isp.example\"]\n[[tunnel.line]]\ninterface = \"eth1\"\n\
[radius]\n\
[[radius.server]]\nname = \"one\"\nauthentication = \"127.0.0.1:1812\"\nsecret = \"hush\"\n\
[[radius.client]]\naddress = \"192.0.2.7\"\nsecret = \"hush\"\n\
[[realm]]\nname = \"example.net\"\n[throttle]\n\
[client]\nname = \"user{n}\"\nsecret = \"hush\"\n\
[tun]\n[snmp]\nagentx = \"/var/agentx/master\"\n\
[nat]\ninside = [\"100.64.0.0/10\"]\nexternal = [\"203.0.113.0/28\"]\n[nat.log]\n\
[[nat.forward]]\nprotocol = \"tcp\"\nexternal = \"203.0.113.1:80\"\ninside = \"100.64.0.7:80\"\n\
[bgp]\nasn = 65000\nrouter_id = \"192.0.2.1\"\n\
[[bgp.neighbor]]\naddress = \"192.0.2.7\"\nremote_asn = 1\n\
[[bgp.dynamic]]\nprefix = \"192.0.3.0/24\"\nremote_asn = \"any\"\n\
[[bgp.policy]]\nname = \"in\"\n[[bgp.policy.term]]\nthen = \"accept\"\n";

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headend-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let this = Self(path);
        this.write("users.toml", "[[user]]\nname = \"ann\"\npassword = \"a\"\n");
        this.write("filters.txt", "filter guests\nin\n  default accept\n");
        this
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
    }

    fn settings(&self, text: &str) -> Settings {
        let read = parse(&self.0.join("headend.toml"), text.as_bytes());
        read.unwrap_or_else(|faults| panic!("{faults}"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What differs from [`EVERY_SECTION`] once `old` is `new`, each with its effect.
fn effects(directory: &Directory, old: &str, new: &str) -> Vec<(String, Effect)> {
    assert!(EVERY_SECTION.contains(old), "{old}");
    let before = directory.settings(EVERY_SECTION).record;
    let after = directory
        .settings(&EVERY_SECTION.replacen(old, new, 1))
        .record;
    let differences = before.differences(&after);
    let effect = |one: &Difference| (one.key.to_string(), of(one, &differences));
    differences.iter().map(effect).collect()
}

#[test]
fn the_table_has_every_key_of_the_configuration_once_and_no_other() {
    let directory = Directory::new("effects");
    let record = directory.settings(EVERY_SECTION).record;
    let asked: BTreeSet<(&str, &str)> = record.asked().collect();
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (sections, _, keys) in TABLE {
        for section in *sections {
            all.extend(keys.iter().map(|key| (*section, *key)));
        }
    }
    let listed: BTreeSet<(&str, &str)> = all.iter().copied().collect();
    let missing: Vec<_> = asked.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&asked).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert!(
        unknown.is_empty(),
        "no key of the configuration: {unknown:?}"
    );
    assert_eq!(all.len(), listed.len(), "a key is in the table twice");
}

#[test]
fn each_key_has_the_effect_of_the_table() {
    let directory = Directory::new("effect-of-each");
    for (old, new, expected) in [
        (
            "[limits]",
            "[limits]\ntunnels = 7",
            &[("limits.tunnels", Now)][..],
        ),
        (
            "[l2tp]",
            "[l2tp]\nhost_name = \"x\"",
            &[("l2tp.host_name", New)],
        ),
        ("[event]", "[event]\nbatch = 7", &[("event.batch", Restart)]),
        (
            "[ppp]",
            "[ppp]\necho_interval_s = 5\nmru = 1400",
            &[("ppp.echo_interval_s", Now), ("ppp.mru", New)],
        ),
        (
            "name = \"one\"\n",
            "name = \"one\"\ntimeout_s = 1\n",
            &[("radius.server[one].timeout_s", Now)],
        ),
        (
            "remote_asn = 1\n",
            "remote_asn = 2\n",
            &[("bgp.neighbor[192.0.2.7].remote_asn", Now)],
        ),
        (
            "[[pool]]",
            "[[pool]]\nname = \"guests\"\nranges = [\"10.1.0.0/24\"]\n[[pool]]",
            &[
                ("pool", Now),
                ("pool[guests].name", Now),
                ("pool[guests].ranges", Now),
            ],
        ),
    ] {
        let told = effects(&directory, old, new);
        let told: Vec<(&str, Effect)> =
            told.iter().map(|(key, effect)| (&**key, *effect)).collect();
        assert_eq!(told, expected, "{new}");
    }
}

/// A section that appears or goes takes its keys with it, whatever they could do alone.
#[test]
fn the_keys_of_a_section_that_needs_a_restart_need_one_too() {
    let directory = Directory::new("effect-of-sections");
    let (start, end) = ("[client]", "[tun]\n");
    let from = EVERY_SECTION.find(start).unwrap();
    let to = EVERY_SECTION.find(end).unwrap();
    let told = effects(&directory, &EVERY_SECTION[from..to], "");
    assert_eq!(
        told,
        [
            ("client".to_owned(), Restart),
            ("client.name".to_owned(), Restart),
            ("client.secret".to_owned(), Restart),
        ]
    );
    let from = EVERY_SECTION.find("[bgp]").unwrap();
    let told = effects(&directory, &EVERY_SECTION[from..], "");
    assert!(
        told.len() > 8 && told.iter().all(|(_, effect)| *effect == Restart),
        "{told:?}"
    );
}

/// A file that changed under the same name is a change of the key that names it; a secret shows only that it changed.
#[test]
fn files_and_secrets_are_compared_by_their_content() {
    let directory = Directory::new("effect-of-content");
    let before = directory.settings(EVERY_SECTION).record;
    directory.write("users.toml", "[[user]]\nname = \"bob\"\npassword = \"b\"\n");
    let text = EVERY_SECTION.replace("secret = \"hush\"", "secret_file = \"s\"");
    directory.write("s", "hush\n");
    let same = directory.settings(&text).record;
    let keys = |differences: &[Difference]| -> Vec<String> {
        differences.iter().map(|one| one.key.to_string()).collect()
    };
    assert_eq!(
        keys(&before.differences(&same)),
        [
            "client.secret_file",
            "radius.client[192.0.2.7].secret_file",
            "radius.server[one].secret_file",
            "users.file",
        ]
    );
    directory.write("s", "another\n");
    let after = directory.settings(&text).record;
    let differences = same.differences(&after);
    assert_eq!(
        keys(&differences),
        [
            "client.secret",
            "radius.client[192.0.2.7].secret",
            "radius.server[one].secret"
        ]
    );
    assert!(differences.iter().all(Difference::is_hidden));
    assert!(!format!("{differences:?}").contains("another"));
}

/// The page has a row for each section, with the keys that do not apply at once.
#[test]
fn the_page_of_the_configuration_says_which_keys_do_not_apply_at_once() {
    let page = include_str!("../../../../../docs/configuration.md");
    let page = page.split("\n## Reload\n").nth(1).unwrap();
    let page = page.split("\n## ").next().unwrap();
    let words = |text: &str| -> Vec<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let mut told = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.split('|').collect();
        let mut sections = words(cells[1]);
        if sections.is_empty() {
            sections.push("[]".to_owned());
        }
        for section in &sections {
            for (cell, effect) in [(cells[2], "new"), (cells[3], "restart")] {
                let section = section.trim_matches(['[', ']']);
                let keys = words(cell).into_iter();
                told.extend(keys.map(|key| (section.to_owned(), key, effect)));
            }
        }
    }
    let mut listed = BTreeSet::new();
    for (sections, effect, keys) in TABLE {
        let effect = match effect {
            Now => continue,
            New => "new",
            Restart => "restart",
        };
        for section in *sections {
            let keys = keys.iter();
            listed.extend(keys.map(|key| ((*section).to_owned(), (*key).to_owned(), effect)));
        }
    }
    assert_eq!(told, listed);
}
