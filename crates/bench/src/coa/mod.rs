//! `headend bench coa`: the cost of a CoA-Request that changes the rate of a connected subscriber (RFC 5176), from the
//! datagram to the reply, by number of subscribers. A bare loop that receives and sends as many datagrams of the same
//! lengths is the comparison. Start with [`run`].
//!
//! | file | contents |
//! |---|---|
//! | `load` | the requests, and the socket that sends them |

mod load;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use base::Duration;
use lab::report::{Cell, CoreWitness, MachineInfo, Report, Table};
use serde_json::Value;

use self::load::{Exchanged, Requests, SECRET};
use super::Out;
use crate::harness::Bench;
use crate::harness::cores::Cores;
use crate::harness::costs::median_by;
use crate::harness::others_of;
use crate::harness::run::{RunDirectory, temporary};
use crate::harness::server::{Lns, Server, write_private};
use crate::subscribers::lns::users;
use crate::subscribers::load::{Load, Options};
use crate::tunnels::bare::{self, Bare};
use cli::progress::spinner;

/// The first source address of the tunnels.
const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);
/// Goal: changes per second.
const RATE_GOAL: f64 = 20_000.0;
/// Longest time for all subscribers to connect.
const CONNECT_MAX: Duration = Duration::from_secs(120);
/// Pause after the last reply. The kernel updates a process's counters when it goes to sleep.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(20);

/// Measure what changes of connected subscribers cost an LNS.
#[derive(Debug, clap::Args)]
pub(super) struct CoaArgs {
    /// Numbers of subscribers
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=500_000))]
    sizes: Vec<u32>,
    /// Number of requests in a round
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: Option<u32>,
    /// Number of requests without a reply at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    window: u32,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measure with a few hundred subscribers, in a few seconds
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    out: Out,
}

impl CoaArgs {
    fn sizes(&self) -> Vec<u32> {
        match (self.sizes.is_empty(), self.quick) {
            (false, _) => self.sizes.clone(),
            (true, false) => vec![1_000, 10_000, 60_000],
            (true, true) => vec![50, 100, 200],
        }
    }

    fn requests(&self) -> u32 {
        let default = if self.quick { 2_000 } else { 50_000 };
        self.requests.unwrap_or(default)
    }
}

/// One round: requests to the LNS, or as many datagrams to the bare loop.
#[derive(Clone, Copy, Debug)]
struct Round {
    exchanged: Exchanged,
    /// Processor time of the LNS or the bare loop for a request.
    cpu_us: f64,
    others_percent: Option<f64>,
}

/// The rounds with one number of subscribers.
struct Rounds {
    subscribers: u32,
    ours: Vec<Round>,
    bare: Vec<Round>,
}

