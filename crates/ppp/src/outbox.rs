//! What a link wants sent, and what it tells its owner.

use wire::ppp::Compression;
use wire::ppp::control;

use crate::event::Event;

/// Frames that a link wants sent and events for its owner, of one call or several. It is used again and again, and
/// allocates nothing once it has grown.
#[derive(Debug, Default)]
pub struct Outbox {
    octets: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<u32>,
    events: Vec<Event>,
    /// Room to compare and to judge in.
    pub(crate) scratch: Vec<u8>,
}

impl Outbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// PPP frames to be sent, oldest first.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        spans.map(|(start, &end)| &self.octets[start as usize..end as usize])
    }

    /// What the owner should know, oldest first.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes the events out, oldest first.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Whether there is nothing to send and nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.events.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
        self.events.clear();
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Adds a control packet, whose data `write` appends.
    pub(crate) fn control(
        &mut self,
        compression: Compression,
        (protocol, code, identifier): (u16, u8, u8),
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let (head, length) = compression.head(protocol);
        self.octets.extend_from_slice(&head[..length]);
        control::emit(&mut self.octets, code, identifier, write);
        self.ends.push(self.octets.len() as u32);
    }
}
