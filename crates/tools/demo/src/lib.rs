//! `headend demo`: LNS and LAC as two processes of this binary with ten thousand tunnels between
//! them, one subscriber in each, and traffic of some subscribers. The tunnels are created through
//! the LAC's control socket, as in the published benchmark. Start with [`run`].
//!
//! | file | contents |
//! |---|---|
//! | `place` | two network namespaces and a link between them |
//! | `configs` | the daemons' configurations |
//! | `ends` | the processes, and how they are ended |
//! | `traffic` | TCP and UDP of some subscribers, and its cost |
//! | `report` | the report at the end |
//! | `street` | `headend demo street`: PPPoE lines, an LNS, and a changed rate |
#![forbid(unsafe_code)]

mod configs;
pub mod ends;
mod place;
mod report;
mod street;
mod traffic;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;

use cli::progress::bar;
use control::client::Client;
use control::create::{self, Outcome, Wanted};
use control::request::{Do, Nothing, SubscriberFilter, TunnelDelete, Wait};
use ends::{End, Ends, Setup};
use place::Place;
use report::{Online, Report, Side};
use traffic::{Row, Traffic};

/// Longest time until both peers report that all is up, or that all is closed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two queries to a daemon.
const NAP: Duration = Duration::from_millis(5);

/// Connect 10,000 subscribers in 10,000 tunnels between two daemons on this machine, carry traffic of some of
/// them, and report the cost.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DemoArgs {
    #[command(subcommand)]
    scene: Option<Scene>,
    /// Number of tunnels, with a session each
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=250_000))]
    tunnels: u32,
    /// L2TPv2 or L2TPv3
    #[arg(long, value_name = "2|3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    version: u8,
    /// Open tunnels and sessions without subscribers
    #[arg(long)]
    no_ppp: bool,
    /// Seconds to measure each of four kinds of traffic; 0: no traffic
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=60))]
    seconds: u64,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Another demo than that of the tunnels.
#[derive(Debug, clap::Subcommand)]
enum Scene {
    /// Connect 2,000 PPPoE lines, hand half of them over to an LNS, and halve the rate of one while it downloads
    Street(street::StreetArgs),
}

impl DemoArgs {
    fn wants_traffic(&self) -> bool {
        !self.no_ppp && self.seconds > 0
    }
}

/// Runs the demo. Fails unless everything came up on both sides and nothing is listed after the
/// teardown.
pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    if let Some(Scene::Street(args)) = &args.scene {
        return street::run(args);
    }
    // Tunnel ids of L2TPv2 have 16 bits, and 0 is none.
    ensure!(
        args.version == 3 || args.tunnels <= 65_000,
        "L2TPv2 has ids for 65,000 tunnels between two addresses"
    );
    let report = report(args)?;
    if args.json {
        report.print_json()?;
    } else {
        report.print()?;
    }
    report.check()?;
    Ok(ExitCode::SUCCESS)
}

/// Results of a demo for other programs.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Subscribers that had an address on both sides.
    pub subscribers: u64,
    /// From the first tunnel requested to the last address assigned.
    pub took: Duration,
    /// Seconds since the start, and the tunnels with a session that were up then.
    pub course: Vec<(f64, f64)>,
    /// Processor time of the LNS per subscriber, in microseconds.
    pub lns_cpu_us: f64,
    /// Memory of the LNS per subscriber, in bytes.
    pub lns_bytes: f64,
    /// TCP payload through the tunnels in Gbit/s, from and to subscribers.
    pub tcp_gbit_per_s: Vec<f64>,
    /// Why no traffic was measured.
    pub missing: Option<String>,
}

/// Connects that many subscribers, each in a tunnel, measures their traffic for `seconds` per kind, and disconnects
/// them. No other thread may exist, because namespaces without root need that.
///
/// # Errors
/// A daemon did not start, or not all subscribers came up or went away.
pub fn figures(tunnels: u32, seconds: u64) -> Result<Figures> {
    let args = DemoArgs {
        scene: None,
        tunnels,
        version: 3,
        no_ppp: false,
        seconds,
        json: false,
    };
    let report = report(&args)?;
    report.check()?;
    report.figures().context("no subscriber was connected")
}

