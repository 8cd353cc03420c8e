//! Runs one row, in namespaces or in virtual time. Start with [`Plan::probe`].

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::model::{self, Setup};
use super::pinger::{Pings, Target};
use super::rows::{self, BULK_CONNECTIONS, Load, Row};
use super::stage::{DRAIN, Error, Stage, join, web};
use super::stop::Stop;
use super::topology::FAR;
use super::traffic::page;
use super::treatment::{Both, Link, Treatment};

/// Interval between B's pings.
pub(super) const PING_EVERY: base::Duration = base::Duration::from_millis(100);

/// Pause between two page loads.
const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// Shortest measurement of a share in seconds; a shorter one has too few packets.
const SHARE_LEAST_S: f64 = 1.0;

/// Where the hosts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In network namespaces, with the kernel's TCP, in real time.
    Namespaces,
    /// In a model with a TCP of its own, in virtual time: the same seed gives the same result.
    Model,
}

/// The settings that all rows share.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the hosts run.
    pub place: Place,
    /// The slow link.
    pub link: Link,
    /// The gateway's policy in the rows that have one.
    pub treatment: Treatment,
    /// What shapes in these rows. The model has only [`Engine::User`].
    pub engine: Engine,
    /// How long each row is measured, in seconds.
    pub seconds: u64,
    /// How long the load runs before the measurement, in seconds; not used in the model.
    pub settle: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Ends a measurement early.
    pub stop: Stop,
}

impl Plan {
    pub(super) fn settle(&self) -> Duration {
        Duration::from_secs(self.settle)
    }

    /// Half the length of a measurement, at least 2 s.
    fn half(&self) -> Duration {
        Duration::from_secs((self.seconds / 2).max(2))
    }

    fn shaper(&self, shaped: bool) -> Both {
        let none = &Treatment::None;
        if shaped { &self.treatment } else { none }.both(&self.link)
    }

    pub(super) fn setup(&self, load: Load, bulk: usize, shaped: bool) -> Setup {
        Setup {
            seed: self.seed,
            router: self.shaper(shaped),
            modem: self.link.modem(),
            delay: self.link.delay(),
            ecn: false,
            load,
            bulk,
            seconds: self.seconds,
            stop: self.stop.clone(),
        }
    }

    fn stage(&self, shaped: bool) -> Result<Stage, Error> {
        let is_ours = self.engine == Engine::User;
        let shaper = self.shaper(shaped && is_ours);
        let stage = Stage::new(&self.link, (&shaper, self.seed), false, &self.stop)?;
        if shaped {
            stage.set_up(&self.engine)?;
        }
        Ok(stage)
    }

    /// How long to wait for a reply, if `more` is the queueing time above the modem's.
    pub(super) fn wait(&self, more: Duration) -> Duration {
        Duration::from_millis(self.link.longest_ms() + 500) + more
    }

