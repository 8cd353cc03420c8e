//! Which core the load runs on and which one the server: the same ones for everyone
//! who is measured.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Two cores of those we may use, or none if there is only one.
pub(crate) struct Cores {
    allowed: CpuSet,
    pair: Option<(usize, usize)>,
}

impl Cores {
    /// Takes the last two, and puts this thread on the first of them.
    pub(crate) fn take() -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let mut last = (0..CpuSet::MAX_CPU).rev().filter(|&n| allowed.is_set(n));
        let pair = last.next().and_then(|server| Some((last.next()?, server)));
        let cores = Self { allowed, pair };
        cores.stay(false);
        cores
    }

    /// Does `work` on the server's core: what it starts inherits that.
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

    /// Lets this thread run where it could before.
    pub(crate) fn leave(&self) {
        // What was allowed once is allowed again.
        let _ = sched_setaffinity(None, &self.allowed);
    }

    fn stay(&self, at_server: bool) {
        if let Some((load, server)) = self.pair {
            let mut set = CpuSet::new();
            set.set(if at_server { server } else { load });
            // Refused, it runs where the kernel puts it, as without us.
            let _ = sched_setaffinity(None, &set);
        }
    }
}
