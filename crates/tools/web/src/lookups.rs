//! Answers to questions that many viewers ask at once: the daemon is asked once, and the answer serves for a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::fail::Fail;
use crate::link::{Fault, Link, Rows};

/// How long an answer serves.
const KEPT: Duration = Duration::from_secs(1);
/// Answers kept at a time.
const ANSWERS_MAX: usize = 64;
/// Requests that may wait for the daemon.
const WAITING_MAX: usize = 64;

type Answer = Result<Arc<Rows>, Fault>;

struct Entry {
    asked: Instant,
    answer: Arc<OnceCell<Answer>>,
}

/// Questions to a daemon on a connection of its own.
pub(crate) struct Lookups {
    link: Link,
    answers: Mutex<HashMap<String, Entry>>,
    waiting: Semaphore,
}

impl Lookups {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            answers: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// At most `most` rows of the answer to `what`; it may be a second old.
    pub(crate) async fn ask(&self, what: &Value, most: usize) -> Result<Arc<Rows>, Fail> {
        let _waiting = self
            .waiting
            .try_acquire()
            .map_err(|_| Fail::busy(format!("{WAITING_MAX} requests wait already")))?;
        let answer = self.entry(format!("{most} {what}"));
        let answer = answer
            .get_or_init(|| async { self.link.rows(what, most).await.map(Arc::new) })
            .await;
        match answer {
            Ok(rows) => Ok(Arc::clone(rows)),
            Err(fault) => Err(fault.into()),
        }
    }

    fn entry(&self, key: String) -> Arc<OnceCell<Answer>> {
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, entry| now < entry.asked + KEPT);
        if let Some(entry) = answers.get(&key) {
            return Arc::clone(&entry.answer);
        }
        let answer = Arc::default();
        // A full table keeps what it has: this answer then serves its own caller only.
        if answers.len() < ANSWERS_MAX {
            let entry = Entry {
                asked: now,
                answer: Arc::clone(&answer),
            };
            answers.insert(key, entry);
        }
        answer
    }
}
