//! Reads and prepares configurations on a thread of its own.
//!
//! The event loop must not wait for a disk, and must not compile filters: both take long for large files. The thread
//! is started for the first reload. It reads the files, checks them, compares them with the configuration in force,
//! and makes all that is large: users, filters, pools. The loop takes the result when the waker is readable, and
//! applies it. The thread also frees what a reload replaced. It has a lower priority than the loop.
//!
//! At most one configuration is prepared at a time. If a file blocks, such as one on a file server that is gone, the
//! loop goes on, and so does the end of the daemon. Start with [`Loader::prepare`].

mod prepare;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use reactor::Waker;

pub(super) use prepare::{Changed, InForce, Order, Prepared, Wanted};

/// Added to the thread's nice value, so that the loop runs first on a busy processor.
const NICE: i32 = 10;

/// The result of a preparation; the error has a line for each fault.
type Outcome = Result<Box<Prepared>, String>;

/// What the thread is asked to do.
enum Task {
    Prepare(Box<Order>),
    /// Frees memory.
    Free(Box<dyn Send>),
}

struct Thread {
    tasks: Sender<Task>,
    outcomes: Receiver<Outcome>,
}

/// The thread, as the loop sees it.
pub(super) struct Loader {
    waker: Arc<Waker>,
    /// `None` until the first reload, and after the thread has ended.
    thread: Option<Thread>,
}

/// Wakes the loop when the thread ends, so that nobody waits for it.
struct WakeAtEnd(Arc<Waker>);

impl Drop for WakeAtEnd {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Loader {
    /// A loader whose thread is not started yet.
    ///
    /// # Errors
    /// No descriptor is left for the waker.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
            thread: None,
        })
    }

    /// The descriptor that is readable when [`Loader::take`] has an outcome.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Starts a preparation.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub(super) fn prepare(&mut self, order: Order) -> io::Result<()> {
        let task = Task::Prepare(Box::new(order));
        let sent = match &self.thread {
            Some(thread) => thread.tasks.send(task).map_err(|unsent| unsent.0),
            None => Err(task),
        };
        if let Err(task) = sent {
            let thread = self.start()?;
            // A thread that just started takes what is sent.
            let _ = thread.tasks.send(task);
            self.thread = Some(thread);
        }
        Ok(())
    }

    /// Prepares without the thread, if there can be none.
    pub(super) fn prepare_here(order: Order) -> Outcome {
        prepare::prepare(order)
    }

    /// The outcome of the preparation, once there is one.
    pub(super) fn take(&mut self) -> Option<Outcome> {
        self.waker.clear();
        match self.thread.as_ref()?.outcomes.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.thread = None;
                Some(Err(PANICKED.to_owned()))
            }
        }
    }

    /// Frees something large on the thread.
    pub(super) fn free(&self, what: Box<dyn Send>) {
        if let Some(thread) = &self.thread {
            // Without the thread it is freed here.
            let _ = thread.tasks.send(Task::Free(what));
        }
    }

    fn start(&self) -> io::Result<Thread> {
        let (tasks, its_tasks) = mpsc::channel();
        let (its_outcomes, outcomes) = mpsc::channel();
        let waker = Arc::clone(&self.waker);
        std::thread::Builder::new()
            .name("configuration".into())
            .spawn(move || run(&its_tasks, its_outcomes, waker))?;
        Ok(Thread { tasks, outcomes })
    }
}

/// The fault of a preparation that could not be finished.
const PANICKED: &str = "the thread that reads the configuration failed: this is a fault of headend";

// The outcomes are closed before the loop is woken: see the order of the fields.
fn run(tasks: &Receiver<Task>, outcomes: Sender<Outcome>, waker: Arc<Waker>) {
    let end = (outcomes, WakeAtEnd(waker));
    // Linux applies this to the calling thread alone. It is no fault if it cannot be done.
    let _ = rustix::process::nice(NICE);
    while let Ok(task) = tasks.recv() {
        match task {
            Task::Prepare(order) => {
                let prepared = catch_unwind(AssertUnwindSafe(|| prepare::prepare(*order)));
                let _ = end
                    .0
                    .send(prepared.unwrap_or_else(|_| Err(PANICKED.to_owned())));
                end.1.0.wake();
            }
            Task::Free(what) => drop(what),
        }
    }
}

#[cfg(test)]
mod tests;
