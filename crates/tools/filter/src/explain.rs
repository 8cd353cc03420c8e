//! `headend filter explain FILE PACKET`: reports which rule decides on a packet, and why.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use filter::{Direction, Explanation, Filter, FilterSet};
use serde_json::json;

use super::{names, question};
use settings::text_of;

/// Show which rule decides on a packet. Exit status 0: accepted; 1: denied; 2: error.
#[derive(Debug, clap::Args)]
pub(super) struct FilterExplainArgs {
    /// The file of filters
    file: PathBuf,
    /// Words, such as 'in tcp 10.1.2.3:1234 > 192.0.2.1:80 flags S'; the bytes of an IP packet in hexadecimal; or
    /// CAPTURE:N, the Nth packet of a capture
    #[arg(required = true)]
    packet: Vec<String>,
    /// The filter's name; not needed if the file has only one
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// The direction of the packet: in is from the subscriber. Not needed if PACKET contains it
    #[arg(long, value_name = "in|out", value_parser = direction)]
    direction: Option<Direction>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn direction(text: &str) -> Result<Direction, String> {
    let known = Direction::ALL.into_iter().find(|one| one.word() == text);
    known.ok_or_else(|| "in (from the subscriber) or out (to the subscriber)".to_owned())
}

/// Prints which rule decides and why.
pub(super) fn run(args: &FilterExplainArgs) -> Result<ExitCode> {
    let text = text_of(&args.file)?;
    let names = names();
    let set = match FilterSet::parse(&text, &names) {
        Ok((set, _)) => set,
        Err(remarks) => {
            for fault in &remarks.faults {
                eprintln!("{}:{fault}", args.file.display());
            }
            return Ok(ExitCode::from(2));
        }
    };
    let filter = args.filter_of(&set)?;
    let (said, packet) = question::read(&args.packet.join(" "), &names)?;
    if let (Some(said), Some(given)) = (said, args.direction)
        && said != given
    {
        bail!("the packet says {said}, and --direction {given}");
    }
    let direction = said.or(args.direction).context(
        "which way? give --direction in (from the subscriber) or out (to the subscriber)",
    )?;
    let explanation = filter.explain(&packet, direction, &names);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", document(&explanation))?;
    } else {
        writeln!(out, "{explanation}")?;
    }
    Ok(match explanation.verdict.accept {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

impl FilterExplainArgs {
    fn filter_of<'s>(&self, set: &'s FilterSet) -> Result<&'s Filter> {
        let known: Vec<&str> = set.iter().map(|(_, filter)| filter.name()).collect();
        let Some(name) = &self.filter else {
            return match set.iter().next() {
                Some((_, only)) if known.len() == 1 => Ok(only),
                Some(_) => bail!(
                    "which filter? give --filter with one of: {}",
                    known.join(", ")
                ),
                None => bail!("{}: has no filter", self.file.display()),
            };
        };
        let found = set.find(name).and_then(|id| set.get(id));
        found.with_context(|| match base::nearest(name, &known) {
            Some(near) => format!("no filter {name}; did you mean {near}?"),
            None => format!("no filter {name}; there are: {}", known.join(", ")),
        })
    }
}

fn document(explanation: &Explanation) -> serde_json::Value {
    let steps: Vec<_> = explanation
        .steps
        .iter()
        .map(|step| {
            let line = (step.line > 0).then_some(step.line);
            json!({ "line": line, "rule": step.text, "why_not": step.why_not })
        })
        .collect();
    json!({
        "schema": "filter.explain/1",
        "filter": explanation.filter,
        "direction": explanation.direction.word(),
        "packet": explanation.packet,
        "accept": explanation.verdict.accept,
        "log": explanation.verdict.log,
        "decided_by": steps.last(),
        "steps": steps,
        "note": explanation.note,
    })
}
