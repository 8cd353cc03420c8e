//! `[shape]`: the template, the keys of its queue, and its limit.

use base::Duration;
use settings::{At, Notes, Section};
use toml::de::DeTable;

use super::units;
use crate::classify::KeySet;
use crate::fair;
use crate::plan::Declared;
use crate::queue::{LimitBy, Setting, Settings, Takes, Value};
use crate::registry::{Choice, choices, settings};

/// A queue that a policy can name.
pub(super) type Queue = &'static dyn Choice;

/// The value of `template`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Template {
    /// One of the queues, behind a rate limit.
    Shaped(Queue),
    /// Like "home", but games and calls are prioritised without a rule.
    Gamer,
    /// No rate limit and no prioritisation.
    None,
}

/// The default queue.
pub(super) fn home() -> Queue {
    &fair::Options::ABOUT.queues[0]
}

/// The templates by name. "gamer" follows "home", and "none" is last.
fn templates() -> Vec<(&'static str, Template)> {
    let queues = choices().into_iter();
    let named = queues.map(|queue| (queue.offer().template, Template::Shaped(queue)));
    let mut templates: Vec<_> = named.collect();
    templates.insert(1, ("gamer", Template::Gamer));
    templates.push(("none", Template::None));
    templates
}

/// The values that `queue` of a class accepts.
pub(super) fn queues() -> Vec<(&'static str, Queue)> {
    let queues = choices().into_iter();
    queues.map(|queue| (queue.offer().name, queue)).collect()
}

/// Whether both are the same queue.
pub(super) fn is_same(one: Queue, other: Queue) -> bool {
    one.offer().name == other.offer().name
}

/// The settings of `[shape]`.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) template: Template,
    /// Keys that belong to queues.
    pub(super) settings: Settings,
    pub(super) limit: Option<At<LimitBy>>,
    pub(super) burst: Option<At<u64>>,
    /// Share of the link's rate, in thousandths.
    pub(super) first_share: u32,
}

impl Template {
    pub(super) fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn is_gamer(self) -> bool {
        matches!(self, Self::Gamer)
    }
}

impl Shape {
    /// The queue that the template puts behind the rate limit.
    pub(super) fn queue(&self) -> Queue {
        match self.template {
            Template::Shaped(queue) => queue,
            Template::Gamer | Template::None => home(),
        }
    }
}

pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> Shape {
    let mut section = Section::open(root, "shape", notes);
    let template = section.choice("template", &templates());
    let mut given = Settings::default();
    for setting in settings() {
        if let Some(value) = value_of(setting, &mut section) {
            given.set(setting, value);
        }
    }
    let limit = section.written("limit", limit);
    let burst = section.written("burst", octets_in(1, 64 << 20));
    let first_share = section.written("first_share", units::share);
    let shape = Shape {
        template: template.map_or(Template::Shaped(home()), |template| template.value),
        settings: given,
        limit,
        burst,
        first_share: first_share.map_or(300, |share| share.value),
    };
    advise(&section, &shape, notes);
    section.finish();
    shape
}

/// Reads the value of one queue's key.
fn value_of(setting: &'static Setting, section: &mut Section<'_>) -> Option<Value> {
    let key = setting.name;
    match setting.takes {
        Takes::Flag => {
            let flag = section.flag(key)?;
            Some(Value::Flag(flag.value))
        }
        Takes::Switch(on, off) => {
            let flag = section.choice(key, &[(on, true), (off, false)])?;
            Some(Value::Flag(flag.value))
        }
        Takes::Time(least, most) => {
            let time = section.written(key, time_in(least, most))?;
            Some(Value::Time(time.value))
        }
        Takes::Size(least, most) => {
            let size = section.written(key, octets_in(least, most))?;
            Some(Value::Size(size.value))
        }
        Takes::Keys => {
            let keys = section.written(key, key_set)?;
            Some(Value::Keys(keys.value))
        }
    }
}

fn key_set(text: &str) -> Result<KeySet, String> {
    let keys = text.parse::<KeySet>();
    keys.map_err(|error| error.to_string().replacen(": ", "; ", 1))
}

/// Warns about keys that have no effect, or a harmful one, with this template.
fn advise(section: &Section<'_>, shape: &Shape, notes: &Notes<'_>) {
    let offer = shape.queue().offer();
    for setting in settings() {
        let Some(at) = section.place(setting.name) else {
            continue;
        };
        let key = section.path(setting.name);
        let is_given = shape.settings.get(setting);
        if !offer.has(setting) {
            let message = "has no effect with this template";
            let templates = with(setting);
            let right = format!("leave it out, or use a template that has it: {templates}");
            notes.advise(at, &key, (message, right));
        } else if let Some([message, right]) = setting.caution
            && is_given.is_some_and(|value| !value.is_zero())
        {
            notes.advise(at, &key, (message, right));
        }
    }
}

/// The templates in which a key has an effect.
fn with(setting: &Setting) -> String {
    let queues = choices().into_iter();
    let queues = queues.filter(|queue| queue.offer().has(setting));
    let names = queues.map(|queue| format!("\"{}\"", queue.offer().template));
    names.collect::<Vec<_>>().join(", ")
}

/// Parses a limit: a number of packets, bytes with `b`, `k` or `m`, or a time.
pub(super) fn limit(text: &str) -> Result<LimitBy, String> {
    if let Ok(packets) = text.parse::<u32>() {
        return Ok(LimitBy::Packets(packets));
    }
    if let Ok(time) = units::time(text) {
        return Ok(LimitBy::Time(time));
    }
    let right = "write packets (100), octets (\"64k\", \"9000b\") or the time that they take at the rate (\"200ms\")";
    units::octets(text)
        .map(LimitBy::Octets)
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
