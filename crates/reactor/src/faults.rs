//! Injects faults for tests: system calls of this crate fail with errors that their manual pages name.
//!
//! A test arms a [`Plan`] on a thread. From then on, calls of that thread fail by the plan's seed, without reaching the
//! kernel, and some reads and writes move only a part. The same seed gives the same faults for the same calls. Without
//! a plan, a call costs one read of a flag of the thread.
//!
//! A plan also holds for threads that took an [`Heir`]: the thread that starts another one passes [`heir`] on.
//! [`prepare`] makes threads heirs before there is a plan.
//!
//! Left out: calls that `std` makes for other crates.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::syscalls::Call;

/// Which calls fail, and how often.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Chooses the calls and their errors.
    pub seed: u64,
    /// One call of so many fails; 0 for none.
    pub one_in: u32,
    /// The most calls of the same kind that fail in a row with the same error, at least one.
    pub burst_max: u32,
    /// One read or write of so many moves only a part; 0 for none.
    pub part_in: u32,
    /// The calls that may fail; empty for all.
    pub calls: Vec<Call>,
}

/// The faults of a plan so far: call, error number (0 for a part), and how often.
pub type Struck = Vec<(Call, i32, u64)>;

/// The state that all threads of a plan share.
#[derive(Debug, Default)]
struct Family {
    /// Counts the changes of the plan, so that each thread notices a change.
    change: AtomicU64,
    plan: Mutex<Option<Plan>>,
    struck: Mutex<Struck>,
    /// Numbers the threads, in the order in which they became heirs.
    threads: AtomicU64,
}

/// A thread's part in a plan.
struct Member {
    family: Arc<Family>,
    number: u64,
    change: u64,
    armed: Option<Armed>,
}

/// A plan in progress on a thread.
struct Armed {
    plan: Plan,
    state: u64,
    /// A call that goes on failing: its error, and how often.
    burst: Option<(Call, i32, u32)>,
}

thread_local! {
    static IS_MEMBER: Cell<bool> = const { Cell::new(false) };
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
}

/// Passes the plan of the thread that starts another one to that other one.
#[derive(Debug)]
#[must_use]
pub struct Heir(Option<(Arc<Family>, u64)>);

impl Heir {
    /// Takes the plan over on the calling thread, and every later plan.
    pub fn take(self) {
        if let Some((family, number)) = self.0 {
            join(family, number);
        }
    }
}

/// The plan of the calling thread, for a thread that it starts.
pub fn heir() -> Heir {
    if !IS_MEMBER.get() {
        return Heir(None);
    }
    let family = MEMBER.with(|place| {
        let member = place.borrow();
        member.as_ref().map(|member| Arc::clone(&member.family))
    });
    Heir(family.map(|family| {
        let number = family.threads.fetch_add(1, Ordering::Relaxed) + 1;
        (family, number)
    }))
}

fn join(family: Arc<Family>, number: u64) {
    let member = Member {
        family,
        number,
        change: 0,
        armed: None,
    };
    MEMBER.with(|place| *place.borrow_mut() = Some(member));
    IS_MEMBER.set(true);
}

/// Lets threads that this one starts from now on obey the plan that [`arm`] sets later.
pub fn prepare() {
    if !IS_MEMBER.get() {
        join(Arc::default(), 0);
    }
}

/// Arms a plan on this thread and its heirs, in place of an earlier one.
pub fn arm(plan: Plan) {
    prepare();
    let _ = change(Some(plan));
}

/// Ends the plan of this thread and its heirs. Returns its faults.
pub fn disarm() -> Struck {
    let struck = change(None);
    let is_last = MEMBER.with(|place| {
        let member = place.borrow();
        let family = member.as_ref().map(|member| &member.family);
        family.is_none_or(|family| Arc::strong_count(family) == 1)
    });
    if is_last {
        IS_MEMBER.set(false);
        MEMBER.with(|place| *place.borrow_mut() = None);
    }
    struck
}

/// Sets the plan of this thread's family. Returns the faults of the former one.
fn change(plan: Option<Plan>) -> Struck {
    MEMBER.with(|place| {
        let member = place.borrow();
        let Some(Member { family, .. }) = member.as_ref() else {
            return Struck::new();
        };
        let mut current = lock(&family.plan);
        *current = plan;
        family.change.fetch_add(1, Ordering::Release);
        core::mem::take(&mut *lock(&family.struck))
    })
}

