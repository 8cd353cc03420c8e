//! Injects faults for tests: system calls of this crate fail with errors that their manual pages name.
//!
//! A test arms a [`Plan`] on a thread. From then on, system calls of the thread fail as the plan's seed determines,
//! without reaching the kernel. The same seed gives the same faults for the same calls. Without a plan, a call only
//! reads a flag of the thread. Start reading at [`arm`].
//!
//! Left out: calls that `std` makes for other crates, and partial results such as short writes.

use std::cell::{Cell, RefCell};

use rustix::io::Errno;

use crate::syscalls::Call;

/// Which calls fail, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Chooses the calls and their errors.
    pub seed: u64,
    /// One call of so many fails; 0 for none.
    pub one_in: u32,
    /// The most calls of the same kind that fail in a row with the same error, at least one.
    pub burst_max: u32,
    /// The calls that may fail; empty for all.
    pub calls: Vec<Call>,
}

/// The faults of a plan so far: call, error number, and how often.
pub type Struck = Vec<(Call, i32, u64)>;

struct Armed {
    plan: Plan,
    state: u64,
    /// A call that goes on failing: its error, and how often.
    burst: Option<(Call, i32, u32)>,
    struck: Struck,
}

thread_local! {
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
    static ARMED: RefCell<Option<Armed>> = const { RefCell::new(None) };
}

/// Arms a plan on this thread, in place of an earlier one.
pub fn arm(plan: Plan) {
    let state = plan.seed ^ 0x9e37_79b9_7f4a_7c15;
    let armed = Armed {
        plan,
        state,
        burst: None,
        struck: Struck::new(),
    };
    ARMED.with(|place| *place.borrow_mut() = Some(armed));
    IS_ARMED.set(true);
}

/// Ends the plan of this thread. Returns its faults.
pub fn disarm() -> Struck {
    IS_ARMED.set(false);
    let armed = ARMED.with(|place| place.borrow_mut().take());
    armed.map_or(Struck::new(), |armed| armed.struck)
}

/// Fails if this thread's plan says so.
#[inline]
pub(crate) fn strike(call: Call) -> Result<(), Errno> {
    if IS_ARMED.get() {
        planned(call)
    } else {
        Ok(())
    }
}

#[cold]
fn planned(call: Call) -> Result<(), Errno> {
    ARMED.with(|place| match place.borrow_mut().as_mut() {
        Some(armed) => armed.strike(call),
        None => Ok(()),
    })
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

    fn strike(&mut self, call: Call) -> Result<(), Errno> {
        if !self.plan.calls.is_empty() && !self.plan.calls.contains(&call) {
            return Ok(());
        }
        if let Some((of, code, left)) = self.burst
            && of == call
        {
            self.burst = (left > 1).then_some((of, code, left - 1));
            return self.fail(call, code);
        }
        let errors = errors(call);
        if errors.is_empty() || self.plan.one_in == 0 || self.below(self.plan.one_in.into()) > 0 {
            return Ok(());
        }
        let code = errors[self.below(errors.len() as u64) as usize];
        let more = self.below(self.plan.burst_max.into()) as u32;
        self.burst = (more > 0).then_some((call, code, more));
        self.fail(call, code)
    }

    fn fail(&mut self, call: Call, code: i32) -> Result<(), Errno> {
        let mut struck = self.struck.iter_mut();
        match struck.find(|(of, its, _)| (*of, *its) == (call, code)) {
            Some((_, _, count)) => *count += 1,
            None => self.struck.push((call, code, 1)),
        }
        Err(Errno::from_raw_os_error(code))
    }
}

/// The errors that a call's manual page names, and those of the devices behind it.
// long: one arm for each manual page
#[must_use]
pub fn errors(call: Call) -> &'static [i32] {
    use libc::{
        EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF, EBADFD, EBUSY,
        ECONNABORTED, ECONNREFUSED, ECONNRESET, EDESTADDRREQ, EEXIST, EFAULT, EHOSTDOWN,
        EHOSTUNREACH, EINTR, EINVAL, EIO, EISCONN, ELOOP, EMFILE, EMSGSIZE, ENETDOWN, ENETUNREACH,
        ENFILE, ENOBUFS, ENODEV, ENOENT, ENOMEM, ENONET, ENOPROTOOPT, ENOSPC, ENOTCONN, ENOTSOCK,
        ENOTTY, ENXIO, EOPNOTSUPP, EPERM, EPIPE, EPROTO, EPROTONOSUPPORT, EPROTOTYPE, ETIMEDOUT,
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
            EACCES, EBUSY, EINTR, EINVAL, EMFILE, ENFILE, ENODEV, ENOENT, ENOMEM, ENXIO, EPERM,
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
            calls: Vec::new(),
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
        });
        let address = "127.0.0.1:0".parse().unwrap();
        let refused = UdpSocket::bind(address, &UdpOptions::default()).unwrap_err();
        let struck = disarm();
        assert_eq!(struck, [(Call::Bind, refused.raw_os_error().unwrap(), 1)]);
        assert!(UdpSocket::bind(address, &UdpOptions::default()).is_ok());
    }
}
