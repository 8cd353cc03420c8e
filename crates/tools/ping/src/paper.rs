//! Writes standard output from a separate thread, so that a slow reader does not delay packets.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Maximum bytes waiting to be written. Beyond it the caller blocks, so that memory stays bounded.
const WAITING_MAX: usize = 16 << 20;

#[derive(Default)]
struct Waiting {
    text: String,
    closed: bool,
    error: Option<io::Error>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// Accepts lines for output; discards them if nothing is to be printed.
pub(super) struct Paper {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl Paper {
    /// Starts the writing thread, if anything is to be printed.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(prints: bool) -> io::Result<Paper> {
        let shared = Arc::new(Shared::default());
        let writer = prints.then(|| {
            let shared = Arc::clone(&shared);
            let writer = std::thread::Builder::new().name("paper".into());
            writer.spawn(move || shared.write())
        });
        Ok(Paper {
            shared,
            writer: writer.transpose()?,
        })
    }

    /// Queues a line. Returns `false` if the output is closed.
    pub(super) fn line(&self, line: &str) -> bool {
        if self.writer.is_none() {
            return true;
        }
        let mut waiting = self.shared.lock();
        while waiting.text.len() > WAITING_MAX && waiting.error.is_none() {
            waiting = self
                .shared
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        waiting.text.push_str(line);
        waiting.text.push('\n');
        self.shared.changed.notify_all();
        waiting.error.is_none()
    }

    /// Waits until all lines are written.
    ///
    /// # Errors
    /// The error of standard output.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.close();
        match self.shared.lock().error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn close(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            // The thread does not panic; if it did, its output would end early.
            let _ = writer.join();
        }
    }
}

impl Drop for Paper {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let mut text = String::new();
        loop {
            let mut waiting = self.lock();
            while waiting.text.is_empty() && !waiting.closed {
                waiting = self
                    .changed
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if waiting.text.is_empty() {
                return;
            }
            text.clear();
            std::mem::swap(&mut text, &mut waiting.text);
            drop(waiting);
            self.changed.notify_all();
            let mut out = io::stdout().lock();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            if let Err(error) = written {
                self.lock().error = Some(error);
                self.changed.notify_all();
                return;
            }
        }
    }
}
