//! TCP connections (RFC 5382, RFC 7857 section 2), and remote addresses for address-dependent filtering
//! (RFC 4787 REQ-8, RFC 6888 REQ-7).

use base::Instant;

use super::flow::Flow;
use super::{Nat, tick};
use crate::config::Filtering;
use crate::discard::Discard;
use crate::mapping::Mapping;
use crate::subscribers::SubscriberId;
use crate::tcp::{Event, State, is_first, step};

impl Nat {
    /// A segment from inside: its mapping. Only a SYN makes one.
    #[inline]
    pub(super) fn tcp_out(
        &mut self,
        id: SubscriberId,
        flow: &Flow,
        found: Option<u32>,
        remote: (u32, u16),
        now: Instant,
    ) -> Result<u32, Discard> {
        let found = match found {
            Some(at) if self.is_expired(&self.mappings[at as usize], tick(now)) => {
                self.settle(at, now).then_some(at)
            }
            found => found,
        };
        let at = match found {
            Some(at) => at,
            None if is_first(flow.flags) => {
                let source = (flow.source, flow.source_port);
                self.create(id, flow.protocol, source, now)?
            }
            None => return Err(Discard::NotSyn),
        };
        let event = Event::of(flow.flags, true);
        self.tcp(at, remote, event, is_first(flow.flags), tick(now))?;
        if self.config.filtering == Filtering::AddressDependent {
            self.note_remote(at, remote.0);
        }
        Ok(at)
    }

    /// A segment from outside to a mapping.
    #[inline]
    pub(super) fn tcp_in(&mut self, at: u32, flow: &Flow, now: Instant) -> Result<(), Discard> {
        if !self.admits(at, flow.source) {
            return Err(Discard::Filtered);
        }
        let remote = (flow.source, flow.source_port);
        let event = Event::of(flow.flags, false);
        self.tcp(at, remote, event, is_first(flow.flags), tick(now))
    }

    /// Takes the connection of a segment to its next state. A segment of no connection passes and refreshes nothing (RFC
    /// 6146 section 3.5.2.2, state CLOSED; RFC 7857 section 7).
    #[inline]
    pub(super) fn tcp(
        &mut self,
        at: u32,
        remote: (u32, u16),
        event: Event,
        is_first: bool,
        tick: u32,
    ) -> Result<(), Discard> {
        let mapping = &mut self.mappings[at as usize];
        let is_own = (mapping.remote, mapping.remote_port) == remote;
        if !is_own || mapping.state == State::Closed {
            return self.tcp_other(at, remote, event, is_first, tick);
        }
        let (next, refreshes) = step(mapping.state, event);
        if refreshes {
            mapping.last = tick;
        }
        if next != mapping.state {
            mapping.state = next;
            self.arm(at);
        }
        Ok(())
    }

    fn tcp_other(
        &mut self,
        at: u32,
        (remote, port): (u32, u16),
        event: Event,
        is_first: bool,
        tick: u32,
    ) -> Result<(), Discard> {
        // Port 0, which nobody uses, marks a remote address.
        if port != 0
            && let Some(session) = self.sessions.find(at, remote, port)
        {
            let one = self.sessions.get_mut(session);
            let (next, refreshes) = step(one.state, event);
            if refreshes {
                one.last = tick;
            }
            if next != one.state {
                one.state = next;
                let due = one.last + self.tcp_ticks(next);
                self.sessions.timers.arm(session, due);
            }
            return Ok(());
        }
        if !is_first {
            return Ok(());
        }
        let (state, _) = step(State::Closed, event);
        let mapping = &mut self.mappings[at as usize];
        if mapping.state == State::Closed {
            *mapping = Mapping {
                remote,
                remote_port: port,
                state,
                last: tick,
                ..*mapping
            };
            self.arm(at);
            return Ok(());
        }
        if port == 0 {
            return Ok(());
        }
        let head = self.room(at).ok_or(Discard::SessionsFull)?;
        let session = self.sessions.insert(at, head, (remote, port), state, tick);
        let session = session.ok_or(Discard::SessionsFull)?;
        self.mappings[at as usize].sessions = session;
        let due = tick + self.tcp_ticks(state);
        self.sessions.timers.arm(session, due);
        Ok(())
    }

    /// The head of a mapping's list, if the mapping may have another session.
    fn room(&self, at: u32) -> Option<u32> {
        let head = self.mappings[at as usize].sessions;
        let most = self.config.limits.sessions_per_mapping as usize;
        // The walk ends at the limit, and only a new connection of a mapping with others walks.
        let count = self.sessions.list(head).take(most).count();
        (count < most).then_some(head)
    }

    /// Looks at a session whose timer fired.
    pub(super) fn settle_session(&mut self, session: u32, tick: u32) {
        let one = *self.sessions.get(session);
        let due = one.last + self.tcp_ticks(one.state);
        if due > tick {
            self.sessions.timers.arm(session, due);
            return;
        }
        self.remove_session(session);
    }

    fn remove_session(&mut self, session: u32) {
        let mapping = self.sessions.get(session).mapping;
        if let Some(head) = self.sessions.remove(session) {
            self.mappings[mapping as usize].sessions = head;
        }
    }

    /// Puts a further connection of a mapping in the place of its first one, which is over. Returns whether there was
    /// one.
    pub(super) fn next_connection(&mut self, at: u32) -> bool {
        let head = self.mappings[at as usize].sessions;
        let mut list = self.sessions.list(head);
        let next = list.find(|&at| self.sessions.get(at).state != State::Closed);
        drop(list);
        let Some(session) = next else { return false };
        let one = *self.sessions.get(session);
        self.remove_session(session);
        let mapping = &mut self.mappings[at as usize];
        mapping.remote = one.remote;
        mapping.remote_port = one.port;
        mapping.state = one.state;
        mapping.last = one.last;
        true
    }

    /// Notes that a mapping has sent to a remote address, for address-dependent filtering. It stays as long as the
    /// mapping.
    #[inline]
    pub(super) fn note_remote(&mut self, at: u32, remote: u32) {
        if self.config.filtering == Filtering::AddressDependent {
            self.note_another(at, remote);
        }
    }

    fn note_another(&mut self, at: u32, remote: u32) {
        if self.sessions.find(at, remote, 0).is_some() {
            return;
        }
        let head = self.room(at);
        let noted = head.and_then(|head| {
            self.sessions
                .insert(at, head, (remote, 0), State::Closed, 0)
        });
        match noted {
            Some(session) => self.mappings[at as usize].sessions = session,
            None => self.counters.peers_unrecorded += 1,
        }
    }

    /// Whether the filter lets a remote address send to a mapping. A forwarded port is open to all.
    #[inline]
    pub(super) fn admits(&self, at: u32, remote: u32) -> bool {
        self.config.filtering == Filtering::EndpointIndependent
            || self.mappings[at as usize].is_static()
            || self.sessions.find(at, remote, 0).is_some()
    }
}
