//! Takes the measurements of the home-gateway experiment, in order.

use std::path::Path;
use std::sync::mpsc::Sender;

use lab::gateway::Error;
use lab::gateway::outcome::{Experiment, Fairness, Outcome, RowOutcome, SCHEMA};
use lab::gateway::rows::{self, BULK_CONNECTIONS, Load, Row};
use lab::gateway::run::{BROWSER_LEAST, Browsed, Place, Plan};
use lab::gateway::treatment::Treatment;
use lab::report::MachineInfo;

use super::args::{Part, Task};

/// Number of A's connections that compete with one of B.
const NINE: usize = 9;

/// Treatments under which they compete.
const FAIRNESS: [Treatment; 3] = [Treatment::Fair, Treatment::FqCodel, Treatment::Sfq];

/// A step of the course.
pub(super) enum Step {
    /// The measurement that starts now.
    Begins(String),
    /// The result of the first half of a row.
    Probed(u8, Box<rows::Result>),
    /// The result of the second half of the last row.
    Shared {
        row: u8,
        share: f64,
        goodput_bps: f64,
        partial: bool,
    },
    /// Page loads of the last row in a browser.
    Browsed {
        row: u8,
        browsed: Browsed,
        partial: bool,
    },
    /// B's share against nine connections.
    Fair(&'static str, f64),
    /// The result of an experiment.
    Done(Box<Experiment>),
}

/// Number of steps to come, not counting [`Step::Begins`].
pub(super) fn parts(task: &Task) -> u64 {
    let mut parts = 0;
    if task.has(Part::Rows) {
        let browser = usize::from(task.browser.is_some());
        let loaded = task.rows.iter().filter(|row| row.load != Load::None);
        parts += task.rows.len() * (1 + browser) + loaded.count();
        if task.fairness {
            parts += FAIRNESS.len();
        }
        parts *= task.repeat as usize;
    }
    let others = task.parts.iter().filter(|part| **part != Part::Rows);
    (parts + others.count()) as u64
}

/// An outcome without results.
pub(super) fn empty(task: &Task, machine: MachineInfo) -> Outcome {
    Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: match task.plan.place {
            Place::Namespaces => "namespaces",
            Place::Model => "virtual time",
        },
        link: task.plan.link,
        treatment: task.plan.treatment.name().to_owned(),
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
        Step::Probed(number, result) => {
            let rows = &mut outcome.rows;
            let known = rows.iter().position(|row| row.row.number == number);
            let at = known.unwrap_or_else(|| {
                let row = Row::ALL.iter().find(|row| row.number == number);
                rows.extend(row.map(|row| RowOutcome::new(*row)));
                rows.len() - 1
            });
            rows[at].runs.push(*result);
        }
        Step::Shared {
            row: number,
            share,
            goodput_bps,
            partial,
        } => {
            if let Some(run) = last(&mut outcome.rows, number) {
                run.share = Some(share);
                run.goodput_bps = Some(goodput_bps);
                run.partial |= partial;
            }
        }
        Step::Browsed {
            row: number,
            browsed,
            partial,
        } => {
            if let Some(run) = last(&mut outcome.rows, number) {
                let loads = &browsed.loads;
                run.browser_ms = loads.iter().map(|load| load.load_ms).collect();
                run.browser_network_ms = loads.iter().map(|load| load.network_ms).collect();
                run.browser_failures = browsed.failures;
                run.partial |= partial;
            }
        }
        Step::Fair(name, share) => {
            let fairness = &mut outcome.fairness;
            let known = fairness.iter_mut().find(|one| one.treatment == name);
            let mut shares = known.map_or(Vec::new(), |one| std::mem::take(&mut one.shares));
            shares.push(share);
            fairness.retain(|one| one.treatment != name);
            fairness.push(Fairness::new(name.to_owned(), shares));
        }
        Step::Done(experiment) => outcome.experiments.push(*experiment),
    }
}

/// The last measurement of a row.
fn last(rows: &mut [RowOutcome], number: u8) -> Option<&mut rows::Result> {
    let row = rows.iter_mut().find(|row| row.row.number == number);
    row.and_then(|row| row.runs.last_mut())
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
            let number = row.number;
            let what = |part: &str| format!("round {round}, row {number}: {part}");
            self.begin(what("stream, pings, pages"))?;
            self.say(Step::Probed(number, Box::new(plan.probe(*row)?)))?;
            if row.load != Load::None {
                self.begin(what("uploads"))?;
                let (share, goodput_bps) = plan.share(row.load, BULK_CONNECTIONS, row.shaped)?;
                self.say(Step::Shared {
                    row: number,
                    share,
                    goodput_bps,
                    partial: plan.stop.is_set(),
                })?;
            }
            if let Some(program) = &self.task.browser {
                self.begin(what("browser"))?;
                let browsed = plan.browse(*row, program)?;
                self.say(Step::Browsed {
                    row: number,
                    browsed,
                    partial: plan.stop.is_set(),
                })?;
            }
        }
        if self.task.fairness {
            for (name, treatment) in Treatment::NAMED {
                if !FAIRNESS.contains(&treatment) {
                    continue;
                }
                self.begin(format!("round {round}: nine uploads against one, {name}"))?;
                let plan = Plan {
                    treatment,
                    ..plan.clone()
                };
                let (share, _) = plan.share(Load::Bulk, NINE, true)?;
                self.say(Step::Fair(name, share))?;
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
