//! `/etc/config/sqm` of OpenWrt. What its options do: the scripts of tohojo/sqm-scripts that are named in `option script`.

use std::collections::BTreeMap;

use convert::{Fate, Place, Rule, Source, Table, Value};

use super::cake::{self, Cake, Layer};
use super::sheet::{Import, Way};
use super::uci::{self, Section, Setting};

const WEB: &str = "only OpenWrt's web page reads it";
const LOG: &str = "only sqm's own log depends on it";
const TABLE: &str = "headend computes each length; it has no table of sizes";

/// Every option of a `queue` section, and what becomes of it.
pub const RULES: &[Rule] = &[
    Rule::kept("enabled", 1, "a section with `1` is imported"),
    Rule::kept("interface", 1, "give it to `headend qos run` with `--wan`"),
    Rule::key("download", 1, "`link.down`; `0`: kept"),
    Rule::key("upload", 1, "`link.up`; `0`: kept"),
    Rule::key(
        "script",
        1,
        "`shape.template`, `shape.hosts` and, for `simple.qos` and `layer_cake.qos`, `[[class]]`",
    ),
    Rule::key("qdisc", 1, "`shape.template`"),
    Rule::none("qdisc_advanced", 1, WEB),
    Rule::none("qdisc_really_really_advanced", 1, WEB),
    Rule::key("ingress_ecn", 1, "`shape.ecn`"),
    Rule::key("egress_ecn", 1, "`shape.ecn`"),
    Rule::key("target", 1, "`shape.target`"),
    Rule::key("itarget", 1, "`shape.target`; `auto`: kept"),
    Rule::key("etarget", 1, "`shape.target`; `auto`: kept"),
    Rule::key("ilimit", 1, "`shape.limit`"),
    Rule::key("elimit", 1, "`shape.limit`"),
    Rule::lost(
        "squash_dscp",
        1,
        "for `headend qos apply`, set `kernel.wash` and `kernel.queue = \"cake\"` by hand",
    )
    .unless("0"),
    Rule::key(
        "squash_ingress",
        1,
        "`class.direction`, if the script makes classes",
    ),
    Rule::key("linklayer", 1, "`link.overhead`"),
    Rule::none("linklayer_advanced", 1, WEB),
    Rule::key(
        "linklayer_adaptation_mechanism",
        1,
        "`link.overhead`: with `tc_stab`, the kernel counts the 14 bytes of the Ethernet header too",
    ),
    Rule::key("overhead", 1, "`link.overhead`"),
    Rule::key("tcMPU", 1, "`link.overhead`"),
    Rule::kept("tcMTU", 1, TABLE),
    Rule::kept("tcTSIZE", 1, TABLE),
    Rule::key(
        "iqdisc_opts",
        1,
        "each word for itself, see the keywords of cake",
    ),
    Rule::key(
        "eqdisc_opts",
        1,
        "each word for itself, see the keywords of cake",
    ),
    Rule::none("verbosity", 1, LOG),
    Rule::none("debug_logging", 1, LOG),
];

/// Reads the file. `interface` selects a section; without it, the first section that is enabled is imported.
pub fn read(sources: &[Source], interface: Option<&str>) -> Import {
    let first = sources.first().map_or("nothing", |source| &*source.name);
    let mut import = Import::new("sqm", first);
    let mut sections = Vec::new();
    for source in sources {
        source.report_bad_lines(&mut import.report);
        import.options = import.report.lines().len();
        let (own, mistakes) = uci::read(source);
        sections.extend(own);
        for (place, option, why) in mistakes {
            import.options += 1;
            import.report.unknown(&place, &option, why);
        }
    }
    let is_wanted = |section: &&Section| {
        section.kind == "queue"
            && match interface {
                Some(interface) => last(section, "interface") == Some(interface),
                None => last(section, "enabled") == Some("1"),
            }
    };
    import.found = sections
        .iter()
        .filter(|section| section.kind == "queue")
        .count();
    let wanted = sections.iter().position(|section| is_wanted(&section));
    for (at, section) in sections.iter().enumerate() {
        match Some(at) == wanted {
            true => Queue::new(&mut import, section).run(),
            false => other(&mut import, section, wanted.is_some()),
        }
    }
    import
}

