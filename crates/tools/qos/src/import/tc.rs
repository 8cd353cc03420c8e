//! Trees of tc: the root's rate becomes the link's, classes become sections, and their filters become conditions.

use std::collections::BTreeSet;

use convert::{Fate, Source};

use super::cake::{self, Cake, Layer};
use super::filters::Filter;
use super::leaf;
use super::objects::{self, Found, Object, What};
use super::sheet::{Import, Way};

/// Reads the queues of one link. `up` holds those towards the provider, and whatever names its interface; `down` holds
/// those of the interface on which downloads are shaped. `wan` names the interface towards the provider.
pub fn read(up: &[Source], down: &[Source], wan: Option<&str>) -> Import {
    let first = up
        .first()
        .or(down.first())
        .map_or("nothing", |source| &*source.name);
    let mut import = Import::new("tc", first);
    let mut all = Vec::new();
    for (sources, is_down) in [(up, false), (down, true)] {
        for source in sources {
            source.report_bad_lines(&mut import.report);
            let mut found = Found::default();
            objects::read(source, &mut found);
            all.extend(found.objects.into_iter().map(|object| (is_down, object)));
            for remark in found.remarks {
                let fate = if remark.is_lost {
                    Fate::Unknown
                } else {
                    Fate::NoEffect
                };
                import
                    .report
                    .line(&remark.place, &remark.what, fate, remark.why);
            }
        }
    }
    import.options = import.report.lines().len();
    import.found = all.len();
    let mut work = Work::new(import);
    work.divide(all, wan);
    for way in [Way::Up, Way::Down] {
        work.tree(way);
    }
    work.rest();
    work.import
}

/// An object while it is read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) object: Object,
    /// What [`Filter::read`] made of it.
    pub(super) filter: Option<Filter>,
    pub(super) is_done: bool,
}

pub(super) struct Work {
    pub(super) import: Import,
    ways: [Vec<Entry>; 2],
    layers: Vec<Layer>,
}

/// The name of an object in a report.
pub(super) fn name(object: &Object) -> String {
    let (device, what) = (&object.device, object.what.name());
    let dev = if device.is_empty() {
        String::new()
    } else {
        format!("dev {device} ")
    };
    let id = match object.what {
        What::Filter => format!("pref {} {} {}", object.pref, object.kind, object.handle),
        _ => format!("{} {}", object.kind, object.handle),
    };
    format!("{dev}{what} {}", id.trim_end())
}

/// Whether a queue or filter acts on packets that arrive.
fn is_arrival(object: &Object) -> bool {
    let is_hook = |text: &str| matches!(text, "ingress" | "clsact") || text.starts_with("ffff:");
    is_hook(&object.kind)
        || (object.what == What::Filter && is_hook(&object.parent))
        || is_hook(&object.handle)
}

impl Work {
    fn new(import: Import) -> Work {
        Work {
            import,
            ways: [Vec::new(), Vec::new()],
            layers: Vec::new(),
        }
    }

    /// Decides for each object which direction it shapes.
    fn divide(&mut self, all: Vec<(bool, Object)>, wan: Option<&str>) {
        let mut entries: Vec<(bool, Entry)> = Vec::new();
        for (is_down, object) in all {
            let filter = (object.what == What::Filter).then(|| Filter::read(&object));
            entries.push((
                is_down,
                Entry {
                    object,
                    filter,
                    is_done: false,
                },
            ));
        }
        let arriving = |(_, entry): &&(bool, Entry)| {
            is_arrival(&entry.object)
                || entry
                    .filter
                    .as_ref()
                    .is_some_and(|filter| filter.redirect.is_some())
        };
        let named = |(_, entry): &(bool, Entry)| {
            Some(entry.object.device.clone()).filter(|device| !device.is_empty())
        };
        let upward = || entries.iter().filter(|(is_down, _)| !is_down);
        let first = upward()
            .filter(arriving)
            .find_map(named)
            .or_else(|| upward().find_map(named));
        let wan = wan.map(str::to_owned).or(first).unwrap_or_default();
        let targets: BTreeSet<String> = entries
            .iter()
            .filter_map(|(_, entry)| entry.filter.as_ref()?.redirect.clone())
            .collect();
        let other = upward().filter_map(named).find(|device| *device != wan);
        let lan = if targets.is_empty() { other } else { None };
        for (is_down, entry) in entries {
            let device = &entry.object.device;
            let is_target = targets.contains(device) || lan.as_ref() == Some(device);
            if is_down || (!device.is_empty() && is_target) {
                self.ways[1].push(entry);
            } else if device.is_empty() || *device == wan {
                self.ways[0].push(entry);
            } else {
                let why =
                    "a policy is for one link; --wan names the interface towards its provider";
                self.lost(&entry.object, why);
            }
        }
    }

