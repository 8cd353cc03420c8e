//! Runs the phases of a deadlines run in order, and records the figures of each phase. Start reading at [`measure`].

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use base::Duration;
use control::client::Client;
use control::request::{BgpRoutes, Do};
use lab::report::CoreWitness;

use super::Plan;
use super::feeder::Feeder;
use super::joiners::{Joined, Joiners};
use super::lines::{self, Few, Gaps};
use super::subjects::{self, Ours, Overrun, Subject};
use super::watch::{Answers, Asker, Noted, Peers};
use crate::bgp::daemons::BgpProgram;
use crate::bgp::feed::Feed;
use crate::harness::{Bench, others_of};

/// Longest time that a phase may take.
const PHASE_MAX: std::time::Duration = std::time::Duration::from_secs(120);

/// Subscribers that note when HELLOs and LCP echoes arrive.
const FEW: u32 = 50;

/// A phase's figures.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) program: String,
    pub(super) name: &'static str,
    /// Until the daemon was idle again.
    pub(super) seconds: f64,
    pub(super) peers: Noted,
    pub(super) joined: Option<Joined>,
    pub(super) gaps: Option<Gaps>,
    pub(super) answers: Option<Answers>,
    /// The longest call of a handler, if one took more than 5 ms.
    pub(super) longest: Option<Overrun>,
    pub(super) overruns: usize,
    /// The most CPU time of a call, in milliseconds.
    pub(super) longest_cpu: f64,
    /// What came of the phase's work, such as subscribers connected.
    pub(super) outcome: String,
}

/// All that runs beside a phase's work.
struct Run<'a> {
    bench: &'a Bench,
    program: String,
    subject: Subject,
    peers: Peers,
    feeder: Feeder,
    few: Option<Few>,
    asker: Option<Asker>,
    phases: Vec<Phase>,
}

/// Measures one subject. Phases that it cannot do are left out.
///
/// # Errors
/// The subject does not start or does not answer.
pub(super) fn measure(
    bench: &Bench,
    program: &BgpProgram,
    plan: &Plan,
    feed: &Arc<Feed>,
) -> Result<(Vec<Phase>, Option<f64>)> {
    let witness = CoreWitness::start();
    let subject = subjects::start(bench, program, FEW + 2 * plan.subscribers)?;
    let address = subject.server.addresses[0];
    bench.say(format!("{program}: idle peers"));
    let peers = Peers::open(address, plan.peers);
    let few = subject.ours.as_ref().map(|ours| Few::open(ours.lns, FEW));
    let asker = subject
        .ours
        .as_ref()
        .map(|ours| Asker::start(ours.socket.clone()));
    peers.take();
    let feeder = Feeder::start(address, Arc::clone(feed));
    let mut run = Run {
        bench,
        program: program.to_string(),
        subject,
        peers,
        feeder,
        few,
        asker,
        phases: Vec::new(),
    };
    run.phase("table arrives", |run| run.tables(1))?;
    run.joiners(plan, feed.prefixes)?;
    if run.subject.ours.is_some() {
        run.of_ours(plan)?;
    }
    let Run { peers, phases, .. } = run;
    peers.end()?;
    Ok((phases, others_of(witness.finish())))
}

