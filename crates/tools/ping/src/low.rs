//! The flags of `headend ping`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

/// Ping several streams at once: hosts, traffic classes, sizes, over ICMP or UDP.
///
/// The flags are those of ping. Settings for one HOST follow its name after commas:
/// 192.0.2.1,dscp=ef,size=500,interval=0.01,count=100,udp=9,name=voice.
/// With several values of -Q or -s, each host gets a stream for each value.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 every stream got a reply; 1 some stream got none; 2 error."
)]
pub struct Args {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    #[command(flatten)]
    pub(super) ping: PingArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Compare the streams of result files with those of the first file
    Show(ShowArgs),
}

/// `headend ping show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Print one row for each packet
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// Print the comparison as one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Draw the streams of all files into one chart, as with `headend ping --plot`; may be repeated
    #[arg(long, value_name = "[KIND=]FILE")]
    pub(super) plot: Vec<OsString>,
}

/// `headend ping`.
#[derive(Debug, clap::Args)]
pub(super) struct PingArgs {
    /// The destination, with its own settings after commas
    #[arg(value_name = "HOST[,KEY=VALUE]...")]
    pub(super) hosts: Vec<String>,
    /// Stop after sending this many packets on each stream
    #[arg(short, value_name = "COUNT")]
    pub(super) count: Option<u64>,
    /// Seconds between the packets of a stream
    #[arg(short, value_name = "SECONDS", default_value = "1")]
    pub(super) interval: String,
    /// Bytes of data in a packet; each value makes a stream
    #[arg(
        short,
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "56"
    )]
    pub(super) size: Vec<u16>,
    /// TOS byte as a number (184, 0xb8), a DSCP name (ef, af41, cs1, be), or a historic TOS name (lowdelay); each value
    /// makes a stream
    #[arg(short = 'Q', long, value_name = "TOS,...", value_delimiter = ',')]
    pub(super) tos: Vec<String>,
    /// Source interface or source address; may be given twice, to set both
    #[arg(short = 'I', value_name = "INTERFACE|ADDRESS")]
    pub(super) from: Vec<String>,
    /// Time to live, or hop limit
    #[arg(short = 't', value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) hop_limit: Option<u8>,
    /// Path MTU discovery: do forbids fragmentation, dont allows it [default: dont]
    #[arg(short = 'M', value_name = "do|dont")]
    pub(super) mtu_discovery: Option<Discovery>,
    /// Seconds to wait for a reply; a later reply counts as late
    #[arg(short = 'W', value_name = "SECONDS", default_value = "10")]
    pub(super) wait: String,
    /// Stop after this many seconds
    #[arg(short = 'w', value_name = "SECONDS")]
    pub(super) deadline: Option<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "six")]
    pub(super) four: bool,
    /// IPv6 only
    #[arg(short = '6')]
    pub(super) six: bool,
    /// Send UDP to a responder (headend ping --responder) on this port
    #[arg(long, value_name = "PORT")]
    pub(super) udp: Option<u16>,
    /// More streams, from a file
    #[arg(short = 'f', long = "streams", value_name = "FILE")]
    pub(super) streams: Option<PathBuf>,
    /// Print nothing but the summary
    #[arg(short)]
    pub(super) quiet: bool,
    /// Print addresses instead of names
    #[arg(short)]
    pub(super) numeric: bool,
    /// Print the time before each line
    #[arg(short = 'D')]
    pub(super) date: bool,
    /// Print ping's lines on a terminal, in place of the live view
    #[arg(long)]
    pub(super) plain: bool,
    /// Print one row for each packet at the end, and nothing else
    #[arg(long, conflicts_with_all = ["quiet", "plain", "json"])]
    pub(super) csv: bool,
    /// Print the plan and summary of each stream at the end as one JSON object, and nothing else
    #[arg(long, conflicts_with_all = ["quiet", "plain"])]
    pub(super) json: bool,
    /// Save the result to a file; the suffixes .gz and .zst compress it
    #[arg(short, long = "out", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Draw the round trips into a file with the suffix .svg, .png or .html; may be repeated. KIND is time (with marks
    /// for losses), line, scatter or cdf [default: time; all kinds in a page]
    #[arg(long, value_name = "[KIND=]FILE")]
    pub(super) plot: Vec<OsString>,
    /// Number of packets whose samples are kept, over all streams
    #[arg(long, value_name = "PACKETS", default_value_t = ping::plan::SAMPLES_DEFAULT)]
    pub(super) samples: u64,
    /// Answer the UDP streams of other hosts instead of sending
    #[arg(long, value_name = "[ADDRESS:]PORT", conflicts_with = "hosts")]
    pub(super) responder: Option<String>,
    /// Also serve TCP streams on the responder's port, for headend lab bufferbloat
    #[arg(long, requires = "responder")]
    pub(super) load: bool,
    /// TCP streams that one host may have at once
    #[arg(long, value_name = "N", default_value_t = 16, requires = "load", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub(super) load_streams: u16,
    /// Seconds that a TCP stream may last
    #[arg(long, value_name = "S", default_value_t = 60, requires = "load", value_parser = clap::value_parser!(u16).range(1..=3_600))]
    pub(super) load_seconds: u16,
    /// Serve only hosts that have the token in the first line of this file
    #[arg(long, value_name = "FILE", requires = "load")]
    pub(super) load_token: Option<PathBuf>,
}

/// Values of -M.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Discovery {
    /// Forbid fragmentation
    Do,
    /// Allow fragmentation
    Dont,
}
