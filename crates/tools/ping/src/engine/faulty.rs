//! An experiment whose system calls fail at random, with each error that the manual pages name. It ends by itself and
//! accounts for every packet, or ends with the reason; it never panics and never hangs.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use reactor::Call;
use reactor::faults::{self, Plan};

use super::*;
use crate::hi::HiArgs;
use crate::low::Args;

/// Seeds of an ordinary run.
const SEEDS: u64 = 200;
/// Threads that run seeds. Most of a seed is waiting.
const THREADS: u64 = 8;
/// Packets of each stream.
const COUNT: u64 = 20;
/// Calls that fail alone in some seeds.
const ALONE: [Call; 4] = [
    Call::EpollWait,
    Call::Recvmmsg,
    Call::Sendmmsg,
    Call::Setsockopt,
];

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        one_in: [2, 5, 20][(seed % 3) as usize],
        burst_max: [1, 4, 12][(seed / 3 % 3) as usize],
        // Half of the seeds concentrate on one kind of call.
        calls: match seed % 2 {
            0 => Vec::new(),
            _ => vec![ALONE[(seed / 2) as usize % ALONE.len()]],
        },
        ..Plan::default()
    }
}

/// What an experiment came to: faults, packets answered, and whether it ended early.
#[derive(Debug, Default)]
struct Met {
    faults: AtomicU64,
    received: AtomicU64,
    ended: AtomicU64,
}

fn seed(seed: u64, met: &Met) {
    let line = [
        "ping",
        "127.0.0.1",
        "127.0.0.2",
        "-q",
        "-n",
        "-c",
        "20",
        "-i",
        "0.002",
        "-W",
        "0.1",
    ];
    let line = Line::parse_from(line);
    let Ok(HiArgs::Ping(task)) = HiArgs::new(&line.args) else {
        panic!("a line of ping");
    };
    let (wishes, paper) = (Wishes::new().unwrap(), Paper::start(false).unwrap());
    let mut engine = Engine::new(&task, wishes, paper).unwrap();
    faults::arm(plan(seed));
    let ended = engine.run();
    let struck = faults::disarm();
    let (outcome, _) = engine.finish();
    assert!(!outcome.interrupted || ended.is_err());
    for stream in &outcome.streams {
        let all = &stream.summary;
        let counted = all.received + all.lost + all.failed + all.waiting;
        assert_eq!(all.transmitted, counted, "{all:?}");
        assert!(all.received <= COUNT && all.duplicates == 0, "{all:?}");
        if ended.is_ok() {
            assert_eq!(
                (all.transmitted + all.skipped, all.waiting),
                (COUNT, 0),
                "{all:?}"
            );
        }
        met.received.fetch_add(all.received, Ordering::Relaxed);
    }
    let faults = struck.iter().map(|(.., count)| count).sum();
    met.faults.fetch_add(faults, Ordering::Relaxed);
    met.ended
        .fetch_add(u64::from(ended.is_err()), Ordering::Relaxed);
}

fn seeds(all: core::ops::Range<u64>) -> Met {
    let (next, met) = (AtomicU64::new(all.start), Met::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all.end {
                        break;
                    }
                    eprintln!("seed {number}");
                    seed(number, &met);
                }
            });
        }
    });
    println!("{met:?}");
    met
}

#[test]
fn an_experiment_whose_calls_fail_accounts_for_every_packet() {
    let met = seeds(0..SEEDS);
    assert!(met.faults.into_inner() > SEEDS && met.ended.into_inner() < SEEDS / 10);
    // Most replies are read although calls fail.
    assert!(met.received.into_inner() > SEEDS * 2 * COUNT / 2);
}

/// As above, with more seeds: `cargo test -p headend-tool-ping -- --ignored thousand`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_seeds() {
    let met = seeds(SEEDS..SEEDS + 1_000);
    assert!(met.ended.into_inner() < 100);
}
