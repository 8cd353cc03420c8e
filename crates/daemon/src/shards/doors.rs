//! Batches of packets between threads: each thread has one inbox, and every other thread a door to it.
//!
//! A door never waits. If too many batches are in an inbox, the edge's path takes the batch back and counts its packets as
//! dropped (`handover`). Each turn wakes a thread that got batches once.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use edge::Handover;
use reactor::Waker;

/// Batches in an inbox, of at most 256 KiB and one packet each.
const INBOX_MAX: usize = 64;
/// Batches that a thread takes in a turn before it does other work.
const PART: usize = 8;

/// Sends batches to one thread.
#[derive(Clone)]
struct Door {
    batches: SyncSender<Handover>,
    waker: Arc<Waker>,
}

/// Sends batches to all threads, by the number of their path.
#[derive(Clone)]
pub(super) struct Doors(Vec<Door>);

/// A thread's batches from all others.
pub(crate) struct Inbox {
    batches: Receiver<Handover>,
    waker: Arc<Waker>,
}

/// A door and an inbox for the first thread, which has this waker, and for so many others.
pub(super) fn open(first: &Arc<Waker>, others: usize) -> io::Result<(Doors, Vec<Inbox>)> {
    let mut doors = Vec::new();
    let mut inboxes = Vec::new();
    for number in 0..=others {
        let waker = match number {
            0 => Arc::clone(first),
            _ => Arc::new(Waker::new()?),
        };
        let (sender, batches) = mpsc::sync_channel(INBOX_MAX);
        doors.push(Door {
            batches: sender,
            waker: Arc::clone(&waker),
        });
        inboxes.push(Inbox { batches, waker });
    }
    Ok((Doors(doors), inboxes))
}

impl Doors {
    /// Passes batches on, and wakes each thread that got one. Calls `refused` with those that found no room.
    pub(super) fn pass(
        &self,
        batches: &mut Vec<(usize, Handover)>,
        mut refused: impl FnMut(usize, &Handover),
    ) {
        let mut last = None;
        for (to, batch) in batches.drain(..) {
            let Some(door) = self.0.get(to) else {
                continue;
            };
            match door.batches.try_send(batch) {
                Ok(()) if last == Some(to) => {}
                Ok(()) => {
                    door.waker.wake();
                    last = Some(to);
                }
                Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                    refused(to, &batch);
                }
            }
        }
    }
}

impl Inbox {
    /// Wakes the thread.
    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The batches of a turn: those that are in it now, or with `all` also those that further turns would take. Wakes the
    /// thread again if more may be in it.
    pub(crate) fn take(&self, all: bool, mut work: impl FnMut(&Handover)) {
        // Others may add batches meanwhile: what is in it now is never more than it holds.
        let most = if all { INBOX_MAX } else { PART };
        for _ in 0..most {
            let Ok(batch) = self.batches.try_recv() else {
                return;
            };
            work(&batch);
        }
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_inbox_refuses_and_wakes_once_for_many_batches() {
        let first = Arc::new(Waker::new().unwrap());
        let (doors, inboxes) = open(&first, 1).unwrap();
        let second = inboxes[1].waker();
        let mut refused = Vec::new();
        let mut batches = (0..INBOX_MAX + 3)
            .map(|_| (1, Handover::default()))
            .collect();
        doors.pass(&mut batches, |to, _| refused.push(to));
        assert_eq!((refused, batches.len()), (vec![1; 3], 0));
        assert!(!first.clear() && second.clear());
        let mut taken = 0;
        inboxes[1].take(false, |_| taken += 1);
        assert!(taken == PART && second.clear());
        inboxes[1].take(true, |_| taken += 1);
        assert!(taken == INBOX_MAX && !second.clear());
    }
}
