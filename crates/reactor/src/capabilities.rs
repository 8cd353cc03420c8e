//! Giving up privileges.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Gives up every capability of the calling thread, and of those it will start, for
/// good. Call it once all addresses are bound and all buffers sized, before starting
/// threads. A process without capabilities may call it too.
///
/// # Errors
/// What the kernel said; nothing was given up then.
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::set_no_new_privs(true)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
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
}
