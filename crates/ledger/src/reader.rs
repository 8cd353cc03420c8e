//! The thread that reads records back, so that the owner does not wait for a disk that is slow or hangs.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use crate::RecordId;
use crate::inbox::{Farewell, Shared};
use crate::store::Store;

/// A request for up to so many records after this one.
pub(crate) type Request = (RecordId, usize);
/// The records found by [`crate::Ledger::request`].
pub type Answer = io::Result<Vec<(RecordId, Vec<u8>)>>;

/// Reads until the owner ends it.
pub(crate) fn run(
    shared: &Shared,
    store: &Store,
    requests: &Receiver<Request>,
    answers: &Sender<Answer>,
) {
    let _farewell = Farewell(shared);
    while let Ok((after, max)) = requests.recv() {
        if answers.send(read(shared, store, after, max)).is_err() {
            return;
        }
    }
}

/// Reads records that are not acknowledged.
pub(crate) fn read(shared: &Shared, store: &Store, after: RecordId, max: usize) -> Answer {
    // Read first: a record committed from here on is then missing from the result rather than duplicated.
    let acknowledged = shared.removals();
    store.read(after, max, &acknowledged)
}

/// The owner's end of the thread.
pub(crate) struct Reading {
    requests: Sender<Request>,
    answers: Receiver<Answer>,
    is_asked: bool,
}

impl Reading {
    pub(crate) fn new(requests: Sender<Request>, answers: Receiver<Answer>) -> Self {
        Self {
            requests,
            answers,
            is_asked: false,
        }
    }

    pub(crate) fn ask(&mut self, request: Request) {
        if !self.is_asked {
            // Without a thread, `answer` reports it.
            let _ = self.requests.send(request);
            self.is_asked = true;
        }
    }

    pub(crate) fn answer(&mut self) -> Option<Answer> {
        if !self.is_asked {
            return None;
        }
        let answer = match self.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Err(io::Error::other("the thread that reads has ended"))
            }
        };
        self.is_asked = false;
        Some(answer)
    }
}
