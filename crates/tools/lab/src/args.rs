//! The command line of `headend lab home-gateway`, and its meaning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use lab::gateway::engine::{Apply, Cake, Engine};
use lab::gateway::rows::Row;
use lab::gateway::run::{Place, Plan};
use lab::gateway::stop::Stop;
use lab::gateway::traffic::browser;
use lab::gateway::treatment::{Both, FIFO_DEFAULT, Link, Treatment, share};
use qos::policy::Policy;
use qos::units;

use super::course;
use super::guest::Guest;

/// Seconds for which the load runs before a measurement. A shorter time would measure the start of
/// uploads.
const SETTLE_S: u64 = 3;

/// Measure two hosts behind a slow link: how the load of one delays the other, without and with a policy.
#[derive(Debug, clap::Args)]
pub(super) struct GatewayArgs {
    /// The queues of the gateway in the rows with a policy: none, pfifo, sfq, fq_codel, fair, or a policy file
    #[arg(long, value_name = "NAME|FILE", default_value = "fair")]
    treatment: String,
    /// What shapes in the rows with a policy, one engine after the other
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "user"
    )]
    engine: Vec<EngineName>,
    /// Rate of the link towards the far side
    #[arg(long, value_name = "RATE", default_value = "2.5mbit", value_parser = rate)]
    rate: u64,
    /// Rate of the link towards the hosts
    #[arg(long, value_name = "RATE", default_value = "20mbit", value_parser = rate)]
    down: u64,
    /// Packets that the modem queues in each direction
    #[arg(long, value_name = "PACKETS", default_value_t = FIFO_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fifo: u32,
    /// One-way delay between the modem and the far side
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = delay)]
    delay: base::Duration,
    /// Seconds of each measurement [default: 20, with --quick 2]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Number of runs of each measurement; the report has the spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// The rows to measure, as 1-6 or 2,4,6
    #[arg(long, value_name = "ROWS", default_value = "1-6")]
    rows: String,
    /// The parts to measure
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "rows"
    )]
    experiment: Vec<Part>,
    /// The browser that loads pages; auto uses Chromium if it is installed
    #[arg(long, value_name = "auto|none|PATH", default_value = "auto")]
    browser: String,
    /// Run a model in virtual time instead of network namespaces; the same seed gives the same result
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// Measure in a guest with this kernel, in virtual time: an unpacked kernel package of Debian
    #[arg(long, value_name = "DIR", conflicts_with = "is_virtual")]
    guest: Option<PathBuf>,
    /// This is the guest
    #[arg(long, hide = true)]
    is_guest: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure for about a minute: short measurements, no browser, only the rows
    #[arg(long)]
    quick: bool,
    /// The directory for results.json, rows.csv, pings.csv and report.html
    #[arg(
        short = 'o',
        long = "out",
        value_name = "DIR",
        default_value = "lab-results/home-gateway"
    )]
    directory: PathBuf,
    /// Print results.json
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print rows.csv
    #[arg(long)]
    csv: bool,
}

/// An engine by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineName {
    /// headend's own queues, as of headend qos run
    User,
    /// The kernel's queues, by headend qos apply
    Kernel,
    /// The kernel's cake, set up by tc
    Cake,
}

/// A part of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The six rows, and nine uploads against one
    Rows,
    /// Pings next to an upload in one tunnel
    Tunnel,
    /// TOS bytes with ECN bits in pfifo_fast
    Bands,
    /// SFQ that changes its hash function under load
    Perturb,
    /// All of these
    All,
}

/// What to do, from the command line.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) plan: Plan,
    /// At least one.
    pub(super) engines: Vec<Engine>,
    /// Whether this is a guest in virtual time.
    pub(super) is_guest: bool,
    pub(super) rows: Vec<Row>,
    pub(super) parts: Vec<Part>,
    pub(super) repeat: u32,
    pub(super) browser: Option<PathBuf>,
    /// Whether nine connections against one are measured too.
    pub(super) fairness: bool,
    pub(super) directory: PathBuf,
    pub(super) json: bool,
    pub(super) csv: bool,
}

