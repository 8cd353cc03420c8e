//! One row, in namespaces or in virtual time.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::model::{self, Setup};
use super::pinger::{self, Target};
use super::rows::{self, BULK_CONNECTIONS, Load, Row};
use super::stage::{DRAIN, Error, PINGED, Stage, join, web};
use super::traffic::browser::Browser;
use super::traffic::page;
use super::treatment::{Both, Link, Treatment};

/// How often B pings.
pub(super) const PING_EVERY: base::Duration = base::Duration::from_millis(100);

/// Wait between one page and the next.
const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// A page of which nothing was there at the end counts as not loaded when it had this long.
const PAGE_CHANCE: Duration = Duration::from_secs(5);

/// Pages that a browser loads in a row.
const BROWSER_LOADS: usize = 3;

/// Where the hosts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In network namespaces, with the kernel's TCP, in real time.
    Namespaces,
    /// In a model, with a TCP of its own, in virtual time: the same seed gives the same result.
    Model,
}

/// What all rows have in common.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the hosts are.
    pub place: Place,
    /// The slow link.
    pub link: Link,
    /// What the gateway does in the rows with a policy.
    pub treatment: Treatment,
    /// How long each row is measured, in seconds.
    pub seconds: u64,
    /// How long the load has to settle before, in seconds; not in the model.
    pub settle: u64,
    /// Chance of everything that has any.
    pub seed: u64,
}

impl Plan {
    pub(super) fn settle(&self) -> Duration {
        Duration::from_secs(self.settle)
    }

    /// Half of a measurement, 2 s at least.
    fn half(&self) -> Duration {
        Duration::from_secs((self.seconds / 2).max(2))
    }

    fn shaper(&self, shaped: bool) -> Both {
        let none = &Treatment::None;
        if shaped { &self.treatment } else { none }.both(&self.link)
    }

    pub(super) fn setup(&self, load: Load, bulk: usize, shaped: bool) -> Result<Setup, Error> {
        let start = base::Instant::ZERO;
        Ok(Setup {
            seed: self.seed,
            router: self.shaper(shaped).queues(self.seed, start)?,
            modem: self.link.modem().queues(self.seed, start)?,
            delay: self.link.delay(),
            ecn: false,
            load,
            bulk,
            seconds: self.seconds,
        })
    }

    fn stage(&self, shaped: bool) -> Result<Stage, Error> {
        Stage::new(&self.link, &self.shaper(shaped), self.seed)
    }

    /// The first half of a row: stream, pings and pages of B beside the load of A.
    ///
    /// # Errors
    /// What the kernel said, or disciplines that do not fit together.
    pub fn probe(&self, row: Row) -> Result<rows::Result, Error> {
        match self.place {
            Place::Model => Ok(model::probe(self.setup(
                row.load,
                BULK_CONNECTIONS,
                row.shaped,
            )?)),
            Place::Namespaces => self.probe_here(row),
        }
    }

    fn probe_here(&self, row: Row) -> Result<rows::Result, Error> {
        let mut stage = self.stage(row.shaped)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let from = begin + self.settle();
        let end = from + Duration::from_secs(self.seconds);
        let wait = Duration::from_millis(self.link.longest_ms() + 500);
        stage.load(row.load, BULK_CONNECTIONS, (begin, end + DRAIN))?;
        let listener = stage.topology.far.run(|| TcpListener::bind(web()))??;
        // Nobody says of the loader's own pages how long they took.
        let (loads, _heard) = mpsc::channel();
        let server = stage
            .topology
            .far
            .spawn("web", move || page::serve(&listener, &loads, end))?;
        std::thread::sleep(from.saturating_duration_since(Instant::now()));
        let stream = stage.stream((from, end), wait)?;
        let pinger = stage.topology.b.spawn("ping", {
            let count = self.seconds.max(1) * 1_000_000_000 / PING_EVERY.as_nanos();
            let wait = base::Duration::from_millis(self.link.longest_ms() + 500);
            move || pinger::run(&[far()], PING_EVERY, count, wait)
        })?;
        let pages = stage
            .topology
            .b
            .spawn("pages", move || Ok(load_pages(end)))?;
        let account = join(stream)?;
        let mut result = rows::Result {
            loss_percent: account.loss_percent(),
            jitter_ms: account.jitter_ms,
            pings: join(pinger)?.pop().unwrap_or_default(),
            ..rows::Result::default()
        };
        (result.page_ms, result.page_failures) = join(pages)?;
        join(server)?;
        stage.finish()?;
        Ok(result)
    }

