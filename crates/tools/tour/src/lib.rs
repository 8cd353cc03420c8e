//! `headend tour`: 10,000 subscribers, a prefix hijack and a home gateway, measured here in ninety seconds at most and
//! without root, on one page.
//!
//! | module | purpose |
//! |---|---|
//! | `parts` | the three measurements, each as a number, a chart and words |
//! | `page` | the page, and the picture to share |
//!
//! The library functions of other commands measure; this crate starts no command. Start reading at [`run`].
#![forbid(unsafe_code)]

mod page;
mod parts;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use cli::ResultsDirectory;
use serde_json::json;

use parts::{Part, Size};

/// The tour ends after this time. What is not measured by then is left out, and the page says so.
const LIMIT: Duration = Duration::from_secs(90);

/// Connect subscribers, emulate a hijack and measure a home gateway; write one page with the results.
#[derive(Debug, clap::Args)]
pub struct TourArgs {
    /// The directory for tour.html and tour.png
    #[arg(short, long, value_name = "DIR", default_value = "headend-tour")]
    out: PathBuf,
    /// A tenth of everything: 1,000 subscribers, 1,000 routers
    #[arg(long)]
    quick: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Measures all three, and writes the page and the picture.
///
/// # Errors
/// The directory has files of others, or cannot be written; or nothing could be measured.
pub fn run(args: &TourArgs) -> Result<ExitCode> {
    // Reported now and not after all measurements.
    let names = ["tour.html", "tour.png"];
    let place = ResultsDirectory::open(&args.out, &names, page::MARK, "tour")?;
    let started = Instant::now();
    let size = Size::new(args.quick);
    let until = started + LIMIT;
    let mut all: Vec<Part> = Vec::new();
    // The demo comes first: namespaces without root need that no other thread exists.
    for (number, (what, measure)) in (1..).zip(parts::ALL) {
        eprintln!("tour: {number} of 3: {}", what(&size));
        all.push(measure(&size, until));
    }
    if all.iter().all(|part| part.missing.is_some()) {
        let why = all.iter().filter_map(|part| part.missing.as_deref());
        let why: Vec<&str> = why.collect();
        anyhow::bail!("nothing could be measured: {}", why.join("; "));
    }
    let took = started.elapsed();
    let picture = page::card(&all).to_png();
    let html = page::html(&all, took, picture.as_ref().err());
    place.write("tour.html", html.as_bytes())?;
    if let Ok(png) = &picture {
        place.write("tour.png", png)?;
    }
    let files = (
        place.path("tour.html"),
        picture.ok().map(|_| place.path("tour.png")),
    );
    report(args.json, &all, took, &files)?;
    Ok(ExitCode::SUCCESS)
}

fn report(
    is_json: bool,
    all: &[Part],
    took: Duration,
    (page, picture): &(PathBuf, Option<PathBuf>),
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        let numbers = all.iter().map(|part| {
            json!({"part": part.name, "number": part.number, "words": part.words, "missing": part.missing})
        });
        let object = json!({
            "schema": "tour/1",
            "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
            "numbers": numbers.collect::<Vec<_>>(),
            "page": page,
            "picture": picture,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    for part in all {
        match &part.missing {
            None => writeln!(out, "{:>14}  {}", part.number, part.words)?,
            Some(why) => writeln!(out, "{:>14}  {}: {why}", "-", part.name)?,
        }
    }
    writeln!(out, "\nThe page:    {}", page.display())?;
    if let Some(picture) = picture {
        writeln!(out, "The picture: {}", picture.display())?;
    }
    Ok(())
}
