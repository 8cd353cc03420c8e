//! Page loads in a browser.
//!
//! One browser process loads the page many times, each time over new connections. The first load of
//! a process is left out: it also measures how long the browser needs to start, which on a busy
//! machine is several times as long as the page needs.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Plan;
use crate::gateway::rows::{BULK_CONNECTIONS, Row};
use crate::gateway::stage::{Error, Job, Stage, join, web};
use crate::gateway::traffic::browser::{Browser, Profile};
use crate::gateway::traffic::page::{self, Reported};

/// Least number of page loads in a browser by which a row is judged.
pub const BROWSER_LEAST: usize = 20;

/// Number of page loads after which a row is done.
const LOADS: usize = 24;

/// Longest time that a row's page loads take.
const BROWSE_MAX: Duration = Duration::from_secs(60);

/// Longest wait for one page. Then it has failed, and the browser is started again.
const ONE_MAX: Duration = Duration::from_secs(20);

/// Ports of the page: one for each load, with the first loads of some processes.
const PORTS: u16 = LOADS as u16 + 8;

/// The first of these ports. Chromium refuses many ports below 1024.
const FIRST_PORT: u16 = 8_001;

/// Longest wait before checking whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A row's page loads in a browser.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Browsed {
    /// The loads, without the first of each browser process.
    pub loads: Vec<Reported>,
    /// Loads that did not finish in time.
    pub failures: u32,
}

/// Serves the page at the far side, at each of these ports. The receiver gets the loads that
/// browsers report.
pub(super) fn serve(
    stage: &Stage,
    ports: Range<u16>,
    end: Instant,
) -> io::Result<(Vec<Job>, Receiver<Reported>)> {
    let far = &stage.topology.far;
    let (loads, heard) = mpsc::channel();
    let servers = ports.map(|port| {
        let listener = far.run(|| TcpListener::bind(SocketAddr::new(web().ip(), port)))??;
        let (loads, over) = (loads.clone(), stage.over.clone());
        far.spawn("web", move || page::serve(&listener, &loads, end, &over))
    });
    Ok((servers.collect::<io::Result<_>>()?, heard))
}

impl Plan {
    /// Page loads of a browser on B beside A's load. Only in namespaces.
    ///
    /// # Errors
    /// As [`Plan::probe`], and a browser that cannot be started.
    pub fn browse(&self, row: Row, program: &Path) -> Result<Browsed, Error> {
        let mut stage = self.stage(row.shaped)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let end = begin + self.settle() + BROWSE_MAX;
        stage.load(row.load, BULK_CONNECTIONS, (begin, end))?;
        let (servers, heard) = serve(&stage, FIRST_PORT..FIRST_PORT + PORTS, end)?;
        self.settle_until(begin + self.settle())?;
        let profile = Profile::new()?;
        let mut browsed = Browsed::default();
        let mut port = 0;
        while browsed.loads.len() < LOADS && port < PORTS && !self.is_over(end) {
            let page = SocketAddr::new(web().ip(), FIRST_PORT + port);
            let browser = Browser::start(program, page, &profile, &stage.topology.b)?;
            port += self.loads_of(&heard, end, &mut browsed);
            drop(browser);
        }
        // Load and servers would run until the end of the longest time.
        stage.over.set();
        if !self.stop.is_set() {
            servers.into_iter().try_for_each(join)?;
        }
        stage.finish()?;
        Ok(browsed)
    }

    fn is_over(&self, end: Instant) -> bool {
        self.stop.is_set() || Instant::now() >= end
    }

    /// Keeps the loads of one browser process, until there are enough or one fails. Returns how many
    /// ports the process used.
    fn loads_of(&self, heard: &Receiver<Reported>, end: Instant, browsed: &mut Browsed) -> u16 {
        let mut used = 1;
        let mut since = Instant::now();
        while browsed.loads.len() < LOADS && !self.is_over(end) {
            match heard.recv_timeout(LOOK_EVERY) {
                Ok(load) => {
                    if used > 1 {
                        browsed.loads.push(load);
                    }
                    used += 1;
                    since = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) if since.elapsed() < ONE_MAX => {}
                Err(_) => break,
            }
        }
        let is_cut = browsed.loads.len() < LOADS && since.elapsed() >= page::CHANCE;
        browsed.failures += u32::from(is_cut && !self.stop.is_set());
        used
    }
}