/// Fails if this thread's plan says so.
#[inline]
pub(crate) fn strike(call: Call) -> Result<(), Errno> {
    if IS_MEMBER.get() {
        planned(|member| member.strike(call)).unwrap_or(Ok(()))
    } else {
        Ok(())
    }
}

/// How many of `length` bytes a read or write may move: all of them, unless this thread's plan says otherwise.
#[inline]
pub(crate) fn part(call: Call, length: usize) -> usize {
    if IS_MEMBER.get() {
        planned(|member| member.part(call, length)).unwrap_or(length)
    } else {
        length
    }
}

#[cold]
fn planned<T>(ask: impl FnOnce(&mut Member) -> T) -> Option<T> {
    MEMBER.with(|place| place.borrow_mut().as_mut().map(ask))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    /// The plan as it is now.
    fn armed(&mut self) -> Option<&mut Armed> {
        let change = self.family.change.load(Ordering::Acquire);
        if change != self.change {
            let plan = lock(&self.family.plan).clone();
            self.change = change;
            self.armed = plan.map(|plan| Armed {
                state: plan.seed ^ 0x9e37_79b9_7f4a_7c15 ^ self.number.rotate_left(32),
                plan,
                burst: None,
            });
        }
        self.armed.as_mut()
    }

    fn strike(&mut self, call: Call) -> Result<(), Errno> {
        match self.armed().and_then(|armed| armed.fault(call)) {
            None => Ok(()),
            Some(code) => {
                self.note(call, code);
                Err(Errno::from_raw_os_error(code))
            }
        }
    }

    fn part(&mut self, call: Call, length: usize) -> usize {
        let part = self
            .armed()
            .map_or(length, |armed| armed.part(call, length));
        if part < length {
            self.note(call, 0);
        }
        part
    }

    fn note(&self, call: Call, code: i32) {
        let mut struck = lock(&self.family.struck);
        let mut all = struck.iter_mut();
        match all.find(|(of, its, _)| (*of, *its) == (call, code)) {
            Some((_, _, count)) => *count += 1,
            None => struck.push((call, code, 1)),
        }
    }
}

impl Armed {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn concerns(&self, call: Call) -> bool {
        self.plan.calls.is_empty() || self.plan.calls.contains(&call)
    }

    /// The error of a call that fails.
    fn fault(&mut self, call: Call) -> Option<i32> {
        if !self.concerns(call) {
            return None;
        }
        if let Some((of, code, left)) = self.burst
            && of == call
        {
            self.burst = (left > 1).then_some((of, code, left - 1));
            return Some(code);
        }
        let errors = errors(call);
        if errors.is_empty() || self.plan.one_in == 0 || self.below(self.plan.one_in.into()) > 0 {
            return None;
        }
        let code = errors[self.below(errors.len() as u64) as usize];
        let more = self.below(self.plan.burst_max.into()) as u32;
        self.burst = (more > 0).then_some((call, code, more));
        Some(code)
    }

    fn part(&mut self, call: Call, length: usize) -> usize {
        let is_whole = length < 2 || self.plan.part_in == 0 || !self.concerns(call);
        if is_whole || self.below(self.plan.part_in.into()) > 0 {
            return length;
        }
        1 + self.below(length as u64 - 1) as usize
    }
}

