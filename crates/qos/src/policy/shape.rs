//! `[shape]`: which queues there are, and how long they may become.

use base::Duration;
use toml::de::DeTable;

use super::reader::{At, Section};
use super::remark::Remarks;
use super::units;
use crate::classify::KeySet;

/// Which discipline orders what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// Per host, then per flow, with controlled delay.
    Fair,
    /// fq_codel: per flow, with controlled delay.
    Flows,
    /// One queue with controlled delay.
    Codel,
    /// Stochastic fairness without it.
    Sfq,
    /// Bands by DSCP.
    Bands,
    /// First in, first out, counted in octets.
    Fifo,
    /// First in, first out, counted in packets.
    Pfifo,
}

/// `template`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// One of the queues behind the rate.
    Shaped(Queue),
    /// As "home", and what games and calls are known by goes first.
    Gamer,
    /// Neither rate nor order.
    None,
}

const TEMPLATES: [(&str, Template); 9] = [
    ("home", Template::Shaped(Queue::Fair)),
    ("gamer", Template::Gamer),
    ("flows", Template::Shaped(Queue::Flows)),
    ("codel", Template::Shaped(Queue::Codel)),
    ("sfq", Template::Shaped(Queue::Sfq)),
    ("bands", Template::Shaped(Queue::Bands)),
    ("fifo", Template::Shaped(Queue::Fifo)),
    ("pfifo", Template::Shaped(Queue::Pfifo)),
    ("none", Template::None),
];

/// `queue` of a class.
pub(super) const QUEUES: [(&str, Queue); 7] = [
    ("fair", Queue::Fair),
    ("flows", Queue::Flows),
    ("codel", Queue::Codel),
    ("sfq", Queue::Sfq),
    ("bands", Queue::Bands),
    ("fifo", Queue::Fifo),
    ("pfifo", Queue::Pfifo),
];

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Packets(u32),
    Octets(u64),
    /// As much as the rate carries in that time.
    Time(Duration),
}

/// What `[shape]` says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) template: Template,
    pub(super) by_host: bool,
    pub(super) ecn: bool,
    pub(super) target: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) quantum: Option<u32>,
    pub(super) limit: Option<At<Limit>>,
    pub(super) memory: Option<u64>,
    pub(super) perturb: Duration,
    pub(super) burst: Option<At<u64>>,
    pub(super) flow_keys: KeySet,
    /// Thousandths of the link.
    pub(super) first_share: u32,
}

impl Shape {
    /// The discipline behind the rate.
    pub(super) fn queue(&self) -> Queue {
        match self.template {
            Template::Shaped(queue) => queue,
            Template::Gamer | Template::None => Queue::Fair,
        }
    }
}

pub(super) fn read(root: &DeTable<'_>, remarks: &mut Remarks<'_>) -> Shape {
    let mut section = Section::open(root, "shape", remarks);
    let template = section.choice("template", &TEMPLATES, remarks);
    let hosts = [("fair", true), ("off", false)];
    let hosts = section.choice("hosts", &hosts, remarks);
    let ecn = section.flag("ecn", remarks);
    let target = section.parsed("target", time_in(100_000, 1_000_000_000), remarks);
    let interval = section.parsed("interval", time_in(1_000_000, 4_000_000_000), remarks);
    let quantum = section.parsed("quantum", octets_in(64, 1 << 20), remarks);
    let limit = section.parsed("limit", limit, remarks);
    let memory = section.parsed("memory", octets_in(16 << 10, 1 << 32), remarks);
    let perturb = section.parsed("perturb", time_in(0, 3_600_000_000_000), remarks);
    let burst = section.parsed("burst", octets_in(1, 64 << 20), remarks);
    let flow_keys = |text: &str| match text.parse::<KeySet>() {
        Ok(keys) => Ok(keys),
        Err(error) => Err(error.to_string().replacen(": ", "; ", 1)),
    };
    let flow_keys = section.parsed("flow_keys", flow_keys, remarks);
    let first_share = section.parsed("first_share", units::share, remarks);
    let shape = Shape {
        template: template.map_or(Template::Shaped(Queue::Fair), |template| template.value),
        by_host: hosts.is_none_or(|hosts| hosts.value),
        ecn: ecn.is_none_or(|ecn| ecn.value),
        target: target.map(|target| target.value),
        interval: interval.map(|interval| interval.value),
        quantum: quantum.map(|quantum| quantum.value as u32),
        limit,
        memory: memory.map(|memory| memory.value),
        perturb: perturb.map_or(Duration::ZERO, |perturb| perturb.value),
        burst,
        flow_keys: flow_keys.map_or(KeySet::INNERMOST, |keys| keys.value),
        first_share: first_share.map_or(300, |share| share.value),
    };
    advise(&section, &shape, remarks);
    section.finish(remarks);
    shape
}