impl Run<'_> {
    /// Runs `work`, waits until the daemon is idle, and notes what happened meanwhile.
    fn phase(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<String>,
    ) -> Result<()> {
        self.bench.say(format!("{}: {name}", self.program));
        self.forget();
        let start = Instant::now();
        let outcome = work(self)?;
        self.quiet(start)?;
        let seconds = start.elapsed().as_secs_f64();
        let peers = self.peers.take();
        let overruns: Vec<Overrun> = match &self.subject.ours {
            Some(ours) => ours.overruns()?,
            None => Vec::new(),
        };
        let span = start.elapsed().as_secs_f64();
        let mut recent: Vec<Overrun> = overruns
            .into_iter()
            .filter(|one| one.s_ago <= span)
            .collect();
        recent.sort_by(|a, b| b.wall_ms.total_cmp(&a.wall_ms));
        self.phases.push(Phase {
            program: self.program.clone(),
            name,
            seconds,
            peers,
            joined: None,
            gaps: self.few.as_ref().map(Few::take),
            answers: self.asker.as_ref().map(Asker::take),
            overruns: recent.len(),
            longest_cpu: recent.iter().map(|one| one.cpu_ms).fold(0.0, f64::max),
            longest: recent.into_iter().next(),
            outcome,
        });
        Ok(())
    }

    /// Drops what was noted between two phases.
    fn forget(&self) {
        self.peers.take();
        if let Some(few) = &self.few {
            few.take();
        }
        if let Some(asker) = &self.asker {
            asker.take();
        }
    }

    /// Waits until the daemon has used less than a fifth of its core for a second.
    fn quiet(&self, start: Instant) -> Result<()> {
        while start.elapsed() < PHASE_MAX {
            let before = self.subject.server.booked()?;
            std::thread::sleep(std::time::Duration::from_secs(1));
            if self.subject.server.spent_since(&before)?.percent() < 20.0 {
                break;
            }
        }
        self.subject.server.running.check()
    }

    /// Waits until the feeder has sent its table that often.
    fn tables(&self, count: u32) -> Result<String> {
        let start = Instant::now();
        while self.feeder.tables()? < count && start.elapsed() < PHASE_MAX {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(format!("{} tables", self.feeder.tables()?))
    }

    fn joiners(&mut self, plan: &Plan, prefixes: u32) -> Result<()> {
        let mut joined = None;
        self.phase("joiners", |run| {
            let address = run.subject.server.addresses[0];
            let mut joiners = Joiners::open(address, plan.joiners)?;
            let found = joiners.read(prefixes, Duration::from_secs(PHASE_MAX.as_secs()))?;
            joined = Some(found);
            Ok(format!("{} have all, {} lost", found.whole, found.lost))
        })?;
        if let Some(phase) = self.phases.last_mut() {
            phase.joined = joined;
        }
        Ok(())
    }

    fn ours(&self) -> &Ours {
        self.subject
            .ours
            .as_ref()
            .expect("these phases are of our daemon")
    }

    fn of_ours(&mut self, plan: &Plan) -> Result<()> {
        self.phase("soft-in", |run| {
            let before = run.feeder.tables()?;
            run.ours().refresh(&super::feeder::FEEDER.to_string())?;
            run.tables(before + 1)
        })?;
        self.phase("policy reload", |run| {
            run.ours().change_policy(201)?;
            let pid = rustix::process::Pid::from_raw(run.subject.server.running.pid.cast_signed());
            if let Some(pid) = pid {
                rustix::process::kill_process(pid, rustix::process::Signal::HUP)?;
            }
            Ok("every route judged again".into())
        })?;
        self.subscribers(plan)?;
        self.phase("show bgp route, slow reader", |run| {
            let rows = slow_reader(run.ours())?;
            Ok(format!("{rows} rows"))
        })
    }

    fn subscribers(&mut self, plan: &Plan) -> Result<()> {
        let lns = self.ours().lns;
        let cap = Duration::from_secs(60);
        let mut load = lines::many(lns, FEW, plan.subscribers)?;
        self.phase("tunnels and subscribers at once", |_| {
            let wave = load.open(plan.subscribers, plan.subscribers, cap)?;
            load.answer(Duration::from_secs(2))?;
            Ok(format!("{} connected", wave.up))
        })?;
        // The LNS keeps the tunnels until it notices that nobody answers.
        drop(load);
        let mut load = lines::many(lns, FEW + plan.subscribers, 1)?;
        let (tunnel, up) = load.open_in_one(plan.subscribers, cap)?;
        self.phase("LAC lost", |_| {
            load.close(tunnel);
            load.answer(Duration::from_secs(2))?;
            Ok(format!("{up} sessions in its tunnel"))
        })
    }
}

/// Asks for all routes, and reads the answer slowly.
fn slow_reader(ours: &Ours) -> Result<u64> {
    let start = Instant::now();
    let mut rows = 0u64;
    let mut client = Client::connect(&ours.socket)?;
    let all = Do::ShowBgpRoute(BgpRoutes::default());
    client.rows(&all, |_| {
        rows += 1;
        // As fast as a terminal, up to ten seconds.
        if rows.is_multiple_of(1_000) && start.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    })?;
    Ok(rows)
}
