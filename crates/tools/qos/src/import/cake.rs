//! The keywords of cake, as tc-cake(8) describes them: from `iqdisc_opts` and `eqdisc_opts` of sqm, and from tc.

use convert::{Fate, Place, Rule, Table, Value};

use super::sheet::{Import, Way};

/// What a keyword does.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Bytes, smallest packet, cells of ATM.
    Overhead(i64, Option<i64>, bool),
    /// The round trip that the queue expects, in microseconds.
    Rtt(u64),
    /// The classes by DSCP.
    Tins(&'static [Tin]),
    /// A key of `[shape]` with its value.
    Shape(&'static str, &'static str),
    /// The keyword has a value, and the value decides.
    Value(Valued),
    /// Fixed: the fate is that of the rule.
    Fixed,
}

#[derive(Debug, Clone, Copy)]
enum Valued {
    Overhead,
    Mpu,
    Rtt,
    Memory,
    Bandwidth,
}

/// A class that cake makes by DSCP.
#[derive(Debug)]
struct Tin {
    name: &'static str,
    rate: &'static str,
    priority: i64,
    dscp: &'static [&'static str],
}

const BULK: Tin = Tin {
    name: "bulk",
    rate: "6.2%",
    priority: 7,
    dscp: &["cs1", "le"],
};

const VIDEO: Tin = Tin {
    name: "video",
    rate: "50%",
    priority: 2,
    dscp: &[
        "cs2", "cs3", "af21", "af22", "af23", "af31", "af32", "af33", "af41", "af42", "af43",
    ],
};

const VOICE: Tin = Tin {
    name: "voice",
    rate: "25%",
    priority: 1,
    dscp: &["cs6", "cs7", "ef", "va"],
};

const VOICE_OF_FOUR: Tin = Tin {
    name: "voice",
    rate: "25%",
    priority: 1,
    dscp: &["cs4", "cs5", "cs6", "cs7", "ef", "va"],
};

/// A keyword: its rule for the page, and what it does.
struct Keyword {
    rule: Rule,
    does: Does,
}

const fn key(name: &'static str, words: usize, keys: &'static str, does: Does) -> Keyword {
    Keyword {
        rule: Rule::key(name, words, keys),
        does,
    }
}

const fn fixed(rule: Rule) -> Keyword {
    Keyword {
        rule,
        does: Does::Fixed,
    }
}

const LAYER: &str = "`link.overhead`";
const NAT: &str = "headend tells the hosts apart by their addresses behind the NAT router";
const SEGMENTS: &str = "`headend qos run` turns the offloads of its interfaces off";
const RTT: &str = "`shape.interval`, and a twentieth of it as `shape.target`";

const fn layer(name: &'static str, bytes: i64, mpu: i64, atm: bool) -> Keyword {
    key(name, 0, LAYER, Does::Overhead(bytes, Some(mpu), atm))
}

const PTM: &str = "headend does not count PTM's 64/65-byte encoding; lower the rate by 1.6 %";

/// A layer whose bytes become a key, but not its coding (tc-cake(8): "overhead N ptm").
const fn ptm(name: &'static str, bytes: i64) -> Keyword {
    Keyword {
        rule: Rule::lost(
            name,
            0,
            "`link.overhead`; headend does not count PTM's 64/65-byte encoding; lower the rate by 1.6 %",
        ),
        does: Does::Overhead(bytes, Some(0), false),
    }
}

const fn trip(name: &'static str, us: u64) -> Keyword {
    key(name, 0, RTT, Does::Rtt(us))
}

const fn hosts(name: &'static str) -> Keyword {
    key(name, 0, "`shape.hosts`", Does::Shape("hosts", "fair"))
}

