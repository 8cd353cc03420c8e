//! Threads with their own descriptor tables, for programs that need more descriptors than one table may hold.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::thread::JoinHandle;

use crate::faults;
use crate::sys::namespace as sys;

/// Starts a thread with its own descriptor table. The table has the descriptors of `keep` under the same numbers, the
/// standard three, and nothing else. The limit on descriptors counts anew.
///
/// The descriptors that `work` opens exist in this thread alone. Do not pass descriptors to or from it, neither owned
/// nor borrowed, except those of `keep`. A [`crate::Waker`] of `keep` wakes it.
///
/// # Errors
/// The kernel's error for the thread; the inner error is for its table.
pub fn spawn_apart<T: Send + 'static>(
    name: &str,
    keep: &[BorrowedFd<'_>],
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    let mut keep: Vec<RawFd> = keep.iter().map(|fd| fd.as_fd().as_raw_fd()).collect();
    keep.sort_unstable();
    let (begun, begin) = std::sync::mpsc::sync_channel(1);
    let heir = faults::heir();
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            heir.take();
            let own = sys::unshare_descriptors(&keep);
            // From here on this thread does not notice what others close.
            let _ = begun.send(());
            own.map(|()| work())
        })?;
    let _ = begin.recv();
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waker;
    use std::sync::Arc;

    #[test]
    fn what_it_opens_takes_no_number_from_the_others() {
        let waker = Arc::new(Waker::new().unwrap());
        let woken = Arc::clone(&waker);
        let held: Vec<Waker> = (0..64).map(|_| Waker::new().unwrap()).collect();
        let highest = held.iter().map(|fd| fd.as_fd().as_raw_fd()).max().unwrap();
        let thread = spawn_apart("apart", &[waker.as_fd()], move || {
            woken.wake();
            // The numbers of the other descriptors are free in this table.
            let opened: Vec<Waker> = (0..64).map(|_| Waker::new().unwrap()).collect();
            let lowest = opened.iter().map(|fd| fd.as_fd().as_raw_fd()).min();
            // The thread's copy of a shared descriptor is closed with its table.
            std::mem::forget(woken);
            lowest.unwrap()
        });
        let lowest = thread.unwrap().join().unwrap().unwrap();
        assert!(lowest < highest, "{lowest} < {highest}");
        assert!(waker.clear(), "a kept descriptor is the same object");
        assert!(held.iter().all(|waker| !waker.clear()));
    }
}