impl Task {
    pub(super) fn new(args: &GatewayArgs) -> Result<Task> {
        let link = Link {
            up_bps: args.rate,
            down_bps: args.down,
            fifo_packets: args.fifo,
            delay_ns: args.delay.as_nanos(),
        };
        let place = if args.is_virtual {
            Place::Model
        } else {
            Place::Namespaces
        };
        let chosen = treatment(&args.treatment, &link)?;
        let engines = engines(&args.engine, &chosen)?;
        if args.is_virtual && engines.iter().any(|engine| *engine != Engine::User) {
            bail!("--virtual: the model has only the engine user; leave --virtual or --engine out");
        }
        let plan = Plan {
            place,
            link,
            treatment: chosen.treatment,
            engine: Engine::User,
            seconds: args.seconds.unwrap_or(if args.quick { 2 } else { 20 }),
            settle: SETTLE_S,
            seed: args.seed,
            stop: Stop::default(),
        };
        let browser = match args.browser.as_str() {
            _ if args.quick || args.is_virtual || args.is_guest => None,
            "none" => None,
            "auto" => browser::find(),
            path if Path::new(path).is_file() => Some(path.into()),
            path => bail!("--browser {path}: no such program"),
        };
        let rows = rows(&args.rows)?;
        let parts = match args.experiment.contains(&Part::All) {
            true => vec![Part::Rows, Part::Tunnel, Part::Bands, Part::Perturb],
            false => args.experiment.clone(),
        };
        Ok(Task {
            plan,
            engines,
            is_guest: args.is_guest,
            fairness: !args.quick && rows.len() == Row::ALL.len(),
            rows,
            parts,
            repeat: args.repeat,
            browser,
            directory: args.directory.clone(),
            json: args.json,
            csv: args.csv,
        })
    }

