//! `[queue]`, `[queue.default]`, `[[queue.template]]`, `[[queue.link]]`, `[[queue.line]]`, and the keys of queues in
//! `[[pool]]`: what decides subscribers' queues. docs/subscriber-queues.md is the task's page.
//!
//! Start reading at [`read`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use aaa::queue::{self, BitsPerSecond, Way};
use aaa::{Prefix, Queue};
use base::nearest;
use edge::queue::{Defaults, Line, QueueFault, Queues, Source};
use hqos::spec::{
    DEPTH_MAX, Fairness, NODES_MAX, Node, NodeId, Plan, Rates, TEMPLATES_MAX, Template, WEIGHT_MAX,
};
use qos::policy::OVERHEADS;
use qos::tree::Overhead;
use qos::units;
use toml::de::DeTable;

use settings::{At, Notes, Section, set};

use super::subscribers::prefix;

/// Largest number of lines.
const LINES_MAX: usize = 1_024;

/// `[queue]`, until the pools are read too.
pub(super) struct Reading {
    queues: Queues,
    defaults: Defaults,
    /// The keys of all sources, with their places.
    given: Vec<(Source, Given)>,
}

/// The keys of one source, and where they are.
struct Given {
    queue: Queue,
    /// The section's name in faults.
    name: String,
    at: usize,
    rates_at: [Option<usize>; 2],
    template: (&'static str, Option<usize>),
    link_at: Option<usize>,
}

/// Reads `[queue]` and everything in it.
pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> Reading {
    let mut section = Section::open(root, "queue", notes);
    let mut defaults = Defaults::default();
    set(section.flag("strict"), &mut defaults.strict);
    let mut given = Vec::new();
    if let Some(mut table) = section.table("default") {
        let one = keys(&mut table, "template");
        table.finish();
        defaults.all = one.queue.clone();
        given.push((Source::Default, one));
    }
    for key in ["template", "link", "line", "default"] {
        section.known(key);
    }
    section.finish();
    let mut plan = Plan::default();
    let mut rates_bps = Vec::new();
    let table = root.get("queue").map(toml::Spanned::get_ref);
    if let Some(table) = table.and_then(|value| value.as_table()) {
        for mut section in Section::each(table, "template", "queue.template", notes) {
            template(&mut section, &mut plan, &mut rates_bps);
            section.finish();
        }
        links(table, &mut plan, notes);
        for mut section in Section::each(table, "line", "queue.line", notes) {
            let (line, one) = line(&mut section);
            section.finish();
            if defaults.lines.len() == LINES_MAX {
                let message = format!("is the line beyond {LINES_MAX}; give fewer");
                notes.at(one.at, one.name, message);
                break;
            }
            defaults.lines.push(line);
            given.push((Source::Line, one));
        }
    }
    let queues = Queues::new(plan, rates_bps, Defaults::default());
    let queues = queues.unwrap_or_else(|fault| {
        if notes.is_empty() {
            notes.whole("queue", fault.to_string());
        }
        Queues::default()
    });
    Reading {
        queues,
        defaults,
        given,
    }
}

impl Reading {
    /// Reads the keys of queues in a pool's section.
    pub(super) fn pool(&mut self, section: &mut Section<'_>, pool: &str) {
        let one = keys(section, "queue");
        if !one.queue.is_empty() {
            let pools = &mut self.defaults.pools;
            pools.insert(pool.into(), one.queue.clone());
            self.given.push((Source::Pool, one));
        }
    }

    /// The names of the templates.
    pub(super) fn templates(&self) -> Vec<&str> {
        let templates = self.queues.plan().templates.iter();
        templates.map(|one| &*one.name).collect()
    }