const CONTROLLED: [Queue; 3] = [Queue::Fair, Queue::Flows, Queue::Codel];
const PER_FLOW: [Queue; 3] = [Queue::Fair, Queue::Flows, Queue::Sfq];

/// Keys that only some queues have a use for.
const USES: [(&str, &[Queue]); 8] = [
    ("hosts", &[Queue::Fair]),
    ("ecn", &CONTROLLED),
    ("target", &CONTROLLED),
    ("interval", &CONTROLLED),
    ("memory", &[Queue::Fair, Queue::Flows]),
    ("perturb", &[Queue::Sfq]),
    ("quantum", &PER_FLOW),
    ("flow_keys", &PER_FLOW),
];

/// Keys that are of no use, or do harm, with this template.
fn advise(section: &Section<'_, '_>, shape: &Shape, remarks: &mut Remarks<'_>) {
    let queue = shape.queue();
    for (key, queues) in USES {
        if let Some(at) = section.place(key).filter(|_| !queues.contains(&queue)) {
            let message = "has no effect with this template";
            let templates = named(queues);
            let right = format!("leave it out, or use a template that has it: {templates}");
            remarks.advise(at, &section.key(key), message, right);
        }
    }
    if let Some(at) = section.place("perturb")
        && shape.perturb > Duration::ZERO
        && queue == Queue::Sfq
    {
        let message = "at each change of the hash, flows that wait meet in other queues: spikes of latency, on that grid";
        let right = "leave it out, or use template \"home\" or \"flows\", which need none";
        remarks.advise(at, &section.key("perturb"), message, right);
    }
}

fn named(queues: &[Queue]) -> String {
    let names = TEMPLATES.iter().filter(
        |(_, template)| matches!(template, Template::Shaped(queue) if queues.contains(queue)),
    );
    let names: Vec<String> = names.map(|(name, _)| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Packets as a number, octets with `b`, `k` or `m`, or a time.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    if let Ok(packets) = text.parse::<u32>() {
        return Ok(Limit::Packets(packets));
    }
    if let Ok(time) = units::time(text) {
        return Ok(Limit::Time(time));
    }
    let right = "write packets (100), octets (\"64k\", \"9000b\") or the time that they take at the rate (\"200ms\")";
    units::octets(text)
        .map(Limit::Octets)
        .map_err(|_| format!("\"{text}\" is no limit; {right}"))
}

fn time_in(least: u64, most: u64) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| match units::time(text)? {
        time if (least..=most).contains(&time.as_nanos()) => Ok(time),
        _ => {
            let bound = |ns| units::Time(Duration::from_nanos(ns));
            let (least, most) = (bound(least), bound(most));
            Err(format!(
                "\"{text}\" is out of range; it must be {least} to {most}"
            ))
        }
    }
}

pub(super) fn octets_in(least: u64, most: u64) -> impl Fn(&str) -> Result<u64, String> {
    move |text| match units::octets(text)? {
        octets if (least..=most).contains(&octets) => Ok(octets),
        _ => {
            let (least, most) = (units::Octets(least), units::Octets(most));
            Err(format!(
                "\"{text}\" is out of range; it must be {least} to {most}"
            ))
        }
    }
}
