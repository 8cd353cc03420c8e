//! Chapter 1: bring-up of tunnels by a daemon, with five builds of one event library.

mod verdict;

use super::published::{self, BRINGUP_REFERENCE, BRINGUP_TARGET, BUILDS};
use super::{Chapter, Ratio};
use crate::fit;
use crate::report::{Cell, Table};
use plot::figure::{Axis, COLOUR_OURS, Chart, Series, Style};
use plot::number::{grouped, human_seconds};

/// The exponent of a curve is fitted from this share of its end onwards.
const TAIL: f64 = 0.25;

/// Where the chart that compares shapes ends, in multiples of the reference build's time.
const SHAPES_END: f64 = 3.0;

/// Results of one bring-up.
#[derive(Clone, Debug, PartialEq)]
pub struct BringupRun {
    /// The build that was imitated, e.g. `r2929`; any other name means a design of our own.
    pub build: String,
    /// A description of its parts, e.g. `wheel, slab, epoll, one socket`.
    pub label: String,
    /// `(seconds since the start, tunnels up)`; neither ever decreases.
    pub samples: Vec<(f64, u64)>,
    /// Tunnels requested; only runs with the largest target are compared.
    pub target: u64,
    /// Whether all tunnels came up within the time limit.
    pub finished: bool,
    /// Seconds to the target by extrapolation, if it did not finish; see [`fit::extrapolate`].
    pub extrapolated_s: Option<f64>,
    /// CPU seconds of both sides together.
    pub cpu_s: f64,
}

impl BringupRun {
    /// Seconds to the target, measured or extrapolated.
    fn seconds(&self) -> Option<f64> {
        let reached = self.samples.iter().find(|(_, n)| *n >= self.target);
        match reached {
            Some((seconds, _)) if self.finished => Some(*seconds),
            _ => self.extrapolated_s,
        }
        .filter(|s| s.is_finite() && *s > 0.0)
    }

    /// Tunnels up at the end.
    fn reached(&self) -> u64 {
        self.samples.last().map_or(0, |s| s.1)
    }

    /// The exponent of time against tunnels over the run's last part.
    fn exponent(&self) -> Option<f64> {
        fit::growth(&self.samples, TAIL).map(|law| law.exponent)
    }

    fn is_ours(&self) -> bool {
        published::build(&self.build).is_none()
    }
}

/// The runs of the largest target, looked up by build.
struct Runs<'a>(Vec<&'a BringupRun>);

impl<'a> Runs<'a> {
    fn new(runs: &'a [BringupRun]) -> Self {
        let target = runs.iter().map(|r| r.target).max().unwrap_or(0);
        Self(runs.iter().filter(|r| r.target == target).collect())
    }

    fn get(&self, build: &str) -> Option<&'a BringupRun> {
        self.0.iter().find(|r| r.build == build).copied()
    }

    /// The time of `build` divided by the time of `other`.
    fn ratio(&self, build: &str, other: &str) -> Option<f64> {
        Some(self.get(build)?.seconds()? / self.get(other)?.seconds()?)
    }
}

/// The chapter on the five builds, from measurements of them and of our own designs.
pub fn chapter_bringup(runs: &[BringupRun]) -> Chapter {
    let used = Runs::new(runs);
    let mut charts = vec![chart_times(&used).into()];
    charts.extend(chart_shapes(&used).map(Into::into));
    Chapter {
        title: "The tunnel daemon: five builds of one event library".into(),
        source: published::BRINGUP_SOURCE.into(),
        account: account(),
        charts,
        tables: vec![table_builds(), table_runs(&used)],
        verdict: verdict::verdict(&used),
        old_builds: used
            .0
            .iter()
            .filter(|run| !run.is_ours())
            .map(|run| published::named(&run.build))
            .collect(),
        ratio: ratio(&used),
        method: method(),
    }
}

/// The time of r3031, the build with lists and no config id, divided by the time of our own design.
fn ratio(runs: &Runs<'_>) -> Option<Ratio> {
    let ours = runs.0.iter().find(|run| run.is_ours())?;
    Ratio::new(
        format!("{} tunnels", grouped(ours.target as f64, 0)),
        ["sorted list + poll", own_name(ours)],
        runs.ratio("r3031", &ours.build),
    )
}