    /// The names of the links, each with the most that a subscriber may have of it, down and up.
    pub(super) fn links(&self) -> Vec<(&str, [u64; 2])> {
        let plan = self.queues.plan();
        let all = (0..).zip(&plan.nodes);
        let most = |n: u32, of: fn(Rates) -> u64| {
            let rates = plan.above(NodeId(n)).map(|(_, node)| of(node.rates));
            rates.filter(|&rate| rate > 0).min().unwrap_or(u64::MAX)
        };
        let links = all.map(|(n, node)| {
            let rates = [most(n, |rates| rates.down), most(n, |rates| rates.up)];
            (&*node.name, rates)
        });
        links.collect()
    }

    /// Checks what each source of the configuration comes to.
    pub(super) fn finish(self, notes: &Notes<'_>) -> Arc<Queues> {
        for (source, given) in &self.given {
            let sources = [
                (*source, &given.queue),
                (Source::Default, &self.defaults.all),
            ];
            let (_, faults) = self.queues.resolve(&sources);
            for fault in faults {
                self.report(*source, given, &fault, notes);
            }
        }
        let plan = self.queues.plan().clone();
        let templates = plan.templates.iter();
        let rates = templates.map(|one| self.queues.rates_of(&one.name));
        let rates = rates.collect();
        Arc::new(Queues::new(plan, rates, self.defaults).unwrap_or_default())
    }

