//! The frames that a link sends, and the events that it reports.

use wire::ppp::Compression;
use wire::ppp::control;

use crate::event::Event;

/// Frames to send and events for the owner, collected over one or more calls. Reuse it: once its buffers have grown, it
/// allocates nothing.
#[derive(Debug, Default)]
pub struct Outbox {
    octets: Vec<u8>,
    /// The end of each frame.
    ends: Vec<u32>,
    events: Vec<Event>,
    /// Buffer for comparisons and for options of replies.
    pub(crate) scratch: Vec<u8>,
}

impl Outbox {
    /// An empty outbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// PPP frames to send, oldest first.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        spans.map(|(start, &end)| &self.octets[start as usize..end as usize])
    }

    /// Events for the owner, oldest first.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes the events out, oldest first.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Whether there are neither frames nor events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.events.is_empty()
    }

    /// Removes all frames and events.
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
