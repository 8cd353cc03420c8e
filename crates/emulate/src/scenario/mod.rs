//! A scenario: who is there, how they behave, and what happens to them, read from a TOML file.
//!
//! Every fault of a file is told at once, with line, column and key; what a file names (routers, links, files) is looked
//! up while it is read, so a scenario that loads can run. docs/emulate.md is the page on every key.

mod events;
mod layout;
mod malformed;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use base::Duration;
use settings::{Faults, Notes, Section, set};
use toml::de::DeTable;
use wire::bgp::Prefix;

use crate::event::Event;
use crate::topology::{Topology, Transport};

/// What paces a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Time jumps from one happening to the next.
    Virtual,
    /// Time is the machine's.
    Real,
}

/// A route origin authorisation, RFC 6482, as origin validation uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authorisation {
    /// The prefix.
    pub prefix: Prefix,
    /// The longest part of it that may be announced.
    pub length_max: u8,
    /// The autonomous system that may.
    pub asn: u32,
}

/// All that a run needs to know.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub title: String,
    /// Where all chance comes from.
    pub seed: u64,
    /// What paces the run.
    pub clock: ClockKind,
    /// How long the run is.
    pub run: Duration,
    /// The run ends earlier once all events are over and there was no UPDATE for so long.
    pub quiet: Option<Duration>,
    /// Who is there.
    pub topology: Topology,
    /// What origin validation knows.
    pub authorisations: Vec<Authorisation>,
    /// What happens, in the order of the file.
    pub events: Vec<Event>,
    /// The text it was read from.
    pub text: String,
    /// The file it was read from, as it was named.
    pub file: String,
}

/// Longest run.
const RUN_S_MAX: f64 = 31_536_000.0;

impl Scenario {
    /// Reads the scenario `text` from the file called `file`, beside which the files that it names are looked for.
    ///
    /// # Errors
    /// Every fault found in it, in the order of lines.
    pub fn load(text: &str, file: &str) -> Result<Self, Faults> {
        let notes = Notes::new(text);
        let root = settings::document(&notes);
        let scenario = root.and_then(|root| read(&root, text, file, &notes));
        let done = notes.finish(scenario).map(|(scenario, _)| scenario);
        done.map_err(|faults| faults.of(Path::new(file)))
    }

    /// Reads one `[[event]]` section, without its heading, to be injected into a running emulation of this scenario.
    /// Without `at_s` it happens at `now`, and never before.
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

/// The keys before the first section.
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

/// TCP has the machine's own clock.
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

/// The authorisations of a share of the routers, drawn by seed, for the prefixes that they own.
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

/// The folder that `file` is in.
fn folder(file: &str) -> PathBuf {
    Path::new(file)
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}