    fn report(&self, own: Source, given: &Given, fault: &QueueFault, notes: &Notes<'_>) {
        let (template_key, template_at) = given.template;
        let (key, at, words) = match fault {
            QueueFault::NoTemplate(_, source) | QueueFault::NoLink(_, source) if *source != own => {
                return;
            }
            QueueFault::NoTemplate(name, _) => {
                let words = unknown("template", name, &self.templates());
                (template_key, template_at, words)
            }
            QueueFault::NoLink(name, _) => {
                let links = self.links();
                let links: Vec<&str> = links.iter().map(|(name, _)| *name).collect();
                ("link", given.link_at, unknown("link", name, &links))
            }
            QueueFault::OverLink(over) => {
                let key = ["rate_down", "rate_up"][over.way as usize];
                let at = given.rates_at[over.way as usize];
                let (key, at) = match (at, template_at) {
                    (Some(at), _) => (key, Some(at)),
                    (None, Some(at)) => (template_key, Some(at)),
                    (None, None) => ("link", given.link_at),
                };
                let most = BitsPerSecond(over.link_bps);
                let right = format!("give {most} or less, or another link");
                (key, at, (over.to_string(), right))
            }
        };
        let place = format!("{}.{key}", given.name);
        notes.at(at.unwrap_or(given.at), place, words);
    }
}

/// Reads the keys that every source has.
fn keys(section: &mut Section<'_>, template_key: &'static str) -> Given {
    let down = section.parsed("rate_down", queue::rate);
    let up = section.parsed("rate_up", queue::rate);
    let template = match template_key {
        "queue" => section.parsed("queue", queue::name),
        _ => section.parsed("template", queue::name),
    };
    let link = section.parsed("link", queue::name);
    let rates = [down, up];
    Given {
        name: section.name(),
        at: section.at(),
        rates_at: rates.map(|rate| rate.map(|rate| rate.at)),
        template: (template_key, template.as_ref().map(|name| name.at)),
        link_at: link.as_ref().map(|link| link.at),
        queue: Queue {
            rates_bps: rates.map(|rate| rate.map(|rate| rate.value)),
            link: link.map(|link| link.value),
            ..Queue::default().with_template(template.as_ref().map(|name| &*name.value))
        },
    }
}

/// Reads one `[[queue.template]]`.
fn template(section: &mut Section<'_>, plan: &mut Plan, rates_bps: &mut Vec<[Option<u64>; 2]>) {
    let mut one = Template::default();
    section.require("name", "give the template a name: name = \"gold\"");
    if let Some(At { value, at }) = section.parsed("name", queue::name) {
        one.name = value.into();
        if plan.template(&one.name).is_some() {
            let message = format!("there is a template \"{}\" already", one.name);
            section.fault(at, "name", (message, "give each a name of its own"));
            one.name.clear();
        }
    }
    let rates = [
        section.parsed("rate_down", queue::rate),
        section.parsed("rate_up", queue::rate),
    ];
    weight(section, &mut one.weight);
    let ways = [
        ("hosts", Fairness::Hosts),
        ("flows", Fairness::Flows),
        ("none", Fairness::None),
    ];
    set(section.choice("fairness", &ways), &mut one.fairness);
    if let Some(packets) = section.integer("depth_packets", 1..=1_000_000, "packets") {
        one.depth.packets = packets.value as u32;
    }
    set(section.parsed("depth", depth), &mut one.depth.octets);
    for (key, to) in [
        ("target", &mut one.target),
        ("interval", &mut one.interval),
        ("burst", &mut one.burst),
    ] {
        set(section.parsed(key, units::time), to);
    }
    set(section.flag("ecn"), &mut one.ecn);
    overhead(section, &mut one.overhead);
    if plan.templates.len() >= TEMPLATES_MAX - 1 {
        let message = format!("is beyond the {} that are possible", TEMPLATES_MAX - 1);
        section.fault(section.at(), "name", (message, "give fewer templates"));
    } else if !one.name.is_empty() {
        plan.templates.push(one);
        rates_bps.push(rates.map(|rate| rate.map(|rate| rate.value)));
    }
}

fn depth(text: &str) -> Result<u32, String> {
    match units::octets(text)? {
        octets @ 1_514..=0x4000_0000 => Ok(octets as u32),
        octets => Err(format!(
            "{octets} bytes is out of range; it must be 1514 to \"1gb\""
        )),
    }
}

/// Reads `overhead`: a link layer by its name, or bytes.
fn overhead(section: &mut Section<'_>, to: &mut Overhead) {
    if section.is_string("overhead") {
        set(section.choice("overhead", &OVERHEADS), to);
    } else if let Some(octets) = section.integer("overhead", -64..=256, "bytes") {
        to.per_packet = octets.value as i32;
    }
}

fn weight(section: &mut Section<'_>, to: &mut u32) {
    if let Some(weight) = section.integer("weight", 1..=i64::from(WEIGHT_MAX), "") {
        *to = weight.value as u32;
    }
}

/// Reads each `[[queue.link]]`. A link may come before its parent.
fn links(table: &DeTable<'_>, plan: &mut Plan, notes: &Notes<'_>) {
    let mut parents: Vec<Option<At<Box<str>>>> = Vec::new();
    let mut names = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for mut section in Section::each(table, "link", "queue.link", notes) {
        section.require("name", "give the link a name: name = \"access-7\"");
        let name = section.parsed("name", queue::name);
        let rates = Rates {
            down: section
                .parsed("down", queue::rate)
                .map_or(0, |rate| rate.value),
            up: section
                .parsed("up", queue::rate)
                .map_or(0, |rate| rate.value),
        };
        let parent = section.parsed("parent", queue::name);
        let mut share = 1;
        weight(&mut section, &mut share);
        let (place, at) = (section.name(), section.at());
        if let Some(name) = name {
            let text = String::from(name.value);
            if let Some(first) = known.get(&text) {
                let message = format!("there is a link \"{text}\" already, in queue.link[{first}]");
                section.fault(name.at, "name", (message, "give each a name of its own"));
            } else if plan.nodes.len() >= NODES_MAX {
                let message = format!("is beyond the {NODES_MAX} that are possible");
                section.fault(at, "name", (message, "give fewer links"));
            } else {
                known.insert(text.clone(), plan.nodes.len() + 1);
                plan.nodes.push(Node {
                    name: text,
                    parent: None,
                    rates,
                    weight: share,
                });
                parents.push(parent);
                names.push(place);
            }
        }
        section.finish();
    }
    for (n, parent) in parents.iter().enumerate() {
        let Some(At { value, at }) = parent else {
            continue;
        };
        let key = format!("{}.parent", names[n]);
        match known.get(&**value) {
            Some(&found) => plan.nodes[n].parent = Some(NodeId(found as u32 - 1)),
            None => {
                let all: Vec<&str> = plan.nodes.iter().map(|node| &*node.name).collect();
                notes.at(*at, key, unknown("link", value, &all));
            }
        }
    }
    for (n, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            let key = format!("{}.parent", names[n]);
            above(plan, n, (parent.at, key), notes);
        }
    }
}

