//! The `[[event]]` sections. The routers, links and prefixes that an event names are looked up in the topology, or
//! drawn at random by the seed.

use std::path::Path;

use base::Duration;
use settings::{At, Section};
use sim::Rng;
use wire::bgp::{FamilyId, Prefix};

use super::malformed;
use crate::event::{Action, Event};
use crate::topology::{Tier, Topology};

/// The context in which an event is read.
pub(super) struct Place<'a> {
    pub(super) topology: &'a Topology,
    /// The folder that file names are relative to.
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    /// The index of the event in the file, from 0.
    pub(super) number: usize,
    /// The length of the run.
    pub(super) run: Duration,
    /// The current time of the running emulation, if the event is injected into one.
    pub(super) now: Option<Duration>,
}

/// Maximum number of steps that one event may expand to.
const STEPS_MAX: usize = 1_000_000;

/// The names for a group of routers to draw from at random.
const GROUPS: [(&str, Option<Tier>); 4] = [
    ("random", None),
    ("random:top", Some(Tier::Top)),
    ("random:transit", Some(Tier::Transit)),
    ("random:stub", Some(Tier::Stub)),
];

/// Looks up, or draws at random, the routers, links and prefixes that one section names.
struct Finder<'a> {
    place: &'a Place<'a>,
    rng: Rng,
    /// Routers that the section already names. A random draw does not repeat them.
    taken: Vec<u32>,
}

/// Reads one event. `None` if it has faults.
pub(super) fn read(mut section: Section<'_>, place: &Place<'_>) -> Option<Event> {
    let label = if place.number == usize::MAX {
        format!("injected {}", place.now.unwrap_or_default().as_nanos())
    } else {
        place.number.to_string()
    };
    let mut finder = Finder {
        place,
        rng: Rng::stream(place.seed, &["event", &label]),
        taken: Vec::new(),
    };
    const KINDS: [&str; 10] = [
        "announce",
        "withdraw",
        "hijack",
        "leak",
        "flap",
        "reset",
        "link_failure",
        "router_failure",
        "replay",
        "malformed",
    ];
    section.require("kind", "write for example kind = \"announce\"");
    let kind = section.choice("kind", &KINDS.map(|kind| (kind, kind)));
    let at = time(&mut section, &mut finder);
    let action = match kind?.value {
        kind @ ("announce" | "withdraw") => {
            let router = finder.router(&mut section, "router");
            let prefix = finder.prefix(&mut section, router);
            router.zip(prefix).map(|(router, prefix)| match kind {
                "announce" => Action::Announce { router, prefix },
                _ => Action::Withdraw { router, prefix },
            })
        }
        "hijack" => finder.hijack(&mut section),
        "leak" => {
            let lasts = lasts(&mut section);
            let router = finder.router(&mut section, "router");
            router.map(|router| Action::Leak { router, lasts })
        }
        "flap" => finder.flap(&mut section),
        "reset" => finder.link(&mut section).map(|link| Action::Reset { link }),
        "link_failure" => {
            let lasts = lasts(&mut section);
            let link = finder.link(&mut section);
            link.map(|link| Action::LinkFailure { link, lasts })
        }
        "router_failure" => {
            let lasts = lasts(&mut section);
            let router = finder.router(&mut section, "router");
            router.map(|router| Action::RouterFailure { router, lasts })
        }
        "replay" => finder.replay(&mut section),
        _ => finder.malformed(&mut section),
    };
    section.finish();
    Some(Event {
        at: at?,
        action: action?,
    })
}

/// The time of the event.
fn time(section: &mut Section<'_>, finder: &mut Finder<'_>) -> Option<Duration> {
    let at = section.seconds("at_s", 0.0..=super::RUN_S_MAX);
    let between = section.pair("between_s", 0.0..=super::RUN_S_MAX);
    let found = match (at, between) {
        (Some(at), None) => at,
        (
            None,
            Some(At {
                value: (low, high),
                at,
            }),
        ) => {
            let seconds = low + (high - low) * finder.rng.unit();
            At {
                value: Duration::from_nanos((seconds * 1e9) as u64),
                at,
            }
        }
        (Some(_), Some(between)) => {
            section.fault(
                between.at,
                "between_s",
                "is given beside at_s; one of them is enough",
            );
            return None;
        }
        (None, None) => match finder.place.now {
            Some(now) if !section.has("at_s") && !section.has("between_s") => return Some(now),
            Some(_) => return None,
            None => {
                if !section.has("between_s") {
                    let remedy = "write for example at_s = 30, or between_s = [30, 60]";
                    section.require("at_s", remedy);
                }
                return None;
            }
        },
    };
    if found.value > finder.place.run {
        let run_s = finder.place.run.as_secs_f64();
        section.fault(
            found.at,
            "at_s",
            format!("is after the end of the run at {run_s} s"),
        );
        return None;
    }
    Some(found.value.max(finder.place.now.unwrap_or_default()))
}

