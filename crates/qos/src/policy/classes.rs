//! `[[first]]` (traffic to send first) and `[[class]]` (traffic with a rate of its own).

use settings::{At, Notes, Section};
use toml::de::DeTable;

use super::rules::{self, CONDITIONS, Rules, covers};
use super::shape::{Queue, limit, queues};
use super::units::{self, Rate};
use std::collections::{HashMap, HashSet};

use crate::classify::{Match, Prefix};
use crate::queue::LimitBy;

/// A rate, or a share of the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Rate(u64),
    /// A share in thousandths of the link's rate.
    Share(u32),
}

impl Amount {
    /// The rate in bits per second on a link of `link_bps`.
    pub(super) fn of(self, link_bps: u64) -> u64 {
        match self {
            Self::Rate(rate) => rate,
            Self::Share(share) => share_of(link_bps, share),
        }
    }
}

/// A share of a rate, in thousandths.
pub(super) fn share_of(link_bps: u64, share: u32) -> u64 {
    (u128::from(link_bps) * u128::from(share) / 1_000) as u64
}

/// A `[[first]]` section.
#[derive(Debug, Clone)]
pub(super) struct First {
    pub(super) name: String,
    /// The share of the link in thousandths, if the section has a class of its own.
    pub(super) share: Option<u32>,
    pub(super) rules: Rules,
}

/// A `[[class]]` section.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) name: String,
    /// Index of the parent in the list of classes.
    pub(super) parent: Option<usize>,
    pub(super) is_parent: bool,
    pub(super) rate: At<Amount>,
    pub(super) ceil: Option<At<Amount>>,
    pub(super) priority: u8,
    pub(super) queue: Option<Queue>,
    pub(super) limit: Option<At<LimitBy>>,
    /// Whether the class exists in each direction: up, down.
    pub(super) directions: [bool; 2],
    pub(super) rules: Rules,
}

/// Reads all `[[first]]` and `[[class]]` sections.
pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> (Vec<First>, Vec<Class>) {
    let mut earlier = Earlier::default();
    let mut names = Names::default();
    let mut firsts = Vec::new();
    for mut section in Section::each(root, "first", "first", notes) {
        let name = name(&mut section, &mut names, notes);
        let share = section.written("share", units::share);
        let rules = rules::read(&mut section, notes);
        check_reach(&section, &rules, [true; 2], &mut earlier, notes);
        section.finish();
        firsts.push(First {
            name,
            share: share.map(|share| share.value),
            rules,
        });
    }
    let mut sections = Section::each(root, "class", "class", notes);
    let parents: Vec<Option<At<String>>> = sections
        .iter_mut()
        .map(|section| section.text("parent"))
        .collect();
    let named: HashSet<&str> = parents
        .iter()
        .flatten()
        .map(|parent| &*parent.value)
        .collect();
    let mut classes = Vec::new();
    for mut section in sections {
        let name = name(&mut section, &mut names, notes);
        let is_parent = named.contains(&*name);
        let class = class(&mut section, name, is_parent, notes);
        if let Some(class) = &class {
            check_reach(
                &section,
                &class.rules,
                class.directions,
                &mut earlier,
                notes,
            );
        }
        section.finish();
        classes.push(class);
    }
    let parents = find_parents(&names.all[firsts.len()..], parents, notes);
    if classes.iter().any(Option::is_none) {
        return (firsts, Vec::new());
    }
    let mut classes: Vec<Class> = classes.into_iter().flatten().collect();
    for (class, parent) in classes.iter_mut().zip(parents) {
        class.parent = parent;
    }
    (firsts, classes)
}

/// The index of each class's parent. A parent must precede its children in the file.
fn find_parents(
    names: &[String],
    parents: Vec<Option<At<String>>>,
    notes: &Notes<'_>,
) -> Vec<Option<usize>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        places.entry(name).or_insert(place);
    }
    let mut found = Vec::new();
    for (place, parent) in parents.into_iter().enumerate() {
        let Some(At { value, at }) = parent else {
            found.push(None);
            continue;
        };
        let parent = places.get(&*value).copied();
        found.push(parent.filter(|&parent| parent < place));
        if found[place].is_some() {
            continue;
        }
        let (message, right) = match (parent, place) {
            (Some(_), _) => (
                format!("\"{value}\" comes later, or is this class"),
                "write parents before their children".to_owned(),
            ),
            (None, 0) => (
                format!("there is no class \"{value}\""),
                "this is the first one: leave parent out, or write its parent before it".to_owned(),
            ),
            (None, _) => (
                format!("there is no class \"{value}\""),
                format!("before this one there are {}", names[..place].join(", ")),
            ),
        };
        notes.at(at, format!("class[{}].parent", place + 1), (message, right));
    }
    found
}

