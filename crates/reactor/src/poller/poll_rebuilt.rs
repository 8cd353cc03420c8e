//! poll(2) with a set rebuilt from the descriptor store for each wait, as old designs do: cost grows with watched
//! descriptors, twice. A baseline for comparison.

use std::io;

use base::Duration;

use crate::descriptors::Descriptors;
use crate::poller::Poller;
use crate::sys::poll::{PollFd, poll};
use crate::token::{Interest, Readiness, Token};

#[derive(Default)]
pub(crate) struct PollRebuilt {
    set: Vec<PollFd>,
    tokens: Vec<Token>,
}

impl Poller for PollRebuilt {
    fn register(&mut self, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn modify(&mut self, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&mut self, _: Token) {}

    fn wait(
        &mut self,
        watched: &Descriptors,
        timeout: Option<Duration>,
        out: &mut Vec<(Token, Readiness)>,
    ) -> io::Result<()> {
        self.set.clear();
        self.tokens.clear();
        watched.for_each(|info| {
            if info.interest != Interest::NONE {
                self.set.push(PollFd::new(info.token.fd, info.interest));
                self.tokens.push(info.token);
            }
        });
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