/// The interfaces of the sections of type queue.
pub fn interfaces(source: &Source) -> Vec<String> {
    let (sections, _) = uci::read(source);
    let queues = sections.iter().filter(|section| section.kind == "queue");
    queues
        .filter_map(|section| last(section, "interface").map(str::to_owned))
        .collect()
}

/// The value of an option: the last one counts.
fn last<'s>(section: &'s Section, name: &str) -> Option<&'s str> {
    let mut settings = section.settings.iter().rev();
    settings
        .find(|setting| setting.name == name)
        .map(|setting| &*setting.value)
}

/// A section that is not imported.
fn other(import: &mut Import, section: &Section, is_other_link: bool) {
    let is_on = last(section, "enabled") == Some("1");
    let (fate, why) = match section.kind.as_str() {
        "queue" if is_on && is_other_link => (
            Fate::NotSupported,
            "a policy is for one link; --interface imports this section into a policy of its own",
        ),
        "queue" => (
            Fate::NoEffect,
            "the section is not enabled; --interface imports it all the same",
        ),
        _ => (Fate::NoEffect, "sqm reads only sections of type queue"),
    };
    for setting in &section.settings {
        import.options += 1;
        import.report.line(&setting.place, &setting.name, fate, why);
    }
}

/// A script of sqm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Three classes by DSCP.
    Simple,
    /// One class.
    Simplest,
    /// cake without classes.
    PieceOfCake,
    /// cake with classes by DSCP.
    LayerCake,
    Unknown,
}

const SCRIPTS: &[(&str, Script)] = &[
    ("simple.qos", Script::Simple),
    ("simplest.qos", Script::Simplest),
    ("simplest_tbf.qos", Script::Simplest),
    ("piece_of_cake.qos", Script::PieceOfCake),
    ("layer_cake.qos", Script::LayerCake),
];

/// The queues that sqm can use, and the template that does the same.
const QUEUES: &[(&str, &str)] = &[
    ("cake", "home"),
    ("cake_mq", "home"),
    ("fq_codel", "flows"),
    ("efq_codel", "flows"),
    ("nfq_codel", "flows"),
    ("codel", "codel"),
    ("sfq", "sfq"),
    ("pfifo", "pfifo"),
    ("bfifo", "fifo"),
    ("pfifo_fast", "bands"),
];

/// The section while it is imported.
struct Queue<'a> {
    import: &'a mut Import,
    settings: BTreeMap<&'a str, &'a Setting>,
    script: Script,
    is_cake: bool,
    /// Whether downloads have no classes by DSCP.
    squashes: bool,
    /// Rates in kbit/s.
    up: Option<u64>,
    down: Option<u64>,
}

