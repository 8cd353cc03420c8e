//! `headend qos graph`: draws the queues of a policy, an interface or a running shaper.
//!
//! | module | purpose |
//! |---|---|
//! | `ask` | runs tc |
//! | `loose` | reads JSON as tc writes it |
//! | `record` | one record for each qdisc, class and filter of tc, from JSON or text |
//! | `header`, `units` | what u32 filters compare, and limits, in words |
//! | `actions` | the actions of filters, and their counters |
//! | `tins` | the tins of cake |
//! | `grow` | records -> tree |
//! | `ours` | policy -> tree |
//! | `model` | the tree |
//! | `text` | terminal, dot, JSON |
//! | `fold` | groups of like nodes, for pages |
//! | `layout`, `svg`, `page` | positions of boxes; SVG; page, with `page.js` and `live.js` |
//! | `live`, `serve` | repeated readings; the page over HTTP |

mod actions;
mod ask;
mod fold;
mod grow;
mod header;
mod layout;
mod live;
pub(crate) mod loose;
mod model;
mod ours;
mod page;
mod record;
mod serve;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod tins;
mod units;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use qos::policy::Policy;

use super::rates::interval;
use super::running::SOCKET;
use live::{Source, Watcher};
use model::Tree;

/// Maximum number of nodes in a drawing.
const NODES_MAX: usize = 20_000;

/// Draw the queues of a policy or of an interface, each discipline, class and filter once.
#[derive(Debug, clap::Args)]
pub(super) struct QosGraphArgs {
    /// Draw the queues of this interface, as tc shows them
    #[arg(value_name = "IF", required_unless_present_any = ["policy", "saved", "live", "control"])]
    interface: Option<String>,
    /// Draw both directions of this policy file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "saved"])]
    policy: Option<PathBuf>,
    /// Draw the saved output of `tc -j -s qdisc|class|filter show`, with or without -j; `1:=FILE`, `ingress=FILE`: the
    /// filters of that parent
    #[arg(long = "tc-json", value_name = "FILE", num_args = 1..)]
    saved: Vec<String>,
    /// Draw the queues of the `headend qos run` with this control socket [default with --live and without IF:
    /// /run/headend-qos.sock]
    #[arg(long = "socket", alias = "control", value_name = "PATH", conflicts_with_all = ["interface", "policy", "saved"])]
    control: Option<PathBuf>,
    /// Repeat, and draw with the rates between two readings
    #[arg(long, conflicts_with_all = ["policy", "saved", "format", "output"])]
    live: bool,
    /// Draw with the rates over this time; with --live, the time between two readings [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = interval, conflicts_with_all = ["policy", "saved"])]
    interval: Option<Duration>,
    /// Serve the page with live rates over HTTP at a loopback address, such as 127.0.0.1:8080; port 0: any free port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = serve::address, requires = "live")]
    listen: Option<SocketAddr>,
    /// Stop after this many readings
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The directory in which `headend qos apply` keeps the names of its policy
    #[arg(long, value_name = "DIRECTORY", default_value = "/run/headend-qos")]
    state: PathBuf,
    /// The format [default: that of the suffix of --out, else tree]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file
    #[arg(short, long = "out", alias = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for the terminal
    Tree,
    /// A picture
    Svg,
    /// The language of graphviz
    Dot,
    /// A page with the picture
    Html,
    /// Nodes and edges for programs
    Json,
}

/// Reads the source, draws it and writes the output.
pub(super) fn run(args: &QosGraphArgs) -> Result<ExitCode> {
    let every = args.interval.unwrap_or(Duration::from_secs(1));
    if args.live {
        let watcher = Watcher::new(source(args));
        match args.listen {
            Some(listen) => serve::serve(watcher, listen, every, args.count)?,
            None => live::draw(watcher, every, args.count)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let format = format_of(args)?;
    let tree = match (&args.policy, args.interval) {
        (Some(path), _) => of_policy(path)?,
        (None, _) if !args.saved.is_empty() => of_files(&args.saved, args.interface.as_deref())?,
        (None, Some(interval)) => Watcher::new(source(args)).over(interval)?,
        (None, None) => Watcher::new(source(args)).once()?,
    };
    bounded(&tree)?;
    let drawn = match format {
        Format::Tree => text::terminal(&tree),
        Format::Svg => svg::svg(&tree),
        Format::Dot => text::dot(&tree),
        Format::Html => page::html(&tree),
        Format::Json => text::json(&tree),
    };
    match &args.output {
        Some(path) => {
            let written = std::fs::write(path, drawn);
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => std::io::stdout().lock().write_all(drawn.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if the tree is too large to draw.
fn bounded(tree: &Tree) -> Result<()> {
    let count = tree.nodes.len();
    ensure!(
        count <= NODES_MAX,
        "there are {count} disciplines, classes and filters: at most {NODES_MAX} are drawn"
    );
    Ok(())
}

/// The source to read from.
fn source(args: &QosGraphArgs) -> Source {
    match (&args.interface, &args.control) {
        (Some(interface), _) => Source::Interface(interface.clone(), args.state.clone(), None),
        (None, Some(path)) => Source::Running(path.clone(), None),
        (None, None) => Source::Running(SOCKET.into(), None),
    }
}

fn format_of(args: &QosGraphArgs) -> Result<Format> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let Some(path) = &args.output else {
        return Ok(Format::Tree);
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(Format::Svg),
        Some("dot" | "gv") => Ok(Format::Dot),
        Some("html" | "htm") => Ok(Format::Html),
        Some("json") => Ok(Format::Json),
        Some("txt") => Ok(Format::Tree),
        _ => bail!(
            "{}: the name says no format; end it in .svg, .dot, .html, .json or .txt, or give --format",
            path.display()
        ),
    }
}

fn of_policy(path: &Path) -> Result<Tree> {
    let name = path.display().to_string();
    match Policy::parse(&settings::text_of(path)?) {
        Ok((policy, _)) => ours::grow(&policy, &name),
        Err(faults) => Err(faults.of(path).into()),
    }
}

fn of_files(files: &[String], interface: Option<&str>) -> Result<Tree> {
    let mut records = Vec::new();
    for file in files {
        let (parent, path) = match file.split_once('=') {
            Some((parent, path)) if !Path::new(file).exists() => (Some(parent), path),
            _ => (None, file.as_str()),
        };
        let text = settings::text_of(Path::new(path))?;
        ensure!(
            !loose::is_cut_short(&text),
            "{path}: the JSON ends before its lists are closed: the file was cut short"
        );
        let found = record::read(&text, parent);
        // tc prints an empty list if there are no classes or filters.
        ensure!(
            !found.is_empty() || text.trim() == "[]" || text.trim() == "[ ]",
            "{path}: nothing that `tc -j -s qdisc|class|filter show` prints is in it"
        );
        records.extend(found);
    }
    ensure!(
        !records.is_empty(),
        "{}: there is no discipline to draw",
        files.join(", ")
    );
    Ok(grow::grow(&records, interface.unwrap_or("interface")))
}