fn class(
    section: &mut Section<'_>,
    name: String,
    is_parent: bool,
    notes: &Notes<'_>,
) -> Option<Class> {
    let rate = section.written("rate", amount);
    if rate.is_none() && !section.has("rate") {
        let right = "give the guaranteed rate: rate = \"20%\" or rate = \"1mbit\"";
        notes.at(section.at(), section.path("rate"), ("is missing", right));
    }
    let ceil = section.written("ceil", amount);
    let priority = section.written("priority", units::whole(1..=7));
    let queue = section.choice("queue", &queues());
    let limit = section.written("limit", limit);
    let directions = [
        ("both", [true, true]),
        ("up", [true, false]),
        ("down", [false, true]),
    ];
    let directions = section.choice("direction", &directions);
    let has_conditions = CONDITIONS.iter().any(|key| section.has(key));
    if is_parent && has_conditions {
        let message = "has conditions, and classes below it";
        let right = "give the conditions to the classes below";
        notes.at(section.at(), section.name(), (message, right));
    }
    let rules = if is_parent && !has_conditions {
        Rules::default()
    } else {
        rules::read(section, notes)
    };
    Some(Class {
        name,
        parent: None,
        is_parent,
        rate: rate?,
        ceil,
        priority: priority.map_or(2, |priority| priority.value as u8),
        queue: queue.map(|queue| queue.value),
        limit,
        directions: directions.map_or([true; 2], |directions| directions.value),
        rules,
    })
}

fn amount(text: &str) -> Result<Amount, String> {
    if text.trim_end().ends_with('%') {
        units::share(text).map(Amount::Share)
    } else {
        units::rate(text).map(Amount::Rate)
    }
}

/// The name of a section, which must be unique.
fn name(section: &mut Section<'_>, names: &mut Names, notes: &Notes<'_>) -> String {
    let given = section.text("name");
    let name = given
        .as_ref()
        .map_or(section.name(), |name| name.value.clone());
    if let Some(given) = given.filter(|_| names.known.contains(&name)) {
        let message = format!("\"{name}\" is another section's name");
        notes.at(
            given.at,
            section.path("name"),
            (message, "give each its own"),
        );
    }
    names.known.insert(name.clone());
    names.all.push(name.clone());
    name
}

/// Reports a section that can match no packet because earlier sections match all of its packets.
fn check_reach(
    section: &Section<'_>,
    rules: &Rules,
    directions: [bool; 2],
    earlier: &mut Earlier,
    notes: &Notes<'_>,
) {
    let line = notes.line(section.at());
    let mut own = Vec::new();
    for (is_up, matches) in [(true, &rules.up), (false, &rules.down)] {
        if directions[usize::from(!is_up)] {
            own.extend(matches.iter().map(|rule| (is_up, *rule, line)));
        }
    }
    let takers = own.iter().map(|(is_up, rule, _)| {
        let before = earlier.near(rule);
        before
            .filter(|(_, (before_up, before, _))| before_up == is_up && covers(before, rule))
            .min_by_key(|(place, _)| *place)
    });
    let takers: Option<Vec<usize>> = takers
        .map(|taker| taker.map(|(_, (_, _, line))| *line))
        .collect();
    if let Some(mut lines) = takers.filter(|lines| !lines.is_empty()) {
        lines.sort_unstable();
        lines.dedup();
        let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
        let message = format!(
            "can never match: line {} takes all such packets",
            lines.join(" and line ")
        );
        let right = "put it before, or leave it out";
        notes.advise(section.at(), section.name(), (message, right));
    }
    earlier.extend(own);
}

/// Sections' names, in their order and to look up.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    known: HashSet<String>,
}

/// A rule's direction, its conditions, and its line.
type Placed = (bool, Match, usize);