/// Every keyword.
const KEYWORDS: &[Keyword] = &[
    key(
        "bandwidth",
        1,
        "`link.up` or `link.down`",
        Does::Value(Valued::Bandwidth),
    ),
    fixed(Rule::lost("unlimited", 0, "headend shapes to a rate")),
    fixed(Rule::lost(
        "autorate-ingress",
        0,
        "headend does not estimate the rate; change it with `headend qos rate`",
    )),
    key("besteffort", 0, "no `[[class]]` by DSCP", Does::Tins(&[])),
    key(
        "diffserv3",
        0,
        "`[[class]]` bulk and voice",
        Does::Tins(&[VOICE, BULK]),
    ),
    key(
        "diffserv4",
        0,
        "`[[class]]` bulk, video and voice",
        Does::Tins(&[VOICE_OF_FOUR, VIDEO, BULK]),
    ),
    fixed(Rule::lost(
        "diffserv8",
        0,
        "write a `[[class]]` for each tin that is used",
    )),
    fixed(Rule::lost(
        "precedence",
        0,
        "write a `[[class]]` for each precedence that is used",
    )),
    key(
        "flowblind",
        0,
        "`shape.template`",
        Does::Shape("template", "codel"),
    ),
    key(
        "flows",
        0,
        "`shape.template`",
        Does::Shape("template", "flows"),
    ),
    fixed(Rule::lost(
        "srchost",
        0,
        "headend is fair between hosts and their flows, or between flows",
    )),
    fixed(Rule::lost(
        "dsthost",
        0,
        "headend is fair between hosts and their flows, or between flows",
    )),
    fixed(Rule::lost(
        "hosts",
        0,
        "headend is fair between hosts and their flows, or between flows",
    )),
    hosts("dual-srchost"),
    hosts("dual-dsthost"),
    hosts("triple-isolate"),
    fixed(Rule::kept("nat", 0, NAT)),
    fixed(Rule::kept("nonat", 0, NAT)),
    fixed(Rule::lost(
        "wash",
        0,
        "for `headend qos apply`, set `kernel.wash` and `kernel.queue = \"cake\"` by hand",
    )),
    fixed(Rule::kept(
        "nowash",
        0,
        "headend leaves the DSCP of packets as it is, unless `kernel.wash` is set",
    )),
    fixed(Rule::lost(
        "ack-filter",
        0,
        "for `headend qos apply`, set `kernel.ack_filter` and `kernel.queue = \"cake\"` by hand",
    )),
    fixed(Rule::lost(
        "ack-filter-aggressive",
        0,
        "`kernel.ack_filter` drops superfluous acknowledgements, only with `kernel.queue = \"cake\"`; there is no aggressive kind",
    )),
    fixed(Rule::kept(
        "no-ack-filter",
        0,
        "headend drops no acknowledgements, unless `kernel.ack_filter` is set",
    )),
    fixed(Rule::kept("split-gso", 0, SEGMENTS)),
    fixed(Rule::kept("no-split-gso", 0, SEGMENTS)),
    fixed(Rule::lost(
        "ingress",
        0,
        "headend counts the packets that it sends, not those that it drops; lower the rate by some per cent",
    )),
    fixed(Rule::kept(
        "egress",
        0,
        "headend counts the packets that it sends",
    )),
    key("rtt", 1, RTT, Does::Value(Valued::Rtt)),
    trip("datacentre", 100),
    trip("lan", 1_000),
    trip("metro", 10_000),
    trip("regional", 30_000),
    trip("internet", 100_000),
    trip("oceanic", 300_000),
    trip("satellite", 1_000_000),
    fixed(Rule::lost(
        "interplanetary",
        0,
        "the interval is 4 s at most",
    )),
    key("memlimit", 1, "`shape.memory`", Does::Value(Valued::Memory)),
    fixed(Rule::lost(
        "fwmark",
        1,
        "write a `[[class]]` with the condition `mark`",
    )),
    key("overhead", 1, LAYER, Does::Value(Valued::Overhead)),
    key("mpu", 1, LAYER, Does::Value(Valued::Mpu)),
    key("atm", 0, LAYER, Does::Overhead(0, None, true)),
    fixed(Rule::kept(
        "noatm",
        0,
        "cells are counted only with `atm = true`",
    )),
    fixed(Rule::lost("ptm", 0, PTM)),
    key(
        "raw",
        0,
        "`link.overhead`: 14 bytes of Ethernet header, which the kernel counts",
        Does::Overhead(14, None, false),
    ),
    layer("conservative", 48, 0, true),
    layer("ethernet", 38, 84, false),
    key(
        "ether-vlan",
        0,
        "`link.overhead`: 4 bytes more",
        Does::Overhead(4, None, false),
    ),
    layer("docsis", 18, 64, false),
    ptm("pppoe-ptm", 30),
    ptm("bridged-ptm", 22),
    layer("ipoa-vcmux", 8, 0, true),
    layer("ipoa-llcsnap", 16, 0, true),
    layer("bridged-vcmux", 24, 0, true),
    layer("bridged-llcsnap", 32, 0, true),
    layer("pppoa-vcmux", 10, 0, true),
    layer("pppoa-llc", 14, 0, true),
    layer("pppoe-vcmux", 32, 0, true),
    layer("pppoe-llcsnap", 40, 0, true),
];

/// Every keyword and what becomes of it.
pub fn rules() -> Vec<Rule> {
    KEYWORDS.iter().map(|keyword| keyword.rule).collect()
}

/// The link layer, which several keywords describe together.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) bytes: i64,
    pub(super) mpu: Option<i64>,
    pub(super) is_atm: bool,
    /// The options that describe it.
    pub(super) from: Vec<(Place, String)>,
}