    pub(super) fn report(&mut self, object: &Object, option: &str, fate: Fate, why: &str) {
        self.import.options += 1;
        let option = format!("{} {option}", name(object));
        self.import
            .report
            .line(&object.place, option.trim_end(), fate, why);
    }

    /// Reports an object and all its options as lost.
    pub(super) fn lost(&mut self, object: &Object, why: &str) {
        self.report(object, "", Fate::NotSupported, why);
    }

    /// Reads the tree of one direction.
    fn tree(&mut self, way: Way) {
        let mut entries = std::mem::take(&mut self.ways[way as usize]);
        for entry in &mut entries {
            let filter = entry.filter.as_ref();
            let is_policed =
                filter.is_some_and(|filter| filter.police.is_some() && filter.class.is_none());
            if is_policed
                || is_arrival(&entry.object)
                || filter.is_some_and(|filter| filter.redirect.is_some())
            {
                entry.is_done = true;
                self.arrival(entry);
            } else if entry.object.what == What::Class && entry.object.words.is_empty() {
                // Linux shows one for each band of a queue.
                entry.is_done = true;
                self.report(
                    &entry.object,
                    "",
                    Fate::NoEffect,
                    "a queue has it by itself",
                );
            }
        }
        let is_root = |entry: &&mut Entry| {
            entry.object.what == What::Qdisc && entry.object.parent == "root" && !entry.is_done
        };
        let root = entries.iter_mut().find(is_root).map(|entry| {
            entry.is_done = true;
            entry.object.clone()
        });
        if let Some(root) = root {
            self.root(&root, way, &mut entries);
        }
        self.ways[way as usize] = entries;
    }

    /// A queue or filter for packets that arrive: it sends them to the queues of the other direction, or polices them.
    fn arrival(&mut self, entry: &Entry) {
        let object = &entry.object;
        let Some(filter) = &entry.filter else {
            let why = "headend shapes arriving packets without it";
            self.report(object, "", Fate::Kept, why);
            return;
        };
        if let Some(rate) = filter.police.clone() {
            self.import.options += 1;
            let option = format!("{} police", name(object));
            let from = (&object.place, option.as_str());
            let is_all = filter.conditions.is_empty() && !filter.is_partial;
            if is_all {
                let note = "the source drops above this rate; headend queues";
                self.import.set(("link", "down"), small(&rate), from, note);
            } else {
                let why = "it polices a part of the packets; write a [[class]] with this ceil";
                self.import.report.lost(&object.place, &option, why);
            }
        } else if filter.redirect.is_some() && filter.conditions.is_empty() && !filter.is_partial {
            let why = "headend shapes arriving packets without it";
            self.report(object, "", Fate::Kept, why);
        } else {
            self.lost(object, "a policy has no filters for arriving packets");
        }
    }

    fn root(&mut self, root: &Object, way: Way, entries: &mut [Entry]) {
        match root.kind.as_str() {
            "htb" => self.htb(root, way, entries),
            "tbf" => self.tbf(root, way, entries),
            "cake" => self.cake(root, way),
            "mq" | "noqueue" | "pfifo_fast" | "multiq" => {
                self.report(
                    root,
                    "",
                    Fate::NoEffect,
                    "Linux's own queue, without a rate",
                );
            }
            _ => match leaf::template(&root.kind) {
                Some(_) => self.lost(root, "the queue has no rate; headend shapes to a rate"),
                None => self.lost(root, "headend translates trees of htb, tbf and cake"),
            },
        }
    }