    /// The second half of a row: B's share of the link with one bulk connection against the load of A, of which there
    /// are `bulk` if it is such, and what both got in bits of payload a second. In namespaces it is measured for half of
    /// the time.
    ///
    /// # Errors
    /// As [`Plan::probe`].
    pub fn share(&self, load: Load, bulk: usize, shaped: bool) -> Result<(f64, f64), Error> {
        if self.place == Place::Model {
            return Ok(model::share(self.setup(load, bulk, shaped)?));
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
        std::thread::sleep(from.saturating_duration_since(Instant::now()));
        let (before, since) = (both(&stage), Instant::now());
        // A moment before the end, when all still send.
        let last = end - Duration::from_millis(100);
        std::thread::sleep(last.saturating_duration_since(Instant::now()));
        let (after, seconds) = (both(&stage), since.elapsed().as_secs_f64());
        stage.finish()?;
        let [a, b] = [after[0] - before[0], after[1] - before[1]].map(|octets| octets as f64);
        Ok((b / (a + b).max(1.0), (a + b) * 8.0 / seconds.max(0.001)))
    }

    /// Page loads of a browser at B beside the load of A, in milliseconds, and how many did not end in time. Only in
    /// namespaces.
    ///
    /// # Errors
    /// As [`Plan::probe`], and a browser that cannot be started.
    pub fn browse(&self, row: Row, program: &Path) -> Result<(Vec<f64>, u32), Error> {
        let mut stage = self.stage(row.shaped)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let end = begin + self.settle() + self.half();
        stage.load(row.load, BULK_CONNECTIONS, (begin, end))?;
        let listener = stage.topology.far.run(|| TcpListener::bind(web()))??;
        let (loads, heard) = mpsc::channel();
        let server = stage
            .topology
            .far
            .spawn("web", move || page::serve(&listener, &loads, end))?;
        std::thread::sleep((begin + self.settle()).saturating_duration_since(Instant::now()));
        let (mut took, mut failures) = (Vec::new(), 0);
        let profile = Profile::new()?;
        while took.len() < BROWSER_LOADS && Instant::now() < end {
            let started = Instant::now();
            let browser = Browser::start(program, web(), &profile.0, &stage.topology.b)?;
            match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(ms) => took.push(ms),
                Err(_) if started.elapsed() > PAGE_CHANCE => failures += 1,
                Err(_) => {}
            }
            drop(browser);
        }
        join(server)?;
        stage.finish()?;
        Ok((took, failures))
    }
}

/// A directory of a browser's, gone when this is.
struct Profile(std::path::PathBuf);

impl Profile {
    fn new() -> io::Result<Self> {
        let name = format!("headend-browser-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // A browser that has just been ended may still hold a file.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn far() -> Target {
    Target {
        name: "far".to_owned(),
        to: PINGED,
        tos: 0,
        size: 56,
    }
}

/// Loads pages one after the other until `end`; how long each took in milliseconds, and how many did not get there.
fn load_pages(end: Instant) -> (Vec<f64>, u32) {
    let (mut took, mut failures) = (Vec::new(), 0);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (took, failures);
        }
        match page::load(web(), left.min(page::LOAD_MAX)) {
            Some(time) => took.push(time.as_secs_f64() * 1e3),
            None if left >= PAGE_CHANCE => failures += 1,
            None => {}
        }
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(PAGE_PAUSE.min(left));
    }
}

#[cfg(test)]
mod tests;
