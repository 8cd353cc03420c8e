//! Sending a batch of frames with few calls.

use super::EtherSocket;
use crate::datagram::SendOutcome;
use crate::sys::ether::SendSlots;

/// Frames in one call.
const SLOTS: usize = 64;

/// Frames to send, one after the other in a reused buffer.
pub struct EtherSend {
    queue: Queue,
    limit: usize,
    slots: SendSlots,
}

/// The frames that wait.
#[derive(Default)]
struct Queue {
    payload: Vec<u8>,
    /// The end of each frame in `payload`.
    ends: Vec<u32>,
    /// The first unsent frame.
    head: usize,
}

impl EtherSend {
    /// A batch of up to `limit` frames, at least one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            queue: Queue::default(),
            limit: limit.max(1),
            slots: SendSlots::new(SLOTS),
        }
    }

    /// Starts a frame: append its bytes to the buffer without touching earlier bytes, then [`EtherSend::commit`] it.
    /// A frame that is not committed is discarded.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        let Queue { payload, ends, .. } = &mut self.queue;
        payload.truncate(ends.last().map_or(0, |&end| end as usize));
        payload
    }

    /// Finishes the frame; there must be room.
    pub fn commit(&mut self) {
        self.queue.ends.push(self.queue.payload.len() as u32);
    }

    /// Whether no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.waiting() == 0
    }

    /// Whether there is no room for another frame.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queue.waiting() >= self.limit
    }

    /// Discards the waiting frames. Returns their number.
    pub fn clear(&mut self) -> usize {
        let waiting = self.queue.waiting();
        self.queue.clear();
        waiting
    }
}

impl Queue {
    fn waiting(&self) -> usize {
        self.ends.len() - self.head
    }

    fn clear(&mut self) {
        self.payload.clear();
        self.ends.clear();
        self.head = 0;
    }

    /// The waiting frames, oldest first.
    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let start = |index: usize| match index {
            0 => 0,
            index => self.ends[index - 1] as usize,
        };
        (self.head..self.ends.len())
            .map(move |index| &self.payload[start(index)..self.ends[index] as usize])
    }

    /// Frees the front of the buffer once most of the frames have been sent.
    fn compact(&mut self) {
        if self.waiting() == 0 {
            self.clear();
        } else if self.head > self.ends.len() / 2 {
            let sent = self.ends[self.head - 1];
            self.payload.drain(..sent as usize);
            self.ends.drain(..self.head);
            self.ends.iter_mut().for_each(|end| *end -= sent);
            self.head = 0;
        }
    }
}

impl EtherSocket {
    /// Sends the batch in order. A frame that the kernel refuses is dropped and counted, and the others are sent. If
    /// the send buffer is full, the rest stays in the batch.
    pub fn send(&mut self, batch: &mut EtherSend) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        while !batch.is_empty() {
            match batch.slots.send(&self.fd, batch.queue.frames()) {
                Ok(count) => {
                    batch.queue.head += count;
                    outcome.sent += count;
                }
                Err(error) => match error.raw_os_error().unwrap_or(libc::EIO) {
                    libc::EINTR => {}
                    libc::EAGAIN => {
                        outcome.blocked = true;
                        self.stats.blocked += 1;
                        break;
                    }
                    // The queue for the interface is full, the frame is too long for it, or it is down or gone. The
                    // reader of the socket reports the last two.
                    code => {
                        batch.queue.head += 1;
                        outcome.dropped += 1;
                        outcome.error = Some(code);
                    }
                },
            }
        }
        self.stats.sent += outcome.sent as u64;
        self.stats.refused += outcome.dropped as u64;
        batch.queue.compact();
        outcome
    }
}
