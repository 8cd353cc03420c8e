//! Many records that are added, wait and are acknowledged do not make the file grow.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use ledger::{Ledger, Options, Refused};

/// Records that wait at a time.
const WAITING: usize = 2_000;

#[test]
fn a_file_through_which_records_pass_does_not_grow() {
    let place = std::env::temp_dir().join(format!("ledger-passing-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a directory for the test");
    let path = place.join("records");
    let options = Options {
        commit_records: 1_000,
        ..Options::default()
    };
    let (mut ledger, _) = Ledger::open(&path, options).expect("it opens");
    let mut waiting = VecDeque::new();
    let mut sizes = Vec::new();
    for part in 0..4 {
        for _ in 0..15_000 {
            match ledger.add(&[7; 250]) {
                Ok(id) => waiting.push_back(id),
                Err(reason) => {
                    assert_eq!(reason, Refused::Behind);
                    assert!(ledger.flush(Duration::from_secs(60)));
                }
            }
            if waiting.len() > WAITING {
                ledger.acknowledged(waiting.pop_front().expect("it has more than none"));
            }
        }
        assert!(ledger.flush(Duration::from_secs(60)));
        sizes.push(fs::metadata(&path).expect("it is there").len());
        println!("part {part}: {} octets", sizes[part]);
    }
    assert_eq!(ledger.stats().stored, waiting.len() as u64);
    assert!(sizes[3] <= 2 * sizes[1], "{sizes:?}");
    ledger.close().expect("it closes");
    fs::remove_dir_all(&place).expect("it is ours");
}