/// The errors that a call's manual page names, and those of the devices behind it.
// long: one arm for each manual page
#[must_use]
pub fn errors(call: Call) -> &'static [i32] {
    use libc::{
        EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF, EBADFD, EBUSY,
        ECONNABORTED, ECONNREFUSED, ECONNRESET, EDESTADDRREQ, EDQUOT, EEXIST, EFAULT, EFBIG,
        EHOSTDOWN, EHOSTUNREACH, EINTR, EINVAL, EIO, EISCONN, ELOOP, EMFILE, EMSGSIZE, ENETDOWN,
        ENETUNREACH, ENFILE, ENOBUFS, ENODEV, ENOENT, ENOLCK, ENOMEM, ENONET, ENOPROTOOPT, ENOSPC,
        ENOTCONN, ENOTSOCK, ENOTTY, ENXIO, EOPNOTSUPP, EOVERFLOW, EPERM, EPIPE, EPROTO,
        EPROTONOSUPPORT, EPROTOTYPE, EROFS, ETIMEDOUT,
    };
    match call {
        Call::Recvmmsg | Call::Recvfrom => &[
            EAGAIN,
            EBADF,
            ECONNREFUSED,
            EFAULT,
            EINTR,
            EINVAL,
            ENOMEM,
            ENOTCONN,
            ENOTSOCK,
            // netlink(7), and lower layers.
            ENOBUFS,
            EIO,
        ],
        Call::Sendmmsg | Call::Sendto => &[
            EACCES,
            EAGAIN,
            EALREADY,
            EBADF,
            ECONNRESET,
            EDESTADDRREQ,
            EFAULT,
            EINTR,
            EINVAL,
            EISCONN,
            EMSGSIZE,
            ENOBUFS,
            ENOMEM,
            ENOTCONN,
            ENOTSOCK,
            EOPNOTSUPP,
            EPIPE,
            EPERM,
            ENETUNREACH,
        ],
        // EBADFD: a TUN device that was deleted.
        Call::Read => &[EAGAIN, EBADF, EBADFD, EFAULT, EINTR, EINVAL, EIO],
        Call::Write => &[
            EAGAIN, EBADF, EBADFD, EFAULT, EINTR, EINVAL, EIO, ENOSPC, EPERM, EPIPE,
        ],
        Call::Accept => &[
            EAGAIN,
            EBADF,
            ECONNABORTED,
            EFAULT,
            EINTR,
            EINVAL,
            EMFILE,
            ENFILE,
            ENOBUFS,
            ENOMEM,
            ENOTSOCK,
            EOPNOTSUPP,
            EPERM,
            EPROTO,
            ENETDOWN,
            ENOPROTOOPT,
            EHOSTDOWN,
            ENONET,
            EHOSTUNREACH,
            ENETUNREACH,
        ],
        Call::Connect => &[
            EACCES,
            EPERM,
            EADDRINUSE,
            EADDRNOTAVAIL,
            EAFNOSUPPORT,
            EAGAIN,
            EALREADY,
            EBADF,
            ECONNREFUSED,
            EFAULT,
            EINTR,
            EISCONN,
            ENETUNREACH,
            ENOTSOCK,
            EPROTOTYPE,
            ETIMEDOUT,
        ],
        Call::EpollWait => &[EBADF, EFAULT, EINTR, EINVAL],
        Call::EpollCtl => &[EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM],
        Call::EpollCreate => &[EINVAL, EMFILE, ENFILE, ENOMEM],
        Call::Poll => &[EFAULT, EINTR, EINVAL, ENOMEM],
        Call::UringEnter => &[
            EAGAIN, EBADF, EBUSY, EFAULT, EINTR, EINVAL, ENXIO, EOPNOTSUPP,
        ],
        Call::Open => &[
            EACCES, EBUSY, EDQUOT, EINTR, EINVAL, EIO, EMFILE, ENFILE, ENODEV, ENOENT, ENOMEM,
            ENOSPC, ENXIO, EPERM, EROFS,
        ],
        Call::Ioctl => &[EBADF, EBUSY, EFAULT, EINVAL, ENODEV, ENOTTY, EPERM],
        Call::Socket => &[
            EACCES,
            EAFNOSUPPORT,
            EINVAL,
            EMFILE,
            ENFILE,
            ENOBUFS,
            ENOMEM,
            EPROTONOSUPPORT,
        ],
        Call::Bind => &[
            EACCES,
            EADDRINUSE,
            EADDRNOTAVAIL,
            EBADF,
            EFAULT,
            EINVAL,
            ELOOP,
            ENOMEM,
            ENOTSOCK,
        ],
        Call::Setsockopt | Call::Getsockopt => {
            &[EBADF, EFAULT, EINVAL, ENOMEM, ENOPROTOOPT, ENOTSOCK]
        }
        // EIO, ENOSPC, EDQUOT and EROFS: a disk that breaks, is full or was mounted again without writing.
        Call::Pread => &[EBADF, EFAULT, EINTR, EINVAL, EIO, ENXIO, EOVERFLOW],
        Call::Pwrite => &[
            EBADF, EDQUOT, EFAULT, EFBIG, EINTR, EINVAL, EIO, ENOSPC, EPERM, EROFS,
        ],
        Call::Ftruncate => &[EBADF, EFBIG, EINTR, EINVAL, EIO, ENOSPC, EPERM, EROFS],
        Call::Fsync | Call::Fdatasync => &[EBADF, EDQUOT, EINTR, EINVAL, EIO, ENOSPC, EROFS],
        Call::Fstat => &[EACCES, EBADF, EFAULT, ENOMEM, EOVERFLOW],
        Call::Flock => &[EBADF, EINTR, EINVAL, ENOLCK],
        Call::Rename => &[
            EACCES, EBUSY, EDQUOT, EIO, ENOENT, ENOMEM, ENOSPC, EPERM, EROFS,
        ],
        Call::Unlink => &[EACCES, EBUSY, EIO, ENOENT, ENOMEM, EPERM, EROFS],
        Call::Getsockname => &[EBADF, EFAULT, EINVAL, ENOBUFS, ENOTSOCK],
        // Its callers look at the clock, not at its result.
        Call::Nanosleep => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{UdpOptions, UdpSocket};

    fn faults(seed: u64) -> (Vec<Option<i32>>, Struck) {
        arm(Plan {
            seed,
            one_in: 3,
            burst_max: 4,
            ..Plan::default()
        });
        let calls = [Call::Recvmmsg, Call::EpollWait, Call::Socket]
            .into_iter()
            .cycle();
        let outcome = |call| strike(call).err().map(Errno::raw_os_error);
        let seen = calls.take(300).map(outcome).collect();
        (seen, disarm())
    }

    #[test]
    fn a_seed_gives_the_same_faults_and_each_is_one_that_the_manual_names() {
        let (seen, struck) = faults(7);
        assert_eq!(faults(7), (seen.clone(), struck.clone()));
        assert_ne!(faults(8).0, seen);
        let count = seen.iter().flatten().count() as u64;
        assert_eq!(struck.iter().map(|(_, _, count)| count).sum::<u64>(), count);
        assert!((100..250).contains(&count), "{count}");
        assert!(
            struck
                .iter()
                .all(|(call, code, _)| errors(*call).contains(code))
        );
        assert_eq!(strike(Call::Socket), Ok(()), "disarmed");
    }

    #[test]
    fn only_the_calls_of_the_plan_fail_and_others_reach_the_kernel() {
        arm(Plan {
            seed: 1,
            one_in: 1,
            burst_max: 1,
            calls: vec![Call::Bind],
            ..Plan::default()
        });
        let address = "127.0.0.1:0".parse().unwrap();
        let refused = UdpSocket::bind(address, &UdpOptions::default()).unwrap_err();
        let struck = disarm();
        assert_eq!(struck, [(Call::Bind, refused.raw_os_error().unwrap(), 1)]);
        assert!(UdpSocket::bind(address, &UdpOptions::default()).is_ok());
    }

    #[test]
    fn threads_that_took_a_heir_obey_later_plans_until_the_end_of_the_plan() {
        let all = || Plan {
            seed: 1,
            one_in: 1,
            ..Plan::default()
        };
        prepare();
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (answer, answered) = std::sync::mpsc::channel();
        let its = heir();
        let outsider = std::thread::spawn(|| strike(Call::Socket));
        let thread = std::thread::spawn(move || {
            its.take();
            for () in asked {
                answer.send(strike(Call::Fdatasync).is_err()).unwrap();
            }
        });
        let fails = || {
            ask.send(()).unwrap();
            answered.recv().unwrap()
        };
        assert!(!fails(), "there is no plan yet");
        arm(all());
        assert!(fails());
        assert!(strike(Call::Socket).is_err());
        let struck = disarm();
        let calls: Vec<Call> = struck.iter().map(|(call, ..)| *call).collect();
        assert_eq!(calls, [Call::Fdatasync, Call::Socket]);
        assert!(!fails() && strike(Call::Socket).is_ok());
        arm(all());
        assert!(fails(), "an heir of every later plan");
        assert_eq!(outsider.join().unwrap(), Ok(()));
        drop(ask);
        thread.join().unwrap();
        disarm();
        assert!(!IS_MEMBER.get());
    }

    #[test]
    fn a_part_is_never_nothing_and_never_more_than_all() {
        arm(Plan {
            seed: 3,
            part_in: 2,
            calls: vec![Call::Pwrite],
            ..Plan::default()
        });
        assert_eq!(part(Call::Pread, 100), 100, "a call of no plan");
        assert_eq!(part(Call::Pwrite, 1), 1);
        let parts: Vec<usize> = (0..100).map(|_| part(Call::Pwrite, 100)).collect();
        assert!(parts.iter().all(|part| (1..=100).contains(part)));
        let short = parts.iter().filter(|part| **part < 100).count() as u64;
        assert!((25..75).contains(&short), "{short}");
        assert_eq!(disarm(), [(Call::Pwrite, 0, short)]);
    }
}
