//! CPU scheduling in measurements: the scheduler's counters of a thread, threads that keep cores
//! busy, and binding a thread to a core.

use std::fs;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::Duration;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The scheduler's counters of a thread (proc(5): `schedstat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    /// Time in which it ran.
    ran: Duration,
    /// Time in which it was ready to run while other threads had the core.
    waited: Duration,
}

impl Account {
    /// Counters of the calling thread; `None` where the kernel has none.
    pub(super) fn of_this_thread() -> Option<Self> {
        Self::of("/proc/thread-self")
    }

    /// Counters of the thread with this directory in `/proc`.
    pub(super) fn of(directory: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("{directory}/schedstat")).ok()?)
    }

    /// Reads nanoseconds run, nanoseconds waited and slices.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map_while(|n| n.parse().ok());
        let (ran, waited) = (numbers.next()?, numbers.next()?);
        Some(Self {
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
        })
    }

    /// How long it ran since it was started.
    pub(super) fn ran(self) -> Duration {
        self.ran
    }

    /// How long it waited for a core since it was started.
    pub(super) fn waited_in_all(self) -> Duration {
        self.waited
    }

    /// How long it waited for a core since `before`.
    pub(super) fn waited_since(self, before: Self) -> Duration {
        Duration::from_nanos(
            self.waited
                .as_nanos()
                .saturating_sub(before.waited.as_nanos()),
        )
    }
}

/// The directory in `/proc` of the kernel's thread that does a core's deferred work for interfaces.
pub(super) fn softirqd(core: usize) -> Option<String> {
    let name = format!("ksoftirqd/{core}");
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let directory = entry.path().to_str()?.to_owned();
        let comm = fs::read_to_string(format!("{directory}/comm")).ok()?;
        (comm.trim_end() == name).then_some(directory)
    })
}

/// The cores that this thread may use.
pub(super) fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect()
}

/// Binds the calling thread to a core, if the kernel permits.
pub(super) fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // If refused, the thread runs on any core.
    let _ = sched_setaffinity(None, &set);
}

/// Threads that each keep a core busy until this is dropped.
pub(super) struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    pub(super) fn on(cores: &[usize]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = cores.iter().map(|&core| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                stay_on(core);
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread cannot have panicked.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_the_second_number() {
        let of = |text| Account::parse(text);
        let (before, after) = (of("5 1000 2\n").unwrap(), of("9 4500 3\n").unwrap());
        assert_eq!(before.ran(), Duration::from_nanos(5));
        assert_eq!(after.waited_since(before), Duration::from_nanos(3_500));
        assert_eq!(before.waited_since(after), Duration::ZERO);
        assert_eq!((of("5\n"), of(""), of("a b c")), (None, None, None));
    }

    #[test]
    fn there_is_a_core_and_busy_threads_end() {
        let cores = cores();
        assert!(!cores.is_empty());
        drop(Busy::on(&cores));
    }
}
