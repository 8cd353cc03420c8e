//! What was typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

/// Ping several streams at once: hosts, traffic classes, sizes, over ICMP or UDP.
///
/// Flags are ping's. A HOST may carry its own settings, separated by commas:
/// 192.0.2.1,dscp=ef,size=500,interval=0.01,count=100,udp=9,name=voice.
/// Several values of -Q and -s multiply: every host with every one of them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 every stream was answered; 1 some stream was not; 2 something was wrong."
)]
pub struct Args {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    #[command(flatten)]
    pub(super) ping: PingArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Load result files and compare their streams with those of the first
    Show(ShowArgs),
}

/// `headend ping show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// One row for each packet
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// The comparison as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Draw the files' streams over each other, as below `headend ping --plot`; may be repeated
    #[arg(long, value_name = "[KIND=]FILE")]
    pub(super) plot: Vec<OsString>,
}

/// `headend ping`.
#[derive(Debug, clap::Args)]
pub(super) struct PingArgs {
    /// Where to, with settings of its own behind commas
    #[arg(value_name = "HOST[,KEY=VALUE]...")]
    pub(super) hosts: Vec<String>,
    /// Stop after sending this many packets on each stream
    #[arg(short, value_name = "COUNT")]
    pub(super) count: Option<u64>,
    /// Seconds between the packets of a stream
    #[arg(short, value_name = "SECONDS", default_value = "1")]
    pub(super) interval: String,
    /// Octets of data in a packet; several multiply
    #[arg(
        short,
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "56"
    )]
    pub(super) size: Vec<u16>,
    /// TOS octet as a number (184, 0xb8), DSCP by name (ef, af41, cs1, be), or an old TOS by name (lowdelay); several
    /// multiply
    #[arg(short = 'Q', long, value_name = "TOS,...", value_delimiter = ',')]
    pub(super) tos: Vec<String>,
    /// Interface or address to send from; one of each may be given
    #[arg(short = 'I', value_name = "INTERFACE|ADDRESS")]
    pub(super) from: Vec<String>,
    /// Time to live, or hop limit
    #[arg(short = 't', value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) hop_limit: Option<u8>,
    /// Whether packets may be fragmented on their way: dont (the default) lets routers do that, do forbids it
    #[arg(short = 'M', value_name = "do|dont")]
    pub(super) mtu_discovery: Option<Discovery>,
    /// Seconds to wait for a reply; one that comes later is late
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
    /// Print addresses, not names, of who replies
    #[arg(short)]
    pub(super) numeric: bool,
    /// Print the time before each line
    #[arg(short = 'D')]
    pub(super) date: bool,
    /// Print ping's lines on a terminal too
    #[arg(long)]
    pub(super) plain: bool,
    /// Print one row for each packet at the end, and nothing else
    #[arg(long, conflicts_with_all = ["quiet", "plain", "json"])]
    pub(super) csv: bool,
    /// Print the plan and summary of each stream at the end as one JSON object, and nothing else
    #[arg(long, conflicts_with_all = ["quiet", "plain"])]
    pub(super) json: bool,
    /// Keep the result in a file; .gz and .zst are compressed
    #[arg(short, long = "out", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Draw the round trips into a file that ends in .svg, .png or .html; may be repeated. KIND is time (with marks
    /// of losses), line, scatter or cdf; without one a picture is over time, and a page has all
    #[arg(long, value_name = "[KIND=]FILE")]
    pub(super) plot: Vec<OsString>,
    /// Packets whose samples are kept, of all streams together
    #[arg(long, value_name = "PACKETS", default_value_t = ping::plan::SAMPLES_DEFAULT)]
    pub(super) samples: u64,
    /// Answer UDP streams of others instead
    #[arg(long, value_name = "[ADDRESS:]PORT", conflicts_with = "hosts")]
    pub(super) responder: Option<String>,
}

/// ping's words for whether packets may be fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Discovery {
    /// They may not.
    Do,
    /// They may.
    Dont,
}
