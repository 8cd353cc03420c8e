//! A scenario: the routers, their behaviour and the events of a run, read from a TOML file.
//!
//! All faults of a file are reported at once, with line, column and key. Names of routers, links and files are resolved
//! while the file is read, so a scenario that loads can run. docs/emulate.md documents every key. Start reading at
//! [`Scenario::load`].

mod events;
mod layout;
mod malformed;
mod overrides;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use base::Duration;
use settings::{Faults, Notes, Section, set};
use toml::de::DeTable;
use wire::bgp::Prefix;

use crate::event::Event;
use crate::topology::{Topology, Transport};

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Virtual time: it jumps from one event to the next.
    Virtual,
    /// Real time: the machine's clock.
    Real,
}

/// A route origin authorisation (RFC 6482), as origin validation uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authorisation {
    /// The authorised prefix.
    pub prefix: Prefix,
    /// The longest prefix length that may be announced.
    pub length_max: u8,
    /// The autonomous system that may announce it.
    pub asn: u32,
}

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The title of the scenario.
    pub title: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The clock of the run.
    pub clock: ClockKind,
    /// The length of the run.
    pub run: Duration,
    /// The run ends early if all events are finished and no UPDATE was sent for this long.
    pub quiet: Option<Duration>,
    /// The routers and links.
    pub topology: Topology,
    /// The authorisations that origin validation uses.
    pub authorisations: Vec<Authorisation>,
    /// The events, in the order of the file.
    pub events: Vec<Event>,
    /// What can be used but may not be intended, such as a cycle of providers.
    pub advice: Faults,
    /// The text of the scenario.
    pub text: String,
    /// The name of the file, as the user gave it.
    pub file: String,
}

/// Longest run, in seconds.
const RUN_S_MAX: f64 = 31_536_000.0;

pub use overrides::{OverrideError, with_value};

impl Scenario {
    /// Reads the scenario `text` of the file called `file`. Names of other files are relative to that file's folder.
    ///
    /// # Errors
    /// Every fault found in it, in the order of lines.
    pub fn load(text: &str, file: &str) -> Result<Self, Faults> {
        let notes = Notes::new(text);
        let root = settings::document(&notes);
        let scenario = root.and_then(|root| read(&root, text, file, &notes));
        let path = Path::new(file);
        match notes.finish(scenario) {
            Ok((scenario, advice)) => Ok(Self {
                advice: advice.of(path),
                ..scenario
            }),
            Err(faults) => Err(faults.of(path)),
        }
    }

    /// Reads one `[[event]]` section, without its heading, to inject into a running emulation of this scenario. Without
    /// `at_s` the event happens at `now`. It never happens earlier.
    ///
    /// # Errors
    /// Every fault found in it.
    pub fn read_event(&self, text: &str, now: Duration) -> Result<Event, Faults> {
        let notes = Notes::new(text);
        let place = events::Place {
            topology: &self.topology,
            folder: &folder(&self.file),
            seed: self.seed,
            number: usize::MAX,
            run: self.run,
            now: Some(now),
        };
        let root = settings::document(&notes);
        let event = root.and_then(|root| events::read(Section::root(&root, &notes), &place));
        let done = notes.finish(event).map(|(event, _)| event);
        done.map_err(|faults| faults.of(Path::new("event")))
    }
}

fn read(root: &DeTable<'_>, text: &str, file: &str, notes: &Notes<'_>) -> Option<Scenario> {
    let mut scenario = Scenario {
        title: Path::new(file)
            .file_stem()
            .map_or(String::new(), |stem| stem.to_string_lossy().into_owned()),
        seed: 1,
        clock: ClockKind::Virtual,
        run: Duration::from_secs(60),
        quiet: None,
        topology: Topology::default(),
        authorisations: Vec::new(),
        events: Vec::new(),
        advice: Faults::default(),
        text: text.to_owned(),
        file: file.to_owned(),
    };
    top(root, &mut scenario, notes);
    let folder = folder(file);
    let laid_out = layout::read(root, &folder, scenario.seed, notes)?;
    scenario.topology = laid_out.topology;
    pace(root, &mut scenario, notes);
    for (number, section) in Section::each(root, "event", "event", notes)
        .into_iter()
        .enumerate()
    {
        let place = events::Place {
            topology: &scenario.topology,
            folder: &folder,
            seed: scenario.seed,
            number,
            run: scenario.run,
            now: None,
        };
        scenario.events.extend(events::read(section, &place));
    }
    scenario.authorisations =
        authorisations(&scenario.topology, scenario.seed, laid_out.authorised_share);
    Some(scenario)
}

/// Reads the keys before the first section.
fn top(root: &DeTable<'_>, scenario: &mut Scenario, notes: &Notes<'_>) {
    let mut section = Section::root(root, notes);
    set(section.string("title"), &mut scenario.title);
    if let Some(seed) = section.integer("seed", 0..=i64::MAX, "") {
        scenario.seed = seed.value as u64;
    }
    let clocks = [("virtual", ClockKind::Virtual), ("real", ClockKind::Real)];
    set(section.choice("clock", &clocks), &mut scenario.clock);
    set(
        section.seconds("run_s", 0.001..=RUN_S_MAX),
        &mut scenario.run,
    );
    let quiet = section.seconds("stop_when_quiet_s", 0.001..=RUN_S_MAX);
    scenario.quiet = quiet.map(|quiet| quiet.value);
    for key in ["topology", "routers", "links", "router", "link", "event"] {
        section.known(key);
    }
    section.finish();
}

/// Reads the clock. Links over TCP need the machine's clock.
fn pace(root: &DeTable<'_>, scenario: &mut Scenario, notes: &Notes<'_>) {
    let topology = &mut scenario.topology;
    let over_tcp = topology
        .link_settings
        .iter()
        .any(|link| link.transport == Transport::Tcp);
    if !over_tcp {
        return;
    }
    topology.use_loopback();
    if scenario.clock == ClockKind::Virtual {
        let message = "links over TCP and routers outside need the machine's own time; write clock = \"real\"";
        let given = root.get("clock").map(|clock| clock.span().start);
        match given {
            Some(at) => notes.at(at, "clock", message),
            None => notes.whole("clock", message),
        }
    }
}

/// Authorises the prefixes of a share of the routers, drawn at random by the seed.
fn authorisations(topology: &Topology, seed: u64, share: f64) -> Vec<Authorisation> {
    let owners = layout::share_of(topology.routers.len(), share, seed, "authorisations");
    let authorise = |owner: u32| {
        let prefix = Topology::own_prefix(owner);
        Authorisation {
            prefix,
            length_max: prefix.len(),
            asn: topology.routers[owner as usize].asn,
        }
    };
    owners.into_iter().map(authorise).collect()
}

/// The folder that contains `file`.
fn folder(file: &str) -> PathBuf {
    Path::new(file)
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}
