//! The files that a run writes: results as JSON, CSV, charts and a page; routes as MRT; and the summary on standard
//! output.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use emulate::Results;

use super::running::Running;

/// Writes all files.
pub(super) fn write(
    running: Running,
    directory: &Path,
    mrt: &[String],
    json: bool,
) -> Result<ExitCode> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for router in mrt {
        let path = directory.join(format!("{router}.mrt"));
        let written = running
            .mrt(router)
            .and_then(|routes| fs::write(&path, routes));
        written.with_context(|| format!("{}", path.display()))?;
    }
    let results = running.finish();
    let put = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("{}", path.display()))
    };
    put("results.json", &results.to_json())?;
    put("events.csv", &results.events_csv())?;
    put("shares.csv", &results.shares_csv())?;
    put("outcomes.csv", &results.outcomes_csv())?;
    put("routers.csv", &results.routers_csv())?;
    put("page.html", &results.to_html())?;
    for (name, svg) in results.svgs() {
        put(&format!("{name}.svg"), &svg)?;
    }
    let mut out = std::io::stdout().lock();
    match json {
        true => out.write_all(results.to_json().as_bytes())?,
        false => summary(&results, directory, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(results: &Results, directory: &Path, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{}: {} routers, {} links, seed {}; {:.3} s",
        results.title, results.routers, results.links, results.seed, results.end_s
    )?;
    writeln!(
        out,
        "  {} session endpoints up, {} lost; {} messages, {} UPDATEs",
        results.endpoints_up, results.sessions_lost, results.messages, results.updates
    )?;
    let seconds = |span: Option<f64>| span.map_or("-".into(), |span| format!("{span:.3}"));
    if !results.events.is_empty() {
        writeln!(
            out,
            "{:>10}  {:>12}  {:>10}  {:>10}  EVENT",
            "AT (S)", "CONVERGED (S)", "UPDATES", "CHANGES"
        )?;
    }
    for event in &results.events {
        writeln!(
            out,
            "{:>10.3}  {:>13}  {:>10}  {:>10}  {}",
            event.at_s,
            seconds(event.convergence_s),
            event.updates,
            event.changes,
            event.label
        )?;
    }
    for address in &results.addresses {
        if !address.hijackers.is_empty() || !address.leakers.is_empty() {
            writeln!(
                out,
                "  {}: at most {:.2} % of the routers were deceived",
                address.address,
                address.deceived_max * 100.0
            )?;
        }
    }
    writeln!(out, "see {}", directory.join("page.html").display())?;
    Ok(())
}
