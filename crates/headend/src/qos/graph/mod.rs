//! `headend qos graph`: trees of queues, of a policy or of an interface.
//!
//! | module | what it is |
//! |---|---|
//! | `ask` | runs tc |
//! | `loose` | reads JSON as tc writes it |
//! | `record` | one record for each thing that tc printed, from JSON or text |
//! | `grow` | records -> tree |
//! | `ours` | policy -> tree |
//! | `model` | the tree |
//! | `text` | terminal, dot, JSON |
//! | `layout`, `svg` | boxes and where they stand; picture and page |
//!
//! Left out: rates that move.

mod ask;
mod grow;
mod layout;
mod loose;
mod model;
mod ours;
mod record;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use qos::policy::Policy;

use model::Tree;

/// Nodes that are drawn.
const NODES_MAX: usize = 20_000;

/// Draw the queues of a policy or of an interface, each discipline, class and filter once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The interface whose queues are drawn, as tc shows them
    #[arg(value_name = "IF", required_unless_present_any = ["policy", "saved"])]
    interface: Option<String>,
    /// Draw what this policy file means
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "saved"])]
    policy: Option<PathBuf>,
    /// Draw what `tc -j -s qdisc|class|filter show` printed, or the same without -j; `1:=FILE`, `ingress=FILE`:
    /// filters that tc was asked for with that parent
    #[arg(long = "tc-json", value_name = "FILE", num_args = 1..)]
    saved: Vec<String>,
    /// How it is drawn; without it, what the name behind -o says, else tree
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write it there
    #[arg(short, long, value_name = "FILE")]
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

/// Reads, draws and writes.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let format = format_of(args)?;
    let tree = match (&args.policy, &args.interface) {
        (Some(path), _) => of_policy(path)?,
        (None, Some(interface)) if args.saved.is_empty() => {
            grow::grow(&ask::everything(interface)?, interface)
        }
        (None, interface) => of_files(&args.saved, interface.as_deref())?,
    };
    if tree.nodes.len() > NODES_MAX {
        let count = tree.nodes.len();
        bail!("there are {count} disciplines, classes and filters: at most {NODES_MAX} are drawn");
    }
    let drawn = match format {
        Format::Tree => text::terminal(&tree),
        Format::Svg => svg::svg(&tree),
        Format::Dot => text::dot(&tree),
        Format::Html => svg::html(&tree),
        Format::Json => text::json(&tree),
    };
    match &args.output {
        Some(path) => std::fs::write(path, drawn).with_context(|| path.display().to_string())?,
        None => std::io::stdout().lock().write_all(drawn.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn format_of(args: &Args) -> Result<Format> {
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
    match Policy::parse(&super::text_of(path)?) {
        Ok((policy, _)) => ours::grow(&policy, &name),
        Err(faults) => {
            let faults: Vec<String> = faults
                .iter()
                .map(|fault| format!("{name}:{fault}"))
                .collect();
            bail!("{}", faults.join("\n"))
        }
    }
}

fn of_files(files: &[String], interface: Option<&str>) -> Result<Tree> {
    let mut records = Vec::new();
    for file in files {
        let (parent, path) = match file.split_once('=') {
            Some((parent, path)) if !Path::new(file).exists() => (Some(parent), path),
            _ => (None, file.as_str()),
        };
        let text = super::text_of(Path::new(path))?;
        records.extend(record::read(&text, parent));
    }
    Ok(grow::grow(&records, interface.unwrap_or("interface")))
}
