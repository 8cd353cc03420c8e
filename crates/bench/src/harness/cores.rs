//! The cores of load and server, the same for every subject.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Two of the cores we may use, or none if there is only one.
pub(crate) struct Cores {
    allowed: CpuSet,
    pair: Option<(usize, usize)>,
}

impl Cores {
    /// Takes the last two, and binds this thread to the first of them.
    pub(crate) fn take() -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let mut last = (0..CpuSet::MAX_CPU).rev().filter(|&n| allowed.is_set(n));
        let pair = last.next().and_then(|server| Some((last.next()?, server)));
        let cores = Self { allowed, pair };
        cores.stay(false);
        cores
    }

    /// Calls `work` on the server's core; processes that it starts inherit the core.
    pub(crate) fn at_server<T>(&self, work: impl FnOnce() -> T) -> T {
        self.stay(true);
        let done = work();
        self.stay(false);
        done
    }

    /// Whether load and server have a core each.
    pub(crate) fn are_apart(&self) -> bool {
        self.pair.is_some()
    }

    /// Lets this thread run on all its former cores.
    pub(crate) fn leave(&self) {
        // These cores were permitted before.
        let _ = sched_setaffinity(None, &self.allowed);
    }

    fn stay(&self, at_server: bool) {
        if let Some((load, server)) = self.pair {
            let mut set = CpuSet::new();
            set.set(if at_server { server } else { load });
            // If refused, the thread runs on any core.
            let _ = sched_setaffinity(None, &set);
        }
    }
}
