//! poll(2) with a set kept between waits: changes are O(1), a wait is O(n). A baseline for comparison.

use std::io;
use std::os::fd::RawFd;

use base::Duration;

use crate::descriptors::Descriptors;
use crate::poller::Poller;
use crate::sys::poll::{PollFd, poll};
use crate::token::{Interest, Readiness, Token};

#[derive(Default)]
pub(crate) struct PollKept {
    set: Vec<PollFd>,
    tokens: Vec<Token>,
    /// Index in the set by descriptor number; `ABSENT` if it has none.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl PollKept {
    fn place(&self, fd: RawFd) -> Option<usize> {
        let place = *self.places.get(usize::try_from(fd).ok()?)?;
        (place != ABSENT).then_some(place as usize)
    }

    fn set_place(&mut self, fd: RawFd, place: u32) {
        let index = usize::try_from(fd).unwrap_or(0);
        if index >= self.places.len() {
            self.places.resize(index + 1, ABSENT);
        }
        self.places[index] = place;
    }

    /// Removes the descriptor; the last one of the set moves into its place.
    fn take_out(&mut self, fd: RawFd) {
        let Some(place) = self.place(fd) else { return };
        self.set.swap_remove(place);
        self.tokens.swap_remove(place);
        self.set_place(fd, ABSENT);
        if let Some(moved) = self.tokens.get(place) {
            self.set_place(moved.fd, place as u32);
        }
    }
}

impl Poller for PollKept {
    fn register(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        if interest != Interest::NONE {
            self.set_place(token.fd, self.set.len() as u32);
            self.set.push(PollFd::new(token.fd, interest));
            self.tokens.push(token);
        }
        Ok(())
    }

    fn modify(&mut self, token: Token, interest: Interest) -> io::Result<()> {
        match self.place(token.fd) {
            None => self.register(token, interest),
            Some(_) if interest == Interest::NONE => {
                self.take_out(token.fd);
                Ok(())
            }
            Some(place) => {
                self.set[place] = PollFd::new(token.fd, interest);
                Ok(())
            }
        }
    }

    fn deregister(&mut self, token: Token) {
        self.take_out(token.fd);
    }

    fn wait(
        &mut self,
        _: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()> {
        let ready = poll(&mut self.set, timeout)?;
        let found = self
            .set
            .iter()
            .zip(&self.tokens)
            .filter_map(|(slot, token)| {
                let readiness = slot.readiness();
                (!readiness.is_empty()).then_some((*token, readiness))
            });
        out.extend(found.take(ready));
        Ok(())
    }
}
