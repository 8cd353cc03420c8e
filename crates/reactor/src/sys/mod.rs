//! All unsafe code of this crate: system calls that need raw pointers, wrapped so that no caller can misuse them.

mod address;
pub(crate) mod bare;
mod batch;
pub(crate) mod block_ring;
pub(crate) mod bpf;
pub(crate) mod clock;
mod control;
pub(crate) mod epoll;
pub(crate) mod ether;
pub(crate) mod inherited;
pub(crate) mod interface;
mod mapping;
pub(crate) mod memory;
pub(crate) mod mmsg;
pub(crate) mod namespace;
pub(crate) mod packet;
pub(crate) mod packet_ring;
pub(crate) mod poll;
pub(crate) mod prefetch;
pub(crate) mod process;
pub(crate) mod schedule;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod timed;
pub(crate) mod uring;
pub(crate) mod xdp;

use std::io;

/// Turns a system call's result of -1 into an error.
fn check(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A time span in the kernel's format.
fn timespec(span: base::Duration) -> libc::timespec {
    libc::timespec {
        // The type differs between C libraries; 64 bits of nanoseconds fit in 35 bits of seconds.
        tv_sec: (span.as_nanos() / 1_000_000_000) as _,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as libc::c_long,
    }
}
