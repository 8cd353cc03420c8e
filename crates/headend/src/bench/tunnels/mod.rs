//! `headend bench tunnels`: what tunnels cost an LNS to set up, to hold and to keep
//! alive, beside bare loops that receive and send the same datagrams, and beside
//! other LNSs.
//!
//! | file | what happens there |
//! |---|---|
//! | `setup` | tunnels set up 64 at a time: processor time and memory for each |
//! | `storm` | every SCCRQ at once |
//! | `hello` | HELLOs answered and originated, and idleness |
//! | `server` | our LNS, and what is read of any process that answers |
//! | `peers` | xl2tpd and l2tpns |
//! | `bare`, `load` | the bare loops, and what drives them |
//! | `home`, `sandbox`, `cores` | processes that always end, namespaces, a core each |
//! | `tables`, `goals`, `charts` | the report |

pub(super) mod bare;
mod charts;
mod cores;
mod goals;
mod hello;
mod home;
mod load;
mod peers;
mod sandbox;
mod server;
mod setup;
mod storm;
mod tables;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use base::Duration;
use indicatif::ProgressBar;
use lab::generator::Sizes;
use lab::report::{CoreWitness, MachineInfo, Report};
use wire::l2tp::Version;

use self::cores::Cores;
use self::hello::{Hello, Idle};
use self::home::{Home, Running};
use self::peers::Peer;
use self::server::{Setup, Who};
use self::setup::SetUp;
use self::storm::Storm;
use super::{Out, spinner};

/// Measure what tunnels cost an LNS, beside bare loops and other LNSs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Other LNSs to measure in the same run, in a network of their own: xl2tpd, l2tpns
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    against: Vec<Peer>,
    /// Numbers of tunnels
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=250_000))]
    sizes: Vec<u32>,
    /// A few hundred tunnels, in some seconds
    #[arg(long)]
    quick: bool,
    /// The namespaces are made, and the files go here
    #[arg(long, value_name = "DIR", hide = true)]
    inside: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
}

/// What is measured, and for how long.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    sizes: Vec<u32>,
    /// Waves of each kind at the largest size; smaller sizes get more.
    rounds: u32,
    storms: Vec<u32>,
    hello_rate: u32,
    hello_span: Duration,
    originate_span: Duration,
    idle_span: Duration,
    peers: Vec<Peer>,
    /// Largest size that peers are measured at.
    peer_size_max: u32,
    peer_hello_rate: u32,
    peer_span: Duration,
}

impl Args {
    fn plan(&self) -> Plan {
        let (sizes, storms): (&[u32], &[u32]) = if self.quick {
            (&[50, 100, 200], &[200])
        } else {
            (&[1_000, 10_000, 100_000], &[1_000, 10_000, 50_000])
        };
        let mut sizes = if self.sizes.is_empty() {
            sizes.to_vec()
        } else {
            self.sizes.clone()
        };
        sizes.sort_unstable();
        sizes.dedup();
        let full = Plan {
            sizes,
            rounds: 3,
            storms: storms.to_vec(),
            hello_rate: 10_000,
            hello_span: Duration::from_secs(3),
            originate_span: Duration::from_secs(5),
            idle_span: Duration::from_secs(10),
            peers: self.against.clone(),
            peer_size_max: u32::MAX,
            peer_hello_rate: 1_000,
            peer_span: Duration::from_secs(3),
        };
        if !self.quick {
            return full;
        }
        Plan {
            rounds: 1,
            hello_rate: 1_000,
            hello_span: Duration::from_millis(200),
            originate_span: Duration::from_millis(200),
            idle_span: Duration::from_millis(200),
            peer_size_max: 100,
            peer_hello_rate: 200,
            peer_span: Duration::from_millis(200),
            ..full
        }
    }
}

impl Plan {
    /// Waves of each kind at a size: what takes little time is repeated more often.
    fn rounds(&self, tunnels: u32) -> u32 {
        if tunnels <= 10_000 {
            2 * self.rounds - 1
        } else {
            self.rounds
        }
    }
}

/// What every measurement needs.
struct Bench {
    home: Home,
    cores: Cores,
    bar: ProgressBar,
}

impl Bench {
    /// Starts a process on the server's core.
    fn spawn(&self, name: &str, command: Command) -> Result<Running> {
        self.cores.at_server(|| self.home.spawn(name, command))
    }

    fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }
}

/// All that was measured.
#[derive(Debug, Default)]
struct Results {
    /// Ours and the bare loop's.
    set_ups: Vec<SetUp>,
    storms: Vec<Storm>,
    answered: Vec<Hello>,
    originated: Vec<Hello>,
    idle: Vec<Idle>,
    /// Ours and the peers', at the peers' sizes.
    against: Vec<SetUp>,
    against_hello: Vec<Hello>,
    /// What could not be measured, and why.
    notes: Vec<String>,
}

