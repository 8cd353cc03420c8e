//! The thread that commits batches.

use std::time::Instant;

use crate::inbox::{Batch, Farewell, Shared, Work};
use crate::store::Store;

/// Commits batches until the owner ends it; a failed batch is retried until it succeeds or the owner ends.
pub(crate) fn run(shared: &Shared, store: &Store) {
    let _farewell = Farewell(shared);
    let mut empty = Batch::default();
    while let Work::Commit(batch) = shared.next_work(std::mem::take(&mut empty)) {
        if !commit(shared, store, &batch) {
            return;
        }
        empty = batch;
    }
}

/// Returns whether the batch is on disk; after the owner has ended, it is tried one last time.
fn commit(shared: &Shared, store: &Store, batch: &Batch) -> bool {
    let mut is_last = false;
    let options = shared.options();
    let mut rest = options.retry;
    loop {
        let start = Instant::now();
        match store.commit(batch) {
            Ok(totals) => {
                shared.committed(batch, totals, start.elapsed());
                return true;
            }
            Err(error) => {
                let goes_on = shared.failed(error.to_string(), rest);
                rest = (rest * 2).min(options.retry_max);
                if is_last {
                    return false;
                }
                is_last = !goes_on;
                // After a failed write, redb accepts no more until the file is reopened. If that fails too, the
                // next commit reports it.
                if let Ok(totals) = store.reopen() {
                    shared.reopened(totals);
                }
            }
        }
    }
}
