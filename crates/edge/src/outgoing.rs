//! Composed datagrams that wait to be polled.

use std::collections::VecDeque;

/// Limit on queued bytes. Further datagrams are dropped; PPP retransmits them.
const OCTETS_MAX: usize = 16 << 20;

/// A queue of datagrams in one buffer.
#[derive(Debug)]
pub(crate) struct Outgoing<R> {
    octets: Vec<u8>,
    /// The end of each datagram, and its route.
    ends: VecDeque<(u32, R)>,
    taken: usize,
}

impl<R> Default for Outgoing<R> {
    fn default() -> Self {
        Self {
            octets: Vec::new(),
            ends: VecDeque::new(),
            taken: 0,
        }
    }
}

impl<R> Outgoing<R> {
    /// Appends a datagram of two parts and returns it; `None` if there is no room.
    pub(crate) fn push(&mut self, route: R, head: &[u8], frame: &[u8]) -> Option<&mut [u8]> {
        if self.octets.len() + head.len() + frame.len() > OCTETS_MAX {
            return None;
        }
        let begun = self.octets.len();
        self.octets.extend_from_slice(head);
        self.octets.extend_from_slice(frame);
        self.ends.push_back((self.octets.len() as u32, route));
        Some(&mut self.octets[begun..])
    }

    /// Takes the oldest one.
    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<R> {
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
