//! `headend ping show FILE...`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use ping::text;

use super::compare::{self, Named};
use super::low::ShowArgs;
use super::plots::{Files, Wish};
use super::save::load;

/// Loads all files, then draws and prints. If one file is not a result, it does neither.
///
/// # Errors
/// The first file that is not a result.
pub(super) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let files = Files::open(None, &Wish::parse_all(&args.plot)?)?;
    let load = |path: &std::path::PathBuf| -> Result<Named> {
        Ok(Named {
            file: path.display().to_string(),
            outcome: load(path)?,
        })
    };
    let results: Vec<Named> = args.files.iter().map(load).collect::<Result<_>>()?;
    let named = results.iter().map(|named| (&*named.file, &named.outcome));
    files.write(&named.collect::<Vec<_>>())?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.csv {
        writeln!(out, "file,{}", text::CSV_HEAD)?;
        for named in &results {
            let prefix = format!("{},", text::Quoted(&named.file));
            for stream in &named.outcome.streams {
                text::csv(stream, &prefix, &mut out)?;
            }
        }
    } else if args.json {
        serde_json::to_writer(&mut out, &compare::json(&results)).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        compare::table(&results, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