    /// Waits until the load has settled.
    pub(super) fn settle_until(&self, from: Instant) -> Result<(), Error> {
        self.stop.sleep_until(from);
        if self.stop.is_set() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// B's pings for the whole measurement.
    pub(super) fn pings(&self, targets: Vec<Target>, wait: Duration) -> Pings {
        Pings {
            targets,
            interval: PING_EVERY,
            count: self.seconds.max(1) * 1_000_000_000 / PING_EVERY.as_nanos(),
            wait: base::Duration::from_millis(wait.as_millis() as u64),
        }
    }

    /// The first half of a row: B's stream, pings and page loads beside A's load.
    ///
    /// # Errors
    /// The kernel's error, or disciplines that cannot be combined.
    pub fn probe(&self, row: Row) -> Result<rows::Result, Error> {
        match self.place {
            Place::Model => {
                let setup = self.setup(row.load, BULK_CONNECTIONS, row.shaped);
                let result = model::probe(&setup)?;
                if result.pings.is_empty() && self.stop.is_set() {
                    return Err(Error::Stopped);
                }
                Ok(rows::Result {
                    partial: self.stop.is_set(),
                    ..result
                })
            }
            Place::Namespaces => self.probe_here(row),
        }
    }

    fn probe_here(&self, row: Row) -> Result<rows::Result, Error> {
        let mut stage = self.stage(row.shaped)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let from = begin + self.settle();
        let end = from + Duration::from_secs(self.seconds);
        let wait = self.wait(Duration::ZERO);
        stage.load(row.load, BULK_CONNECTIONS, (begin, end + DRAIN))?;
        let (servers, _) = serve(&stage, web().port()..web().port() + 1, end)?;
        self.settle_until(from)?;
        let stream = stage.stream((from, end), wait)?;
        let pinger = stage.pings(self.pings(vec![far()], wait))?;
        let (loads, loaded) = mpsc::channel();
        let stop = self.stop.clone();
        let pages = stage.topology.b.spawn("pages", move || {
            load_pages(end, &loads, &stop);
            Ok(())
        })?;
        let account = join(stream)?;
        let mut result = rows::Result {
            loss_percent: account.loss_percent(),
            jitter_ms: account.jitter_ms,
            pings: join(pinger)?.pop().unwrap_or_default(),
            partial: self.stop.is_set(),
            ..rows::Result::default()
        };
        if !result.partial {
            join(pages)?;
            servers.into_iter().try_for_each(join)?;
        }
        for load in loaded.try_iter() {
            match load {
                Some(ms) => result.page_ms.push(ms),
                None => result.page_failures += 1,
            }
        }
        stage.finish()?;
        Ok(result)
    }

    /// The second half of a row: B's share of the link with one bulk connection against A's load,
    /// and the throughput of both in bits of payload per second. `bulk` is the number of A's
    /// connections if its load is bulk. In namespaces this is measured for half of the time.
    ///
    /// # Errors
    /// As [`Plan::probe`].
    pub fn share(&self, load: Load, bulk: usize, shaped: bool) -> Result<(f64, f64), Error> {
        if self.place == Place::Model {
            let share = model::share(&self.setup(load, bulk, shaped))?;
            return match self.stop.is_set() {
                true => Err(Error::Stopped),
                false => Ok(share),
            };
        }
        let mut stage = self.stage(shaped)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let from = begin + self.settle();
        let end = from + self.half();
        stage.load(load, bulk, (begin, end))?;
        stage.bulk_of_b((begin, end))?;
        let both = |stage: &Stage| {
            [&stage.from_a, &stage.from_b].map(|octets| octets.load(Ordering::Relaxed))
        };
        self.settle_until(from)?;
        let (before, since) = (both(&stage), Instant::now());
        // Shortly before the end, while all still send.
        self.stop.sleep_until(end - Duration::from_millis(100));
        let (after, seconds) = (both(&stage), since.elapsed().as_secs_f64());
        stage.finish()?;
        if self.stop.is_set() && seconds < SHARE_LEAST_S {
            return Err(Error::Stopped);
        }
        let [a, b] = [after[0] - before[0], after[1] - before[1]].map(|octets| octets as f64);
        Ok((b / (a + b).max(1.0), (a + b) * 8.0 / seconds.max(0.001)))
    }
}

fn far() -> Target {
    Target {
        name: "far".to_owned(),
        to: FAR,
        tos: 0,
        size: 56,
    }
}

/// Loads pages one after another until `end`. Sends each load's time in milliseconds, or that it
/// failed.
fn load_pages(end: Instant, loads: &Sender<Option<f64>>, stop: &Stop) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.is_set() {
            return;
        }
        let load = page::load(web(), left.min(page::LOAD_MAX));
        let load = load.map(|time| time.as_secs_f64() * 1e3);
        // After a stop the receiver may be gone.
        if load.is_some() || left >= page::CHANCE {
            let _ = loads.send(load);
        }
        let pause = Instant::now() + PAGE_PAUSE;
        stop.sleep_until(pause.min(end));
    }
}

mod browse;
#[cfg(test)]
mod tests;

use browse::serve;
pub use browse::{BROWSER_LEAST, Browsed};