impl<'a> Queue<'a> {
    fn new(import: &'a mut Import, section: &'a Section) -> Queue<'a> {
        let mut settings: BTreeMap<&str, &Setting> = BTreeMap::new();
        for setting in &section.settings {
            if let Some(old) = settings.insert(&setting.name, setting) {
                let why = "a later line gives the option again";
                import
                    .report
                    .line(&old.place, &old.name, Fate::NoEffect, why);
            }
        }
        import.options += section.settings.len();
        let text = |name| {
            settings
                .get(name)
                .map(|setting: &&Setting| setting.value.as_str())
        };
        let script = SCRIPTS
            .iter()
            .find(|(name, _)| Some(*name) == text("script"));
        let script = script.map_or(Script::Unknown, |(_, script)| *script);
        let is_cake = matches!(script, Script::PieceOfCake | Script::LayerCake)
            || text("qdisc").is_some_and(|qdisc| qdisc.starts_with("cake"));
        Queue {
            import,
            settings,
            script,
            is_cake,
            squashes: true,
            up: None,
            down: None,
        }
    }

    fn run(mut self) {
        self.up = self.rate("upload", Way::Up);
        self.down = self.rate("download", Way::Down);
        self.queue();
        self.tiers();
        self.ecn();
        self.numbers();
        self.opts();
        self.simply();
        if let Some(interface) = self.settings.get("interface") {
            let interface: String = interface
                .value
                .chars()
                .filter(|c| !c.is_control())
                .collect();
            let line = format!(
                "\nThe interface towards the provider was {interface}: headend qos run --wan {interface}"
            );
            self.import.head.push_str(&line);
        }
    }

    /// Takes an option out, so that what remains is what nothing has read.
    fn take(&mut self, name: &str) -> Option<&'a Setting> {
        self.settings.remove(name)
    }

    fn rate(&mut self, name: &str, way: Way) -> Option<u64> {
        let setting = self.take(name)?;
        let from = (&setting.place, name);
        match setting.value.parse::<u64>() {
            Ok(0) => {
                let why = "headend does not shape a direction without a rate";
                self.import
                    .report
                    .line(&setting.place, name, Fate::Kept, why);
                None
            }
            Ok(kbit) => {
                let key = ("link", way.name());
                self.import.set(key, format!("{kbit}kbit"), from, "");
                Some(kbit)
            }
            Err(_) => {
                let why = "the value is no number of kbit/s";
                self.import.report.unknown(&setting.place, name, why);
                None
            }
        }
    }

    /// `script` and `qdisc` become the template.
    fn queue(&mut self) {
        let script = self.take("script");
        let qdisc = self.take("qdisc");
        let uses_own = matches!(self.script, Script::PieceOfCake | Script::LayerCake);
        if let Some(qdisc) = qdisc {
            let from = (&qdisc.place, "qdisc");
            let known = QUEUES.iter().find(|(name, _)| *name == qdisc.value);
            match known {
                _ if uses_own => {
                    let why = "the script always uses cake";
                    self.import
                        .report
                        .line(&qdisc.place, "qdisc", Fate::NoEffect, why);
                }
                Some((_, template)) => self.import.set(("shape", "template"), *template, from, ""),
                None => {
                    let why = "headend has no such queue; the template is flows";
                    self.import.report.lost(&qdisc.place, "qdisc", why);
                }
            }
        }
        let template = if self.is_cake { "home" } else { "flows" };
        let Some(script) = script else {
            if !self.import.has("shape", "template") {
                self.import.policy.note(
                    "shape",
                    "template",
                    template,
                    "sqm's queue without the option qdisc",
                );
            }
            return;
        };
        let mut keys = Vec::new();
        if !self.import.has("shape", "template") {
            let from = std::slice::from_ref(&script.place);
            let note = if uses_own {
                ""
            } else {
                "sqm's queue without the option qdisc"
            };
            self.import
                .policy
                .table("shape")
                .set("template", template, from, note);
            keys.push("shape.template");
        }
        if matches!(self.script, Script::Simple | Script::LayerCake) {
            keys.extend(["class.dscp", "class.rate"]);
        }
        self.report_script(script, &keys);
        self.settings.insert("script", script);
    }

    fn report_script(&mut self, script: &Setting, keys: &[&str]) {
        let place = &script.place;
        match self.script {
            Script::Unknown => {
                let names: Vec<(&str, ())> = SCRIPTS.iter().map(|(name, _)| (*name, ())).collect();
                let why = settings::choose(&script.value, &names)
                    .err()
                    .unwrap_or_default();
                self.import.report.line(
                    place,
                    "script",
                    Fate::NotSupported,
                    &format!("as a script of sqm, {why}"),
                );
            }
            _ if keys.is_empty() => {
                let why = "headend shapes with one class, as this script does";
                self.import.report.line(place, "script", Fate::Kept, why);
            }
            _ => self.import.report.key(place, "script", keys, ""),
        }
    }

    /// The classes by DSCP of `simple.qos`; `squash_ingress` decides whether downloads have them too.
    fn tiers(&mut self) {
        let place = self
            .settings
            .get("script")
            .map(|setting| setting.place.clone());
        let squash = self.take("squash_ingress");
        let has_tiers = matches!(self.script, Script::Simple | Script::LayerCake);
        self.squashes = squash.is_none_or(|squash| squash.value != "0");
        if let Some(squash) = squash {
            let (fate, why) = match has_tiers {
                true if self.down.is_none() => (Fate::NoEffect, "downloads are not shaped"),
                true => (
                    Fate::Kept,
                    "it decides for which direction the classes by DSCP are",
                ),
                false => (Fate::NoEffect, "the script makes no classes by DSCP"),
            };
            self.import
                .report
                .line(&squash.place, "squash_ingress", fate, why);
        }
        let Some(place) = place.filter(|_| self.script == Script::Simple && !self.is_cake) else {
            return;
        };
        if let Some(up) = self.up {
            let classes: [(_, Condition); 2] = [
                ("priority", &[("dscp", &["cs6", "ef", "af42", "4"])]),
                ("background", &[("dscp", &["cs1"]), ("proto", &["icmp"])]),
            ];
            self.simple(&place, Way::Up, (up, 128), &classes);
        }
        if let Some(down) = self.down.filter(|_| !self.squashes) {
            let classes: [(_, Condition); 2] = [
                ("priority", &[("dscp", &["4", "ef", "cs6", "cs7", "af42"])]),
                ("background", &[("dscp", &["cs1"])]),
            ];
            self.simple(&place, Way::Down, (down, 32), &classes);
        }
    }

    /// The two classes of one direction besides the rest. Their rates are those of the script.
    fn simple(
        &mut self,
        place: &Place,
        way: Way,
        (rate, least): (u64, u64),
        classes: &[(&str, Condition<'_>)],
    ) {
        for (name, conditions) in classes {
            let is_first = *name == "priority";
            let ceil = if is_first {
                rate / 3
            } else {
                rate.saturating_sub(16)
            };
            let own = if is_first { least } else { rate / 6 };
            let own = own.min(ceil).max(1);
            let count = conditions.len() as u64;
            for (key, values) in *conditions {
                let mut table = Table::each("class");
                let from = std::slice::from_ref(place);
                let suffix = if *key == "dscp" { "" } else { values[0] };
                let whole = format!("{name} {} {suffix}", way.name());
                table.set("name", whole.trim_end(), from, "");
                table.set("direction", way.name(), from, "");
                table.set("rate", format!("{}kbit", (own / count).max(1)), from, "");
                table.set("ceil", format!("{}kbit", ceil.max(1)), from, "");
                table.set("priority", if is_first { 1 } else { 4 }, from, "");
                table.set(key, Value::texts(values), from, "");
                self.import.policy.tables.push(table);
            }
        }
    }

    fn ecn(&mut self) {
        for (name, rate) in [("ingress_ecn", self.down), ("egress_ecn", self.up)] {
            let Some(setting) = self.take(name) else {
                continue;
            };
            let from = (&setting.place, name);
            let template = self.template();
            let report = &mut self.import.report;
            match (&*setting.value, &*template) {
                _ if rate.is_none() => report.line(from.0, name, Fate::NoEffect, UNSHAPED),
                ("ECN" | "NOECN", _) if self.is_cake => {
                    let why = "cake always uses ECN, and so does the template home";
                    report.line(from.0, name, Fate::NoEffect, why);
                }
                ("ECN" | "NOECN", "sfq" | "pfifo" | "fifo" | "bands") => {
                    report.line(from.0, name, Fate::NoEffect, "the queue has no ECN");
                }
                ("ECN", _) => self.import.set(("shape", "ecn"), true, from, ""),
                ("NOECN", _) => self.import.set(("shape", "ecn"), false, from, ""),
                _ => report.unknown(from.0, name, "the value is neither ECN nor NOECN"),
            }
        }
    }

    fn template(&self) -> String {
        let mut tables = self.import.policy.tables.iter();
        match tables.find_map(|table| table.get("template")) {
            Some(Value::Text(template)) => template.clone(),
            _ => String::new(),
        }
    }

    /// `target`, `itarget`, `etarget`, `ilimit` and `elimit`.
    fn numbers(&mut self) {
        let (up, down) = (self.up, self.down);
        let ways = [
            ("itarget", down, "target"),
            ("etarget", up, "target"),
            ("target", up.or(down), "target"),
            ("ilimit", down, "limit"),
            ("elimit", up, "limit"),
        ];
        for (name, rate, key) in ways {
            let Some(setting) = self.take(name) else {
                continue;
            };
            let from = (&setting.place, name);
            let template = self.template();
            let has_target = matches!(&*template, "flows" | "codel");
            let report = &mut self.import.report;
            let word = setting.value.to_ascii_lowercase();
            match (key, &*word) {
                _ if rate.is_none() => report.line(from.0, name, Fate::NoEffect, UNSHAPED),
                _ if self.is_cake => {
                    report.line(from.0, name, Fate::NoEffect, "sqm does not give it to cake")
                }
                ("target", _) if !has_target => {
                    report.line(from.0, name, Fate::NoEffect, "the queue has no target");
                }
                ("target", "auto" | "default" | "") => {
                    let why = "headend's default target suits the rate";
                    report.line(from.0, name, Fate::Kept, why);
                }
                ("target", _) => self
                    .import
                    .set(("shape", key), setting.value.clone(), from, ""),
                (_, "") => report.line(from.0, name, Fate::Kept, "empty: the queue's own limit"),
                (_, value) => match value.parse::<u32>() {
                    Ok(limit) if template == "fifo" => {
                        self.import
                            .set(("shape", key), format!("{limit}b"), from, "");
                    }
                    Ok(limit) => self.import.set(("shape", key), i64::from(limit), from, ""),
                    Err(_) => report.unknown(from.0, name, "the value is no whole number"),
                },
            }
        }
    }

    /// The link layer, and the words of `iqdisc_opts` and `eqdisc_opts`.
    fn opts(&mut self) {
        let base = self.layer();
        let has_tins =
            self.script == Script::LayerCake || (self.is_cake && self.script == Script::Simple);
        // The script's own options; a later keyword replaces them.
        let mut layers = Vec::new();
        for (name, way, rate) in [
            ("eqdisc_opts", Way::Up, self.up),
            ("iqdisc_opts", Way::Down, self.down),
        ] {
            let mut cake = Cake::new(way);
            if has_tins && rate.is_some() && (way == Way::Up || !self.squashes) {
                let place = self
                    .settings
                    .get("script")
                    .map(|setting| setting.place.clone());
                cake.start_with_three(place);
            }
            if let Some(setting) = self.take(name) {
                self.words(setting, &mut cake, rate);
            }
            let own = cake.finish_classes(self.import);
            if rate.is_some() {
                layers.push(own);
            }
        }
        let has_own = layers.iter().any(|layer| !layer.from.is_empty());
        if !has_own {
            self.base(&base);
            return;
        }
        for layer in layers.iter().filter(|layer| !layer.from.is_empty()) {
            cake::overhead(self.import, layer);
        }
        let why = "the link layer of iqdisc_opts or eqdisc_opts replaces it";
        for (place, option) in &base.from {
            self.import.report.line(place, option, Fate::NoEffect, why);
        }
    }

    /// The link layer of the options `linklayer`, `overhead`, `tcMPU` and `linklayer_adaptation_mechanism`.
    fn layer(&mut self) -> Layer {
        let interface = self.settings.get("interface");
        let header = interface.is_none_or(|interface| has_header(&interface.value));
        let header = if header { HEADER_BYTES } else { 0 };
        let kind = self.take("linklayer");
        let how = self.take("linklayer_adaptation_mechanism");
        let kind_name = kind.map_or("none", |kind| kind.value.as_str());
        let is_stab = match how.map(|how| how.value.as_str()) {
            Some("cake") => false,
            Some("tc_stab" | "htb_private") => true,
            _ => !self.is_cake,
        };
        // cake's own adjustment does nothing in another queue.
        let is_none = kind_name == "none" || (!is_stab && !self.is_cake);
        let mut layer = Layer {
            bytes: if is_stab || is_none { header } else { 0 },
            ..Layer::default()
        };
        if let Some(kind) = kind {
            match &*kind.value {
                "none" | "ethernet" | "atm" | "adsl" => {
                    let is_atm = !is_none && matches!(kind_name, "atm" | "adsl");
                    layer.part((&kind.place, "linklayer"), 0, None, is_atm);
                }
                _ => {
                    let why = "the value is none of none, ethernet and atm";
                    self.import.report.unknown(&kind.place, "linklayer", why);
                }
            }
        }
        if let Some(how) = how {
            layer.part(
                (&how.place, "linklayer_adaptation_mechanism"),
                0,
                None,
                false,
            );
        }
        for name in ["overhead", "tcMPU"] {
            let Some(setting) = self.take(name) else {
                continue;
            };
            let from = (&setting.place, name);
            match setting.value.parse::<i64>() {
                _ if is_none => {
                    let why = "sqm uses it only with a linklayer";
                    self.import.report.line(from.0, name, Fate::NoEffect, why);
                }
                Ok(bytes) if name == "overhead" => layer.part(from, bytes, None, false),
                Ok(bytes) => layer.part(from, 0, Some(bytes), false),
                Err(_) => {
                    self.import
                        .report
                        .unknown(from.0, name, "the value is no number of bytes")
                }
            }
        }
        layer
    }

    /// Sets the link layer of the section's own options; without any, that of the kernel.
    fn base(&mut self, base: &Layer) {
        if !base.from.is_empty() {
            cake::overhead(self.import, base);
        } else if self.up.or(self.down).is_some() {
            let note = "not in the source: sqm counts a packet with its Ethernet header";
            let table = self.import.policy.table("link.overhead");
            table.set("per_packet", base.bytes, &[], note);
        }
    }

    fn words(&mut self, setting: &Setting, cake: &mut Cake, rate: Option<u64>) {
        let words: Vec<&str> = setting.value.split_whitespace().collect();
        let name = &setting.name;
        if words.is_empty() || rate.is_none() || !self.is_cake {
            let (fate, why) = if words.is_empty() {
                (Fate::NoEffect, "empty")
            } else if rate.is_none() {
                (Fate::NoEffect, UNSHAPED)
            } else {
                let why = "headend translates the options of cake only; see [shape] for those of other queues";
                (Fate::NotSupported, why)
            };
            self.import.report.line(&setting.place, name, fate, why);
            return;
        }
        let prefix = format!("{name} ");
        let mut rest = words.as_slice();
        // The words are options, in place of the line.
        self.import.options -= 1;
        while !rest.is_empty() {
            let used = cake.keyword(self.import, rest, (&setting.place, &prefix));
            self.import.options += 1;
            rest = &rest[used..];
        }
    }

    /// What is left has a fixed fate, or is no option.
    fn simply(&mut self) {
        self.settings.remove("script");
        for (name, setting) in std::mem::take(&mut self.settings) {
            match RULES.iter().find(|rule| rule.name == name) {
                Some(rule) => self
                    .import
                    .report
                    .rule(&setting.place, rule, &setting.value),
                None => {
                    let names: Vec<(&str, ())> = RULES.iter().map(|rule| (rule.name, ())).collect();
                    let why = settings::choose(name, &names).err().unwrap_or_default();
                    let why = why.split("; it can be").next().unwrap_or_default();
                    self.import.report.unknown(
                        &setting.place,
                        name,
                        &format!("as an option of sqm, {why}"),
                    );
                }
            }
        }
    }
}

const UNSHAPED: &str = "this direction is not shaped";

/// Keys with their values.
type Condition<'a> = &'a [(&'a str, &'a [&'a str])];

/// Bytes of an Ethernet header, which the kernel counts except on links without one.
const HEADER_BYTES: i64 = 14;

/// Whether packets on this interface have an Ethernet header.
fn has_header(interface: &str) -> bool {
    let without = ["ppp", "tun", "wg", "6in4", "sit", "l2tp", "ipip"];
    !without.iter().any(|start| interface.starts_with(start))
}