/// Measures and publishes. Fails unless every tunnel of ours came up.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut plan = args.plan();
    let missing: Vec<String> = plan.peers.iter().filter_map(|p| p.missing()).collect();
    plan.peers.retain(|peer| peer.missing().is_none());
    if !plan.peers.is_empty() && args.inside.is_none() {
        return sandbox::outside();
    }
    for note in &missing {
        eprintln!("headend: {note}");
    }
    let directory = args.inside.clone().unwrap_or_else(home::temporary);
    let home = Home::new(directory)?;
    if args.inside.is_some() {
        sandbox::ready(&home)?;
    }
    let bench = Bench {
        home,
        cores: Cores::take(),
        bar: spinner("tunnels"),
    };
    let witness = CoreWitness::start();
    let mut results = Results {
        notes: missing,
        ..Results::default()
    };
    measure(&bench, &plan, &mut results)?;
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("tunnels", MachineInfo::read_with(witness));
    report.method = method(&bench, &plan, &results);
    report.tables = tables::all(&results);
    report.charts = charts::all(&results);
    report.publish(args.out.dir.as_deref())?;
    Ok(if goals::all_came_up(&results) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measure(bench: &Bench, plan: &Plan, results: &mut Results) -> Result<()> {
    bench.say("how long the datagrams are");
    let sizes = [Version::V2, Version::V3].map(|version| setup::sizes(bench, version));
    let [(v2, _), (v3, hello)] = {
        let [v2, v3] = sizes;
        [v2?, v3?]
    };
    for &tunnels in &plan.sizes {
        set_up(bench, plan, tunnels, [v2, v3], &hello, results)?;
    }
    for &tunnels in &plan.storms {
        for asked in [None, Some(storm::MODEST_BYTES)] {
            bench.say(format!("{tunnels} SCCRQs at once"));
            results.storms.push(storm::storm(bench, tunnels, asked)?);
        }
    }
    for &tunnels in &plan.sizes {
        bench.say(format!("HELLOs originated over {tunnels} tunnels"));
        let (rate, span) = (plan.hello_rate, plan.originate_span);
        let ours = hello::originated(bench, tunnels, rate, span)?;
        let bare = hello::originated_bare(bench, tunnels, rate, span, &hello)?;
        results.originated.extend([bare, ours]);
    }
    for &peer in &plan.peers {
        against(bench, plan, peer, results);
    }
    Ok(())
}

/// Waves of one size, in turn; over the last one's tunnels HELLOs are answered, and
/// before that nothing is done.
fn set_up(
    bench: &Bench,
    plan: &Plan,
    tunnels: u32,
    sizes: [Sizes; 2],
    hello: &Sizes,
    results: &mut Results,
) -> Result<()> {
    let rounds = plan.rounds(tunnels);
    for round in 1..=rounds {
        for (version, sizes) in [Version::V2, Version::V3].into_iter().zip(sizes) {
            let v = setup::number(version);
            bench.say(format!(
                "{tunnels} tunnels of L2TPv{v} set up, {round} of {rounds}"
            ));
            let bare = setup::bare(bench, tunnels, &sizes)?;
            setup::file(&mut results.set_ups, Who::Bare, version, tunnels, bare);
            let (mut lns, mut load, run) = setup::ours(bench, version, tunnels, &Setup::default())?;
            setup::file(&mut results.set_ups, Who::Headend, version, tunnels, run);
            if round < rounds || version == Version::V2 {
                continue;
            }
            bench.say(format!("{tunnels} tunnels at rest"));
            let idle = hello::idle(&lns, &mut load, plan.idle_span)?;
            results.idle.push(idle);
            bench.say(format!("HELLOs answered over {tunnels} tunnels"));
            let (rate, span) = (plan.hello_rate, plan.hello_span);
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for _ in 0..plan.rounds {
                ours.push(hello::answered(&mut lns, &mut load, rate, span)?);
                bare.push(hello::answered_bare(bench, tunnels, rate, span, hello)?);
            }
            let medians = [bare, ours].into_iter().filter_map(hello::median);
            results.answered.extend(medians);
        }
    }
    Ok(())
}

/// A peer and ourselves, at the sizes that the peer manages. What goes wrong with a
/// peer is noted, and the rest goes on.
fn against(bench: &Bench, plan: &Plan, peer: Peer, results: &mut Results) {
    for &tunnels in peer.sizes() {
        if tunnels > plan.peer_size_max {
            continue;
        }
        let name = peer.who().name();
        bench.say(format!("{name}: {tunnels} tunnels"));
        match against_at(bench, plan, peer, tunnels, results) {
            Ok(true) => {}
            Ok(false) => {
                let note = format!("{name} did not bring all {tunnels} tunnels up in its time");
                results.notes.push(note);
                return;
            }
            Err(error) => {
                let note = format!("{name} at {tunnels} tunnels: {error:#}");
                results.notes.push(note);
                return;
            }
        }
    }
}

/// Whether the peer brought all up.
fn against_at(
    bench: &Bench,
    plan: &Plan,
    peer: Peer,
    tunnels: u32,
    results: &mut Results,
) -> Result<bool> {
    let version = Version::V2;
    let (rate, span) = (plan.peer_hello_rate, plan.peer_span);
    let is_known = |s: &SetUp| s.who == Who::Headend && s.tunnels == tunnels;
    if !results.against.iter().any(is_known) {
        let (mut lns, mut load, run) = setup::ours(bench, version, tunnels, &Setup::default())?;
        setup::file(&mut results.against, Who::Headend, version, tunnels, run);
        let hello = hello::answered(&mut lns, &mut load, rate, span)?;
        results.against_hello.push(hello);
    }
    let server = peer.start(bench)?;
    let mut load = setup::generator(&server, version, tunnels)?;
    let cap = Duration::from_secs(60);
    let run = setup::wave(&server, &mut load, tunnels, setup::WINDOW, cap)?;
    let all_up = run.wave.up == tunnels;
    setup::file(&mut results.against, peer.who(), version, tunnels, run);
    if all_up {
        let hello = hello::answered_by(peer.who(), &server, &mut load, rate, span);
        results.against_hello.push(hello.context("HELLOs")?);
    }
    Ok(all_up)
}

fn method(bench: &Bench, plan: &Plan, results: &Results) -> Vec<String> {
    let mut lines = vec![
        "The load is this program's own LAC, in the benchmark's process; who answers is a process of its own, new for each wave. Processor time is the scheduler's account of that process, in nanoseconds."
            .to_owned(),
        format!(
            "Tunnels are set up {} at a time, each from an address of its own in 127.0.0.0/8; waves of the kinds take turns, and the table has the median one of {} (small sizes) or {}. L2TPv2 above 60,000 tunnels goes to two listen addresses, because its ids have 16 bits.",
            setup::WINDOW,
            plan.rounds(0),
            plan.rounds
        ),
        "The bare loop receives with recvmmsg, answers with sendmmsg and waits with ppoll: two datagrams in and two out for a tunnel, of the sizes and between the addresses that the tunnels of that version have. What the sender pays for delivery on loopback, the receiver does not."
            .into(),
        "Memory is resident memory gained since before the first tunnel, counted page by page."
            .into(),
        format!(
            "HELLOs that are answered come one by one, {} in a second evenly spaced, over all tunnels in turn; the bare loop for them is recvfrom and sendto, blocking, the two take turns, and the table has the median of {} each. HELLOs that are originated come from an interval chosen so that as many fall due in a second; the bare loop for those sends what is due every 8 ms and reads what comes.",
            plan.hello_rate, plan.rounds
        ),
        "A storm is every SCCRQ sent before the first answer is read.".into(),
    ];
    lines.push(if bench.cores.are_apart() {
        "The load is on one core and who answers on another, the same ones for all.".into()
    } else {
        "There is one core, which load and server share.".into()
    });
    if !plan.peers.is_empty() {
        lines.push(
            "All of it ran in network namespaces of its own, as root in them. Peers are as Debian builds them, with their configuration as it comes but for addresses, over L2TPv2."
                .into(),
        );
    }
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation: its figures say nothing.".into());
    }
    lines.extend(results.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn plan(line: &str) -> Plan {
        let words = std::iter::once("tunnels").chain(line.split_ascii_whitespace());
        Line::try_parse_from(words).unwrap().args.plan()
    }

    #[test]
    fn sizes_are_sorted_and_quick_is_small() {
        assert_eq!(plan("--sizes 20,10,20").sizes, [10, 20]);
        assert_eq!(plan("").sizes, [1_000, 10_000, 100_000]);
        assert!(plan("--quick").sizes.iter().all(|&n| n <= 200));
        assert_eq!(plan("--quick").rounds(50), 1);
        assert_eq!(plan("").rounds(1_000), 5);
    }

    #[test]
    fn peers_are_named_with_commas_and_others_are_refused() {
        let both = plan("--against xl2tpd,l2tpns").peers;
        assert_eq!(both, [Peer::Xl2tpd, Peer::L2tpns]);
        assert!(Line::try_parse_from(["tunnels", "--against", "mpd5"]).is_err());
    }
}