    fn cake(&mut self, root: &Object, way: Way) {
        self.report(root, "", Fate::Kept, "the template home is the default");
        let words = leaf::cake_words(&root.words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut cake = Cake::new(way);
        let prefix = format!("{} ", name(root));
        let mut rest = words.as_slice();
        while !rest.is_empty() {
            let used = cake.keyword(&mut self.import, rest, (&root.place, &prefix));
            self.import.options += 1;
            rest = &rest[used..];
        }
        let layer = cake.finish_classes(&mut self.import);
        self.layers.push(layer);
    }

    fn tbf(&mut self, root: &Object, way: Way, entries: &mut [Entry]) {
        self.report(root, "", Fate::Kept, "headend shapes without it");
        let below = child(&root.handle, entries);
        let words = self.stab(root);
        for (key, value) in pairs(&words) {
            self.import.options += 1;
            let option = format!("{} {key}", name(root));
            let from = (&root.place, option.as_str());
            match key {
                "rate" => self
                    .import
                    .set(("link", way.name()), small(value), from, ""),
                "burst" | "buffer" | "maxburst" => {
                    let size = value.split('/').next().unwrap_or_default();
                    self.import.set(("shape", "burst"), octets(size), from, "");
                }
                "lat" | "latency" | "limit" if below.is_some() => {
                    self.import.report.line(
                        &root.place,
                        &option,
                        Fate::NoEffect,
                        "another queue is below",
                    );
                }
                "lat" | "latency" => self.import.set(("shape", "limit"), value, from, ""),
                "limit" => self.import.set(("shape", "limit"), octets(value), from, ""),
                _ => self
                    .import
                    .report
                    .lost(&root.place, &option, "headend has no such option"),
            }
        }
        match below {
            Some(at) => self.leaf_of_rest(&mut entries[at]),
            None if !self.import.has("shape", "template") => {
                let table = self.import.policy.table("shape");
                let note = "tbf's own queue";
                table.set("template", "fifo", std::slice::from_ref(&root.place), note);
            }
            None => {}
        }
    }

    /// The queue of packets that no section takes: it is that of the template.
    pub(super) fn leaf_of_rest(&mut self, entry: &mut Entry) {
        entry.is_done = true;
        let object = entry.object.clone();
        self.import.options += leaf::shape(&mut self.import, &object, &name(&object));
    }

    /// Takes `stab overhead 40 linklayer atm` out of the words of a queue.
    pub(super) fn stab(&mut self, root: &Object) -> Vec<String> {
        let is_stab = |word: &str| matches!(word, "overhead" | "mpu" | "linklayer");
        let mut words = Vec::new();
        let mut layer = Layer::default();
        let mut rest = root.words.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "stab" => {}
                word if is_stab(word) => {
                    let value = rest.next().map_or("", String::as_str);
                    let option = format!("{} stab {word}", name(root));
                    let from = (&root.place, option.as_str());
                    self.import.options += 1;
                    let number = value.parse::<i64>();
                    match (word, number) {
                        ("overhead", Ok(bytes)) => layer.part(from, bytes, None, false),
                        ("mpu", Ok(bytes)) => layer.part(from, 0, Some(bytes), false),
                        ("linklayer", _) => {
                            layer.part(from, 0, None, matches!(value, "atm" | "adsl"))
                        }
                        _ => self.import.report.unknown(
                            &root.place,
                            &option,
                            "the value is no number of bytes",
                        ),
                    }
                }
                "tsize" | "mtu" if root.kind != "tbf" => {
                    rest.next();
                    let why = "headend computes each length; it has no table of sizes";
                    self.report(root, &format!("stab {word}"), Fate::Kept, why);
                }
                _ => words.push(word.clone()),
            }
        }
        // Linux counts the Ethernet header, and adds the overhead to it.
        layer.bytes += if root.device.starts_with("ppp") {
            0
        } else {
            14
        };
        self.layers.push(layer);
        words
    }

    /// The link layers of both directions, and what is in no tree.
    fn rest(&mut self) {
        let layers = std::mem::take(&mut self.layers);
        for layer in &layers {
            cake::overhead(&mut self.import, layer);
        }
        if layers.iter().all(|layer| layer.from.is_empty())
            && let Some(least) = layers.iter().map(|layer| layer.bytes).min()
        {
            let note = "not in the source: without a size table the kernel counts a packet with its own header";
            let table = self.import.policy.table("link.overhead");
            table.set("per_packet", least, &[], note);
        }
        for entry in std::mem::take(&mut self.ways).into_iter().flatten() {
            if !entry.is_done {
                self.lost(
                    &entry.object,
                    "it is not below a root queue that headend translates, or not reached",
                );
            }
        }
    }
}

/// The queue right below `parent`: `1:` or `1:10`.
pub(super) fn child(parent: &str, entries: &[Entry]) -> Option<usize> {
    let major = parent.trim_end_matches(':');
    entries.iter().position(|entry| {
        let own = &entry.object.parent;
        let is_below =
            *own == parent || (parent.ends_with(':') && own.split(':').next() == Some(major));
        entry.object.what == What::Qdisc && !entry.is_done && is_below
    })
}

/// Options with their values. A word that is followed by nothing has an empty value.
pub(super) fn pairs(words: &[String]) -> Vec<(&str, &str)> {
    let chunks = words.chunks(2);
    chunks
        .map(|pair| (pair[0].as_str(), pair.get(1).map_or("", String::as_str)))
        .collect()
}

/// A size in bytes, as a limit of a policy: a bare number would be packets.
fn octets(value: &str) -> String {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let small = value.to_ascii_lowercase();
    if is_number {
        format!("{value}b")
    } else {
        small
    }
}

/// A rate as a policy writes it.
pub(super) fn small(text: &str) -> String {
    text.to_ascii_lowercase()
}
