//! Ends of many sessions at once: a port or a VLAN is gone, or the endpoint is shut down. Each session's end is work for
//! its owner, so they end some at a time.

use std::collections::VecDeque;

use base::Instant;
use base::slab::Key;

use super::Endpoint;
use super::fsm::Event;
use crate::event::EndReason;
use crate::session::Session;

/// Why sessions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// Their port was removed.
    Port,
    /// Their VLAN is not served any more.
    Vlan,
    /// The endpoint is being shut down.
    ShutDown,
}

impl Parting {
    const fn event(self) -> Event {
        match self {
            Self::Port | Self::Vlan => Event::PortLost,
            Self::ShutDown => Event::End,
        }
    }

    const fn reason(self) -> EndReason {
        match self {
            Self::Port => EndReason::PortLost,
            Self::Vlan => EndReason::VlanLost,
            Self::ShutDown => EndReason::ShutDown,
        }
    }
}

/// The sessions that are to end.
#[derive(Default)]
pub(super) struct Partings {
    /// A key is stale if its session ended otherwise, or is listed twice.
    waiting: VecDeque<(Key, Parting)>,
    /// When the first of them was listed.
    since: Option<Instant>,
}

impl Partings {
    /// When the next session is to end.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since
    }

    fn next(&mut self) -> Option<(Key, Parting)> {
        let next = self.waiting.pop_front();
        if self.waiting.is_empty() {
            *self = Self::default();
        }
        next
    }
}

impl Endpoint {
    /// Lists the sessions that `ends` selects. [`Endpoint::part_some`] ends them.
    pub(super) fn part(&mut self, why: Parting, now: Instant, ends: impl Fn(&Session) -> bool) {
        let selected = self.sessions.iter().filter(|(_, session)| ends(session));
        let partings = &mut self.partings;
        partings
            .waiting
            .extend(selected.map(|(_, session)| (session.key, why)));
        if !partings.waiting.is_empty() {
            partings.since.get_or_insert(now);
        }
    }

    /// Ends at most `most` of the sessions that are listed. Returns how many were taken from the list.
    pub(super) fn part_some(&mut self, most: usize) -> usize {
        let mut taken = 0;
        while taken < most
            && let Some((key, why)) = self.partings.next()
        {
            taken += 1;
            if self.sessions.get(key).is_some() {
                self.end_by(key.index, why.event(), why.reason());
            }
        }
        taken
    }
}
