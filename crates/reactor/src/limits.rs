//! The limit on open descriptors.

use std::io;
use std::os::fd::RawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept free for the control socket, log files and the like.
pub const DESCRIPTOR_RESERVE: u64 = 32;

/// The process's limit on open descriptors; `u64::MAX` if there is none.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the soft limit on open descriptors to the hard limit. Returns the new limit.
///
/// # Errors
/// The kernel's error; the limit is as before.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )?;
    }
    Ok(descriptor_limit())
}

/// Checks whether a descriptor is within the reserve.
///
/// The kernel assigns the lowest free number. So a descriptor's number is a lower bound of the number of open
/// descriptors, and needs no system call.
#[derive(Debug)]
pub(crate) struct DescriptorGuard {
    limit: u64,
    reserve: u64,
}

impl DescriptorGuard {
    pub(crate) fn new() -> Self {
        Self {
            limit: descriptor_limit(),
            reserve: DESCRIPTOR_RESERVE,
        }
    }

    /// `Err` holds the open descriptors and the limit.
    pub(crate) fn check(&mut self, fd: RawFd) -> Result<(), (u64, u64)> {
        let open = u64::try_from(fd).unwrap_or(0).saturating_add(1);
        if open.saturating_add(self.reserve) <= self.limit {
            return Ok(());
        }
        // The limit may have been raised since it was read.
        self.limit = descriptor_limit();
        if open.saturating_add(self.reserve) <= self.limit {
            Ok(())
        } else {
            Err((open, self.limit))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_numbers_below_the_limit_are_refused() {
        // Otherwise another test could raise it meanwhile.
        raise_descriptor_limit().unwrap();
        let mut guard = DescriptorGuard::new();
        let limit = guard.limit;
        let last_allowed = RawFd::try_from(limit - DESCRIPTOR_RESERVE).unwrap() - 1;
        assert_eq!(guard.check(last_allowed), Ok(()));
        assert_eq!(
            guard.check(last_allowed + 1),
            Err((limit - DESCRIPTOR_RESERVE + 1, limit))
        );
    }

    #[test]
    fn the_soft_limit_rises_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raise_descriptor_limit().unwrap(), hard);
    }
}
