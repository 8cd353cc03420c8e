//! `headend bench qos`: what a packet costs in the queues, and how well they keep their rate.
//!
//! | module | what it is |
//! |---|---|
//! | `packets` | packets of many hosts and flows, plain and in tunnels |
//! | `classify` | reading of keys, map and hash |
//! | `queues` | enqueue and dequeue, each discipline alone and in trees |
//! | `rate` | a shaped rate, in virtual time and in real time |
//! | `page` | the page of ten million pings |

mod classify;
mod packets;
mod page;
mod queues;
mod rate;

use std::process::ExitCode;

use anyhow::Result;
use base::Duration;
use lab::plot::number::grouped;
use lab::plot::{Axis, COLOUR_OURS, Chart, Series, Style};
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use reactor::clock;

use super::{Out, spinner};

/// What the bare loop is called.
const FLOOR: &str = "floor";

/// Octets of a packet's buffer in the ring beyond the cache.
const BUFFER: usize = 2_048;

/// Packets a second that a tree is to pass, in millions.
const REACH_MPPS: f64 = 6.0;

/// Rates that are shaped, in bits a second.
const RATES: [u64; 2] = [1_000_000, 1_000_000_000];

/// Measure classifiers, queues and shaped rates.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Measure each once only, in a few seconds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

/// How much is measured.
struct Config {
    /// Numbers of flows.
    flows: [u32; 3],
    /// How long each is measured again.
    repeat: Duration,
    /// Buffers in the ring beyond the cache.
    ring: usize,
    /// How long a rate is kept up.
    span: Duration,
    /// Pings on the page.
    pings: u64,
}

impl Config {
    fn new(quick: bool) -> Self {
        let flows = [1_024, 4 * 1_024, 16 * 1_024];
        if quick {
            return Self {
                flows,
                repeat: Duration::ZERO,
                ring: 4_096,
                span: Duration::from_millis(500),
                pings: 100_000,
            };
        }
        Self {
            flows,
            repeat: Duration::from_millis(50),
            ring: 131_072,
            span: Duration::from_secs(4),
            pings: 10_000_000,
        }
    }
}

/// Nanoseconds that one of `count` takes, the least of all times that `work` was done.
fn least(config: &Config, count: u64, mut work: impl FnMut()) -> f64 {
    // Once without the clock, so that the memory is there.
    work();
    let begun = clock::now();
    let mut least = u64::MAX;
    loop {
        let start = clock::now();
        work();
        let end = clock::now();
        least = least.min(end.since(start).as_nanos());
        if end.since(begun) >= config.repeat {
            return least as f64 / count as f64;
        }
    }
}

