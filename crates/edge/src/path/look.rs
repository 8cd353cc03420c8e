//! The state of a subscriber's queues, for a view on another thread.

use std::sync::{Arc, Mutex, PoisonError};

use hqos::View;

use super::Path;
use crate::access::Encapsulation;

/// A question about the queues of one subscriber, and its answer.
#[derive(Clone, Debug)]
pub struct Look {
    pub(crate) place: u32,
    pub(crate) hosts_max: usize,
    /// The changes after which every path has seen the question.
    pub(crate) after: u64,
    answer: Arc<Mutex<Option<[View; 2]>>>,
}

impl Look {
    pub(crate) fn new(place: u32, hosts_max: usize, after: u64) -> Self {
        Self {
            place,
            hosts_max,
            after,
            answer: Arc::default(),
        }
    }

    /// Takes the queues down and up, once the path that has them has answered.
    #[must_use]
    pub fn take(&self) -> Option<[View; 2]> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }
}

impl<E: Encapsulation> Path<E> {
    /// Answers, if this path has the queues.
    pub(crate) fn look(&mut self, look: &Look) {
        let Some(queues) = &self.queues else { return };
        if queues.held.contains_key(&look.place) {
            return;
        }
        if let Some(views) = queues.view(look.place, look.hosts_max) {
            let mut answer = look.answer.lock().unwrap_or_else(PoisonError::into_inner);
            *answer = Some(views);
        }
    }
}