/// The rules before a section. A rule for one address covers only rules for the same address, so a rule is compared with
/// these, and with those without an address or for several.
#[derive(Default)]
struct Earlier {
    count: usize,
    /// With their places, by all their single addresses.
    single: HashMap<[Option<Prefix>; 6], Vec<(usize, Placed)>>,
    others: Vec<(usize, Placed)>,
}

impl Earlier {
    /// A rule's prefixes.
    fn prefixes(rule: &Match) -> [Option<Prefix>; 6] {
        let [outer, tunnel, innermost] = [&rule.outer, &rule.tunnel, &rule.innermost];
        [
            outer.src,
            outer.dst,
            tunnel.src,
            tunnel.dst,
            innermost.src,
            innermost.dst,
        ]
    }

    /// The prefixes, if each of them is one address, and there is one.
    fn single(rule: &Match) -> Option<[Option<Prefix>; 6]> {
        let prefixes = Self::prefixes(rule);
        let mut given = prefixes.iter().flatten().peekable();
        let is_single = given.peek().is_some() && given.all(|prefix| prefix.is_single());
        is_single.then_some(prefixes)
    }

    /// All that may cover a rule.
    fn near(&self, rule: &Match) -> impl Iterator<Item = &(usize, Placed)> {
        // A rule that covers this one has some of its prefixes.
        let prefixes = Self::prefixes(rule);
        let given: Vec<usize> = (0..6).filter(|place| prefixes[*place].is_some()).collect();
        let subsets = 1_u32..1 << given.len();
        let near = subsets.filter_map(move |subset| {
            let mut key = [None; 6];
            for (bit, place) in given.iter().enumerate() {
                if subset >> bit & 1 == 1 {
                    key[*place] = prefixes[*place];
                }
            }
            self.single.get(&key)
        });
        near.flatten().chain(&self.others)
    }

    fn extend(&mut self, rules: Vec<Placed>) {
        for placed in rules {
            self.count += 1;
            match Self::single(&placed.1) {
                Some(key) => self
                    .single
                    .entry(key)
                    .or_default()
                    .push((self.count, placed)),
                None => self.others.push((self.count, placed)),
            }
        }
    }
}

/// Reports guarantees of one direction that add up to more than the available rate.
pub(super) fn check_sums(
    link_bps: u64,
    is_up: bool,
    firsts_bps: u64,
    classes: &[Class],
    notes: &Notes<'_>,
) {
    let direction = if is_up { "up" } else { "down" };
    let mut sums = vec![0_u64; classes.len()];
    let mut whole = firsts_bps;
    for (place, class) in classes.iter().enumerate() {
        if !class.directions[usize::from(!is_up)] {
            continue;
        }
        let rate = class.rate.value.of(link_bps);
        let (sum, most, of) = match class.parent {
            Some(parent) => {
                let above = &classes[parent];
                let of = format!("its parent \"{}\" has", above.name);
                (&mut sums[parent], above.rate.value.of(link_bps), of)
            }
            None => (
                &mut whole,
                link_bps,
                format!("the link carries {direction}"),
            ),
        };
        let before = *sum;
        *sum = sum.saturating_add(rate);
        if before <= most && *sum > most {
            let key = format!("class[{}].rate", place + 1);
            let message = format!(
                "with this the guaranteed rates come to {}, more than {of} ({})",
                Rate(*sum),
                Rate(most)
            );
            let right = "lower them: what is guaranteed twice is guaranteed to nobody";
            notes.advise(class.rate.at, &key, (message, right));
        }
        let Some(ceil) = class.ceil else { continue };
        let key = format!("class[{}].ceil", place + 1);
        let bps = ceil.value.of(link_bps);
        if bps < rate {
            let message = format!("{} is less than its rate ({})", Rate(bps), Rate(rate));
            notes.at(
                ceil.at,
                &key,
                (message, "give the rate or more, or leave it out"),
            );
        } else if bps > link_bps {
            let message = format!(
                "{} is more than the link carries {direction} ({})",
                Rate(bps),
                Rate(link_bps)
            );
            notes.advise(
                ceil.at,
                &key,
                (message, "leave it out: the link's rate is the ceiling"),
            );
        }
    }
}
