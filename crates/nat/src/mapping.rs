//! A mapping: an inside endpoint and its external one. 32 bytes, so that no mapping spans two cache lines.

use crate::pool::{NONE, Protocol};
use crate::rewrite::Sums;
use crate::tcp::State;

const STATIC: u8 = 4;
const HELD: u8 = 8;
const USED: u8 = 16;

/// A mapping, with its first TCP connection or remote host; further ones are in [`crate::sessions`].
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Mapping {
    pub(crate) inside: u32,
    pub(crate) external: u32,
    pub(crate) inside_port: u16,
    pub(crate) external_port: u16,
    /// The remote address; with address-dependent filtering for UDP and ICMP too.
    pub(crate) remote: u32,
    pub(crate) remote_port: u16,
    /// Of the TCP connection; `Closed` otherwise.
    pub(crate) state: State,
    pub(crate) flags: u8,
    /// Tick of the last packet that refreshed it.
    pub(crate) last: u32,
    /// What the translation adds to checksums.
    pub(crate) sums: Sums,
    /// The first further session; the next free mapping, if this one is free.
    pub(crate) sessions: u32,
}

impl Mapping {
    pub(crate) fn new(protocol: Protocol, inside: (u32, u16), external: (u32, u16)) -> Self {
        Self {
            inside: inside.0,
            external: external.0,
            inside_port: inside.1,
            external_port: external.1,
            remote: 0,
            remote_port: 0,
            state: State::Closed,
            flags: protocol as u8 | USED,
            last: 0,
            sums: Sums::new(inside, external),
            sessions: NONE,
        }
    }

    /// A free place; `next` is the next one.
    pub(crate) fn free(next: u32) -> Self {
        Self {
            flags: 0,
            sessions: next,
            ..Self::new(Protocol::Tcp, (0, 0), (0, 0))
        }
    }

    #[inline]
    pub(crate) fn protocol(&self) -> Protocol {
        match self.flags & 3 {
            0 => Protocol::Tcp,
            1 => Protocol::Udp,
            _ => Protocol::Icmp,
        }
    }

    #[inline]
    pub(crate) fn is_of(&self, inside: u32, port: u16, protocol: Protocol) -> bool {
        self.inside == inside
            && self.inside_port == port
            && self.flags & (USED | 3) == USED | protocol as u8
    }

    #[inline]
    pub(crate) fn is_at(&self, external: u32, port: u16, protocol: Protocol) -> bool {
        self.external == external
            && self.external_port == port
            && self.flags & (USED | 3) == USED | protocol as u8
    }

    pub(crate) fn is_used(&self) -> bool {
        self.flags & USED != 0
    }

    /// Whether it forwards a port, and so has no time-out of its own.
    #[inline]
    pub(crate) fn is_static(&self) -> bool {
        self.flags & STATIC != 0
    }

    /// Whether it has timed out, and its port waits.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }

    pub(crate) fn set_static(&mut self) {
        self.flags |= STATIC;
    }

    pub(crate) fn set_held(&mut self, held: bool) {
        self.flags = self.flags & !HELD | if held { HELD } else { 0 };
    }
}

const _: () = assert!(size_of::<Mapping>() == 32);
