//! Names of watched descriptors, the events they are watched for, and their readiness.

use std::fmt;
use std::os::fd::RawFd;

/// A watched descriptor: its number, and which use of that number.
///
/// The kernel reuses numbers, but generations are unique. So the token of a removed descriptor never matches a later
/// descriptor of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) fd: RawFd,
    pub(crate) generation: u32,
}

impl Token {
    /// The descriptor's number.
    pub fn fd(self) -> RawFd {
        self.fd
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.fd.cast_unsigned()) << 32 | u64::from(self.generation)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            fd: ((bits >> 32) as u32).cast_signed(),
            generation: bits as u32,
        }
    }
}

/// The events a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Interest(u8);

impl Interest {
    /// Not watched at all: not even errors are reported.
    pub const NONE: Interest = Interest(0);
    /// There is data to read, or the other side has closed.
    pub const READ: Interest = Interest(1);
    /// There is room to write.
    pub const WRITE: Interest = Interest(2);
    /// Both.
    pub const BOTH: Interest = Interest(3);

    /// Whether reading is wanted.
    pub const fn reads(self) -> bool {
        self.0 & Self::READ.0 != 0
    }

    /// Whether writing is wanted.
    pub const fn writes(self) -> bool {
        self.0 & Self::WRITE.0 != 0
    }

    /// Either of the two.
    #[must_use]
    pub const fn with(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// The poll(2) mask, whose bits epoll and io_uring share.
    pub(crate) const fn mask(self) -> u32 {
        let read = if self.reads() { libc::POLLIN as u32 } else { 0 };
        let write = if self.writes() {
            libc::POLLOUT as u32
        } else {
            0
        };
        read | write
    }
}

impl fmt::Display for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.reads(), self.writes()) {
            (false, false) => "none",
            (true, false) => "read",
            (false, true) => "write",
            (true, true) => "read+write",
        })
    }
}

/// The readiness of a descriptor, as in poll(2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Readiness(u32);

impl Readiness {
    pub(crate) const fn from_mask(mask: u32) -> Self {
        Self(mask)
    }

    /// Reading would not block: data, end of stream, or an error to collect.
    pub const fn readable(self) -> bool {
        self.0 & (libc::POLLIN | libc::POLLERR | libc::POLLHUP) as u32 != 0
    }

    /// Writing would not block: room, or an error to collect.
    pub const fn writable(self) -> bool {
        self.0 & (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as u32 != 0
    }

    /// An error waits to be collected.
    pub const fn error(self) -> bool {
        self.0 & libc::POLLERR as u32 != 0
    }

    /// The other side has gone.
    pub const fn hangup(self) -> bool {
        self.0 & libc::POLLHUP as u32 != 0
    }

    /// What a poller reports for a descriptor that is not open.
    pub(crate) const INVALID: Readiness = Readiness(libc::POLLNVAL as u32);

    pub(crate) const fn or(self, other: Readiness) -> Readiness {
        Readiness(self.0 | other.0)
    }

    /// The descriptor was not open.
    pub(crate) const fn invalid(self) -> bool {
        self.0 & libc::POLLNVAL as u32 != 0
    }

    /// The part of it that `interest` asks for; errors and hangups always count.
    pub(crate) const fn within(self, interest: Interest) -> Readiness {
        if interest.mask() == 0 {
            return Readiness(0);
        }
        Readiness(self.0 & (interest.mask() | (libc::POLLERR | libc::POLLHUP) as u32))
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness")
            .field("readable", &self.readable())
            .field("writable", &self.writable())
            .field("error", &self.error())
            .field("hangup", &self.hangup())
            .finish()
    }
}

/// A name in the configuration that is not one of the allowed names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The kind of name, for example "poller".
    pub what: &'static str,
    /// The allowed names.
    pub allowed: &'static [&'static str],
    /// The name that was given.
    pub given: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no {}: use {}",
            self.given,
            self.what,
            self.allowed.join(", ")
        )
    }
}

impl std::error::Error for UnknownName {}
