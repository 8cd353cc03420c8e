//! `headend demo street`: a street of PPPoE lines at an access concentrator. Half of the lines end there, the other half
//! is handed over to an LNS. All are dual-stack behind translations of addresses; a CoA-Request halves the rate of a line
//! while it downloads. Start with [`run`].
//!
//! | file | contents |
//! |---|---|
//! | `place` | four namespaces, their wires and addresses |
//! | `configs` | the daemons' configurations |
//! | `hosts`, `engine`, `frames` | the PPPoE hosts of the street |
//! | `echoes` | a ping from each line |
//! | `load`, `datagrams` | the traffic of two lines |
//! | `coa` | the CoA-Request |
//! | `change` | the rate of a line before and after the CoA-Request |
//! | `asks` | what is asked of the daemons |
//! | `report` | the results as text and as JSON |
//! | `page`, `drawing` | the results as a page, with a picture of the street |

mod asks;
mod change;
mod coa;
mod configs;
mod datagrams;
mod drawing;
mod echoes;
mod engine;
mod frames;
mod hosts;
mod load;
mod page;
mod place;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use cli::ResultsDirectory;
use cli::progress::{bar, spinner};

use crate::ends::{Daemon, End, Ends, Measured};
use hosts::{Hosts, lock};
use load::Program;
use place::Place;
use report::{Report, Side};

/// The most lines: both halves fit into the pools and into the external addresses.
pub(super) const LINES_MAX: u16 = 15_000;
/// Rate down of the lines that end at the access concentrator.
const RATE_BPS: u32 = 50_000_000;
/// Longest time for all lines to be up, and for all pings to be answered.
const UP_MAX: Duration = Duration::from_secs(60);
const ECHOES_MAX: Duration = Duration::from_secs(5);
/// Pause between two looks.
const NAP: Duration = Duration::from_millis(5);
/// The lines with traffic: the first one ends at the access concentrator, the second one at the LNS.
const WATCHED: [u16; 2] = [0, 1];

/// Connect a street of PPPoE lines, hand half of them over to an LNS, and halve the rate of one while it downloads.
#[derive(Debug, clap::Args)]
pub(super) struct StreetArgs {
    /// Number of lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=i64::from(LINES_MAX)))]
    lines: Option<u16>,
    /// 200 lines and a short download
    #[arg(long)]
    quick: bool,
    /// What downloads: iperf3 if it is installed, else a TCP connection of the demo
    #[arg(long, value_name = "PROGRAM")]
    load: Option<Program>,
    /// A directory for street.html, a page with the results
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

impl StreetArgs {
    fn lines(&self) -> u16 {
        let default = if self.quick { 200 } else { 2_000 };
        self.lines.unwrap_or(default)
    }

