//! Turns the flags into a plan.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use base::Duration;
use ping::Plan;
use ping::load::Limits;

use super::low::{Args, Discovery, PingArgs, ShowArgs, Verb};
use super::plots::Wish;
use super::resolve::{self, Family};
use super::serve::{self, Settings};
use super::spec::{self, Spec};
use super::{is_watched, streams};

/// The shortest interval without the privilege to send raw packets, as in ping.
const USER_INTERVAL_MIN: Duration = Duration::from_millis(2);

/// How results are shown during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// ping's output, line by line.
    Text,
    /// The live view: one line per stream, redrawn.
    Live,
    /// Only the summary.
    Quiet,
    /// Only rows, at the end.
    Csv,
    /// Only one JSON object, at the end.
    Json,
}

/// The packets' source, and how routers may treat them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct From {
    pub(super) interface: Option<String>,
    pub(super) source: Option<IpAddr>,
    pub(super) hop_limit: Option<u8>,
    pub(super) dont_fragment: bool,
}

/// An experiment to run.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) plan: Plan,
    /// The destination of each stream, with the scope of an IPv6 address.
    pub(super) to: Vec<SocketAddr>,
    pub(super) from: From,
    pub(super) deadline: Option<Duration>,
    pub(super) view: View,
    pub(super) numeric: bool,
    pub(super) date: bool,
    pub(super) output: Option<PathBuf>,
    pub(super) plots: Vec<Wish>,
}

/// The command to run.
pub(super) enum HiArgs<'a> {
    /// Send probes.
    Ping(Box<Task>),
    /// Answer probes, and serve load if asked to.
    Respond(SocketAddr, Option<Settings>),
    /// Compare result files.
    Show(&'a ShowArgs),
}

impl HiArgs<'_> {
    /// Parses the command line and looks hosts up.
    ///
    /// # Errors
    /// The fault in the command line.
    pub(super) fn new(args: &Args) -> Result<HiArgs<'_>> {
        if let Some(Verb::Show(show)) = &args.verb {
            return Ok(HiArgs::Show(show));
        }
        if let Some(address) = &args.ping.responder {
            let address = responder(address)?;
            let load = args.ping.load.then(|| settings(&args.ping)).transpose()?;
            return Ok(HiArgs::Respond(address, load));
        }
        task(&args.ping).map(|task| HiArgs::Ping(Box::new(task)))
    }
}

fn task(args: &PingArgs) -> Result<Task> {
    // These checks come before the host lookups, which take time.
    let plots = Wish::parse_all(&args.plot)?;
    let from = from(args)?;
    let mut specs = multiply(args)?;
    if let Some(path) = &args.streams {
        specs.extend(streams::read(path)?);
    }
    let tos = args.tos.first().map(|text| spec::tos(text)).transpose();
    let common = Spec {
        interval: Some(spec::seconds(&args.interval).context("-i")?),
        count: args.count,
        size: args.size.first().copied(),
        udp: args.udp,
        tos: tos.context("-Q")?,
        ..Spec::default()
    };
    let wait = spec::seconds(&args.wait).context("-W")?;
    let deadline = args.deadline.as_deref().map(spec::seconds).transpose();
    let family = match (args.four, args.six, from.source) {
        (true, _, _) | (_, false, Some(IpAddr::V4(_))) => Family::Four,
        (_, true, _) | (_, _, Some(IpAddr::V6(_))) => Family::Six,
        (false, false, None) => Family::Any,
    };
    let (streams, to) = resolve::streams(&specs, &common, family)?;
    if let Some(host) = resolve::without_scope(&streams, &to, &from) {
        bail!("{host}: a link-local address is one of an interface: write {host}%eth0, or use -I");
    }
    let mut plan = Plan::spread(streams, wait);
    plan.samples_max = args.samples;
    plan.check()?;
    let shortest = plan.streams.iter().map(|stream| stream.interval).min();
    if shortest.is_some_and(|shortest| shortest < USER_INTERVAL_MIN) && !is_privileged() {
        bail!("the shortest interval for a user is 2 ms: use -i 0.002 or longer");
    }
    Ok(Task {
        plan,
        to,
        from,
        deadline: deadline.context("-w")?,
        view: view(args),
        numeric: args.numeric,
        date: args.date,
        output: args.output.clone(),
        plots,
    })
}

fn view(args: &PingArgs) -> View {
    match (args.csv, args.quiet) {
        _ if args.json => View::Json,
        (true, _) => View::Csv,
        (_, true) => View::Quiet,
        _ if is_watched() && !args.plain => View::Live,
        _ => View::Text,
    }
}

fn from(args: &PingArgs) -> Result<From> {
    let mut from = From {
        hop_limit: args.hop_limit,
        dont_fragment: args.mtu_discovery == Some(Discovery::Do),
        ..From::default()
    };
    for text in &args.from {
        let is_second = match text.parse() {
            Ok(address) => from.source.replace(address).is_some(),
            Err(_) => from.interface.replace(text.clone()).is_some(),
        };
        if is_second {
            bail!("-I {text}: one interface and one address are sent from");
        }
    }
    Ok(from)
}

/// Combines every host with every TOS and every size. A setting given with a host is not multiplied.
fn multiply(args: &PingArgs) -> Result<Vec<Spec>> {
    let toses: Vec<u8> = args
        .tos
        .iter()
        .map(|text| spec::tos(text))
        .collect::<Result<_>>()
        .context("-Q")?;
    let toses: Vec<Option<u8>> = match toses.is_empty() {
        true => vec![None],
        false => toses.into_iter().map(Some).collect(),
    };
    let mut specs = Vec::new();
    for host in &args.hosts {
        let typed = Spec::parse(host)?;
        let toses = if typed.tos.is_some() {
            &[typed.tos][..]
        } else {
            &toses
        };
        let sizes: Vec<u16> = match typed.size {
            Some(size) => vec![size],
            None => args.size.clone(),
        };
        for tos in toses {
            for size in &sizes {
                specs.push(Spec {
                    tos: *tos,
                    size: Some(*size),
                    ..typed.clone()
                });
            }
        }
    }
    Ok(specs)
}

/// Whether this process has the privileges that ordinary users lack.
fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

fn settings(args: &PingArgs) -> Result<Settings> {
    let limits = Limits::default();
    let token = args.load_token.as_deref().map(serve::token).transpose()?;
    Ok(Settings {
        limits: Limits {
            streams_per_source: args.load_streams,
            streams: limits.streams.max(args.load_streams),
            starts_per_minute: limits
                .starts_per_minute
                .max(args.load_streams.saturating_mul(8)),
            duration: Duration::from_secs(args.load_seconds.into()),
        },
        token: token.unwrap_or_default(),
    })
}

fn responder(text: &str) -> Result<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = spec::port(text).context("--responder: write PORT, 192.0.2.1:PORT or [::1]:PORT")?;
    // A wildcard IPv6 socket accepts IPv4 too.
    Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
}
