//! Takes the measurements of the home-gateway experiment, in order.

use std::path::Path;
use std::sync::mpsc::Sender;

use lab::gateway::Error;
use lab::gateway::engine::Engine;
use lab::gateway::outcome::{EngineOutcome, Experiment, Fairness, Outcome, RowOutcome, SCHEMA};
use lab::gateway::rows::{self, BULK_CONNECTIONS, Load, Row};
use lab::gateway::run::{BROWSER_LEAST, Browsed, Place, Plan};
use lab::gateway::treatment::Treatment;
use lab::report::MachineInfo;

use super::args::{Part, Task};

/// Number of A's connections that compete with one of B.
const NINE: usize = 9;

/// Treatments under which they compete.
const FAIRNESS: [Treatment; 3] = [Treatment::Fair, Treatment::FqCodel, Treatment::Sfq];

/// A row: its number, and the engine's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    row: Row,
    engine: &'static str,
}

/// A step of the course.
pub(super) enum Step {
    /// The measurement that starts now.
    Begins(String),
    /// The result of the first half of a row.
    Probed(At, Box<rows::Result>),
    /// The result of the second half of the last row.
    Shared {
        at: At,
        share: f64,
        goodput_bps: f64,
        partial: bool,
    },
    /// Page loads of the last row in a browser.
    Browsed {
        at: At,
        browsed: Browsed,
        partial: bool,
    },
    /// A row that did not finish, and the reason.
    Failed(At, String),
    /// B's share against nine connections, by engine and treatment.
    Fair(&'static str, String, f64),
    /// The result of an experiment.
    Done(Box<Experiment>),
}

/// Number of steps to come, not counting [`Step::Begins`].
pub(super) fn parts(task: &Task) -> u64 {
    let mut parts = 0;
    if task.has(Part::Rows) {
        let browser = usize::from(task.browser.is_some());
        let of_row = |row: &Row| {
            let engines = if row.shaped { task.engines.len() } else { 1 };
            engines * (1 + browser + usize::from(row.load != Load::None))
        };
        parts += task.rows.iter().map(of_row).sum::<usize>();
        if task.fairness {
            let more = task
                .engines
                .iter()
                .filter(|engine| **engine != Engine::User);
            parts += FAIRNESS.len() + more.count();
        }
        parts *= task.repeat as usize;
    }
    let others = task.parts.iter().filter(|part| **part != Part::Rows);
    (parts + others.count()) as u64
}

/// An outcome without results.
pub(super) fn empty(task: &Task, engines: Vec<EngineOutcome>, machine: MachineInfo) -> Outcome {
    Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: match task.plan.place {
            Place::Namespaces if task.is_guest => "namespaces of a guest in virtual time",
            Place::Namespaces => "namespaces",
            Place::Model => "virtual time",
        },
        link: task.plan.link,
        treatment: task.plan.treatment.name().to_owned(),
        engines,
        browser: task.browser.as_deref().map(file_name),
        seconds: task.plan.seconds,
        seed: task.plan.seed,
        interrupted: false,
        cut_short: None,
        rows: Vec::new(),
        fairness: Vec::new(),
        experiments: Vec::new(),
        method: method(task),
        machine,
    }
}

/// Adds the result of a step to the outcome.
pub(super) fn keep(outcome: &mut Outcome, step: Step) {
    match step {
        Step::Begins(_) => {}
        Step::Probed(at, result) => row(&mut outcome.rows, at).runs.push(*result),
        Step::Failed(at, reason) => row(&mut outcome.rows, at).failed = Some(reason),
        Step::Shared {
            at,
            share,
            goodput_bps,
            partial,
        } => {
            if let Some(run) = row(&mut outcome.rows, at).runs.last_mut() {
                run.share = Some(share);
                run.goodput_bps = Some(goodput_bps);
                run.partial |= partial;
            }
        }
        Step::Browsed {
            at,
            browsed,
            partial,
        } => {
            if let Some(run) = row(&mut outcome.rows, at).runs.last_mut() {
                let loads = &browsed.loads;
                run.browser_ms = loads.iter().map(|load| load.load_ms).collect();
                run.browser_network_ms = loads.iter().map(|load| load.network_ms).collect();
                run.browser_failures = browsed.failures;
                run.partial |= partial;
            }
        }
        Step::Fair(engine, treatment, share) => {
            let is_same = |one: &Fairness| one.engine == engine && one.treatment == treatment;
            let fairness = &mut outcome.fairness;
            let known = fairness.iter().position(is_same);
            let mut shares = known.map_or(Vec::new(), |at| fairness.remove(at).shares);
            shares.push(share);
            fairness.push(Fairness::new(engine, treatment, shares));
        }
        Step::Done(experiment) => outcome.experiments.push(*experiment),
    }
}

