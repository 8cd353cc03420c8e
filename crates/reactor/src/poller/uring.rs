//! io_uring's multishot poll: cost grows with ready descriptors, and a descriptor that is always drained needs no
//! call but the wait itself.
//!
//! Multishot poll is edge-triggered: it completes each time the descriptor wakes its poller. (`IORING_POLL_ADD_LEVEL`
//! does not change that; it only omits the first check.) This file adds the level: before each wait, it checks once
//! with poll(2) the descriptors that the last wait reported and that were not drained since.

use std::io;
use std::os::fd::RawFd;

use base::Duration;

use crate::clock;
use crate::descriptors::Descriptors;
use crate::poller::{BUDGET, Poller};
use crate::sys::poll::{PollFd, poll};
use crate::sys::uring::{Ring, Wait};
use crate::token::{Interest, Readiness, Token};

/// The completion of a removal, which nobody waits for.
const REMOVAL: u64 = u64::MAX;

/// A descriptor's poll in the kernel.
#[derive(Clone, Copy)]
struct Arm {
    token: Token,
    interest: Interest,
    /// Tells this poll's completions from those of earlier polls of the same number.
    serial: u32,
    /// Reported, and not known to be drained since.
    unsettled: bool,
    /// The wait that reported it last, and the index in its results.
    reported: (u64, usize),
}

impl Arm {
    fn user_data(&self) -> u64 {
        u64::from(self.token.fd.cast_unsigned()) << 32 | u64::from(self.serial)
    }
}

pub(crate) struct Uring {
    ring: Ring,
    /// By descriptor number.
    arms: Vec<Option<Arm>>,
    next_serial: u32,
    waits: u64,
    /// Descriptors reported by the last wait.
    reported: Vec<RawFd>,
    /// Polls that the kernel has ended, by their user data.
    ended: Vec<u64>,
    probe: Vec<PollFd>,
    probed: Vec<RawFd>,
}

impl Uring {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new()?,
            arms: Vec::new(),
            next_serial: 0,
            waits: 0,
            reported: Vec::new(),
            ended: Vec::new(),
            probe: Vec::new(),
            probed: Vec::new(),
        })
    }

    fn arm_mut(&mut self, fd: RawFd) -> Option<&mut Arm> {
        self.arms.get_mut(usize::try_from(fd).ok()?)?.as_mut()
    }

    /// The poll of a completion, if the descriptor still has it.
    fn arm_of(&mut self, user_data: u64) -> Option<&mut Arm> {
        let fd = ((user_data >> 32) as u32).cast_signed();
        self.arm_mut(fd).filter(|arm| arm.user_data() == user_data)
    }

    /// Ends the poll of a descriptor, if it has one.
    fn disarm(&mut self, fd: RawFd) -> io::Result<()> {
        let index = usize::try_from(fd).unwrap_or(usize::MAX);
        match self.arms.get_mut(index).and_then(Option::take) {
            Some(arm) => self.ring.poll_remove(arm.user_data(), REMOVAL),
            None => Ok(()),
        }
    }

    fn arm(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if interest == Interest::NONE {
            return Ok(());
        }
        self.next_serial = self.next_serial.wrapping_add(1);
        let serial = self.next_serial;
        let arm = Arm {
            token,
            interest,
            serial,
            unsettled: false,
            reported: (0, 0),
        };
        self.ring
            .poll_add(token.fd, interest.mask(), arm.user_data())?;
        let index = usize::try_from(token.fd).unwrap_or(0);
        if index >= self.arms.len() {
            self.arms.resize(index + 1, None);
        }
        self.arms[index] = Some(arm);
        Ok(())
    }

    /// Restarts the polls that the kernel has ended.
    fn rearm_ended(&mut self) -> io::Result<()> {
        while let Some(user_data) = self.ended.pop() {
            if let Some(arm) = self.arm_of(user_data).copied() {
                self.arm(arm.token, arm.interest)?;
            }
        }
        Ok(())
    }

    /// Checks again the descriptors that were reported last time and may not be drained.
    fn probe_unsettled(&mut self, out: &mut Vec<(Token, Readiness)>) -> io::Result<()> {
        self.probe.clear();
        self.probed.clear();
        for index in 0..self.reported.len() {
            let fd = self.reported[index];
            let Some(arm) = self.arm_mut(fd).filter(|arm| arm.unsettled) else {
                continue;
            };
            arm.unsettled = false;
            let interest = arm.interest;
            self.probe.push(PollFd::new(fd, interest));
            self.probed.push(fd);
        }
        self.reported.clear();
        if self.probe.is_empty() {
            return Ok(());
        }
        poll(&mut self.probe, Some(Duration::ZERO))?;
        for index in 0..self.probe.len() {
            let readiness = self.probe[index].readiness();
            if !readiness.is_empty() {
                self.report(self.probed[index], readiness, out);
            }
        }
        Ok(())
    }

    /// Adds to the results, or to the descriptor's entry in them.
    fn report(&mut self, fd: RawFd, found: Readiness, out: &mut Vec<(Token, Readiness)>) {
        let waits = self.waits;
        let Some(arm) = self.arm_mut(fd) else { return };
        arm.unsettled = true;
        if arm.reported.0 == waits {
            let so_far = &mut out[arm.reported.1].1;
            *so_far = so_far.or(found);
            return;
        }
        arm.reported = (waits, out.len());
        out.push((arm.token, found));
        self.reported.push(fd);
    }

    fn take_completions(&mut self, out: &mut Vec<(Token, Readiness)>) {
        for _ in 0..BUDGET {
            let Some(completion) = self.ring.next_completion() else {
                return;
            };
            if completion.user_data == REMOVAL {
                continue;
            }
            let Some(&mut Arm { token, .. }) = self.arm_of(completion.user_data) else {
                continue;
            };
            match u32::try_from(completion.result) {
                Ok(mask) => {
                    self.report(token.fd, Readiness::from_mask(mask), out);
                    if !completion.more {
                        self.ended.push(completion.user_data);
                    }
                }
                Err(_) if completion.result == -libc::ECANCELED => {
                    self.ended.push(completion.user_data);
                }
                Err(_) => out.push((token, Readiness::INVALID)),
            }
        }
    }
}

impl Poller for Uring {
    fn register(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        self.arm(token, interest)
    }

    fn modify(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        self.disarm(token.fd)?;
        self.arm(token, interest)
    }

    /// Submits at once: a poll holds its file open, and the caller is about to close it and may bind its address
    /// again.
    fn deregister(&mut self, token: Token) {
        if self.disarm(token.fd).is_ok() {
            let _ = self.ring.enter(Wait::No);
        }
    }

    fn wait(
        &mut self,
        _: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()> {
        let deadline = timeout.map(|span| clock::now() + span);
        self.waits += 1;
        self.rearm_ended()?;
        self.probe_unsettled(out)?;
        let mut left = timeout;
        loop {
            let at_once = !out.is_empty() || self.ring.has_completion();
            self.ring.enter(match left {
                _ if at_once => Wait::No,
                None => Wait::Forever,
                Some(Duration::ZERO) => Wait::No,
                Some(span) => Wait::Timeout(span),
            })?;
            self.take_completions(out);
            // The kernel also wakes the loop for removals and for removed polls.
            left = deadline.map(|deadline| deadline.since(clock::now()));
            if !out.is_empty() || left == Some(Duration::ZERO) {
                return Ok(());
            }
            self.rearm_ended()?;
        }
    }

    fn drained(&mut self, token: Token) {
        if let Some(arm) = self.arm_mut(token.fd).filter(|arm| arm.token == token) {
            arm.unsettled = false;
        }
    }
}