fn account() -> Vec<String> {
    [
        "The benchmark asked a daemon, through its command line, for 10,000 L2TPv3 tunnels between two Athlon 64 \
         machines. A script watched the rate and slowed down when the daemon fell behind. The first build took more \
         than three hours and stalled just over 7,000 tunnels. The last build had all 10,000 tunnels up in 24 \
         minutes. The authors report a ten-fold gain in total, 35 % of it from epoll alone.",
        "The builds differ in their event library. Timers were in a sorted list, then in a red-black tree. \
         Descriptors were in a list and polled with a set that was rebuilt for each call, then in a tree and polled \
         with a set that was kept, then watched with epoll. The kept set was slower: the daemon called poll more \
         often, with fewer ready descriptors in each call. One difference is outside the event library: the first \
         build gave each tunnel a config id. The daemon tried candidates for the id one by one, each with a walk \
         over all peers, so a new tunnel's cost grows with the square of the existing tunnels. From the second build \
         on, config ids are off.",
        "Idle tunnels cause both kinds of cost: each idle tunnel slows down the timers of all other tunnels, and \
         every wait.",
    ]
    .map(String::from)
    .into()
}

fn method() -> Vec<String> {
    [
        "Of each published curve, only the end point is known. Its dashed line runs from the origin to the end point \
         at a constant rate; the shape of the published curve is not known. The lines of r2929 and r3031 end where \
         the account says that they stalled.",
        "A growth exponent is fitted by least squares over the logarithms of time and tunnels, over the last three \
         quarters of a run. An exponent of 1 is a constant rate; 2 means that each tunnel costs in proportion to the \
         existing tunnels.",
        "If a run did not finish within its cap, a dotted line extends it from its last sample, with the exponent of \
         its last three quarters.",
    ]
    .map(String::from)
    .into()
}

/// The measured part of a run as a series, with times divided by `unit_s`.
fn measured(run: &BringupRun, unit_s: f64) -> Series {
    let points = run
        .samples
        .iter()
        .map(|(s, n)| (s / unit_s, *n as f64))
        .collect();
    match published::build(&run.build) {
        Some((i, build)) => Series::new(
            format!("{}, re-run here", published::named(build.name)),
            Style::Solid,
            i,
            points,
        ),
        None => {
            let name = own_name(run);
            Series::new(
                format!("headend: {name}"),
                Style::Solid,
                COLOUR_OURS,
                points,
            )
            .bold()
        }
    }
}

/// The extrapolated part of a run: the power law from its last sample to the target.
fn extension(run: &BringupRun, unit_s: f64) -> Option<Series> {
    let end = run.seconds().filter(|_| !run.finished)?;
    let &(from, reached) = run.samples.last()?;
    if reached == 0 || from <= 0.0 || end <= from || reached >= run.target {
        return None;
    }
    let span = run.target as f64 / reached as f64;
    let points = (0..=24).map(|i| {
        let part = f64::from(i) / 24.0;
        (
            from / unit_s * (end / from).powf(part),
            reached as f64 * span.powf(part),
        )
    });
    let colour = published::build(&run.build).map_or(COLOUR_OURS, |(i, _)| i);
    let name = format!("{}, extrapolated", published::named(&run.build));
    Some(Series::new(name, Style::Dotted, colour, points.collect()))
}

/// Published, re-run and own curves over absolute time.
fn chart_times(runs: &Runs<'_>) -> Chart {
    let mut chart = Chart::new(
        "Tunnels against time",
        "Further left is faster. If a line flattens, each further tunnel costs more.",
        Axis::log("time", "s"),
        Axis::log("tunnels up", ""),
    );
    for (i, build) in BUILDS.iter().enumerate() {
        if let Some(end) = build.end {
            // On these axes a constant rate is a straight line of slope one through one tunnel.
            let points = vec![
                (end.seconds / end.tunnels as f64, 1.0),
                (end.seconds, end.tunnels as f64),
            ];
            let name = format!("{}, published", published::named(build.name));
            chart
                .series
                .push(Series::new(name, Style::Dashed, i, points).marked_at_end());
        }
    }
    chart
        .series
        .extend(runs.0.iter().map(|run| measured(run, 1.0)));
    chart
        .series
        .extend(runs.0.iter().filter_map(|run| extension(run, 1.0)));
    notes(&mut chart, runs);
    chart
}

