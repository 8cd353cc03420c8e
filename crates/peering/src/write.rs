//! Writes to BGP connections in two steps: first the messages of sessions, then routes, a share for each peer, until
//! the time slice ends.
//!
//! A KEEPALIVE does not wait for the routes of other peers. It waits only for earlier data that its own stream has not
//! accepted yet. `UNSENT_MAX` limits how much unsent data the kernel holds for a stream. Start reading at
//! [`Peering::write`].

use base::Instant;
use bgp::{ConnId, Speaker};
use reactor::{Reactor, Slice};

use crate::connection::Written;
use crate::read::Buffers;
use crate::turn::Peering;

/// The most octets that are written for one connection at a time.
const WRITE_MAX: usize = 64 << 10;
/// The octets that the kernel takes beyond those in flight to the peer. A longer queue would make a slow peer's
/// KEEPALIVEs late, and cost memory for each peer.
pub(crate) const UNSENT_MAX: usize = 128 << 10;
/// The most writes of sessions' messages in one turn, so that reading is not starved.
const URGENT_MAX: usize = 1_024;

impl Peering {
    /// Writes what the speaker has for its peers: messages of sessions, then routes until the slice is over. Returns
    /// the number of writes.
    pub fn write(
        &mut self,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        (now, slice): (Instant, Slice),
    ) -> u64 {
        let (mut urgent, mut bulk) = (0, 0);
        loop {
            while urgent < URGENT_MAX
                && let Some(id) = speaker.poll_ready()
            {
                if speaker.is_urgent(id) {
                    urgent += 1;
                    self.write_to(id, 0, speaker, buffers, reactor, now);
                } else {
                    self.queue(id);
                }
            }
            self.has_urgent = urgent == URGENT_MAX;
            if bulk > 0 && slice.is_over() {
                break;
            }
            let Some(id) = self.poll_more() else {
                break;
            };
            bulk += 1;
            self.write_to(id, WRITE_MAX, speaker, buffers, reactor, now);
        }
        (urgent + bulk) as u64
    }

    /// Writes what the speaker has for one peer that [`Speaker::poll_ready`] named; [`Buffers::written`] returns it
    /// then. For callers that also carry connections in other ways.
    pub fn write_one(
        &mut self,
        id: ConnId,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        buffers.output.clear();
        self.write_to(id, WRITE_MAX, speaker, buffers, reactor, now);
    }

    /// A connection that was left over with more to send.
    pub fn poll_more(&mut self) -> Option<ConnId> {
        while let Some(id) = self.bulk.pop_front() {
            if let Some(connection) = self.find(id) {
                connection.is_queued = false;
                return Some(id);
            }
        }
        None
    }

    /// Writes the caller's octets to a connection if nothing waits for its stream. Returns whether it did.
    pub fn write_raw(&mut self, id: ConnId, octets: &[u8], reactor: &mut Reactor) -> bool {
        let Some(connection) = self.find(id) else {
            return false;
        };
        if connection.unsent.is_some() || connection.is_opening {
            return false;
        }
        let is_some = matches!(connection.write(octets), Written::Some);
        let is_watched = !is_some || connection.watch(reactor).is_ok();
        self.counts.blocked += u32::from(is_some);
        is_watched
    }

    /// Lets a connection wait for its turn to be sent routes.
    fn queue(&mut self, id: ConnId) {
        if let Some(connection) = self.find(id)
            && !std::mem::replace(&mut connection.is_queued, true)
        {
            self.bulk.push_back(id);
        }
    }

    /// Writes messages of the session, then routes until `limit` octets are written.
    fn write_to(
        &mut self,
        id: ConnId,
        limit: usize,
        speaker: &mut Speaker,
        buffers: &mut Buffers,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(connection) = self.find(id) else {
            return;
        };
        if connection.unsent.is_some() || connection.is_opening {
            return;
        }
        let out = &mut buffers.output;
        out.clear();
        let more = speaker.fill(id, out, limit, now);
        if out.is_empty() {
            if more {
                self.queue(id);
            }
            return;
        }
        let written = connection.write(out);
        let watched = match written {
            Written::Some => connection.watch(reactor),
            Written::All | Written::Broken => Ok(()),
        };
        self.counts.octets_out += out.len() as u64;
        match written {
            Written::All if more => self.queue(id),
            Written::All => {}
            Written::Some => {
                self.counts.blocked += 1;
                speaker.set_blocked(id, true);
                if watched.is_err() {
                    self.broken(id, speaker, reactor, now);
                }
            }
            Written::Broken => self.broken(id, speaker, reactor, now),
        }
    }

    /// Handles a stream that has room, or that is connected or has failed to connect.
    pub(crate) fn writable(
        &mut self,
        index: usize,
        speaker: &mut Speaker,
        reactor: &mut Reactor,
        now: Instant,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let id = connection.id;
        if connection.is_opening {
            let local = match connection.stream.error() {
                Ok(None) => connection.stream.local(),
                Ok(Some(error)) | Err(error) => Err(error),
            };
            match local {
                Ok(local) => {
                    connection.is_opening = false;
                    let watched = connection.watch(reactor);
                    speaker.connected(id, local, now);
                    if watched.is_err() {
                        self.broken(id, speaker, reactor, now);
                    }
                }
                Err(_) => {
                    self.forget(id, reactor);
                    speaker.connect_failed(id, now);
                }
            }
            return;
        }
        // A stream that has ended is ready for everything.
        if connection.unsent.is_none() {
            return;
        }
        match connection.write_unsent() {
            Written::All => {
                self.counts.blocked -= 1;
                let watched = connection.watch(reactor);
                speaker.set_blocked(id, false);
                if watched.is_err() {
                    self.broken(id, speaker, reactor, now);
                }
            }
            Written::Some => {}
            Written::Broken => self.broken(id, speaker, reactor, now),
        }
    }
}
