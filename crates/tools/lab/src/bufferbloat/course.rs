//! One run: phases in order on this thread, pings on another one.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use lab::bufferbloat::{Kind, Load, Phase, Run, pings_of};
use ping::Outcome;
use ping::load::Direction;
use reactor::{Signals, clock};
use tool_ping::background::{Background, Setup};

use super::LOOK_EVERY;
use super::args::Task;
use super::streams::{Streams, check};

/// How long the first reply to a ping may take.
const ANSWER: Duration = Duration::from_secs(3);
/// The timeout of a ping: a queue may hold packets for seconds.
const WAIT: base::Duration = base::Duration::from_secs(5);
/// Time between two readings of the rates, and longest time in which nobody looks at the pings.
const STEP_US: u64 = 200_000;
/// From the end of a phase to the next, so that queues drain.
const REST_US: u64 = 2_000_000;
/// The part of a loaded phase that does not count: its share, and the most.
const START_SHARE: u64 = 5;
const START_MAX_US: u64 = 2_000_000;

/// What a run measured.
pub(super) struct Ran {
    pub(super) run: Run,
    pub(super) outcome: Outcome,
    /// What ended it early.
    pub(super) ended: Option<anyhow::Error>,
}

/// What runs need.
pub(super) struct Course<'a> {
    pub(super) task: &'a Task,
    pub(super) signals: &'a Signals,
}

/// A run under way.
struct UnderWay<'a> {
    course: &'a Course<'a>,
    name: &'static str,
    pings: Background,
    bar: ProgressBar,
    phases: Vec<Phase>,
    load: Load,
    faults: Vec<String>,
    interrupted: bool,
}

impl Course<'_> {
    /// Measures all phases.
    ///
    /// # Errors
    /// Nothing could be measured. Later errors are in the result.
    pub(super) fn run(&self, name: &'static str) -> Result<(String, Ran)> {
        let task = self.task;
        let loads = task.phases.len() > 1;
        if loads {
            check(task)?;
        }
        let setup = Setup {
            streams: task.pings.clone(),
            to: task
                .pings
                .iter()
                .map(|stream| {
                    let mut to = task.to;
                    if stream.protocol == ping::Protocol::Icmp {
                        to.set_port(0);
                    }
                    to
                })
                .collect(),
            wait: WAIT,
            interface: None,
            source: None,
        };
        let pings = Background::start(setup)?;
        let slots = if loads { usize::from(task.streams) } else { 0 };
        let mut under_way = UnderWay {
            course: self,
            name,
            pings,
            bar: progress(task),
            phases: Vec::new(),
            load: Load {
                at_us: Vec::new(),
                down_bps: vec![Vec::new(); slots],
                up_bps: vec![Vec::new(); slots],
            },
            faults: Vec::new(),
            interrupted: false,
        };
        let ended = under_way.all().err();
        under_way.bar.finish_and_clear();
        let answered = under_way.pings.answered() > 0;
        let ran = under_way.finish(ended);
        match ran {
            // Without a reply there is nothing to keep.
            Ran {
                ended: Some(error), ..
            } if !answered => Err(error),
            ran => Ok((name.to_owned(), ran)),
        }
    }
}

