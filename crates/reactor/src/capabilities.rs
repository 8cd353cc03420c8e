//! Dropping privileges.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Drops every capability of the calling thread, and of threads that it starts later, for good. Call it after binding
/// all addresses and sizing all buffers, and before starting threads. It also succeeds without capabilities.
///
/// # Errors
/// The kernel's error; nothing was dropped then.
pub fn drop_capabilities() -> io::Result<()> {
    keep(CapabilitySet::empty())
}

/// As [`drop_capabilities`], but keeps CAP_NET_ADMIN if the thread has it, so that addresses and routes can still be
/// changed (capabilities(7)).
///
/// # Errors
/// The kernel's error; nothing was dropped then.
pub fn drop_capabilities_but_net_admin() -> io::Result<()> {
    keep(rustix::thread::capabilities(None)?.permitted & CapabilitySet::NET_ADMIN)
}

/// As [`drop_capabilities`], but keeps CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH if the thread has them: with these it can
/// read which files the processes of other users have open (proc(5)).
///
/// # Errors
/// The kernel's error; nothing was dropped then.
pub fn drop_capabilities_but_to_read_processes() -> io::Result<()> {
    let reading = CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH;
    keep(rustix::thread::capabilities(None)?.permitted & reading)
}

fn keep(kept: CapabilitySet) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_in_the_thread_that_drops() {
        std::thread::spawn(|| {
            drop_capabilities().unwrap();
            let left = rustix::thread::capabilities(None).unwrap();
            assert!(left.effective.is_empty() && left.permitted.is_empty());
            drop_capabilities().unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn at_most_net_admin_is_left_where_that_is_kept() {
        std::thread::spawn(|| {
            let had = rustix::thread::capabilities(None).unwrap().permitted;
            drop_capabilities_but_net_admin().unwrap();
            let left = rustix::thread::capabilities(None).unwrap();
            assert_eq!(left.permitted, had & CapabilitySet::NET_ADMIN);
            assert_eq!(left.effective, left.permitted);
        })
        .join()
        .unwrap();
    }
}
