//! Runs a scenario, and prints its outcome and its cost: `run SCENARIO.toml [FOLDER]` writes the
//! results into the folder, if one is given.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use emulate::{Emulation, Results, Scenario};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("give a scenario")?;
    let folder = arguments.next();
    let text = std::fs::read_to_string(&file)?;
    let start = Instant::now();
    let scenario = Scenario::load(&text, &file)?;
    let loaded_s = start.elapsed().as_secs_f64();
    let mut emulation = Emulation::new(scenario);
    // The emulated time at which the last session came up, and the real time that took.
    let mut up = (0.0, 0.0, 0);
    while emulation.step(1_000) {
        let progress = emulation.progress();
        if progress.endpoints_up > up.2 {
            up = (
                progress.now.as_secs_f64(),
                start.elapsed().as_secs_f64(),
                progress.endpoints_up,
            );
        }
    }
    let wall_s = start.elapsed().as_secs_f64();
    let progress = emulation.progress();
    let results = emulation.finish();
    let virtual_s = progress.now.as_secs_f64();
    println!(
        "{} routers, {} of {} ends up at {:.2} s after {:.2} s of work, loaded in {loaded_s:.2} s",
        results.routers, progress.endpoints_up, progress.endpoints, up.0, up.1
    );
    println!(
        "{virtual_s:.2} s in {wall_s:.2} s; {} messages, {} UPDATEs, {} sessions lost",
        progress.messages, progress.updates, progress.sessions_lost
    );
    let end_seconds = (virtual_s - up.0) * progress.endpoints_up as f64;
    println!(
        "after the last came up: {:.1} ns an end and second, {:.1} times real time; {:.0} octets an end at most",
        (wall_s - up.1) * 1e9 / end_seconds,
        (virtual_s - up.0) / (wall_s - up.1),
        memory_peak() as f64 / progress.endpoints.max(1) as f64
    );
    for event in &results.events {
        println!(
            "{:9.3} s  {}: {} UPDATEs, {} changes, converged after {:?} s",
            event.at_s, event.label, event.updates, event.changes, event.convergence_s
        );
    }
    for address in &results.addresses {
        if let Some(last) = address.shares.last() {
            println!(
                "{}: {:.4} to the owner, {:.4} deceived (at most {:.4})",
                address.address, last.owner, last.deceived, address.deceived_max
            );
        }
    }
    if let Some(folder) = folder {
        write(&results, Path::new(&folder))?;
    }
    Ok(())
}

fn write(results: &Results, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("results.json"), results.to_json())?;
    std::fs::write(folder.join("events.csv"), results.events_csv())?;
    std::fs::write(folder.join("shares.csv"), results.shares_csv())?;
    std::fs::write(folder.join("outcomes.csv"), results.outcomes_csv())?;
    std::fs::write(folder.join("routers.csv"), results.routers_csv())?;
    std::fs::write(folder.join("results.html"), results.to_html())?;
    for (name, svg) in results.svgs() {
        std::fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    Ok(())
}

/// Peak memory of the process, in bytes; 0 where the kernel does not report it.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
