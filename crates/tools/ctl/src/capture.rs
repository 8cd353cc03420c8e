//! `headend capture subscriber`: writes the packets of one subscriber to a pcapng file while the daemon forwards them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use reactor::Signals;
use serde_json::Value;

use crate::subscriber::SelectorArgs;
use cli::Socket;
use cli::values::seconds;
use control::client::{Client, refusal};
use control::request::{CaptureStop, CaptureSubscriber, Do};
use control::rows::CaptureEnd;

/// How often time and signals are checked while no packet arrives.
const LOOK: Duration = Duration::from_millis(50);

/// How long to wait for the end of the file after a stop.
const REST: Duration = Duration::from_secs(5);

/// Write packets to a capture file.
#[derive(Debug, clap::Args)]
pub struct CaptureArgs {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Capture one subscriber's packets until Ctrl-C or a limit
    #[command(after_help = HELP)]
    Subscriber(Subscriber),
}

const HELP: &str = "\
The file has two interfaces. \"inside\" has the subscriber's IP packets. \"outside\" has the L2TP datagrams of its
session with all PPP frames; their IP and UDP headers are rebuilt. Inbound packets are from the subscriber. Other
subscribers that connect with the same name are captured too, from the moment when they send the name.

Examples:
  headend capture subscriber alice alice.pcapng
  headend capture subscriber 10.64.0.7 dns.pcapng --count 1000 --snap 128
  headend capture subscriber alice alice.pcapng --wait --seconds 60
  headend capture subscriber alice - | wireshark -k -i -";

#[derive(Debug, clap::Args)]
struct Subscriber {
    /// The subscriber's name or address
    #[arg(value_name = "NAME|ADDRESS")]
    who: String,
    /// The file to write, replaced if it exists; - is standard output
    #[arg(value_name = "FILE", required_unless_present = "out")]
    file: Option<PathBuf>,
    /// The file to write, in place of FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    out: Option<PathBuf>,
    /// Stop after this many packets on both interfaces together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Bytes to keep of each packet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    snap: Option<u32>,
    /// Start even if the subscriber is not connected yet
    #[arg(long)]
    wait: bool,
}

impl Subscriber {
    fn request(&self) -> Do {
        Do::CaptureSubscriber(CaptureSubscriber {
            of: SelectorArgs::of(&self.who).request(),
            wait: self.wait,
            count: self.count,
            snap: self.snap,
        })
    }
}

/// Runs the command.
pub fn run(args: &CaptureArgs) -> Result<ExitCode> {
    let What::Subscriber(wanted) = &args.what;
    let mut client = args.socket.connect()?;
    let signals = Signals::new().context("cannot take signals")?;
    let mut run = Run {
        id: client.queue(&wanted.request()),
        client,
        signals,
        out: None,
        stop_at: wanted.seconds.map(|limit| Instant::now() + limit),
        stopping: None,
    };
    run.client.flush()?;
    let file = wanted.file.as_ref().or(wanted.out.as_ref());
    let file = file.context("give the file to write")?;
    let end = run.take(file)?;
    if let Some(end) = end {
        let (inside, outside) = (&end["inside"], &end["outside"]);
        let lost =
            end["inside_lost"].as_u64().unwrap_or(0) + end["outside_lost"].as_u64().unwrap_or(0);
        eprintln!("{inside} packets inside, {outside} outside, {lost} lost");
    }
    Ok(ExitCode::SUCCESS)
}

struct Run {
    client: Client,
    id: u64,
    signals: Signals,
    /// Opened when the daemon accepts the request, so that a refusal leaves an existing file unchanged.
    out: Option<Box<dyn Write>>,
    stop_at: Option<Instant>,
    /// When the stop was requested.
    stopping: Option<Instant>,
}

impl Run {
    /// Writes the file; returns the last row, with the counts of packets.
    fn take(&mut self, file: &Path) -> Result<Option<Value>> {
        let mut last = None;
        loop {
            self.look()?;
            let (mut octets, mut ended) = (None, false);
            match self.client.next(Some(LOOK))? {
                None => self.flush()?,
                Some(reply) => {
                    if reply.id == self.id
                        && let Some(reason) = refusal(&reply)
                    {
                        bail!("{reason}");
                    }
                    octets = reply.octets;
                    ended = reply.id == self.id && reply.end;
                    if let Some(row) = reply.row {
                        let row: Value = serde_json::from_str(row.get())?;
                        if row["schema"] == CaptureEnd::SCHEMA {
                            last = Some(row);
                        } else {
                            self.out = Some(open(file)?);
                            tell(&row);
                        }
                    }
                }
            }
            if let (Some(count), Some(out)) = (octets, &mut self.out) {
                self.client.octets(count, |part| {
                    out.write_all(part).map_err(|error| unwritten(error, file))
                })?;
                self.flush()?;
            }
            if ended {
                self.flush()?;
                return Ok(last);
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.as_mut().map_or(Ok(()), |out| out.flush())?)
    }

    /// Checks signals and the time, and requests the end of the capture if one of them says so.
    fn look(&mut self) -> Result<()> {
        let mut wanted = self.stop_at.is_some_and(|at| at <= Instant::now());
        while self.signals.next_signal()?.is_some() {
            if self.stopping.is_some() {
                bail!("ended before the file was complete");
            }
            wanted = true;
        }
        match self.stopping {
            None if wanted => {
                self.stopping = Some(Instant::now());
                let capture = self.id;
                self.client.queue(&Do::CaptureStop(CaptureStop { capture }));
                self.client.flush()
            }
            Some(since) if since.elapsed() > REST => bail!("the daemon does not end the capture"),
            _ => Ok(()),
        }
    }
}

fn tell(row: &Value) {
    match row["subscribers"].as_u64() {
        Some(0) => {
            eprintln!("capturing; the subscriber is not connected yet; Ctrl-C ends the capture")
        }
        Some(1) => eprintln!("capturing; Ctrl-C ends the capture"),
        count => eprintln!(
            "capturing {} sessions of this name; Ctrl-C ends the capture",
            count.unwrap_or(0)
        ),
    }
}

fn open(file: &Path) -> Result<Box<dyn Write>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::BufWriter::new(io::stdout())));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // Only the owner may read the packets of subscribers.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(file);
    let opened = opened.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Box::new(io::BufWriter::new(opened)))
}

fn unwritten(error: io::Error, file: &Path) -> anyhow::Error {
    // A reader that closes the pipe has seen enough; that is no error.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return error.into();
    }
    anyhow::Error::new(error).context(format!("cannot write {}", file.display()))
}
