//! Writes stores of port blocks, and times questions as `headend nat who` asks them, beside bare reads of 32 bytes.
//!
//! `cargo run --profile quick -p headend-natlog --example who -- [--command HEADEND] [--rate RECORDS] [SIZE ...]`
//!
//! A store of SIZE records needs 33 bytes of disk per record, in the directory for temporary files, and is deleted
//! afterwards. Each store has a million records a day. With `--command`, the command itself is run and timed too. With
//! `--rate`, records are appended at that rate per second for 30 s, and the longest delay is reported.
//!
//! A cold question is asked after the kernel has dropped all pages of the store's files (`POSIX_FADV_DONTNEED`).

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use natlog::{Entry, Kind, Reader, Settings, Store};
use rustix::fs::{Advice, fadvise};

type Outcome<T> = Result<T, Box<dyn Error>>;

const BLOCKS: u64 = 32_000;
const DAY_MS: u64 = 86_400_000;
const A_DAY: u64 = 1_000_000;
/// Noon, so that the first and the last day are short ones.
const START: u64 = 20_000 * DAY_MS + DAY_MS / 2;
/// A block that is allocated first of all, and kept.
const KEPT: u64 = BLOCKS;
const COLD: usize = 60;
const WARM: usize = 5_000;
const RUNS: usize = 20;

fn at_ms(n: u64) -> u64 {
    START + n * DAY_MS / A_DAY
}

fn block(block: u64, kind: Kind, at_ms: u64) -> Entry {
    let first = 1024 + (block % 125) as u16 * 512;
    Entry {
        kind,
        at_ms,
        external: (0xc000_0200 + (block / 125) as u32).into(),
        first,
        last: first + 511,
        inside: (0x6440_0000 + block as u32).into(),
        tag: 0,
    }
}

/// Each block is allocated and freed in turn.
fn entry(n: u64) -> Entry {
    let kind = match n / BLOCKS % 2 {
        0 => Kind::Allocated,
        _ => Kind::Freed,
    };
    block(n % BLOCKS, kind, at_ms(n))
}

fn name(n: u64) -> String {
    format!("subscriber-{}@example.net", n % BLOCKS)
}

/// Another number in 0..`bound`.
fn random(state: &mut u64, bound: u64) -> u64 {
    *state = state
        .wrapping_mul(0x5851_f42d_4c95_7f2d)
        .wrapping_add(0x1405_7b7e_f767_814f);
    (*state >> 24) % bound
}

fn write(directory: &Path, records: u64) -> Outcome<()> {
    let mut store = Store::open(directory, Settings::default())?;
    let start = Instant::now();
    store.append_named(&[(block(KEPT, Kind::Allocated, START), "kept@example.net")])?;
    let mut batch = Vec::new();
    for n in 0..records {
        batch.push((entry(n), name(n)));
        if batch.len() == 1000 || n + 1 == records {
            store.append_named(&batch)?;
            batch.clear();
        }
    }
    store.sync()?;
    drop(store);
    let seconds = start.elapsed().as_secs_f64();
    println!("{records} records: written in {seconds:.1} s");
    Ok(())
}

fn files(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let files = fs::read_dir(directory)?.map(|file| Ok(file?.path()));
    files.collect()
}