impl UnderWay<'_> {
    fn all(&mut self) -> Result<()> {
        self.say("waiting for the first reply");
        self.first_answer()?;
        // The idle phase starts with the pings.
        let mut from_us = 0;
        for (kind, seconds) in self.course.task.phases.clone() {
            if self.interrupted {
                break;
            }
            self.say(kind.name());
            self.phase(kind, seconds, from_us)
                .with_context(|| format!("phase {}", kind.name()))?;
            from_us = self.now_us() + REST_US;
            let is_last = self
                .course
                .task
                .phases
                .last()
                .is_some_and(|last| last.0 == kind);
            if kind != Kind::Idle && !is_last {
                self.say("queues drain");
                self.idle_until(from_us)?;
            }
            if kind == Kind::Idle {
                from_us = self.now_us();
            }
        }
        Ok(())
    }

    /// What the bar says; with two runs, also which one it is.
    fn say(&self, what: &'static str) {
        match self.course.task.exec {
            Some(_) => self.bar.set_message(format!("{}: {what}", self.name)),
            None => self.bar.set_message(what),
        }
    }

    fn first_answer(&mut self) -> Result<()> {
        let end = std::time::Instant::now() + ANSWER;
        while self.pings.answered() == 0 {
            if self.signal()? {
                bail!("stopped before anything was measured");
            }
            if self.pings.is_finished() {
                bail!("the pings have ended");
            }
            if std::time::Instant::now() >= end {
                let to = self.course.task.to;
                bail!(
                    "no ping was answered within {} s: does a firewall drop UDP port {} to {}, or is its traffic class dropped?",
                    ANSWER.as_secs(),
                    to.port(),
                    to.ip()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Whether a signal ends the run; then it also counts as interrupted.
    fn signal(&mut self) -> Result<bool> {
        if self.course.signals.next_signal()?.is_some() {
            self.interrupted = true;
        }
        Ok(self.interrupted)
    }

    /// Microseconds since the pings' start.
    fn now_us(&self) -> u64 {
        clock::now().since(self.pings.started()).as_nanos() / 1_000
    }

    /// Waits until then, or until a signal.
    fn idle_until(&mut self, until_us: u64) -> Result<()> {
        loop {
            let now = self.now_us();
            self.bar.set_position(now / 1_000_000);
            if now >= until_us || self.signal()? {
                return Ok(());
            }
            if self.pings.is_finished() {
                bail!("the pings have ended early");
            }
            let left = Duration::from_micros(until_us - now);
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    fn phase(&mut self, kind: Kind, seconds: u16, from_us: u64) -> Result<()> {
        let from_us = from_us.min(self.now_us());
        let planned_us = u64::from(seconds) * 1_000_000;
        let directions: &[Direction] = match kind {
            Kind::Idle => &[],
            Kind::Down => &[Direction::Down],
            Kind::Up => &[Direction::Up],
            Kind::Both => &[Direction::Down, Direction::Up],
        };
        let start_us = match kind {
            Kind::Idle => 0,
            _ => (planned_us / START_SHARE).min(START_MAX_US),
        };
        let loaded = match directions.is_empty() {
            true => self.idle_until(from_us + planned_us).map(|()| Vec::new()),
            false => self.loaded(directions, seconds, from_us + planned_us),
        };
        let to_us = self.now_us();
        let faults = loaded.as_ref().map_or(0, Vec::len);
        self.phases.push(Phase {
            kind,
            from_us,
            counts_from_us: (from_us + start_us).min(to_us),
            to_us,
            complete: loaded.is_ok() && faults == 0 && to_us >= from_us + planned_us,
        });
        let is_short = to_us < from_us + planned_us;
        let faults = loaded?;
        let named = faults
            .iter()
            .map(|fault| format!("phase {}: {fault}", kind.name()));
        self.faults.extend(named);
        match faults.into_iter().next() {
            // No stream was left: without load, the rest would measure nothing.
            Some(fault) if is_short && !self.interrupted => {
                self.faults.pop();
                Err(anyhow!(fault))
            }
            _ => Ok(()),
        }
    }

    /// Loads the link until then. Returns what went wrong with streams.
    fn loaded(
        &mut self,
        directions: &[Direction],
        seconds: u16,
        until_us: u64,
    ) -> Result<Vec<String>> {
        let mut streams = Streams::start(self.course.task, directions, seconds)?;
        let mut before = self.now_us();
        // A reading at the start, so that the first rate begins there.
        self.read(None, before, 0);
        let watched = loop {
            let step = (before + STEP_US).min(until_us);
            if let Err(error) = self.idle_until(step) {
                break Err(error);
            }
            let now = self.now_us();
            self.read(Some(&mut streams), now, now - before);
            before = now;
            if now >= until_us || self.interrupted || streams.have_ended() {
                break Ok(());
            }
        };
        let faults = streams.finish();
        self.read(None, before + 1, 1);
        watched.map(|()| faults)
    }

    /// Notes the present rates; without streams they are 0.
    fn read(&mut self, mut streams: Option<&mut Streams>, now_us: u64, since_us: u64) {
        let since = Duration::from_micros(since_us.max(1));
        self.load.at_us.push(now_us);
        let columns = [
            (Direction::Down, &mut self.load.down_bps),
            (Direction::Up, &mut self.load.up_bps),
        ];
        for (direction, columns) in columns {
            let rates = streams
                .as_deref_mut()
                .map(|streams| streams.rates(direction, since));
            let rates = rates.unwrap_or_default();
            for (number, column) in columns.iter_mut().enumerate() {
                column.push(rates.get(number).copied().unwrap_or(0));
            }
        }
    }

    fn finish(self, ended: Option<anyhow::Error>) -> Ran {
        let task = self.course.task;
        let measured = self.pings.finish();
        let (pings, one_way_error_us) = pings_of(&measured.outcome);
        let mut faults = self.faults;
        let notes = measured
            .notes
            .into_iter()
            .map(|note| format!("pings: {note}"));
        faults.extend(notes);
        // What ended the pings explains the rest.
        let ended = measured.ended.err().or(ended);
        faults.extend(ended.as_ref().map(|error| format!("{error:#}")));
        let run = Run {
            tool: measured.outcome.tool.clone(),
            host: task.host.clone(),
            address: task.to.ip().to_string(),
            started_unix_ns: measured.outcome.started_unix_ns,
            streams: task.streams.into(),
            congestion: task.congestion.name().to_owned(),
            interrupted: self.interrupted || ended.is_some(),
            faults,
            one_way_error_us,
            phases: self.phases,
            pings,
            load: self.load,
        };
        Ran {
            run,
            outcome: measured.outcome,
            ended,
        }
    }
}

/// A bar of the run's seconds, drawn on standard error if that is a terminal.
fn progress(task: &Task) -> ProgressBar {
    let seconds: u64 = task
        .phases
        .iter()
        .map(|(_, seconds)| u64::from(*seconds))
        .sum();
    let rests = task.phases.len().saturating_sub(2) as u64 * (REST_US / 1_000_000);
    let bar = ProgressBar::new(seconds + rests);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} s {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
