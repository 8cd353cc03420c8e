//! Reads from BGP connections, a share for each peer, until the time slice ends.
//!
//! A connection that was not read in a turn waits in a queue, in the order of arrival. Each waiting connection is
//! reported to the speaker, so that no hold timer expires while input waits to be read. Without a time slice, a budget
//! of octets limits each turn ([`Buffers::begin`]). Start reading at [`Peering::read_waiting`].

use base::Instant;
use bgp::Speaker;
use reactor::{Reactor, Slice};

use crate::turn::Peering;

/// The most octets that are read from one connection at a time.
const READ_MAX: usize = 64 << 10;
/// The most octets of a read in a slice: the speaker handles them in about a millisecond.
const SLICE_READ: usize = 16 << 10;
/// How often one connection is read in a turn, at most.
const READS: usize = 8;
/// The octets that are read at full size in one turn, over all connections that share the buffers. After that,
/// connections are read one message at a time, so that every peer is read.
const TURN_READ: usize = 2 << 20;
/// The octets that are read from a connection beyond that budget.
const SHARE: usize = 4096;

/// The buffers of a thread, and how much of the turn's budget is used.
#[derive(Debug)]
pub struct Buffers {
    pub(crate) input: Box<[u8]>,
    pub(crate) output: Vec<u8>,
    left: usize,
    slice: Option<Slice>,
}

impl Buffers {
    /// Buffers for one thread.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: vec![0; READ_MAX].into(),
            output: Vec::new(),
            left: TURN_READ,
            slice: None,
        }
    }

    /// Starts a new turn, in which input is read until the budget of octets is used.
    pub fn begin(&mut self) {
        self.left = TURN_READ;
        self.slice = None;
    }

    /// Starts a new turn, in which input is read until the slice is over. Connections that were not read wait for
    /// [`Peering::read_waiting`].
    pub fn begin_slice(&mut self, slice: Slice) {
        self.left = usize::MAX;
        self.slice = Some(slice);
    }

    /// The data of the last write, whether or not the stream accepted it at once.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.output
    }

    fn is_over(&self) -> bool {
        self.slice.is_some_and(|slice| slice.is_over())
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

impl Peering {
    /// Reads connections that waited, until the slice is over. Those that are left are reported to the speaker as
    /// unread. Returns whether any was read.
    pub fn read_waiting(
        &mut self,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) -> bool {
        if self.unread.is_empty() {
            return false;
        }
        while !buffers.is_over()
            && let Some(id) = self.unread.pop_front()
        {
            if let Some(connection) = self.find(id) {
                connection.is_unread = false;
                self.read_now(id.index() as usize, speaker, buffers, reactor, now);
            }
        }
        for &id in &self.unread {
            speaker.unread(id, now);
        }
        true
    }

    /// Reads a connection that is ready, or lets it wait if the slice is over.
    pub(crate) fn read(
        &mut self,
        index: usize,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        if connection.is_unread {
            return;
        }
        if buffers.is_over() {
            connection.is_unread = true;
            self.unread.push_back(connection.id);
            return speaker.unread(connection.id, now);
        }
        self.read_now(index, speaker, buffers, reactor, now);
    }

    fn read_now(
        &mut self,
        index: usize,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        // With time left, a peer that has sent much is read on: then its routes share more messages.
        for _ in 0..READS {
            let Some(Some(connection)) = self.connections.get(index) else {
                return;
            };
            let most = match buffers.slice {
                Some(_) => SLICE_READ,
                None if buffers.left > 0 => READ_MAX,
                None => SHARE,
            };
            let id = connection.id;
            match connection.stream.read(&mut buffers.input[..most]) {
                Ok(None) => return,
                Ok(Some(count)) if count > 0 => {
                    self.counts.octets_in += count as u64;
                    buffers.left = buffers.left.saturating_sub(count);
                    if count == most {
                        speaker.unread(id, now);
                    }
                    // If the speaker has dropped a connection meanwhile, its event closes it.
                    let _ = speaker.receive(id, &buffers.input[..count], now);
                    if count < most || buffers.slice.is_none() || buffers.is_over() {
                        return;
                    }
                }
                Ok(Some(_)) | Err(_) => return self.broken(id, speaker, reactor, now),
            }
        }
    }

    /// Reads and ignores what still arrives on a closed stream.
    pub(crate) fn hear_out(&mut self, place: usize, buffers: &mut Buffers, reactor: &mut Reactor) {
        let Some(Some(parting)) = self.partings.get(place) else {
            return;
        };
        if let Ok(Some(0)) | Err(_) = parting.stream.read(&mut buffers.input)
            && let Some(parting) = self.partings[place].take()
        {
            reactor.remove(parting.token);
        }
    }
}