/// The same curves divided by each machine's speed, so that shapes can be compared.
fn chart_shapes(runs: &Runs<'_>) -> Option<Chart> {
    let here = runs.get(BRINGUP_REFERENCE)?.seconds()?;
    let there = published::build(BRINGUP_REFERENCE)?.1.end?.seconds;
    let unit = format!("times {BRINGUP_REFERENCE}'s own");
    let mut chart = Chart::new(
        "The same curves, relative to the speed of each machine",
        format!(
            "Time as a multiple of {BRINGUP_REFERENCE}'s time: {} published, {} here. If the published ratios hold, \
             full lines end where dashed lines end.",
            human_seconds(there),
            human_seconds(here)
        ),
        Axis::linear("time", unit).up_to(SHAPES_END),
        Axis::linear("tunnels up", ""),
    );
    for (i, build) in BUILDS.iter().enumerate() {
        if let Some(end) = build.end {
            let points = vec![(0.0, 0.0), (end.seconds / there, end.tunnels as f64)];
            let name = format!("{}, published", published::named(build.name));
            chart
                .series
                .push(Series::new(name, Style::Dashed, i, points).marked_at_end());
        }
    }
    chart
        .series
        .extend(runs.0.iter().map(|run| measured(run, here)));
    chart
        .series
        .extend(runs.0.iter().filter_map(|run| extension(run, here)));
    notes(&mut chart, runs);
    let beyond = "Lines that reach the right edge continue beyond it.";
    chart.notes.push(beyond.into());
    Some(chart)
}

fn notes(chart: &mut Chart, runs: &Runs<'_>) {
    chart
        .notes
        .push("Dashed: only the end point is published; the line to it is not.".into());
    for build in BUILDS.iter().filter(|b| b.end.is_none()) {
        chart.notes.push(format!(
            "{} was published without a figure ({}) and has no dashed line.",
            build.name, build.wording
        ));
    }
    if let Some(run) = runs.0.first().filter(|r| r.target != BRINGUP_TARGET) {
        chart.notes.push(format!(
            "The re-runs asked for {} tunnels, the published benchmark for {}.",
            grouped(run.target as f64, 0),
            grouped(BRINGUP_TARGET as f64, 0)
        ));
    }
}

/// The parts of each build, and its published results.
fn table_builds() -> Table {
    let columns = [
        ("build", ""),
        ("timers", ""),
        ("descriptors", ""),
        ("config id", ""),
        ("published", ""),
    ];
    let mut table = Table::new("The five builds, as published", &columns);
    for build in &BUILDS {
        let id = if build.config_id { "on" } else { "off" };
        let words = [
            build.name,
            build.timers,
            build.descriptors,
            id,
            build.wording,
        ];
        table.row(words.map(Cell::from));
    }
    table
}

/// The results of each build and of our own designs.
fn table_runs(runs: &Runs<'_>) -> Table {
    let mut table = Table::new(
        format!("Times, also as multiples of {BRINGUP_REFERENCE}'s"),
        &[
            ("build", ""),
            ("multiple published", ""),
            ("multiple here", ""),
            ("time here", "s"),
            ("how obtained", ""),
            ("growth exponent", ""),
            ("CPU, both sides", "s"),
        ],
    );
    let row = |name: &str, published: &str, run: Option<&BringupRun>| {
        let seconds = run.and_then(BringupRun::seconds);
        let reference = runs.get(BRINGUP_REFERENCE).and_then(BringupRun::seconds);
        let multiple = seconds.zip(reference).map(|(s, r)| fine(s / r));
        [
            name.into(),
            published.into(),
            multiple.into(),
            seconds.map(fine).into(),
            standing(run).into(),
            run.and_then(BringupRun::exponent)
                .map(|e| Cell::num(e, 2))
                .into(),
            run.map(|r| Cell::num(r.cpu_s, 2)).into(),
        ]
    };
    for build in &BUILDS {
        let name = published::named(build.name);
        table.row(row(&name, build.relative, runs.get(build.name)));
    }
    for run in runs.0.iter().filter(|r| r.is_ours()) {
        table.row(row(&format!("headend: {}", own_name(run)), "-", Some(run)));
    }
    table
}

/// A figure with at least three significant digits.
fn fine(value: f64) -> Cell {
    let decimals = match value {
        v if v < 0.1 => 4,
        v if v < 1.0 => 3,
        v if v < 100.0 => 2,
        _ => 0,
    };
    Cell::num(value, decimals)
}

/// The name of a run of our own.
fn own_name(run: &BringupRun) -> &str {
    if run.label.is_empty() {
        &run.build
    } else {
        &run.label
    }
}

/// How a run's time was obtained.
fn standing(run: Option<&BringupRun>) -> String {
    match run {
        None => "not run".into(),
        Some(run) if run.finished => "measured".into(),
        Some(run) => {
            let reached = grouped(run.reached() as f64, 0);
            match run.seconds() {
                Some(_) => format!("extrapolated from {reached} tunnels"),
                None => format!("stopped at {reached} tunnels"),
            }
        }
    }
}