impl Layer {
    /// Adds a part of it.
    pub(super) fn part(&mut self, from: (&Place, &str), bytes: i64, mpu: Option<i64>, atm: bool) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.mpu = mpu.or(self.mpu);
        self.is_atm |= atm;
        self.from.push((from.0.clone(), from.1.to_owned()));
    }
}

/// The keywords of one queue of cake, collected.
#[derive(Debug)]
pub(super) struct Cake {
    pub(super) way: Way,
    /// The last keyword that decides the tins: later ones replace earlier ones.
    tins: Option<(&'static [Tin], Option<Place>, Option<String>)>,
    pub(super) layer: Layer,
}

impl Cake {
    pub(super) fn new(way: Way) -> Cake {
        Cake {
            way,
            tins: None,
            layer: Layer::default(),
        }
    }

    /// Reads one keyword of `words`, and reports it. Returns how many words it has: a value may follow.
    pub(super) fn keyword(
        &mut self,
        import: &mut Import,
        words: &[&str],
        (place, prefix): (&Place, &str),
    ) -> usize {
        let Some((&word, rest)) = words.split_first() else {
            return 0;
        };
        let option = format!("{prefix}{word}");
        let from = (place, option.as_str());
        let Some(known) = KEYWORDS.iter().find(|known| known.rule.name == word) else {
            let names: Vec<(&str, ())> =
                KEYWORDS.iter().map(|known| (known.rule.name, ())).collect();
            let why = settings::choose(word, &names).err().unwrap_or_default();
            let why = why.split("; it can be").next().unwrap_or_default();
            import
                .report
                .unknown(place, &option, &format!("as a keyword of cake, {why}"));
            return 1;
        };
        let value = rest.first().copied();
        let length = 1 + known.rule.words.min(rest.len());
        match (known.does, value) {
            (Does::Fixed, _) => {
                import
                    .report
                    .line(place, &option, known.rule.fate, known.rule.note)
            }
            (Does::Overhead(bytes, mpu, atm), _) => self.layer.part(from, bytes, mpu, atm),
            (Does::Rtt(us), _) => round_trip(import, us, from),
            (Does::Tins(tins), _) => self.tins(import, tins, from),
            (Does::Shape(key, value), _) => self.shape(import, key, value, word, from),
            (Does::Value(_), None) => import
                .report
                .unknown(place, &option, "its value is missing"),
            (Does::Value(valued), Some(value)) => self.valued(import, valued, value, from),
        }
        length
    }

    fn shape(&self, import: &mut Import, key: &str, value: &str, word: &str, from: (&Place, &str)) {
        let far = match self.way {
            Way::Up => "dual-dsthost",
            Way::Down => "dual-srchost",
        };
        if word == far {
            let why = "it is fair between hosts on the far side; headend is so between those on the near side";
            import.report.lost(from.0, from.1, why);
            return;
        }
        let note = match word {
            "triple-isolate" => "headend is fair between the hosts of the near side only",
            _ => "",
        };
        import.set(("shape", key), value, from, note);
    }

    /// The script of sqm gives `diffserv3`; its own line is reported elsewhere.
    pub(super) fn start_with_three(&mut self, script: Option<Place>) {
        self.tins = Some((&[VOICE, BULK], script, None));
    }

    fn tins(&mut self, import: &mut Import, tins: &'static [Tin], from: (&Place, &str)) {
        let tins = (tins, Some(from.0.clone()), Some(from.1.to_owned()));
        if let Some((_, Some(place), Some(option))) = self.tins.replace(tins) {
            let why = "a later keyword replaces it";
            import.report.line(&place, &option, Fate::NoEffect, why);
        }
    }

    fn valued(&mut self, import: &mut Import, valued: Valued, value: &str, from: (&Place, &str)) {
        let (place, option) = from;
        match valued {
            Valued::Overhead | Valued::Mpu => match value.parse::<i64>() {
                Ok(number) if matches!(valued, Valued::Mpu) => {
                    self.layer.part(from, 0, Some(number), false);
                }
                Ok(number) => {
                    // A number replaces what keywords before it added.
                    self.layer.bytes = 0;
                    self.layer.part(from, number, None, false);
                }
                Err(_) => import
                    .report
                    .unknown(place, option, "its value is no number of bytes"),
            },
            Valued::Rtt => match qos::units::time(value) {
                Ok(time) => round_trip(import, time.as_nanos() / 1_000, from),
                Err(why) => import.report.unknown(place, option, &why),
            },
            Valued::Memory => import.set(("shape", "memory"), value, from, ""),
            Valued::Bandwidth => match qos::units::rate(value) {
                Ok(_) => import.set(("link", self.way.name()), value, from, ""),
                Err(why) => import.report.unknown(place, option, &why),
            },
        }
    }