/// Makes the kernel drop its pages of the store.
fn cool(directory: &Path) -> Outcome<()> {
    for path in files(directory)? {
        fadvise(File::open(path)?, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!(
        "  {what:<44} {:9.3} ms median {:9.3} ms at most",
        at(50),
        at(100)
    );
}

/// One question: a port, a time, and whether a subscriber has it.
type Question = (Ipv4Addr, u16, u64, bool);

/// What a kind of questions is called, and the next one of it.
type Questions = (&'static str, Box<dyn Fn(&mut u64) -> Question>);

/// The kinds of questions.
fn kinds(records: u64) -> Vec<Questions> {
    let near = |n: u64, at_ms: u64, is_held: bool| {
        let entry = entry(n);
        (entry.external, entry.first + 100, at_ms, is_held)
    };
    let end = at_ms(records - 1);
    let days = (end - START) / DAY_MS;
    let kept = block(KEPT, Kind::Allocated, START);
    // What a block was at a time: the last record of its own turn.
    let held_at = move |which: u64, time: u64| {
        let last = ((time - START) * A_DAY / DAY_MS).min(records - 1);
        let round = (last + BLOCKS - which) / BLOCKS;
        round % 2 == 1
    };
    vec![
        (
            "any port, any time",
            Box::new(move |state| {
                let n = random(state, records);
                near(n, at_ms(n), entry(n).kind == Kind::Allocated)
            }),
        ),
        (
            "a block that changed last at the start",
            Box::new(move |state| {
                let port = kept.first + random(state, 512) as u16;
                (
                    kept.external,
                    port,
                    START + random(state, end - START + 1),
                    true,
                )
            }),
        ),
        (
            "the same, now",
            Box::new(move |_| (kept.external, kept.first, end, true)),
        ),
        (
            "the first ms of a day",
            Box::new(move |state| {
                let day = START + DAY_MS / 2 + random(state, days.max(1)) * DAY_MS;
                let which = random(state, BLOCKS);
                let time = day.min(end);
                near(which, time, held_at(which, time))
            }),
        ),
        (
            "a port of nobody, now",
            Box::new(move |state| {
                (
                    Ipv4Addr::new(203, 0, 113, 1),
                    random(state, 65_536) as u16,
                    end,
                    false,
                )
            }),
        ),
    ]
}

fn ask(reader: &Reader, question: Question) -> Outcome<Duration> {
    let (external, port, at_ms, is_held) = question;
    let start = Instant::now();
    let found = reader.who_named(external, port, at_ms)?;
    let time = start.elapsed();
    assert_eq!(found.is_some(), is_held, "{external}:{port} at {at_ms}");
    Ok(time)
}

/// Reads of 32 bytes at random places of the largest file.
fn bare(directory: &Path, is_cold: bool) -> Outcome<Vec<Duration>> {
    let mut largest = files(directory)?;
    largest.sort_by_key(|path| fs::metadata(path).map_or(0, |meta| meta.len()));
    let file = File::open(largest.last().ok_or("no file")?)?;
    let length = file.metadata()?.len();
    let (mut state, mut octets) = (7, [0; 32]);
    let mut times = Vec::new();
    for _ in 0..if is_cold { COLD } else { WARM } {
        if is_cold {
            cool(directory)?;
        }
        let place = random(&mut state, length / 32 - 1) * 32;
        let start = Instant::now();
        file.read_exact_at(&mut octets, place)?;
        times.push(start.elapsed());
        black_box(octets);
    }
    Ok(times)
}

fn time_command(program: &str, directory: &Path, question: Option<Question>) -> Outcome<Duration> {
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    match question {
        Some((external, port, at_ms, _)) => command
            .args(["nat", "who", &format!("{external}:{port}"), "at"])
            .args([&format!("@{}", at_ms as f64 / 1000.0), "--store"])
            .arg(directory),
        None => command.arg("--version"),
    };
    let start = Instant::now();
    let status = command.status()?;
    let time = start.elapsed();
    let expected = question.is_none_or(|question| question.3);
    assert_eq!(status.success(), expected, "{status}");
    Ok(time)
}

fn questions(directory: &Path, records: u64, program: Option<&str>) -> Outcome<()> {
    let reader = Reader::new(directory);
    for is_cold in [true, false] {
        println!(" {}", if is_cold { "cold" } else { "warm" });
        report("a bare read of 32 bytes", bare(directory, is_cold)?);
        for (what, question) in kinds(records) {
            let mut state = 1;
            let mut times = Vec::new();
            for _ in 0..if is_cold { COLD } else { WARM.min(500) } {
                if is_cold {
                    cool(directory)?;
                }
                times.push(ask(&reader, question(&mut state))?);
            }
            report(what, times);
            let Some(program) = program else { continue };
            let mut times = Vec::new();
            for _ in 0..RUNS {
                if is_cold {
                    cool(directory)?;
                }
                times.push(time_command(
                    program,
                    directory,
                    Some(question(&mut state)),
                )?);
            }
            report("  the command", times);
        }
    }
    if let Some(program) = program {
        let times = (0..RUNS).map(|_| time_command(program, directory, None));
        report("headend --version", times.collect::<Outcome<_>>()?);
    }
    let start = Instant::now();
    let mut store = Store::open(directory, Settings::default())?;
    let opened = start.elapsed();
    let lost = store.lose_all(at_ms(records))?;
    store.sync()?;
    let recorded = start.elapsed() - opened;
    println!(
        " opened as at a start after a crash: {opened:.1?}; {lost} blocks recorded as nobody's: {recorded:.1?}"
    );
    Ok(())
}

/// Appends at a rate, as the daemon's log thread does: what has come, and a sync every second.
fn paced(rate: u64) -> Outcome<()> {
    let directory = scratch("rate")?;
    let mut store = Store::open(&directory, Settings::default())?;
    let (start, mut done, mut synced) = (Instant::now(), 0, Instant::now());
    let (mut behind, mut longest) = (0, Duration::ZERO);
    while start.elapsed() < Duration::from_secs(30) {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        behind = behind.max(due - done);
        for from in (done..due).step_by(1024) {
            let batch: Vec<(Entry, String)> = (from..due.min(from + 1024))
                .map(|n| {
                    (
                        block(n % BLOCKS, entry(n).kind, START + n * 1000 / rate),
                        name(n),
                    )
                })
                .collect();
            let one = Instant::now();
            store.append_named(&batch)?;
            longest = longest.max(one.elapsed());
        }
        done = due;
        if synced.elapsed() >= Duration::from_secs(1) {
            let one = Instant::now();
            store.sync()?;
            longest = longest.max(one.elapsed());
            synced = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(store);
    println!(
        "{rate} records/s for 30 s: {done} records; at most {behind} waited; the longest call took {longest:.1?}"
    );
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn scratch(what: &str) -> Outcome<PathBuf> {
    let directory = std::env::temp_dir().join(format!("natlog-{what}-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut program, mut rate, mut sizes) = (None, None, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--command" => program = arguments.next(),
            "--rate" => rate = Some(arguments.next().ok_or("no rate")?.parse()?),
            size => sizes.push(size.parse()?),
        }
    }
    if let Some(rate) = rate {
        paced(rate)?;
    } else if sizes.is_empty() {
        sizes = vec![1_000_000, 4_000_000];
    }
    for records in sizes {
        let directory = scratch(&records.to_string())?;
        let asked = write(&directory, records)
            .and_then(|()| questions(&directory, records, program.as_deref()));
        fs::remove_dir_all(&directory)?;
        asked?;
    }
    Ok(())
}