/// The row, which is added if it is new.
fn row(rows: &mut Vec<RowOutcome>, at: At) -> &mut RowOutcome {
    let new = RowOutcome::new(at.row, at.engine);
    let is_same = |row: &RowOutcome| row.row == at.row && row.engine == new.engine;
    let index = rows.iter().position(is_same).unwrap_or_else(|| {
        rows.push(new);
        rows.len() - 1
    });
    &mut rows[index]
}

/// Takes all measurements. If stopped, it ends early and keeps partial results.
pub(super) fn run(task: &Task, steps: &Sender<Step>) -> Result<(), Error> {
    match (Course { task, steps }).all() {
        Err(Error::Stopped) => Ok(()),
        done => done,
    }
}

struct Course<'a> {
    task: &'a Task,
    steps: &'a Sender<Step>,
}

impl Course<'_> {
    fn all(&self) -> Result<(), Error> {
        let (task, plan) = (self.task, &self.task.plan);
        if task.has(Part::Rows) {
            for round in 1..=task.repeat {
                self.rows(round)?;
            }
        }
        for part in &task.parts {
            match part {
                Part::Rows | Part::All => {}
                Part::Tunnel => self.experiment("tunnel", || plan.tunnel())?,
                Part::Bands => self.experiment("bands", || plan.bands())?,
                Part::Perturb => self.experiment("perturb", || plan.perturb())?,
            }
        }
        Ok(())
    }

    /// After a second signal, no thread receives the steps any more.
    fn say(&self, step: Step) -> Result<(), Error> {
        self.steps.send(step).map_err(|_| Error::Stopped)
    }

    fn begin(&self, what: String) -> Result<(), Error> {
        if self.task.plan.stop.is_set() {
            return Err(Error::Stopped);
        }
        self.say(Step::Begins(what))
    }

    fn experiment(
        &self,
        name: &str,
        measure: impl FnOnce() -> Result<Experiment, Error>,
    ) -> Result<(), Error> {
        self.begin(name.to_owned())?;
        self.say(Step::Done(Box::new(measure()?)))
    }

    fn rows(&self, round: u32) -> Result<(), Error> {
        let plan = &Plan {
            // Each round has a seed of its own; the first has the requested one.
            seed: self.task.plan.seed.wrapping_add(u64::from(round - 1)),
            ..self.task.plan.clone()
        };
        for row in &self.task.rows {
            let engines = &self.task.engines;
            let engines = if row.shaped { engines } else { &engines[..1] };
            for engine in engines {
                let plan = Plan {
                    engine: engine.clone(),
                    ..plan.clone()
                };
                self.row_or_failure(round, *row, &plan)?;
            }
        }
        match self.task.fairness {
            true => self.fairness(round, plan),
            false => Ok(()),
        }
    }

    /// Measures a row. If an engine of the kernel fails, the others are measured all the same.
    fn row_or_failure(&self, round: u32, row: Row, plan: &Plan) -> Result<(), Error> {
        let at = At {
            row,
            engine: plan.engine.name(),
        };
        match self.row(round, at, plan) {
            Err(Error::Stopped) => Err(Error::Stopped),
            Err(error) if plan.engine != Engine::User && row.shaped => {
                self.say(Step::Failed(at, error.to_string()))
            }
            done => done,
        }
    }

    fn row(&self, round: u32, at: At, plan: &Plan) -> Result<(), Error> {
        let row = at.row;
        let engine = match row.shaped && self.task.engines.len() > 1 {
            true => format!(" by {}", at.engine),
            false => String::new(),
        };
        let what = |part: &str| format!("round {round}, row {}{engine}: {part}", row.number);
        self.begin(what("stream, pings, pages"))?;
        self.say(Step::Probed(at, Box::new(plan.probe(row)?)))?;
        if row.load != Load::None {
            self.begin(what("uploads"))?;
            let (share, goodput_bps) = plan.share(row.load, BULK_CONNECTIONS, row.shaped)?;
            self.say(Step::Shared {
                at,
                share,
                goodput_bps,
                partial: plan.stop.is_set(),
            })?;
        }
        if let Some(program) = &self.task.browser {
            self.begin(what("browser"))?;
            let browsed = plan.browse(row, program)?;
            self.say(Step::Browsed {
                at,
                browsed,
                partial: plan.stop.is_set(),
            })?;
        }
        Ok(())
    }

    /// Nine uploads against one, with some treatments of our own queues, and with each engine of the
    /// kernel.
    fn fairness(&self, round: u32, plan: &Plan) -> Result<(), Error> {
        let ours = Treatment::NAMED.map(|(_, treatment)| treatment);
        let ours = ours.into_iter().filter(|one| FAIRNESS.contains(one));
        let ours = ours.map(|treatment| (Engine::User, treatment));
        let engines = self.task.engines.iter();
        let engines = engines.filter(|engine| **engine != Engine::User);
        let kernels = engines.map(|engine| (engine.clone(), plan.treatment.clone()));
        for (engine, treatment) in ours.chain(kernels) {
            let name = match engine {
                Engine::Cake(_) => "cake".to_owned(),
                _ => treatment.name().to_owned(),
            };
            let by = engine.name();
            self.begin(format!(
                "round {round}: nine uploads against one, {name} by {by}"
            ))?;
            let plan = Plan {
                engine,
                treatment,
                ..plan.clone()
            };
            match plan.share(Load::Bulk, NINE, true) {
                Ok((share, _)) => self.say(Step::Fair(by, name, share))?,
                // The engine's rows say why.
                Err(Error::SetUp { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn file_name(program: &Path) -> String {
    program
        .file_name()
        .unwrap_or_default()
        .display()
        .to_string()
}

fn method(task: &Task) -> Vec<String> {
    let plan = &task.plan;
    let link = &plan.link;
    let mut lines = vec![format!(
        "The link: {} kbit/s up and {} kbit/s down of Ethernet frames, a FIFO of {} packets in each direction, {:.1} ms each way.",
        link.up_bps / 1_000,
        link.down_bps / 1_000,
        link.fifo_packets,
        link.delay_ns as f64 / 1e6
    )];
    lines.push(match plan.place {
        Place::Namespaces => format!(
            "Hosts in network namespaces of one machine, with the kernel's TCP (cubic) and all offloads off; shaper and modem are threads between two packet sockets each. Each measurement has hosts of its own, {} s for the load to settle, then {} s.",
            plan.settle, plan.seconds
        ),
        Place::Model => format!(
            "Hosts in a model in virtual time, with a TCP of its own (Reno with selective acknowledgements, RACK and tail loss probes), seed {}; 5 s for the load to settle, then {} s.",
            plan.seed, plan.seconds
        ),
    });
    lines.push(
        "Stream, pings (10 a second) and pages run together beside A's load; shares are of payload, measured apart, with one upload of B."
            .into(),
    );
    lines.push(match &task.browser {
        Some(program) => format!(
            "Pages are loaded by a loader of our own over six connections, and apart from that by {}: one process for a row, at least {BROWSER_LEAST} loads over new connections, without the first of the process.",
            file_name(program)
        ),
        None => "Pages are loaded by a loader of our own over six connections.".into(),
    });
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation.".into());
    }
    lines
}