/// Measures and publishes. Fails unless every request was acknowledged.
pub(super) fn run(args: &CoaArgs) -> Result<ExitCode> {
    let bench = Bench {
        directory: RunDirectory::new(temporary())?,
        cores: Cores::take(),
        bar: spinner("coa"),
    };
    let witness = CoreWitness::start();
    let mut all = Vec::new();
    for subscribers in args.sizes() {
        all.push(measure(&bench, args, subscribers)?);
    }
    bench.bar.finish_and_clear();
    bench.cores.leave();
    let mut report = Report::new("coa", MachineInfo::read_with(witness));
    report.method = method(args, bench.cores.are_apart());
    report.tables = vec![goals(&all), costs(&all)];
    args.out.publish(&report)?;
    let mut ours = all.iter().flat_map(|rounds| &rounds.ours);
    let is_complete = ours.all(|round| round.exchanged.acknowledged == args.requests());
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A port of loopback that is free now.
fn free_port() -> Result<SocketAddr> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Rounds of both programs in turn, with that many subscribers.
fn measure(bench: &Bench, args: &CoaArgs, subscribers: u32) -> Result<Rounds> {
    bench.say(format!("{subscribers} subscribers connect"));
    write_private(&bench.directory.path("users.toml"), &users(subscribers))?;
    let door = free_port()?;
    let socket = bench.directory.path("lns.sock");
    let text = configuration(&socket.to_string_lossy(), door);
    let lns = Lns::start_with(bench, "lns", &text, |_| Ok(()))?;
    let mut load = Load::new(Options {
        servers: lns.server.addresses.clone(),
        sources: (SOURCE, subscribers),
        ipv6: false,
        first_user: 0,
    })?;
    let wave = load.open(subscribers, 256, CONNECT_MAX)?;
    ensure!(wave.up == subscribers, "{} connected", wave.up);
    let mut rounds = Rounds {
        subscribers,
        ours: Vec::new(),
        bare: Vec::new(),
    };
    let mut requests = Requests::new(subscribers);
    for number in 1..=args.rounds {
        bench.say(format!(
            "{subscribers} subscribers, {number} of {}",
            args.rounds
        ));
        let batch = requests.next_batch(args.requests());
        let ours = round(&lns.server, door, &batch, args.window)?;
        rounds.ours.push(ours);
        let octets = ours.exchanged.reply_octets;
        let kind = bare::Kind::Batch {
            request: 0,
            long: octets,
            short: octets,
        };
        let bare = Bare::start(bench, &kind)?;
        let to = bare.server.addresses[0];
        rounds
            .bare
            .push(round(&bare.server, to, &batch, args.window)?);
        bare.finish()?;
    }
    Ok(rounds)
}

fn round(server: &Server, to: SocketAddr, batch: &[Vec<u8>], window: u32) -> Result<Round> {
    let witness = CoreWitness::start();
    let before = server.booked()?;
    let exchanged = load::exchange(to, batch, window)?;
    std::thread::sleep(SETTLE);
    let spent = server.spent_since(&before)?;
    Ok(Round {
        exchanged,
        cpu_us: spent.cpu_us / batch.len() as f64,
        others_percent: others_of(witness.finish()),
    })
}

/// The LNS's configuration. The server authenticates nobody: all users are in the users file.
fn configuration(socket: &str, door: SocketAddr) -> String {
    format!(
        "[control]\nsocket = {}\n[lns]\nlisten = [\"127.0.0.1:0\", \"127.0.0.2:0\"]\nhello_interval_s = 3600\n\
         [log]\nto = \"stderr\"\n[limits]\ntunnels = 1000000\nsessions = 1000000\n\
         [ppp]\naddress = \"10.255.255.254\"\nauthenticate = [\"pap\"]\nipv6 = false\nsubscribers = 1000000\necho_interval_s = 0\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/13\"]\n[users]\nfile = \"users.toml\"\n\
         [radius]\ndisconnect = \"{door}\"\n\
         [[radius.server]]\nauthentication = \"127.0.0.1:1\"\nsecret = \"{SECRET}\"\n",
        Value::from(socket)
    )
}

fn rate(round: &Round) -> f64 {
    f64::from(round.exchanged.acknowledged) / round.exchanged.seconds.max(1e-9)
}

fn goals(all: &[Rounds]) -> Table {
    let columns = ["subscribers", "what", "measured", "to reach", "reached"].map(|name| (name, ""));
    let mut table = Table::new("To reach", &columns);
    for rounds in all {
        let Some(median) = median_by(&rounds.ours, |round| round.cpu_us) else {
            continue;
        };
        let measured = rate(median);
        table.row([
            u64::from(rounds.subscribers).into(),
            Cell::from("changes of rate per second"),
            Cell::num(measured, 0),
            Cell::num(RATE_GOAL, 0),
            if measured >= RATE_GOAL { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

fn costs(all: &[Rounds]) -> Table {
    let mut table = Table::new(
        "A change of rate, from the datagram to the reply",
        &[
            ("program", ""),
            ("subscribers", ""),
            ("requests", ""),
            ("acknowledged", ""),
            ("CPU each", "us"),
            ("of the bare loop", "x"),
            ("per s", ""),
            ("others' share of the cores", "%"),
        ],
    );
    for rounds in all {
        let median = |of: &[Round]| median_by(of, |round| round.cpu_us).copied();
        let (Some(ours), Some(bare)) = (median(&rounds.ours), median(&rounds.bare)) else {
            continue;
        };
        let cells = |name: &str, round: &Round, times: Cell| {
            vec![
                name.into(),
                u64::from(rounds.subscribers).into(),
                u64::from(round.exchanged.replies).into(),
                u64::from(round.exchanged.acknowledged).into(),
                Cell::num(round.cpu_us, 2),
                times,
                Cell::num(
                    f64::from(round.exchanged.replies) / round.exchanged.seconds,
                    0,
                ),
                round
                    .others_percent
                    .map_or_else(|| "".into(), |share| Cell::num(share, 1)),
            ]
        };
        let times = Cell::num(ours.cpu_us / bare.cpu_us.max(1e-9), 2);
        table.row(cells("headend", &ours, times));
        table.floor(cells("bare loop", &bare, "".into()));
    }
    table
}

fn method(args: &CoaArgs, apart: bool) -> Vec<String> {
    let mut lines = vec![
        format!(
            "All subscribers are connected, each through its own L2TPv2 tunnel. A round sends {} CoA-Requests, {} at a time. Each names a subscriber by User-Name, in turn, and sets its rate down to a value that no request has set before (WISPr-Bandwidth-Max-Down). The subscriber's queues are made by its first request and changed by the others.",
            args.requests(),
            args.window
        ),
        "The requests are made before the round: the load only sends and receives. The rate counts acknowledged requests over the time from the first request to the last reply. Processor time is the scheduler's count for the LNS's process. The table shows the round of median cost.".to_owned(),
        "The bare loop receives with recvmmsg, answers with sendmmsg and waits with ppoll. It gets the same datagrams from the same load, and its replies have the length of ours. Rounds of both alternate.".to_owned(),
    ];
    lines.push(if apart {
        "The load runs on one core and the LNS on another.".into()
    } else {
        "The load and the LNS share the machine's only core.".into()
    });
    if cfg!(debug_assertions) {
        lines.push("This build is not optimised, so its figures are not valid.".into());
    }
    lines
}