fn lasts(section: &mut Section<'_>) -> Option<Duration> {
    section
        .seconds("lasts_s", 0.001..=super::RUN_S_MAX)
        .map(|lasts| lasts.value)
}

impl Finder<'_> {
    /// The router that `key` names. The key is mandatory.
    fn router(&mut self, section: &mut Section<'_>, key: &'static str) -> Option<u32> {
        let example = self.place.topology.name(0);
        section.require(key, &format!("write for example {key} = \"{example}\""));
        let name = section.string(key)?;
        match self.find(&name.value) {
            Ok(router) => {
                self.taken.push(router);
                Some(router)
            }
            Err(message) => {
                section.fault(name.at, key, message);
                None
            }
        }
    }

    fn find(&mut self, name: &str) -> Result<u32, String> {
        let topology = self.place.topology;
        let Some((_, tier)) = GROUPS.iter().find(|(group, _)| *group == name) else {
            return topology.find(name).ok_or_else(|| {
                let groups = GROUPS.map(|(group, _)| format!("\"{group}\"")).join(", ");
                format!("there is no router \"{name}\"; a name can also be one of {groups}")
            });
        };
        let fits = |index: &u32| {
            let router = &topology.routers[*index as usize];
            tier.is_none_or(|tier| router.tier == tier)
                && !router.settings.outside
                && !self.taken.contains(index)
        };
        let all: Vec<u32> = (0..topology.routers.len() as u32).filter(fits).collect();
        if all.is_empty() {
            return Err(format!("no router is left for \"{name}\""));
        }
        Ok(all[self.rng.below(all.len() as u64) as usize])
    }

    /// The prefix that the section gives, or else the prefix of `owner`.
    fn prefix(&self, section: &mut Section<'_>, owner: Option<u32>) -> Option<Prefix> {
        if !section.has("prefix") {
            section.known("prefix");
            return owner.map(Topology::own_prefix);
        }
        section
            .parsed("prefix", |text| {
                let parsed = text.parse::<Prefix>();
                parsed.map_err(|_| format!("\"{text}\" is not a prefix, as 192.0.2.0/24 is"))
            })
            .map(|prefix| prefix.value)
    }

    fn hijack(&mut self, section: &mut Section<'_>) -> Option<Action> {
        let victim = self.router(section, "victim");
        let router = self.router(section, "router");
        let prefix = self.prefix(section, victim);
        let length = section.integer("sub_prefix", 1..=128, "bits");
        let forged_origin = section.flag("forged_origin").is_some_and(|flag| flag.value);
        let lasts = lasts(section);
        let (router, victim, mut prefix) = (router?, victim?, prefix?);
        if router == victim {
            let at = section.at();
            section.fault(at, "router", "is the victim itself");
            return None;
        }
        if let Some(length) = length {
            let bits = prefix.family().bits();
            if length.value <= i64::from(prefix.len()) || length.value > i64::from(bits) {
                let message = format!("must be longer than {prefix}, and at most {bits}");
                section.fault(length.at, "sub_prefix", message);
                return None;
            }
            prefix = Prefix::of(prefix.address(), length.value as u8);
        }
        Some(Action::Hijack {
            router,
            victim,
            prefix,
            forged_origin,
            lasts,
        })
    }

    fn flap(&mut self, section: &mut Section<'_>) -> Option<Action> {
        let many = section
            .integer("many", 1..=100_000, "routers")
            .map_or(1, |many| many.value);
        let times = section
            .integer("times", 1..=100_000, "times")
            .map_or(10, |times| times.value);
        let period = section.seconds("period_s", 0.001..=86_400.0);
        let spread = section.seconds("spread_s", 0.0..=86_400.0);
        let first = self.router(section, "router")?;
        let prefix = self.prefix(section, Some(first))?;
        let mut who = vec![(first, prefix)];
        if many > 1 {
            let name = section.string("router")?;
            if section.has("prefix") || self.place.topology.find(&name.value).is_some() {
                let message = "needs a group such as router = \"random:stub\", and no prefix";
                section.fault(name.at, "many", message);
                return None;
            }
            for _ in 1..many {
                match self.find(&name.value) {
                    Ok(router) => {
                        self.taken.push(router);
                        who.push((router, Topology::own_prefix(router)));
                    }
                    Err(message) => {
                        section.fault(name.at, "many", message);
                        return None;
                    }
                }
            }
        }
        if 2 * who.len() * times as usize > STEPS_MAX {
            let at = section.at();
            section.fault(
                at,
                "times",
                format!("are more than {STEPS_MAX} steps in all"),
            );
            return None;
        }
        Some(Action::Flap {
            who,
            times: times as u32,
            period: period.map_or(Duration::from_secs(1), |period| period.value),
            spread: spread.map_or(Duration::ZERO, |spread| spread.value),
        })
    }

    /// The link between the two routers that `between` names. `"random"` alone draws any link.
    fn link(&mut self, section: &mut Section<'_>) -> Option<u32> {
        let names = section.strings("between")?;
        let topology = self.place.topology;
        let [a, b] = names.as_slice() else {
            let at = section.at();
            if names.len() == 1 && names[0].value == "random" && !topology.links.is_empty() {
                return Some(self.rng.below(topology.links.len() as u64) as u32);
            }
            let message = "must name two routers, as in [\"r1\", \"r2\"], or be [\"random\"]";
            section.fault(at, "between", message);
            return None;
        };
        let [left, right] = [a, b].map(|name| match topology.find(&name.value) {
            Some(router) => Some(router),
            None => {
                let message = format!("there is no router \"{}\"", name.value);
                section.fault(name.at, "between", message);
                None
            }
        });
        let link = topology.link_between(left?, right?);
        if link.is_none() {
            let message = format!("there is no link between {} and {}", a.value, b.value);
            section.fault(a.at, "between", message);
        }
        link
    }

    fn replay(&mut self, section: &mut Section<'_>) -> Option<Action> {
        let router = self.router(section, "router");
        let routes = section.integer("routes_max", 1..=10_000_000, "routes");
        section.require("file", "write for example file = \"bview.gz\"");
        let file = section.string("file")?;
        let path = self.place.folder.join(&file.value);
        if let Err(error) = crate::files::open(&path) {
            section.fault(file.at, "file", format!("{}: {error}", path.display()));
            return None;
        }
        Some(Action::Replay {
            router: router?,
            file: path,
            routes_max: routes.map_or(usize::MAX, |routes| routes.value as usize),
        })
    }

    fn malformed(&mut self, section: &mut Section<'_>) -> Option<Action> {
        let router = self.router(section, "router");
        let neighbour = self.neighbour(section, router);
        let kinds = malformed::KINDS.map(|kind| (kind, kind));
        let what = section.choice("what", &kinds);
        let octets = section.parsed("update_hex", malformed::from_hex);
        let (router, neighbour) = (router?, neighbour?);
        let message = match (what, octets) {
            (_, Some(octets)) => octets.value,
            (Some(what), None) => {
                let from = &self.place.topology.routers[router as usize];
                let prefix = self.prefix(section, Some(router))?;
                if prefix.family() != FamilyId::Ipv4Unicast {
                    let at = section.at();
                    section.fault(at, "prefix", "must be one of IPv4 here");
                    return None;
                }
                malformed::update(what.value, from, prefix)
            }
            (None, None) => {
                if !section.has("update_hex") {
                    let remedy = "write for example what = \"origin\", or update_hex = \"0000...\"";
                    section.require("what", remedy);
                }
                return None;
            }
        };
        section.known("prefix");
        Some(Action::Malformed {
            router,
            neighbour,
            message,
        })
    }

    /// The router that `neighbour` names, or a random neighbour of `router`.
    fn neighbour(&mut self, section: &mut Section<'_>, router: Option<u32>) -> Option<u32> {
        let router = router?;
        let topology = self.place.topology;
        let beside = |link: &crate::topology::Link| match router {
            r if r == link.a => Some(link.b),
            r if r == link.b => Some(link.a),
            _ => None,
        };
        if section.has("neighbour") {
            let name = section.string("neighbour")?;
            let found = topology.find(&name.value);
            let found = found.filter(|&n| topology.link_between(router, n).is_some());
            if found.is_none() {
                let message = format!("{} is no neighbour of it", name.value);
                section.fault(name.at, "neighbour", message);
            }
            return found;
        }
        section.known("neighbour");
        let near: Vec<u32> = topology.links.iter().filter_map(beside).collect();
        if near.is_empty() {
            let at = section.at();
            section.fault(
                at,
                "router",
                format!("{} has no neighbour", topology.name(router)),
            );
            return None;
        }
        Some(near[self.rng.below(near.len() as u64) as usize])
    }
}
