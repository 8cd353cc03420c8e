//! The descriptors that an engine waits for, and what becomes of calls on them that fail.
//!
//! A port that fails rests: it is not read for 10 ms, then for twice as long, at most 1 s. The engine gives up after
//! about ten seconds of that, so that its program can report the failure and end. An interest that cannot be set
//! is tried again in each turn.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use base::{Duration, Instant};
use reactor::port::Port;
use reactor::{Interest, PollerKind, Reactor, Ready, StoreKind, Token, Waker, clock};

/// The waker's tag; those of the ports are 0 and 1.
pub(super) const WAKER: u64 = 2;
/// The first rest of a port that failed, and the pause after a failed wait.
const REST: Duration = Duration::from_millis(10);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(1);
/// How often in a row a port may fail: rests of ten seconds in all.
const FAILURES_MAX: u32 = 16;
/// How often in a row a wait may fail, or an interest be refused.
const WAITS_FAILED_MAX: u32 = 64;

/// A port as the engine waits for it.
struct Side {
    token: Token,
    /// What the poller reports.
    interest: Interest,
    /// Whether its send buffer was full.
    wants_room: bool,
    failures: u32,
    /// When it is read again after a failure.
    rests_until: Option<Instant>,
}

impl Side {
    fn wanted(&self) -> Interest {
        match (self.rests_until.is_some(), self.wants_room) {
            (false, false) => Interest::READ,
            (false, true) => Interest::BOTH,
            (true, false) => Interest::NONE,
            (true, true) => Interest::WRITE,
        }
    }
}

/// The waker and both ports.
pub(super) struct Watch {
    reactor: Reactor,
    sides: [Side; 2],
    waits_failed: u32,
    refused: u32,
}

impl Watch {
    pub(super) fn new(ports: &[Port; 2], waker: &Waker) -> io::Result<Self> {
        let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
        let mut watch = |fd: BorrowedFd<'_>, number| {
            let added = reactor.add(fd, "engine", number, Interest::READ);
            added.map_err(io::Error::other)
        };
        watch(waker.as_fd(), WAKER)?;
        let tokens = [watch(ports[0].as_fd(), 0)?, watch(ports[1].as_fd(), 1)?];
        let sides = tokens.map(|token| Side {
            token,
            interest: Interest::READ,
            wants_room: false,
            failures: 0,
            rests_until: None,
        });
        Ok(Self {
            reactor,
            sides,
            waits_failed: 0,
            refused: 0,
        })
    }

    /// Waits until a descriptor is ready, a rest is over or until `deadline`. After a failure there is nothing ready,
    /// and the next wait has a new poller.
    pub(super) fn wait(&mut self, deadline: Instant) -> io::Result<Instant> {
        let rests = self.sides.iter().filter_map(|side| side.rests_until);
        let deadline = rests.fold(deadline, Instant::min);
        match self.reactor.wait(Some(deadline)) {
            Ok(now) => {
                self.waits_failed = 0;
                Ok(now)
            }
            Err(error) => {
                fails(&mut self.waits_failed, error)?;
                self.reactor.pause(REST);
                // If that fails too, so does the next wait.
                let _ = self.reactor.reopen();
                Ok(clock::now())
            }
        }
    }

    pub(super) fn next_ready(&mut self) -> Option<Ready> {
        self.reactor.next_ready()
    }

    pub(super) fn is_resting(&self, side: usize) -> bool {
        self.sides[side].rests_until.is_some()
    }

    /// A call on a port succeeded.
    pub(super) fn works(&mut self, side: usize) {
        self.sides[side].failures = 0;
    }

    /// Lets a port rest after a failure. Returns `false` if it has failed too often.
    pub(super) fn rests(&mut self, side: usize, now: Instant) -> bool {
        let side = &mut self.sides[side];
        side.failures += 1;
        side.rests_until = rest(side.failures).map(|rest| now + rest);
        side.failures <= FAILURES_MAX
    }

    /// Whether to wait until a port takes frames again.
    pub(super) fn want_room(&mut self, side: usize, wants_room: bool) {
        self.sides[side].wants_room = wants_room;
    }

    /// Ends a turn: ends rests that are over, and sets the interests that changed.
    pub(super) fn settle(&mut self, now: Instant) -> io::Result<()> {
        let mut refused = None;
        for side in &mut self.sides {
            side.rests_until = side.rests_until.filter(|until| *until > now);
            let wanted = side.wanted();
            if wanted == side.interest {
                continue;
            }
            match self.reactor.set_interest(side.token, wanted) {
                Ok(()) => side.interest = wanted,
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            None => {
                self.refused = 0;
                Ok(())
            }
            Some(error) => {
                // The port may be ready all the time, without being wanted.
                self.reactor.pause(Duration::from_millis(1));
                fails(&mut self.refused, error)
            }
        }
    }
}

/// The rest after so many failures in a row. The first attempt is at once: most failures pass by themselves.
fn rest(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(2)?.min(16);
    Some(Duration::from_nanos(REST.as_nanos() << doublings).min(REST_MAX))
}

/// Counts a failure; returns its error if it is one too many.
fn fails(count: &mut u32, error: io::Error) -> io::Result<()> {
    *count += 1;
    match *count > WAITS_FAILED_MAX {
        true => Err(error),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_keeps_failing_is_tried_for_about_ten_seconds() {
        let rests: Vec<u64> = (1..=FAILURES_MAX)
            .map(|failures| rest(failures).map_or(0, |rest| rest.as_millis()))
            .collect();
        assert_eq!(
            rests[..10],
            [0, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]
        );
        assert!(
            (9_000..11_000).contains(&rests.iter().sum::<u64>()),
            "{rests:?}"
        );
    }
}