/// Checks the links above a link: no circle, not too many, and none that is narrower.
fn above(plan: &mut Plan, n: usize, (at, key): (usize, String), notes: &Notes<'_>) {
    let path: Vec<&str> = (plan.above(NodeId(n as u32)))
        .map(|(_, node)| &*node.name)
        .collect();
    let circle = path.iter().skip(1).position(|&name| name == path[0]);
    if let Some(end) = circle {
        let path = path[..end + 2].join(" -> ");
        let message = format!("is below itself: {path}");
        notes.at(at, key, (message, "leave one of these parents out"));
        plan.nodes[n].parent = None;
        return;
    }
    if path.len() > DEPTH_MAX {
        let seen: std::collections::HashSet<&str> = path.iter().copied().collect();
        if seen.len() < path.len() {
            // The circle is above: it is reported where it is.
            return;
        }
        let message = format!("has more than {} links above it", DEPTH_MAX - 1);
        notes.at(at, key, (message, "leave some of them out"));
        plan.nodes[n].parent = None;
        return;
    }
    let Some(parent) = plan.nodes[n].parent else {
        return;
    };
    let (own, upper) = (&plan.nodes[n], &plan.nodes[parent.0 as usize]);
    for (way, own, most) in [
        (Way::Down, own.rates.down, upper.rates.down),
        (Way::Up, own.rates.up, upper.rates.up),
    ] {
        if most > 0 && own > most {
            let message = format!(
                "link \"{}\" has {} {way}, less than this link ({})",
                upper.name,
                BitsPerSecond(most),
                BitsPerSecond(own)
            );
            let right = "this link can never be full; is it the right parent?";
            notes.advise(at, key.clone(), (message, right));
        }
    }
}

/// Reads one `[[queue.line]]`.
fn line(section: &mut Section<'_>) -> (Line, Given) {
    let mut line = Line::default();
    section.require("name", "give the line a name: name = \"north\"");
    section.parsed("name", queue::name);
    let local = section.from_text::<IpAddr>("local", "an IP address", "192.0.2.1");
    line.local = local.map(|local| local.value);
    line.peer = section.parsed("peer", network).map(|peer| peer.value);
    let host_name = section.sized("host_name", 1..=255);
    line.host_name = host_name.map(|name| name.value.into());
    let conditions = ["local", "peer", "host_name"];
    if !conditions.iter().any(|key| section.has(key)) {
        let message = "says for whom it is by none of local, peer, host_name";
        let right = "give one of them, or write the keys to [queue.default]";
        section.fault(section.at(), "peer", (message, right));
    }
    let given = keys(section, "template");
    line.queue = given.queue.clone();
    (line, given)
}

/// A network, or the network of one address.
pub(super) fn network(text: &str) -> Result<Prefix, String> {
    let host = || text.parse::<IpAddr>().ok();
    let alone = host()
        .and_then(|host| prefix(&format!("{text}/{}", if host.is_ipv4() { 32 } else { 128 })));
    prefix(text).or(alone).ok_or_else(|| {
        format!(
            "\"{text}\" is no address or network; write it as \"192.0.2.7\" or \"192.0.2.0/24\""
        )
    })
}

/// The words for a name that does not exist.
fn unknown(what: &str, name: &str, known: &[&str]) -> (String, String) {
    let right = match nearest(name, known) {
        Some(right) => format!("did you mean \"{right}\"?"),
        None => format!("give [[queue.{what}]] with that name"),
    };
    (format!("there is no {what} \"{name}\""), right)
}

#[cfg(test)]
mod tests;