    /// Seconds of the download.
    fn seconds(&self) -> u64 {
        if self.quick { 5 } else { 8 }
    }
}

/// Runs the street. The exit status is 1 if a line did not come up or a result is missing, and 2 if the host does not
/// permit the namespaces.
pub(super) fn run(args: &StreetArgs) -> Result<ExitCode> {
    // Refused now and not after the measurement.
    let open =
        |directory| ResultsDirectory::open(directory, &["street.html"], page::MARK, "demo street");
    let out = args.out.as_deref().map(open).transpose()?;
    // Namespaces must be made before a second thread exists.
    let place = match Place::make() {
        Ok(place) => place,
        Err(error) => {
            eprintln!("headend demo street: needs network namespaces and TUN devices: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut street = Street::start(args, place)?;
    let report = street.run()?;
    if let Some(out) = &out {
        out.write("street.html", page::html(&report).as_bytes())?;
    }
    if args.json {
        report.print_json()?;
    } else {
        report.print()?;
        if let Some(out) = &out {
            println!("\nThe page: {}", out.path("street.html").display());
        }
    }
    report.check()?;
    Ok(ExitCode::SUCCESS)
}

/// The daemons and the hosts.
struct Street<'a> {
    args: &'a StreetArgs,
    lines: u16,
    // The hosts end before the daemons do.
    hosts: Hosts,
    bng: End,
    lns: End,
    ends: Ends,
    place: Place,
}

impl<'a> Street<'a> {
    fn start(args: &'a StreetArgs, place: Place) -> Result<Self> {
        let lines = args.lines();
        let configs = [configs::bng(lines, RATE_BPS.into()), configs::lns(lines)];
        let users = [false, true].map(|handed_over| configs::users(lines, handed_over));
        let daemon = |name, config, namespace| Daemon {
            name,
            config,
            namespace: Some(namespace),
        };
        let ends = Ends::start_all(
            &[
                daemon("lns", &configs[1], &place.lns),
                daemon("bng", &configs[0], &place.bng),
            ],
            &[
                (configs::BNG_USERS, &users[0]),
                (configs::LNS_USERS, &users[1]),
            ],
        )?;
        let (bng, lns) = (ends.connect("bng")?, ends.connect("lns")?);
        let hosts = Hosts::start(&place, lines)?;
        Ok(Self {
            args,
            lines,
            hosts,
            bng,
            lns,
            ends,
            place,
        })
    }

    /// Runs all steps. If one fails because a daemon has ended, the error says so.
    fn run(&mut self) -> Result<Report> {
        let report = self.steps();
        if report.is_err() {
            self.ends.check()?;
        }
        report
    }

    fn steps(&mut self) -> Result<Report> {
        let before = self.measure()?;
        let [course, own, handed_over] = self.connect()?;
        let up = course.len() as u16;
        let after = self.measure()?;
        let hosts_cpu_us = self.hosts_cpu_us();
        let (bng_subscribers, lns_subscribers) = self.subscribers()?;
        let (tunnels, sessions) = {
            let stats = self.bng.stats()?;
            (stats.established, stats.sessions_established)
        };
        self.ping()?;
        let nats = [self.bng.nat()?, self.lns.nat()?];
        let leases = [self.bng.leases()?, self.lns.leases()?];
        let change = self.change_if(up == self.lines);
        self.ends.check()?;
        let shared = &self.hosts.shared;
        let (answered, median_ms) = {
            let echoes = lock(&shared.echoes);
            (echoes.answered(), echoes.median_ms())
        };
        let retransmissions = shared
            .retransmissions
            .load(std::sync::atomic::Ordering::Relaxed);
        let ended = lock(&shared.ended).clone();
        self.hosts.stop()?;
        let left = self.await_empty()?;
        self.ends.stop()?;
        let side = |at: usize, lines: u64| Side::new(&before[at], &after[at], lines);
        let half = u64::from(self.lines / 2);
        Ok(Report {
            lines: self.lines,
            up,
            course,
            courses: [own, handed_over],
            ended,
            retransmissions,
            hosts_cpu_us,
            bng: side(0, self.lines.into()),
            lns: side(1, half),
            subscribers: [bng_subscribers, lns_subscribers],
            tunnels,
            sessions,
            nats,
            leases,
            answered,
            median_ms,
            change,
            left,
        })
    }

    fn measure(&mut self) -> Result<[Measured; 2]> {
        Ok([self.bng.measure()?, self.lns.measure()?])
    }

    fn hosts_cpu_us(&self) -> u64 {
        let cpu_us = &self.hosts.shared.cpu_us;
        cpu_us.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn up(&self) -> u32 {
        self.hosts
            .shared
            .up
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Connects all lines. Returns the seconds at which each was up: all, the access concentrator's, the LNS's.
    fn connect(&mut self) -> Result<[Vec<f64>; 3]> {
        let all = u32::from(self.lines);
        let bar = bar(all, "lines");
        let started = Instant::now();
        self.hosts.dial();
        while self.up() < all && started.elapsed() < UP_MAX {
            self.hosts.check()?;
            self.ends.check()?;
            bar.set_position(self.up().into());
            std::thread::sleep(NAP);
        }
        bar.finish_and_clear();
        let lines = lock(&self.hosts.shared.lines);
        let mut courses = <[Vec<f64>; 3]>::default();
        for (number, line) in (0..).zip(lines.iter()) {
            let whose = 1 + usize::from(configs::is_handed_over(number));
            courses[0].extend(line.up_after_s);
            courses[whose].extend(line.up_after_s);
        }
        for course in &mut courses {
            course.sort_by(f64::total_cmp);
        }
        Ok(courses)
    }

    /// What the daemons list, once both list every line or a second has passed.
    fn subscribers(&mut self) -> Result<(asks::Subscribers, asks::Subscribers)> {
        let started = Instant::now();
        loop {
            let (bng, lns) = (self.bng.subscribers()?, self.lns.subscribers()?);
            let all = bng.own + lns.own;
            if all >= self.lines.into() || started.elapsed() > Duration::from_secs(1) {
                return Ok((bng, lns));
            }
            std::thread::sleep(NAP);
        }
    }

    /// Pings the internet from each line. A ping that is lost is sent again, as `ping` would.
    fn ping(&mut self) -> Result<()> {
        let spinner = spinner("street");
        spinner.set_message("a ping from each line");
        for _ in 0..3 {
            self.hosts.echo();
            let started = Instant::now();
            while started.elapsed() < ECHOES_MAX {
                self.hosts.check()?;
                let answered = lock(&self.hosts.shared.echoes).answered();
                let is_complete = |(sent, answered): (usize, usize)| {
                    answered == sent && sent == usize::from(self.lines)
                };
                if answered.into_iter().all(is_complete) {
                    return Ok(());
                }
                std::thread::sleep(NAP);
            }
        }
        Ok(())
    }

    /// The change, or the reason why it could not be measured.
    fn change_if(&mut self, is_up: bool) -> std::result::Result<change::Change, String> {
        if !is_up {
            return Err("not all lines are up".into());
        }
        self.change().map_err(|error| format!("{error:#}"))
    }

    fn change(&mut self) -> Result<change::Change> {
        let program = self.args.load.unwrap_or_else(Program::available);
        let spinner = spinner("street");
        spinner.set_message(format!("{} and a CoA-Request", program.name()));
        let change = change::measure(self, program);
        spinner.finish_and_clear();
        self.ends.check()?;
        change
    }

    /// Waits until the daemons have no subscriber left; returns how many are.
    fn await_empty(&mut self) -> Result<u64> {
        let started = Instant::now();
        loop {
            let (bng, lns) = (self.bng.subscribers()?, self.lns.subscribers()?);
            let left = bng.own + bng.handed_over + lns.own;
            if left == 0 || started.elapsed() > Duration::from_secs(5) {
                return Ok(left);
            }
            std::thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests;
