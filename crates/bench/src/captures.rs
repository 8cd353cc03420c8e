//! `headend bench captures`: writes captures that are hard to analyse.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use lab::captures::{KINDS, Kind, Scale, Written, named};
use lab::plot::number::grouped;
use lab::report::{Cell, Table};
use serde_json::json;

/// Write captures that are hard to analyse, with the same bytes each time.
#[derive(Debug, clap::Args)]
pub(super) struct CapturesArgs {
    /// The directory for the captures, created if it does not exist
    #[arg(value_name = "DIR", required_unless_present_any = ["list", "out"])]
    dir: Option<PathBuf>,
    /// The directory for the captures, in place of DIR
    #[arg(short, long, value_name = "DIR", conflicts_with = "dir")]
    out: Option<PathBuf>,
    /// The captures to write [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = kind)]
    only: Vec<&'static Kind>,
    /// Size, relative to the sizes that --list prints
    #[arg(long, value_name = "F", default_value = "1")]
    scale: Scale,
    /// List the captures, and write nothing
    #[arg(long)]
    list: bool,
    /// Print one JSON object a line for each capture
    #[arg(long)]
    json: bool,
}

/// The kind of that name; the error lists all kinds.
pub(super) fn kind(name: &str) -> Result<&'static Kind, String> {
    named(name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Writes the captures asked for, and prints what it wrote.
pub(super) fn run(args: &CapturesArgs) -> Result<ExitCode> {
    let kinds: Vec<&Kind> = if args.only.is_empty() {
        KINDS.iter().collect()
    } else {
        args.only.clone()
    };
    let dir = match args.dir.as_ref().or(args.out.as_ref()) {
        Some(dir) if !args.list => dir,
        _ => {
            show(&match args.json {
                true => list_json(&kinds, args.scale),
                false => list(&kinds, args.scale),
            });
            return Ok(ExitCode::SUCCESS);
        }
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let columns = [
        ("capture", ""),
        ("packets", ""),
        ("size", "octets"),
        ("time", "s"),
    ];
    let mut table = Table::new(format!("Captures in {}", dir.display()), &columns);
    let mut lines = String::new();
    for kind in kinds {
        let path = dir.join(format!("{}.pcap", kind.name));
        let started = Instant::now();
        let written = write(kind, args.scale, &path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let seconds = started.elapsed().as_secs_f64();
        let line = json!({
            "schema": "bench.capture/1",
            "name": kind.name,
            "file": path.to_string_lossy(),
            "packets": written.packets,
            "octets": written.bytes,
            "took_s": seconds,
        });
        lines += &format!("{line}\n");
        table.row([
            kind.name.into(),
            written.packets.into(),
            written.bytes.into(),
            Cell::num(seconds, 1),
        ]);
    }
    show(&match args.json {
        true => lines,
        false => table.to_text(),
    });
    Ok(ExitCode::SUCCESS)
}

fn write(kind: &Kind, scale: Scale, path: &Path) -> io::Result<Written> {
    let bar = ProgressBar::new(kind.packets_at(scale));
    let template = "{prefix:13} {percent:>3} % [{wide_bar}] {per_sec} left {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(kind.name);
    let written = kind.write(scale, &mut File::create(path)?, &mut |packets| {
        bar.set_position(packets);
    });
    bar.finish_and_clear();
    written
}

/// A list of all kinds, as text.
fn list(kinds: &[&Kind], scale: Scale) -> String {
    let mut text = format!("At scale {scale}:\n");
    for kind in kinds {
        let packets = grouped(kind.packets_at(scale) as f64, 0);
        text += &format!("\n{}, about {packets} packets\n", kind.name);
        text += &format!("  {}.\n", kind.what);
        text += &format!("  An analyser that is fast on it shows {}.\n", kind.proves);
    }
    text
}

/// The same as JSON, a line for each.
fn list_json(kinds: &[&Kind], scale: Scale) -> String {
    let line = |kind: &&Kind| {
        let value = json!({
            "schema": "bench.capture/1",
            "name": kind.name,
            "packets": kind.packets_at(scale),
            "content": kind.what,
            "proves": kind.proves,
        });
        format!("{value}\n")
    };
    kinds.iter().map(line).collect()
}

/// To standard output; a reader that went away is no failure.
fn show(text: &str) {
    let _ = io::Write::write_all(&mut io::stdout().lock(), text.as_bytes());
}
