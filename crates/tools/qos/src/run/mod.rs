//! `headend qos run`: applies a policy between two interfaces.
//!
//! | module | purpose |
//! |---|---|
//! | `lock` | only one shaper uses an interface |
//! | `keeper` | a separate process that restores offloads, even if this one is killed |
//! | `record` | which offloads are off, for the next start if the keeper was killed too |
//! | `shaping` | the active policy: its rows, its reload |
//! | `hosts` | the hosts that use the line, counted while a client asks |
//! | `service` | signals and control clients, on the main thread |
//!
//! The engine has its own thread. The program first opens the interfaces and the control socket; if one cannot be
//! opened, it keeps none open. It then drops every privilege.

mod hosts;
pub(super) mod keeper;
pub(super) mod lock;
mod record;
mod service;
mod shaping;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use qos::policy::Policy;
use qos::tree::Spec;
use qos::units::Rate;
use reactor::port::{Io, Port, PortError, PortOptions};
use reactor::{Signals, Waker, urgency};
use shaper::{Direction, Engine, EngineError, LaneSnapshot, Snapshot};

use super::check::Examined;
use super::rates::octets;
use super::running::Control;
use control::service::Socket;
use keeper::Keeper;
use lock::Locks;
use service::Service;
use shaping::{Shaping, room};

/// Receive buffer of each interface in bytes, for packets that arrive while the engine sends.
const RECV_BUFFER: usize = 8 << 20;

/// Shape what passes between two interfaces, both ways, until SIGINT or SIGTERM; SIGHUP reads the policy anew.
#[derive(Debug, clap::Args)]
pub(super) struct QosRunArgs {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The interface of the hosts
    #[arg(long, value_name = "IF")]
    lan: String,
    /// The interface towards the provider
    #[arg(long, value_name = "IF")]
    wan: String,
    /// How frames are received and sent
    #[arg(long, value_name = "HOW", default_value = "ring")]
    io: IoArg,
    /// Whether the interfaces may join and cut packets
    #[arg(long, value_name = "WHAT", default_value = "off")]
    offloads: OffloadsArg,
    #[command(flatten)]
    control: Control,
}

/// Values of `--offloads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OffloadsArg {
    /// Each packet arrives and leaves as it appears on the wire
    Off,
    /// Packets that were joined stay together where the rate allows it
    Keep,
}

/// Values of `--io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum IoArg {
    /// Memory shared with the kernel, where the kernel has it for the interface
    Ring,
    /// The system calls recvmmsg and sendmmsg
    Recvmmsg,
}

/// Opens everything, runs the shaper, and restores what was changed.
pub(super) fn run(args: &QosRunArgs) -> Result<ExitCode> {
    let mut examined = Examined::read(&args.policy)?;
    let faults = examined.faults();
    if !faults.is_empty() {
        eprintln!("{}", faults.join("\n"));
        return Ok(ExitCode::from(2));
    }
    let (lan, wan) = (args.lan.as_str(), args.wan.as_str());
    examined.look_at(Some(lan), Some(wan))?;
    for line in examined.advice() {
        eprintln!("{line}");
    }
    let Some(policy) = examined.policy() else {
        bail!("{}: cannot be used", args.policy.display());
    };
    // Before any thread starts: threads started earlier would not have the signals blocked.
    let signals = Signals::new()?;
    let locks = Locks::of([("--lan", lan), ("--wan", wan)])?;
    let engine = open(lan, wan, &policy, args)?;
    let socket = Socket::listen(args.control.path())?;
    let keeper =
        locks.shared_with(|| Keeper::start([lan, wan], args.offloads == OffloadsArg::Keep))?;
    println(&what(lan, wan, &policy, args, &keeper.turned_off))?;
    let shaping = Shaping::new(policy, args.policy.clone(), [lan, wan], engine.control());
    let engine = Running::start(engine)?;
    reactor::drop_capabilities().context("cannot give up privileges")?;
    if let Some(line) = shaping.is_readable_still() {
        eprintln!("{line} (advice)");
    }
    let served =
        Service::new(signals, socket, &engine.ended, shaping).and_then(|mut service| service.run());
    let (outcome, last) = engine.end()?;
    keeper.restore();
    println(&summary(&last))?;
    if let Some(fault) = &last.fault {
        let count = last.faults[0] + last.faults[1];
        eprintln!(
            "headend qos: reads of the interfaces failed {count} times, the last one with: {fault}"
        );
    }
    served?;
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
    }
}