    /// Roughly for how many seconds all measurements take.
    fn measured_s(&self) -> u32 {
        let one = self.plan.settle + self.plan.seconds + 2;
        u32::try_from(course::parts(self).saturating_mul(one)).unwrap_or(u32::MAX / 16)
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

impl GatewayArgs {
    /// The guest in which everything is measured, if one is wanted.
    ///
    /// # Errors
    /// A policy file that cannot be read.
    pub(super) fn guest(&self, task: &Task) -> Result<Option<Guest>> {
        let Some(kernel) = &self.guest else {
            return Ok(None);
        };
        let policy = match Treatment::named(&self.treatment) {
            Some(_) => None,
            None => Some((
                task.plan.treatment.name().to_owned(),
                std::fs::read_to_string(&self.treatment)?,
            )),
        };
        let names = task.engines.iter().map(Engine::name);
        let parts = self
            .experiment
            .iter()
            .filter_map(ValueEnum::to_possible_value);
        let parts: Vec<String> = parts.map(|part| part.get_name().to_owned()).collect();
        let treatment = policy.as_ref().map_or(&self.treatment, |(name, _)| name);
        let mut words = vec![
            format!("--treatment={treatment}"),
            format!("--engine={}", names.collect::<Vec<_>>().join(",")),
            format!("--rate={}", self.rate),
            format!("--down={}", self.down),
            format!("--fifo={}", self.fifo),
            format!("--delay={}us", self.delay.as_nanos() / 1_000),
            format!("--seconds={}", task.plan.seconds),
            format!("--repeat={}", self.repeat),
            format!("--rows={}", self.rows),
            format!("--experiment={}", parts.join(",")),
            format!("--seed={}", self.seed),
            "--is-guest".to_owned(),
        ];
        let flags = [
            ("--quick", self.quick),
            ("--json", self.json),
            ("--csv", self.csv),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        words.extend(flags.map(|(flag, _)| flag.to_owned()));
        Ok(Some(Guest {
            kernel: kernel.clone(),
            directory: self.directory.clone(),
            policy,
            words,
            longest: GUEST_LEAST + SLOWNESS * task.measured_s(),
        }))
    }
}

/// Time of a guest on this machine's clock: for its boot, and at most so much for each second that it
/// measures. An idle machine needs less than a second for each.
const GUEST_LEAST: Duration = Duration::from_secs(600);
const SLOWNESS: Duration = Duration::from_secs(10);

/// The engines, each once, in the order of the command line.
fn engines(names: &[EngineName], chosen: &Chosen) -> Result<Vec<Engine>> {
    let mut engines: Vec<Engine> = Vec::new();
    for name in names {
        let engine = match (name, &chosen.policy) {
            (EngineName::User, _) => Engine::User,
            (EngineName::Kernel, Some(policy)) => Engine::Kernel(Apply {
                headend: std::env::current_exe()?,
                policy: policy.clone(),
            }),
            (EngineName::Kernel, None) => {
                bail!(
                    "--engine kernel: treatment none has no policy that headend qos apply could take"
                )
            }
            (EngineName::Cake, _) => Engine::Cake(chosen.cake),
        };
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    Ok(engines)
}

/// The gateway's queues, as the command line names them.
struct Chosen {
    treatment: Treatment,
    /// The text of their policy file, if there is one.
    policy: Option<String>,
    /// The rates that cake gets.
    cake: Cake,
}

fn treatment(text: &str, link: &Link) -> Result<Chosen> {
    let mut cake = Cake {
        up_bps: share(link.up_bps),
        down_bps: share(link.down_bps),
    };
    if let Some(treatment) = Treatment::named(text) {
        return Ok(Chosen {
            policy: treatment.policy(link),
            treatment,
            cake,
        });
    }
    let path = Path::new(text);
    let file = match std::fs::read_to_string(path) {
        Ok(policy) => policy,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("--treatment {text}: neither none, pfifo, sfq, fq_codel or fair, nor a file")
        }
        Err(error) => bail!("--treatment {text}: {error}"),
    };
    let (policy, advice) = Policy::parse(&file).map_err(|faults| faults.of(path))?;
    for advice in advice.of(path).lines() {
        eprintln!("headend lab: {advice}");
    }
    let ways = [
        ("up", policy.up_bps(), link.up_bps),
        ("down", policy.down_bps(), link.down_bps),
    ];
    for (way, shaped, link) in ways {
        if shaped.is_none_or(|rate_bps| rate_bps >= link) {
            eprintln!(
                "headend lab: {text}: {way} is not below the link's {} kbit/s: packets wait in the modem",
                link / 1_000
            );
        }
    }
    let treatment = Treatment::Policy {
        name: path.file_name().unwrap_or_default().display().to_string(),
        both: Box::new(Both {
            up: policy.up_spec(),
            down: policy.down_spec(),
            overhead: policy.overhead(),
        }),
    };
    cake.up_bps = policy.up_bps().unwrap_or(cake.up_bps);
    cake.down_bps = policy.down_bps().unwrap_or(cake.down_bps);
    Ok(Chosen {
        treatment,
        policy: Some(file),
        cake,
    })
}

/// A plausible line rate that threads can keep up with.
fn rate(text: &str) -> Result<u64, String> {
    let rate = units::rate(text)?;
    if (64_000..=1_000_000_000).contains(&rate) {
        return Ok(rate);
    }
    Err("a rate is 64kbit to 1gbit".into())
}

fn delay(text: &str) -> Result<base::Duration, String> {
    let delay = units::time(text)?;
    if delay <= base::Duration::from_secs(2) {
        return Ok(delay);
    }
    Err("a delay is at most 2s".into())
}

/// Parses row numbers: "1-6", "2,4,6".
fn rows(text: &str) -> Result<Vec<Row>> {
    let number = |text: &str| text.trim().parse::<u8>().ok();
    let mut wanted = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if 1 <= first && first <= last && last <= 6 => {
                wanted.extend(first..=last);
            }
            _ => bail!("--rows {text}: write rows from 1 to 6, as 1-6 or 2,4,6"),
        }
    }
    let is_wanted = |row: &Row| wanted.contains(&row.number);
    Ok(Row::ALL.into_iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ranges_and_lists_in_the_published_order() {
        let numbers = |text| {
            let rows = rows(text).expect("rows");
            rows.iter().map(|row| row.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers("1-6"), [1, 2, 3, 4, 5, 6]);
        assert_eq!(numbers("6,2,3-4"), [2, 3, 4, 6]);
        for wrong in ["", "0", "7", "4-2", "1-", "two"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_neither_a_name_nor_a_file_is_refused_in_one_line() {
        let error = treatment("cake-of-yesterday", &Link::default())
            .map(drop)
            .expect_err("no such treatment");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