fn report(args: &DemoArgs) -> Result<Report> {
    // Namespaces must be made before a second thread exists.
    let place = args.wants_traffic().then(Place::make);
    let (place, missing) = match place {
        None => (None, None),
        Some(Ok(place)) => (Some(place), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    Demo::start(args, place)?.run(missing)
}

/// Both daemons, and their namespaces.
struct Demo<'a> {
    args: &'a DemoArgs,
    ends: Ends,
    lns: End,
    lac: End,
    place: Option<Place>,
}

impl<'a> Demo<'a> {
    fn start(args: &'a DemoArgs, place: Option<Place>) -> Result<Self> {
        let addresses = place::addresses(place.as_ref());
        let (configs, users) = if args.no_ppp {
            (configs::bare(addresses), None)
        } else {
            let configs = configs::with_subscribers(addresses, args.tunnels, place.is_some());
            (configs, Some(configs::users(args.tunnels)))
        };
        let ends = Ends::set_up(&Setup {
            configs: configs.each_ref().map(String::as_str),
            file: users.as_deref().map(|users| (configs::USERS, users)),
            namespaces: place.as_ref().map(Place::both),
        })?;
        let (lns, lac) = (ends.lns()?, ends.lac()?);
        Ok(Self {
            args,
            ends,
            lns,
            lac,
            place,
        })
    }

    fn run(mut self, missing: Option<String>) -> Result<Report> {
        let tunnels = self.args.tunnels;
        let before = [self.lns.measure()?, self.lac.measure()?];
        let started = Instant::now();
        let (outcome, course) = self.create()?;
        let mut up = self.await_tunnels(tunnels.into())?;
        let mut online = None;
        if !self.args.no_ppp {
            let all = self.await_online()?;
            let took = started.elapsed();
            up &= all == u64::from(tunnels);
            online = Some(Online {
                count: all,
                took,
                echo_replies: 0,
                left: 0,
            });
        }
        let after = [self.lns.measure()?, self.lac.measure()?];
        let mut traffic = Vec::new();
        if let Some(online) = &mut online
            && up
        {
            online.echo_replies = self.await_echoes()?;
            traffic = self.traffic()?;
            online.left = self.lns.counter("subscribers")?;
        }

        let started = Instant::now();
        self.lac.client.call(&Do::TunnelDelete(TunnelDelete {
            tunnel: None,
            version: None,
            all: true,
        }))?;
        let gone = self.await_tunnels_gone()?;
        let teardown = started.elapsed();
        let listed = listed(&mut self.lns.client)? + listed(&mut self.lac.client)?;
        let left = [self.lns.stats()?, self.lac.stats()?];
        let in_namespaces = self.place.is_some();
        self.ends.stop()?;
        let [lns, lac] = [0, 1].map(|at| Side::new(&before[at], &after[at], &left[at], tunnels));
        Ok(Report {
            version: self.args.version,
            wanted: tunnels,
            in_namespaces,
            outcome,
            course,
            online,
            traffic,
            missing,
            lns,
            lac,
            teardown,
            up,
            gone,
            listed,
        })
    }

    /// Creates all tunnels. Returns the outcome, and how many were up after how many seconds.
    fn create(&mut self) -> Result<(Outcome, Vec<(f64, f64)>)> {
        let wanted = Wanted {
            peer: self.lns.address()?,
            version: self.args.version,
            count: self.args.tunnels,
            from: None,
            session: true,
            wait: Wait::Up,
            timeout: None,
        };
        let bar = bar(self.args.tunnels, "tunnels");
        let started = Instant::now();
        let mut course = vec![(0.0, 0.0)];
        // At most about a hundred points, whatever the number of tunnels.
        let every = f64::from(self.args.tunnels) / 100.0;
        let mut last_done = 0.0;
        let outcome = create::create(&mut self.lac.client, &wanted, |done| {
            bar.set_position(done.into());
            let done = f64::from(done);
            last_done = done;
            if course.last().is_none_or(|(_, last)| done >= last + every) {
                course.push((started.elapsed().as_secs_f64(), done));
            }
        });
        bar.finish_and_clear();
        if course.last().is_none_or(|(_, shown)| *shown < last_done) {
            course.push((started.elapsed().as_secs_f64(), last_done));
        }
        Ok((outcome?, course))
    }

    /// Waits until that many tunnels, with a session each, are up on both sides; `false` after a
    /// time-out.
    fn await_tunnels(&mut self, all: u64) -> Result<bool> {
        let mut up = true;
        for end in [&mut self.lns, &mut self.lac] {
            up &= until(|| {
                let stats = end.stats()?;
                Ok(stats.established == all && stats.sessions_established == all)
            })?;
        }
        Ok(up)
    }

    fn await_tunnels_gone(&mut self) -> Result<bool> {
        let mut gone = true;
        for end in [&mut self.lns, &mut self.lac] {
            gone &= until(|| {
                let stats = end.stats()?;
                let idle = stats.tunnels == 0 && stats.closing == 0 && stats.sessions == 0;
                Ok(idle && end.counter("subscribers")? == 0)
            })?;
        }
        Ok(gone)
    }

    /// Waits until all subscribers are connected on both sides, or until failures or the time limit
    /// end the wait; returns how many are.
    fn await_online(&mut self) -> Result<u64> {
        let all = u64::from(self.args.tunnels);
        let mut least = all;
        for end in [&mut self.lns, &mut self.lac] {
            let mut up = 0;
            until(|| {
                let counters = end.counters()?;
                up = counters["subscribers_came_up"];
                Ok(up + counters["subscribers_ended"] >= all)
            })?;
            least = least.min(up);
        }
        Ok(least)
    }

    /// Number of answered Echo-Requests, once each subscriber may have been sent one.
    fn await_echoes(&mut self) -> Result<u64> {
        let all = self.args.tunnels;
        let (mut replies, lns) = (0, &mut self.lns);
        until(|| {
            replies = lns.counter("lcp_echo_replies")?;
            Ok(replies >= u64::from(all))
        })?;
        Ok(replies)
    }

    fn traffic(&mut self) -> Result<Vec<Row>> {
        let Some(place) = &self.place else {
            return Ok(Vec::new());
        };
        let all = u64::from(self.args.tunnels);
        let lac = &mut self.lac;
        let set = until(|| Ok(lac.counter("client_addresses")? == all))?;
        ensure!(
            set,
            "the LAC's host does not have all addresses of its clients"
        );
        let mut traffic = Traffic {
            place,
            addresses: addresses(&mut lac.client)?,
            lns: &mut self.lns,
            lac,
            span: Duration::from_secs(self.args.seconds),
        };
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        let rows = traffic.run(&|what| bar.set_message(what.to_owned()));
        bar.finish_and_clear();
        rows
    }
}

impl End {
    fn counter(&mut self, name: &str) -> Result<u64> {
        let counters: HashMap<String, u64> = self.counters()?;
        let value = counters.get(name).copied();
        value.with_context(|| format!("the daemon counts no {name}"))
    }
}

/// Repeats `is_so` until it is true; `false` if time runs out.
fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    let started = Instant::now();
    while !is_so()? {
        if started.elapsed() > PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(NAP);
    }
    Ok(true)
}

/// Addresses of the first subscribers.
fn addresses(client: &mut Client) -> Result<Vec<Ipv4Addr>> {
    #[derive(serde::Deserialize)]
    struct Subscriber {
        address: Option<Ipv4Addr>,
    }
    let mut addresses = Vec::new();
    let all = Do::ShowSubscribers(SubscriberFilter::default());
    client.rows(&all, |row| {
        if addresses.len() < traffic::SUBSCRIBERS {
            let row: Subscriber = serde_json::from_str(row)?;
            addresses.extend(row.address);
        }
        Ok(())
    })?;
    if addresses.is_empty() {
        bail!("no subscriber has an address");
    }
    Ok(addresses)
}

/// Tunnels, sessions and subscribers that `show` lists.
fn listed(client: &mut Client) -> Result<u64> {
    let mut rows = 0;
    for what in [
        Do::ShowTunnels(Nothing {}),
        Do::ShowSessions(Nothing {}),
        Do::ShowSubscribers(SubscriberFilter::default()),
    ] {
        rows += client.rows(&what, |_| Ok(()))?;
    }
    Ok(rows)
}
