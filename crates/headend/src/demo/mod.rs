//! `headend demo`: LNS and LAC as two processes of this binary, and ten thousand
//! tunnels between them, created through the LAC's control socket as the published
//! benchmark did it.

pub(crate) mod ends;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::cli::create::{self, Wanted};
use crate::cli::tunnel::bar;
use crate::control::client::Client;
use crate::control::request::{Do, Nothing, TunnelDelete, Wait};
use crate::control::rows::Server;
use ends::{End, Ends};
use report::{Report, Side};

/// How long the peers may take to agree that all is up, or that all is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bring up ten thousand tunnels between two daemons on this machine, and report
/// what it took.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many tunnels, with a session each
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=250_000))]
    tunnels: u32,
    /// L2TPv2 or L2TPv3
    #[arg(long, value_name = "2|3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    version: u8,
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the demo. Fails unless all tunnels were up on both sides, and none is
/// listed after the teardown.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Tunnel ids of L2TPv2 have 16 bits, and 0 is none.
    ensure!(
        args.version == 3 || args.tunnels <= 65_000,
        "L2TPv2 has ids for 65,000 tunnels between two addresses"
    );
    let [lns, lac] = ["lns", "lac"].map(|role| format!("[{role}]\nlisten = [\"127.0.0.1:0\"]\n"));
    let ends = Ends::start([&lns, &lac])?;
    let (mut lns, mut lac) = (ends.lns()?, ends.lac()?);
    let peer = lns.address()?;
    let before = [lns.measure()?, lac.measure()?];

    let wanted = Wanted {
        peer,
        version: args.version,
        count: args.tunnels,
        from: None,
        session: true,
        wait: Wait::Up,
        timeout: None,
    };
    let bar = bar(args.tunnels, "tunnels");
    let outcome = create::create(&mut lac.client, &wanted, |done| {
        bar.set_position(done.into())
    });
    bar.finish_and_clear();
    let outcome = outcome?;

    let all = u64::from(args.tunnels);
    let up = await_all(&mut [&mut lns, &mut lac], |stats| {
        stats.established == all && stats.sessions_established == all
    })?;
    let after = [lns.measure()?, lac.measure()?];

    let started = Instant::now();
    lac.client.call(&Do::TunnelDelete(TunnelDelete {
        tunnel: None,
        version: None,
        all: true,
    }))?;
    let gone = await_all(&mut [&mut lns, &mut lac], |stats| {
        stats.tunnels == 0 && stats.closing == 0 && stats.sessions == 0
    })?;
    let teardown = started.elapsed();
    let listed = [listed(&mut lns.client)?, listed(&mut lac.client)?];
    let left = [lns.stats()?, lac.stats()?];
    ends.stop()?;

    let [lns_before, lac_before] = before;
    let [lns_after, lac_after] = after;
    let [lns_left, lac_left] = left;
    let report = Report {
        version: args.version,
        wanted: args.tunnels,
        outcome,
        lns: Side::new(&lns_before, &lns_after, &lns_left, args.tunnels),
        lac: Side::new(&lac_before, &lac_after, &lac_left, args.tunnels),
        teardown,
        listed: listed.iter().sum(),
    };
    if args.json {
        report.print_json()?
    } else {
        report.print()?
    }
    if !up {
        bail!("not all {} tunnels were up on both sides", args.tunnels);
    }
    if !gone || report.listed > 0 {
        bail!(
            "{} tunnels or sessions were left after the teardown",
            report.listed
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether every end comes to say what `is_so` wants to hear; each is asked until
/// then, but not for ever.
fn await_all(ends: &mut [&mut End], is_so: impl Fn(&Server) -> bool) -> Result<bool> {
    let started = Instant::now();
    for end in ends {
        while !is_so(&end.stats()?) {
            if started.elapsed() > PATIENCE {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(true)
}

/// Tunnels and sessions that `show` lists.
fn listed(client: &mut Client) -> Result<u64> {
    let tunnels = client.rows(&Do::ShowTunnels(Nothing {}), |_| Ok(()))?;
    let sessions = client.rows(&Do::ShowSessions(Nothing {}), |_| Ok(()))?;
    Ok(tunnels + sessions)
}
