//! The command line of `headend lab bufferbloat`, and its meaning.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base::Redacted;
use lab::bufferbloat::{Grade, Kind, Run, read, read_flent};
use ping::load::Congestion;
use ping::{Protocol, StreamPlan};
use tool_ping::resolve::{Family, look_up};
use tool_ping::{serve, spec};

/// Bytes of a file of --compare after decompression.
const BYTES_MAX: u64 = 256 << 20;
/// Bytes of data of a ping.
const SIZE: u16 = 64;

/// Measure what load adds to the delay of other packets: idle, downloads, uploads, both; with a grade.
///
/// HOST runs `headend ping --responder PORT --load`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 measured; 1 the grade is worse than --fail-over; 2 error, results until then are kept."
)]
pub(crate) struct BloatArgs {
    /// The host with the responder: a name or an address
    #[arg(value_name = "HOST")]
    host: String,
    /// The responder's port, for UDP and TCP
    #[arg(long, value_name = "PORT", default_value_t = 7_007, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// TCP streams in each loaded direction
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=128))]
    streams: u16,
    /// The streams' congestion control, as the senders' kernels name it: cubic, bbr, reno [default: the kernels' own]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Loads to measure, in this order after the idle phase
    #[arg(
        long,
        value_name = "LOAD,...",
        value_delimiter = ',',
        default_value = "down,up,both"
    )]
    load: Vec<Way>,
    /// Seconds of each loaded phase
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=3_600))]
    seconds: u16,
    /// Seconds of the idle phase
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    idle: u16,
    /// Seconds between two pings of a stream
    #[arg(short, value_name = "SECONDS", default_value = "0.05")]
    interval: String,
    /// A UDP ping stream for each TOS byte or DSCP name (ef, af41, cs1, be); the grade is about the first
    #[arg(
        short = 'Q',
        long,
        value_name = "TOS,...",
        value_delimiter = ',',
        default_value = "be"
    )]
    tos: Vec<String>,
    /// Also ping with ICMP
    #[arg(long)]
    icmp: bool,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "six")]
    four: bool,
    /// IPv6 only
    #[arg(short = '6')]
    six: bool,
    /// The file whose first line is the responder's token (its --load-token)
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Save the pings as a result of headend ping; the suffixes .gz and .zst compress it
    #[arg(short, long = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Save the run as a data file of flent; the suffix .gz compresses it
    #[arg(long, value_name = "FILE")]
    flent: Option<PathBuf>,
    /// Draw delay and throughput over time into a file with the suffix .svg, .png or .html; may be repeated
    #[arg(long, value_name = "FILE")]
    plot: Vec<PathBuf>,
    /// Run the test, then this command in a shell, then the test again
    #[arg(long, value_name = "COMMAND", conflicts_with = "compare")]
    exec: Option<String>,
    /// Compare with an earlier run: a file of --json or of flent
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Exit with status 1 if the grade is worse than this one: A+, A, B, C, D
    #[arg(long, value_name = "GRADE")]
    fail_over: Option<Grade>,
    /// Print the result as one JSON object, `lab.bufferbloat/1`, and nothing else
    #[arg(long)]
    json: bool,
}

/// A loaded phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// Streams to this host
    Down,
    /// Streams from this host
    Up,
    /// Streams in both directions
    Both,
}

/// What to do, from the command line.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) host: String,
    /// The responder, with the scope of an IPv6 address.
    pub(super) to: SocketAddr,
    pub(super) streams: u16,
    pub(super) congestion: Congestion,
    /// The phases in their order, each with its seconds.
    pub(super) phases: Vec<(Kind, u16)>,
    pub(super) pings: Vec<StreamPlan>,
    /// Empty without one.
    pub(super) token: Redacted<Vec<u8>>,
    pub(super) output: Option<PathBuf>,
    pub(super) flent: Option<PathBuf>,
    pub(super) plots: Vec<PathBuf>,
    pub(super) exec: Option<String>,
    /// Earlier runs.
    pub(super) compare: Vec<(String, Run)>,
    pub(super) fail_over: Option<Grade>,
    pub(super) json: bool,
}