    /// Makes the classes of the tins, and returns the link layer.
    pub(super) fn finish_classes(self, import: &mut Import) -> Layer {
        if let Some((tins, place, option)) = self.tins {
            classes(import, tins, self.way, place.as_ref(), option.as_deref());
        }
        self.layer
    }
}

/// Sets `shape.interval` and `shape.target`.
fn round_trip(import: &mut Import, us: u64, from: (&Place, &str)) {
    import.set(("shape", "interval"), format!("{us}us"), from, "");
    if import.has("shape", "interval") && !import.has("shape", "target") {
        let target = us / 20;
        let table = import.policy.table("shape");
        let note = "cake's target is a twentieth of its rtt";
        table.set(
            "target",
            format!("{target}us"),
            std::slice::from_ref(from.0),
            note,
        );
    }
}

/// Makes a class for each tin of one direction. If the other direction has the same class, it is made for both.
fn classes(
    import: &mut Import,
    tins: &[Tin],
    way: Way,
    place: Option<&Place>,
    option: Option<&str>,
) {
    let from: Vec<Place> = place.into_iter().cloned().collect();
    for tin in tins {
        let dscp = Value::texts(tin.dscp);
        let mut tables = import.policy.tables.iter_mut();
        let is_same = |table: &&mut Table| {
            let is_other = |other: &Value| *other != way.name().into();
            table.get("name") == Some(&tin.name.into())
                && table.get("dscp") == Some(&dscp)
                && table.get("direction").is_some_and(is_other)
        };
        if let Some(table) = tables.find(is_same) {
            table.entries.retain(|entry| entry.key != "direction");
            for entry in &mut table.entries {
                entry.from.extend(from.iter().cloned());
            }
            continue;
        }
        let mut tables = import.policy.tables.iter();
        let name = match tables.any(|table| table.get("name") == Some(&tin.name.into())) {
            true => format!("{} {}", tin.name, way.name()),
            false => tin.name.to_owned(),
        };
        let mut table = Table::each("class");
        table.set("name", name, &from, option.unwrap_or("cake's tin"));
        table.set("direction", way.name(), &from, "");
        table.set("rate", tin.rate, &from, "");
        table.set("priority", tin.priority, &from, "");
        table.set("dscp", dscp, &from, "");
        import.policy.tables.push(table);
    }
    match (place, option) {
        (Some(place), Some(option)) if tins.is_empty() => {
            let why = "headend looks at the DSCP only in [[first]] and [[class]]";
            import.report.line(place, option, Fate::Kept, why);
        }
        (Some(place), Some(option)) => {
            import
                .report
                .key(place, option, &["class.dscp", "class.rate"], "");
        }
        _ => {}
    }
}

/// Sets `[link.overhead]`, which is one for both directions, and reports the options that describe it.
pub(super) fn overhead(import: &mut Import, layer: &Layer) {
    let parts = layer.from.iter();
    let Some((first, _)) = parts.clone().next() else {
        return;
    };
    let mut wanted = Table {
        path: "link.overhead".to_owned(),
        ..Table::default()
    };
    let from: Vec<Place> = layer.from.iter().map(|(place, _)| place.clone()).collect();
    wanted.set("per_packet", layer.bytes, &from, "");
    wanted.set("mpu", layer.mpu.unwrap_or(0), &from, "");
    wanted.set("atm", layer.is_atm, &from, "");
    let same = |known: &Table| {
        let keys = ["per_packet", "mpu", "atm"];
        keys.iter().all(|key| known.get(key) == wanted.get(key))
    };
    let known = import
        .policy
        .tables
        .iter_mut()
        .find(|table| table.path == wanted.path);
    match known {
        Some(known) if !same(known) => {
            let why = format!(
                "a policy has one link.overhead for both directions, not that of {first} too"
            );
            for (place, option) in parts {
                import.report.lost(place, option, &why);
            }
        }
        known => {
            match known {
                Some(known) => known
                    .entries
                    .iter_mut()
                    .for_each(|entry| entry.from.extend(from.iter().cloned())),
                None => import.policy.tables.push(wanted),
            }
            let keys = [
                "link.overhead.per_packet",
                "link.overhead.mpu",
                "link.overhead.atm",
            ];
            for (place, option) in parts {
                match option.ends_with("-ptm") {
                    true => import.report.lost(place, option, PTM),
                    false => import.report.key(place, option, &keys, ""),
                }
            }
        }
    }
}