/// Measures and publishes.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let config = Config::new(args.quick);
    let witness = CoreWitness::start();
    let bar = spinner("qos");
    let classified = classify_table(&config, &mut |what| bar.set_message(what));
    let passed = pass(&config, &mut |what| bar.set_message(what))?;
    let rates = rate_table(&config, &mut |what| bar.set_message(what))?;
    bar.set_message("a page of pings");
    let page = page_table(&config);
    bar.finish_and_clear();
    let mut report = Report::new("qos", MachineInfo::read_with(witness));
    report.method = method(&config);
    report.tables = vec![classified, queue_table(&config, &passed), rates, page];
    report.charts = vec![chart(&config, &passed).into()];
    report.publish(args.out.dir.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn method(config: &Config) -> Vec<String> {
    vec![
        format!(
            "One thread. Each is measured again for {} ms, and the least is kept: other work on the machine only ever adds.",
            config.repeat.as_nanos() / 1_000_000
        ),
        format!(
            "Classifiers: headers of flows from {} hosts, in a random order, {} octets apart, over and over; and in a ring of {} buffers of {} octets, {} MiB, which is beyond most caches unless the run is a quick one. The map takes the innermost source address, the hash all keys of both headers. The floor copies the packet's first 64 octets, or what there is of them.",
            packets::HOSTS,
            packets::HEADERS,
            grouped(config.ring as f64, 0),
            grouped(BUFFER as f64, 0),
            (config.ring * BUFFER) >> 20
        ),
        format!(
            "Queues: {} packets of 64 octets wait all the time; 32 of flows at random come, then 32 leave; none is lost or held back. The floor does the same with a ring of places: packets go into the pool and out of it. With idle flows, {} times as many others have sent a packet each before.",
            grouped(queues::WAITING as f64, 0),
            queues::IDLE
        ),
        format!(
            "Rates: packets of 1,000 octets through htb with one class, fair below, over {} s; what left after the first burst, from one packet's leaving to another's. In virtual time 1 Gbit/s is kept for a tenth of that.",
            config.span.as_secs_f64()
        ),
        format!(
            "The page: {} made-up pings of four streams, over time, as a distribution, and each a dot. How late pings are sent is not measured here.",
            grouped(config.pings as f64, 0)
        ),
    ]
}

/// `at 1,024` for each number of flows.
fn headings(config: &Config) -> [String; 3] {
    config
        .flows
        .map(|flows| format!("at {}", grouped(f64::from(flows), 0)))
}

fn classify_table(config: &Config, told: &mut dyn FnMut(String)) -> Table {
    let headings = headings(config);
    let mut columns = vec![("packets", ""), ("what", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ns")));
    columns.extend([("in the ring", "ns"), ("to reach", "ns")]);
    let mut table = Table::new("Keys and class of a packet, against the flows", &columns);
    for mix in &classify::MIXES {
        told(format!("keys of {}", mix.name));
        let measured = classify::run(config, mix);
        for (step, what) in classify::STEPS.iter().enumerate() {
            let mut cells: Vec<Cell> = vec![mix.name.into(), (*what).into()];
            cells.extend(measured.iter().map(|column| Cell::num(column[step], 1)));
            if step == 0 {
                table.floor(cells);
            } else {
                cells.push(Cell::num(mix.reach_ns, 0));
                table.row(cells);
            }
        }
    }
    table
}

/// What a packet costs in one of the queues, in nanoseconds.
struct Passed {
    name: &'static str,
    at: [f64; 3],
    /// With the least flows, and many more that are idle.
    idle: f64,
}

fn pass(config: &Config, told: &mut dyn FnMut(String)) -> Result<Vec<Passed>> {
    let mut passed = Vec::new();
    for subject in queues::subjects() {
        told(subject.name.to_owned());
        let mut at = [0.0; 3];
        for (ns, &flows) in at.iter_mut().zip(&config.flows) {
            *ns = queues::run(config, &subject, flows, false)?;
        }
        let idle = queues::run(config, &subject, config.flows[0], true)?;
        passed.push(Passed {
            name: subject.name,
            at,
            idle,
        });
    }
    Ok(passed)
}

/// Millions a second, from nanoseconds each.
fn millions(ns: f64) -> f64 {
    1e3 / ns
}

fn queue_table(config: &Config, passed: &[Passed]) -> Table {
    let headings = headings(config);
    let mut columns = vec![("queue", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "M/s")));
    columns.extend([
        ("with idle flows", "M/s"),
        ("to reach", "M/s"),
        ("a packet", "ns"),
        ("of the floor's time", "x"),
    ]);
    let title = "Packets through a queue, against the flows";
    let mut table = Table::new(title, &columns);
    let floor = passed.first().map_or(f64::NAN, |floor| floor.at[0]);
    for Passed { name, at, idle } in passed {
        let mut cells: Vec<Cell> = vec![(*name).into()];
        cells.extend(at.map(|ns| Cell::num(millions(ns), 2)));
        cells.push(Cell::num(millions(*idle), 2));
        let is_tree = name.starts_with("htb");
        cells.push(is_tree.then_some(Cell::num(REACH_MPPS, 0)).into());
        cells.push(Cell::num(at[0], 1));
        cells.push(Cell::num(at[0] / floor, 2));
        if *name == FLOOR {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

fn rate_table(config: &Config, told: &mut dyn FnMut(String)) -> Result<Table> {
    let columns = [
        ("rate", "bit/s"),
        ("time", ""),
        ("measured", "bit/s"),
        ("error", "%"),
        ("to reach", "%"),
    ];
    let mut table = Table::new("The rate that a shaper was told, and what left", &columns);
    for rate_bps in RATES {
        for time in rate::Time::ALL {
            told(format!("{rate_bps} bit/s, {} time", time.name()));
            let is_brief = rate_bps > 1_000_000 && time != rate::Time::Real;
            let tenth = Duration::from_nanos(config.span.as_nanos() / 10);
            let span = if is_brief { tenth } else { config.span };
            let measured = rate::run(rate_bps, time, span)?;
            table.row([
                rate_bps.into(),
                time.name().into(),
                Cell::num(measured, 0),
                Cell::num((measured / rate_bps as f64 - 1.0) * 100.0, 3),
                "within 1".into(),
            ]);
        }
    }
    Ok(table)
}

fn page_table(config: &Config) -> Table {
    let taken = page::run(config.pings);
    let columns = [
        ("what", ""),
        ("measured", ""),
        ("to reach, of 10,000,000", ""),
    ];
    let title = format!("A page of {} pings", grouped(config.pings as f64, 0));
    let mut table = Table::new(title, &columns);
    table.row([
        "samples taken in, s".into(),
        Cell::num(taken.thin_s, 2),
        Cell::Missing,
    ]);
    table.row([
        "page written, all in all, s".into(),
        Cell::num(taken.all_s, 2),
        "below 5".into(),
    ]);
    table.row([
        "page, MB".into(),
        Cell::num(taken.megabytes, 2),
        "below 5".into(),
    ]);
    table
}

fn chart(config: &Config, passed: &[Passed]) -> Chart {
    let mut chart = Chart::new(
        "Packets through a queue",
        "Lower is faster. A line that rises pays for flows.",
        Axis::log("flows", ""),
        Axis::log("time per packet", "ns"),
    );
    for (i, Passed { name, at, .. }) in passed.iter().enumerate() {
        let is_ours = *name == "htb + fair";
        let colour = match *name {
            FLOOR => 7,
            _ if is_ours => COLOUR_OURS,
            _ => i,
        };
        let points = config.flows.iter().zip(at);
        let points = points.map(|(&flows, &ns)| (f64::from(flows), ns)).collect();
        let series = Series::new(*name, Style::Solid, colour, points);
        chart
            .series
            .push(if is_ours { series.bold() } else { series });
    }
    chart
}