impl Task {
    pub(super) fn new(args: &BloatArgs) -> Result<Task> {
        let congestion = Congestion::new(args.congestion.as_deref().unwrap_or_default())
            .with_context(|| format!("--congestion {:?}", args.congestion.as_deref()))?;
        let token = args.token.as_deref().map(serve::token).transpose()?;
        let compare = args.compare.as_deref().map(earlier).transpose()?;
        let mut phases = vec![(Kind::Idle, args.idle)];
        for way in &args.load {
            let kind = match way {
                Way::Down => Kind::Down,
                Way::Up => Kind::Up,
                Way::Both => Kind::Both,
            };
            if phases.iter().any(|(known, _)| *known == kind) {
                bail!("--load: {} is given twice", kind.name());
            }
            phases.push((kind, args.seconds));
        }
        // The look-up comes last, since it takes time.
        let family = match (args.four, args.six) {
            (true, _) => Family::Four,
            (_, true) => Family::Six,
            _ => Family::Any,
        };
        let mut pings = pings(args)?;
        let mut to = look_up(&args.host, family)?;
        to.set_port(args.port);
        for stream in &mut pings {
            stream.address = to.ip();
        }
        Ok(Task {
            host: args.host.clone(),
            to,
            streams: args.streams,
            congestion,
            phases,
            pings,
            token: token.unwrap_or_default(),
            output: args.output.clone(),
            flent: args.flent.clone(),
            plots: args.plot.clone(),
            exec: args.exec.clone(),
            compare: compare.unwrap_or_default(),
            fail_over: args.fail_over,
            json: args.json,
        })
    }

    /// Streams that the busiest phase has.
    pub(super) fn streams_at_once(&self) -> u16 {
        let both = self.phases.iter().any(|(kind, _)| *kind == Kind::Both);
        self.streams * if both { 2 } else { 1 }
    }
}

/// The ping streams; their address is set later.
fn pings(args: &BloatArgs) -> Result<Vec<StreamPlan>> {
    let interval = spec::seconds(&args.interval).context("-i")?;
    let stream = |name: String, tos, protocol| StreamPlan {
        name,
        host: args.host.clone(),
        address: std::net::IpAddr::from([0, 0, 0, 0]),
        protocol,
        tos,
        size: SIZE,
        interval,
        offset: base::Duration::ZERO,
        count: None,
    };
    let mut streams: Vec<StreamPlan> = Vec::new();
    for text in &args.tos {
        let tos = spec::tos(text).context("-Q")?;
        let name = format!("udp {}", spec::tos_name(tos));
        if streams.iter().any(|stream| stream.name == name) {
            bail!("-Q: {text} is given twice");
        }
        streams.push(stream(name, tos, Protocol::Udp { port: args.port }));
    }
    if args.icmp {
        streams.push(stream("icmp".to_owned(), 0, Protocol::Icmp));
    }
    Ok(streams)
}

/// The last run of an earlier file, named after the file.
fn earlier(path: &Path) -> Result<Vec<(String, Run)>> {
    let bad = || format!("--compare {}", path.display());
    let text = text(path).with_context(bad)?;
    let is_flent = {
        let head: serde_json::Value = serde_json::from_str(&text).with_context(bad)?;
        head.get("schema").is_none()
    };
    let run = match is_flent {
        true => read_flent(&text).with_context(bad)?,
        false => read(&text).with_context(bad)?.pop().context("no run")?.1,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(vec![(name.into_owned(), run)])
}

/// The text of a file, decompressed if it is compressed with gzip.
fn text(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let mut text = String::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            let inside = flate2::read::MultiGzDecoder::new(&bytes[..]);
            inside.take(BYTES_MAX).read_to_string(&mut text)?;
        }
        false => text = String::from_utf8(bytes).context("it is no text")?,
    }
    Ok(text)
}
