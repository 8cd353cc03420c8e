//! Datagrams that were composed and wait to be taken.

use std::collections::VecDeque;

use base::Route;

/// Octets of datagrams that may wait; what comes then is dropped, and its sender's timer sends it again.
const OCTETS_MAX: usize = 16 << 20;

/// A queue of datagrams in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    octets: Vec<u8>,
    /// Where each ends, and where it goes.
    ends: VecDeque<(u32, Route)>,
    taken: usize,
}

impl Outgoing {
    /// Appends a datagram of two parts; `false` where there is no room.
    pub(crate) fn push(&mut self, route: Route, head: &[u8], frame: &[u8]) -> bool {
        if self.octets.len() + head.len() + frame.len() > OCTETS_MAX {
            return false;
        }
        self.octets.extend_from_slice(head);
        self.octets.extend_from_slice(frame);
        self.ends.push_back((self.octets.len() as u32, route));
        true
    }

    /// Takes the oldest one.
    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Route> {
        let (end, route) = self.ends.pop_front()?;
        out.extend_from_slice(&self.octets[self.taken..end as usize]);
        self.taken = end as usize;
        if self.ends.is_empty() {
            self.octets.clear();
            self.taken = 0;
        }
        Some(route)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
