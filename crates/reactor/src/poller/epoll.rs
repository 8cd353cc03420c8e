//! Level-triggered epoll (default): cost grows with ready descriptors, not with watched ones.

use std::io;
use std::os::fd::OwnedFd;

use base::Duration;

use crate::descriptors::Descriptors;
use crate::poller::{BUDGET, Poller};
use crate::sys::epoll::{self, Change, EventBuffer};
use crate::syscalls::{Call, enter};
use crate::token::{Interest, Readiness, Token};

pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: EventBuffer,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        enter(Call::EpollCreate)?;
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            epoll,
            events: EventBuffer::new(BUDGET),
        })
    }

    fn change(&self, change: Change, token: Token, interest: Interest) -> io::Result<()> {
        epoll::change(
            &self.epoll,
            change,
            token.fd,
            interest.mask(),
            token.to_bits(),
        )
    }
}

impl Poller for Epoll {
    fn register(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if interest == Interest::NONE {
            return Ok(());
        }
        self.change(Change::Add, token, interest)
    }

    /// epoll reports errors whatever the mask, so a descriptor watched for nothing is removed from the set.
    fn modify(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if interest == Interest::NONE {
            return self.change(Change::Delete, token, interest);
        }
        match self.change(Change::Modify, token, interest) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                self.change(Change::Add, token, interest)
            }
            result => result,
        }
    }

    fn deregister(&mut self, token: Token) {
        // Fails if the descriptor was closed or is watched for nothing: it is not in the set then.
        let _ = self.change(Change::Delete, token, Interest::NONE);
    }

    fn wait(
        &mut self,
        _: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()> {
        let found = self.events.wait(&self.epoll, timeout)?;
        out.extend(found.map(|(bits, mask)| (Token::from_bits(bits), Readiness::from_mask(mask))));
        Ok(())
    }
}
