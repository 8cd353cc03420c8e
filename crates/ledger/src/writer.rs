//! The thread that commits.

use std::time::{Duration, Instant};

use crate::inbox::{Batch, Shared, Work};
use crate::store::Store;

/// After a commit failed, it is tried again so much later.
const REST: Duration = Duration::from_millis(500);

/// Commits what comes until the owner ends it; a batch that fails is tried until it succeeds or the owner ends.
pub(crate) fn run(shared: &Shared, store: &Store) {
    let mut empty = Batch::default();
    while let Work::Commit(batch) = shared.next_work(std::mem::take(&mut empty)) {
        if !commit(shared, store, &batch) {
            return;
        }
        empty = batch;
    }
}

/// Whether the batch is on disk; once the owner has ended, it is tried one last time.
fn commit(shared: &Shared, store: &Store, batch: &Batch) -> bool {
    let mut is_last = false;
    loop {
        let start = Instant::now();
        match store.commit(batch) {
            Ok(totals) => {
                shared.committed(batch, totals, start.elapsed());
                return true;
            }
            Err(error) => {
                let goes_on = shared.failed(error.to_string(), REST);
                if is_last {
                    return false;
                }
                is_last = !goes_on;
                // After a failed write the store takes no more until its file is opened anew. Where that fails too, the
                // next commit says so.
                if let Ok(totals) = store.reopen() {
                    shared.reopened(totals);
                }
            }
        }
    }
}
