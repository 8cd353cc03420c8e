//! System calls counted by name, per thread.

use std::cell::Cell;
use std::fmt;

macro_rules! calls {
    ($($variant:ident $name:literal,)*) => {
        /// A system call that this crate makes, or that a caller records with [`SysCounts::note`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Call {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Call {
            /// Every call with a counter.
            pub const ALL: &[Call] = &[$(Call::$variant,)*];

            /// The call's name.
            pub const fn name(self) -> &'static str {
                match self { $(Call::$variant => $name,)* }
            }
        }
    };
}

calls! {
    EpollCreate "epoll_create1",
    EpollCtl "epoll_ctl",
    EpollWait "epoll_pwait2",
    Poll "ppoll",
    UringEnter "io_uring_enter",
    Recvmmsg "recvmmsg",
    Sendmmsg "sendmmsg",
    Recvfrom "recvfrom",
    Sendto "sendto",
    Open "openat",
    Ioctl "ioctl",
    Read "read",
    Write "write",
    Accept "accept4",
    Socket "socket",
    Bind "bind",
    Connect "connect",
    Setsockopt "setsockopt",
    Getsockopt "getsockopt",
    Getsockname "getsockname",
    Nanosleep "clock_nanosleep",
    Pread "pread64",
    Pwrite "pwrite64",
    Ftruncate "ftruncate",
    Fsync "fsync",
    Fdatasync "fdatasync",
    Fstat "fstat",
    Flock "flock",
    Rename "rename",
    Unlink "unlink",
}

const CALLS: usize = Call::ALL.len();

thread_local! {
    static COUNTS: [Cell<u64>; CALLS] = const { [const { Cell::new(0) }; CALLS] };
}

/// Counts a call that is about to be made. Fails in place of it if a test wants that (see `faults`).
#[inline]
pub(crate) fn enter(call: Call) -> rustix::io::Result<()> {
    SysCounts::note(call);
    crate::faults::strike(call)
}

/// How often each system call was made.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SysCounts([u64; CALLS]);

impl SysCounts {
    /// The calls of this thread so far.
    pub fn of_this_thread() -> Self {
        COUNTS.with(|counts| Self(std::array::from_fn(|i| counts[i].get())))
    }

    /// Counts a call made outside this crate, through `std` for example.
    pub fn note(call: Call) {
        COUNTS.with(|counts| {
            let cell = &counts[call as usize];
            cell.set(cell.get().wrapping_add(1));
        });
    }

    /// The calls since `earlier`, which was taken on the same thread.
    #[must_use]
    pub fn since(&self, earlier: &SysCounts) -> SysCounts {
        Self(std::array::from_fn(|i| {
            self.0[i].wrapping_sub(earlier.0[i])
        }))
    }

    /// How often `call` was made.
    pub fn get(&self, call: Call) -> u64 {
        self.0[call as usize]
    }

    /// All calls together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Names and counts of the calls made at least once.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Call::ALL
            .iter()
            .map(|&call| (call.name(), self.get(call)))
            .filter(|&(_, count)| count > 0)
    }
}

impl fmt::Debug for SysCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_by_name_and_since_a_moment() {
        let before = SysCounts::of_this_thread();
        SysCounts::note(Call::Read);
        SysCounts::note(Call::Read);
        SysCounts::note(Call::Accept);
        let made = SysCounts::of_this_thread().since(&before);
        assert_eq!(
            made.iter().collect::<Vec<_>>(),
            [("read", 2), ("accept4", 1)]
        );
        assert_eq!(made.total(), 3);
    }
}