/// The engine between both interfaces, which it opens.
fn open(lan: &str, wan: &str, policy: &Policy, args: &QosRunArgs) -> Result<Engine> {
    let port = |name: &str| {
        let options = PortOptions {
            recv_buffer_bytes: Some(RECV_BUFFER),
            io: match args.io {
                IoArg::Ring => Io::Rings,
                IoArg::Recvmmsg => Io::Calls,
            },
            keep_large: args.offloads == OffloadsArg::Keep,
            ..PortOptions::default()
        };
        let port = Port::open(name, &options).map_err(|error| match error {
            PortError::Down(_) => anyhow!("{error}; ip link set {name} up"),
            error => anyhow::Error::from(error),
        })?;
        for line in port.fallbacks() {
            eprintln!("headend qos: {name}: {line}");
        }
        anyhow::Ok(port)
    };
    let mut seed = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .context("no random numbers from /dev/urandom")?;
    let direction = |spec: Spec| Direction {
        packets_max: room(&spec),
        spec,
        overhead: policy.overhead(),
        delay: base::Duration::ZERO,
        seed: u64::from_ne_bytes(seed),
    };
    let (up, down) = (direction(policy.up_spec()), direction(policy.down_spec()));
    Ok(Engine::new(port(lan)?, port(wan)?, &up, &down)?)
}

/// The engine's result.
type Outcome = (Result<(), EngineError>, Snapshot);

/// The engine on its thread.
struct Running {
    stop: Arc<AtomicBool>,
    /// Woken when the engine has ended.
    ended: Arc<Waker>,
    thread: JoinHandle<Result<Outcome>>,
}

/// Signals the end of the thread, even after a panic.
struct Ending(Arc<Waker>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Running {
    fn start(mut engine: Engine) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(Waker::new()?);
        let (stops, ending) = (Arc::clone(&stop), Ending(Arc::clone(&ended)));
        let builder = std::thread::Builder::new().name("engine".into());
        let thread = builder.spawn(move || {
            let _ending = ending;
            // Like the kernel's own forwarding, it takes precedence over computing processes; it sleeps when idle.
            urgency::hasten(true);
            reactor::drop_capabilities().context("cannot give up privileges")?;
            let outcome = engine.run(&stops);
            Ok((outcome, engine.snapshot()))
        })?;
        Ok(Self {
            stop,
            ended,
            thread,
        })
    }

    /// Stops the engine, if it has not ended already.
    fn end(self) -> Result<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The line that describes the running shaper.
fn what(lan: &str, wan: &str, policy: &Policy, args: &QosRunArgs, off: &[String; 2]) -> String {
    let rate =
        |rate: Option<u64>| rate.map_or("not shaped".to_owned(), |rate| Rate(rate).to_string());
    let off: Vec<String> = [lan, wan]
        .iter()
        .zip(off)
        .filter(|(_, off)| !off.is_empty())
        .map(|(name, off)| format!("; off at {name}: {off}"))
        .collect();
    format!(
        "{lan} <-> {wan}: up {}, down {} by {}; control at {}{}",
        rate(policy.up_bps()),
        rate(policy.down_bps()),
        args.policy.display(),
        args.control.path().display(),
        off.concat()
    )
}

/// The summary at the end.
fn summary(last: &Snapshot) -> String {
    let way = |name: &str, lane: &LaneSnapshot| {
        let (sums, stats) = (lane.statistics, lane.stats);
        let lost = stats.no_room + stats.too_long + stats.down;
        let beside = match lost {
            0 => String::new(),
            lost => format!(", {lost} lost beside the queues"),
        };
        let waiting = match lane.backlog.packets {
            0 => String::new(),
            packets => format!(", {packets} left waiting"),
        };
        format!(
            "{name}: sent {} packets ({}), dropped {}, marked {}{waiting}{beside}",
            sums.sent_packets,
            octets(sums.sent_bytes),
            sums.dropped,
            stats.marked
        )
    };
    format!("{}\n{}", way("up", &last.up), way("down", &last.down))
}

/// Writes a line to standard output and flushes it. A closed output is ignored.
fn println(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
