//! Writes records of port blocks, and times questions about random ports and times.
//!
//! `cargo run --profile quick -p headend-natlog --example who -- RECORDS` needs 32 bytes of disk per record, in the
//! directory for temporary files.

use std::time::Instant;

use natlog::{Entry, Kind, Settings, Store};

const BLOCKS: u64 = 32_000;
const QUESTIONS: u64 = 20_000;
const START: u64 = 1_700_000_000_000;

fn entry(n: u64) -> Entry {
    let block = n % BLOCKS;
    let first = 1024 + (block % 125) as u16 * 512;
    Entry {
        // Each block is allocated and freed in turn.
        kind: match n / BLOCKS % 2 {
            0 => Kind::Allocated,
            _ => Kind::Freed,
        },
        at_ms: START + n,
        external: (0xc000_0200 + (block / 125) as u32).into(),
        first,
        last: first + 511,
        inside: (0x6440_0000 + n as u32 % 65_536).into(),
        tag: n,
    }
}

fn main() -> Result<(), natlog::StoreError> {
    let argument = std::env::args().nth(1);
    let records = argument
        .and_then(|text| text.parse().ok())
        .unwrap_or(4_000_000);
    let directory = std::env::temp_dir().join(format!("natlog-who-{}", std::process::id()));
    let mut store = Store::open(&directory, Settings::default())?;
    let start = Instant::now();
    let mut batch = Vec::new();
    for n in 0..records {
        batch.push(entry(n));
        if batch.len() == 1000 || n + 1 == records {
            store.append_all(&batch)?;
            batch.clear();
        }
    }
    store.sync()?;
    let written = start.elapsed().as_secs_f64();
    let mut times = Vec::new();
    let mut state = 1_u64;
    for _ in 0..QUESTIONS {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let wanted = entry((state >> 24) % records);
        let start = Instant::now();
        let found = store.who(wanted.external, wanted.first + 100, wanted.at_ms)?;
        times.push(start.elapsed());
        assert_eq!(found.is_some(), wanted.kind == Kind::Allocated);
    }
    times.sort();
    println!(
        "{records} records in {written:.1} s; a question takes {:?} at the median, {:?} at the 99th percentile, {:?} at most",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1],
    );
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}
