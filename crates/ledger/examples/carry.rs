//! Measures the ledger's throughput and what adding records costs the caller: `cargo run --release -p
//! headend-ledger --example carry -- FILE`.
//!
//! Three parts: records at a steady rate, each acknowledged some time later; a million records at full speed;
//! and a file with many waiting records, reopened. The file must not exist, and is removed at the end.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ledger::{Ledger, Options, RecordId, Stats};

/// Approximate size of a Stop record.
const RECORD: [u8; 250] = [0x42; 250];
/// Records outstanding at their server at a time.
const UNACKNOWLEDGED: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("give a FILE")?);
    if path.try_exists()? {
        return Err("the file is there already".into());
    }
    for rate in [5_000, 20_000, 80_000] {
        steady(&path, rate)?;
    }
    million(&path)?;
    again(&path)?;
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Adds records at a steady rate, in batches per millisecond as an event loop does.
fn steady(path: &Path, rate: usize) -> Result<(), Box<dyn Error>> {
    let (mut ledger, _) = Ledger::open(path, Options::default())?;
    let mut waiting = VecDeque::new();
    let mut costs_ns = Vec::new();
    let cpu = processor_time()?;
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < Duration::from_secs(5) {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as usize;
        while sent < due {
            let before = Instant::now();
            let id = ledger.add(&RECORD)?;
            costs_ns.push(before.elapsed().as_nanos() as u64);
            waiting.push_back(id);
            sent += 1;
            if waiting.len() > UNACKNOWLEDGED {
                waiting
                    .pop_front()
                    .into_iter()
                    .for_each(|id| ledger.acknowledged(id));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let behind = ledger.stats().pending;
    let took = start.elapsed();
    ledger.flush(Duration::from_secs(60));
    costs_ns.sort_unstable();
    let of = |share: f64| costs_ns[((costs_ns.len() - 1) as f64 * share) as usize];
    let mean = costs_ns.iter().sum::<u64>() / costs_ns.len() as u64;
    println!(
        "{rate}/s: {sent} records in {:.1} s, {behind} on their way at the end; add (with two clock reads): mean {mean} ns, p50 {}, p99 {}, p99.9 {}, longest {} ns; processor {:.0} %",
        took.as_secs_f64(),
        of(0.5),
        of(0.99),
        of(0.999),
        of(1.0),
        (processor_time()? - cpu).as_secs_f64() / took.as_secs_f64() * 100.0
    );
    tell(&ledger.stats());
    for id in waiting {
        ledger.acknowledged(id);
    }
    ledger.close()?;
    Ok(())
}

/// Adds a million records at full speed.
fn million(path: &Path) -> Result<(), Box<dyn Error>> {
    let (mut ledger, _) = Ledger::open(path, Options::default())?;
    let mut waiting = VecDeque::new();
    let start = Instant::now();
    for n in 1..=1_000_000 {
        let id = loop {
            match ledger.add(&RECORD) {
                Ok(id) => break id,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        waiting.push_back(id);
        if waiting.len() > 10 * UNACKNOWLEDGED {
            waiting
                .pop_front()
                .into_iter()
                .for_each(|id| ledger.acknowledged(id));
        }
        if n % 200_000 == 0 {
            let size = std::fs::metadata(path)?.len();
            println!("{n} records through: file of {:.1} MB", size as f64 / 1e6);
        }
    }
    ledger.flush(Duration::from_secs(60));
    println!("{:.0} records/s", 1e6 / start.elapsed().as_secs_f64());
    tell(&ledger.stats());
    ledger.close()?;
    Ok(())
}

/// Closes and reopens a file with many records, then reads and empties it.
fn again(path: &Path) -> Result<(), Box<dyn Error>> {
    let (mut ledger, _) = Ledger::open(path, Options::default())?;
    while ledger.stats().stored < 500_000 {
        while ledger.add(&RECORD).is_ok() && ledger.stats().pending < 50_000 {}
        ledger.flush(Duration::from_secs(60));
    }
    ledger.close()?;
    let size = std::fs::metadata(path)?.len();
    let start = Instant::now();
    let (mut ledger, recovered) = Ledger::open(path, Options::default())?;
    println!(
        "{} records wait in {:.1} MB: opened in {:.2} s",
        recovered.records,
        size as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    let (start, mut after, mut count) = (Instant::now(), RecordId(0), 0);
    while let Some((last, _)) = ledger.waiting(after, 100)?.last() {
        after = *last;
        count += 1;
    }
    println!(
        "read back 100 at a time: {:.1} us each time",
        start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
    );
    for id in 1..=after.0 {
        ledger.acknowledged(RecordId(id));
    }
    ledger.close()?;
    let start = Instant::now();
    drop(Ledger::open(path, Options::default())?);
    println!(
        "all acknowledged, opened again in {:.2} s: file of {:.1} MB",
        start.elapsed().as_secs_f64(),
        std::fs::metadata(path)?.len() as f64 / 1e6
    );
    Ok(())
}

fn tell(stats: &Stats) {
    println!(
        "    {} commits, the longest {:?}; at latest {:?} after it was added; refused {}",
        stats.commits,
        stats.commit_longest,
        stats.lateness_longest,
        stats.refused_full + stats.refused_behind
    );
}

/// User and system time of this process.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let behind_name = stat.rsplit(')').next().unwrap_or("");
    let fields = behind_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse().unwrap_or(0)).sum();
    Ok(Duration::from_millis(ticks * 10))
}
