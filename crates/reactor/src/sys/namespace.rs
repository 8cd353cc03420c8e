//! unshare(2), and the steps of a child between fork and exec.

use std::ffi::CStr;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Moves the calling thread to a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: what is unsafe of unsharing is a descriptor table apart (`FILES`); a network namespace is no memory or
    // descriptor of other threads.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Moves the calling thread to a new descriptor table with the standard three descriptors and those of `keep`, which
/// are in ascending order.
pub(crate) fn unshare_descriptors(keep: &[RawFd]) -> io::Result<()> {
    // SAFETY: the table begins as a copy, so that every descriptor that the thread knows stays what it is. What is
    // closed below is not known to it: `spawn_apart` says so to its callers.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    let mut from: libc::c_uint = 3;
    for end in keep
        .iter()
        .map(|fd| *fd as libc::c_uint)
        .chain([libc::c_uint::MAX])
    {
        if from < end {
            let last = if end == libc::c_uint::MAX {
                end
            } else {
                end - 1
            };
            // SAFETY: takes numbers alone; they are of this thread's own table.
            if unsafe { libc::syscall(libc::SYS_close_range, from, last, 0_u32) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        from = from.max(end.saturating_add(1));
    }
    Ok(())
}

/// Makes the calling process, which must have one thread, root of new namespaces (user_namespaces(7)). Allocates
/// nothing.
pub(crate) fn become_root() -> io::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    // SAFETY: as above; the kernel refuses `NEWUSER` to a process with several threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }?;
    write(c"/proc/self/setgroups", format_args!("deny"))?;
    write(c"/proc/self/uid_map", format_args!("0 {uid} 1"))?;
    write(c"/proc/self/gid_map", format_args!("0 {gid} 1"))
}

/// Writes an existing file, in one call and without allocating.
fn write(path: &CStr, text: fmt::Arguments<'_>) -> io::Result<()> {
    let mut buffer = [0_u8; 32];
    let mut free = &mut buffer[..];
    free.write_fmt(text)?;
    let left = free.len();
    let used = buffer.len() - left;
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, &buffer[..used])?;
    Ok(())
}

/// Kills this process when the thread that started it ends, even if that was before this call.
fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Starts `command`'s process in a network namespace; it dies with the thread that starts it.
pub(crate) fn start_in(command: &mut Command, namespace: OwnedFd) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made, on memory that is there already.
    unsafe {
        command.pre_exec(move || {
            die_with(parent)?;
            let kind = Some(LinkNameSpaceType::Network);
            Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
        });
    }
}

/// Starts `command`'s process as root of new namespaces; it dies with the thread that starts it.
pub(crate) fn start_as_root(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made, on memory that is there already.
    unsafe {
        command.pre_exec(move || {
            become_root()?;
            die_with(parent)
        });
    }
}
