//! Sending a batch with few calls.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::datagram::UdpSocket;
use crate::datagram::gather::{Gather, Queued};
use crate::sys::mmsg::{Outgoing, SendSlots};

/// Messages in one call.
const SLOTS: usize = 64;

/// Datagrams that the kernel takes as one message, by its own limit.
const MERGE_DATAGRAMS: usize = 64;

/// Bytes that the kernel takes as one message, below its own limit.
const MERGE_BYTES: usize = 65_000;

/// The kernel refuses to merge what it would have to fragment. Datagrams of so many
/// bytes fit any path that IPv6 allows (RFC 8200 5); whether larger ones do is tried.
pub(super) const MERGE_SIZE_SAFE: usize = 1_200;

/// Larger datagrams are sent one by one: they fit no path over Ethernet.
pub(super) const MERGE_SIZE_MAX: usize = 1_500 - 28;

/// Datagrams to be sent, one after the other in one buffer that is used again.
pub struct SendBatch {
    payload: Vec<u8>,
    queue: Vec<Queued>,
    /// The first datagram of the queue that was not yet sent.
    head: usize,
    /// Whether a datagram has other ends than the one before it.
    is_mixed: bool,
    gather: Gather,
    limit: usize,
    overflowed: u64,
    slots: SendSlots,
    messages: Vec<Outgoing>,
    /// Datagrams in each message.
    counts: Vec<usize>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SendOutcome {
    /// Datagrams sent.
    pub sent: usize,
    /// Datagrams that the kernel refused.
    pub dropped: usize,
    /// The send buffer is full: the rest stays in the batch until the socket is
    /// writable.
    pub blocked: bool,
    /// The last refusal, as an OS error number.
    pub error: Option<i32>,
}

impl SendBatch {
    /// A batch of up to `limit` datagrams, at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            payload: Vec::new(),
            queue: Vec::new(),
            head: 0,
            is_mixed: false,
            gather: Gather::default(),
            limit: limit.max(1),
            overflowed: 0,
            slots: SendSlots::new(SLOTS),
            messages: Vec::with_capacity(SLOTS),
            counts: Vec::with_capacity(SLOTS),
        }
    }

    /// Begins a datagram: append its bytes to the buffer, and to nothing before them,
    /// then [`SendBatch::commit`] it. One begun and not committed is forgotten.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.payload.truncate(self.committed());
        &mut self.payload
    }

    /// Ends the datagram begun: it goes to `peer`, from `local` if that is given. If
    /// the batch is full it is lost as if on the way, and counted.
    pub fn commit(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        let start = self.committed();
        if self.is_full() {
            self.payload.truncate(start);
            self.overflowed += 1;
            return;
        }
        let length = self.payload.len().saturating_sub(start);
        let queued = Queued {
            start,
            length,
            peer,
            local,
        };
        let before = self.queue.last();
        self.is_mixed |= before.is_some_and(|before| !before.has_ends_of(&queued));
        self.queue.push(queued);
    }

    /// Appends a datagram.
    pub fn push(&mut self, bytes: &[u8], peer: SocketAddr, local: Option<IpAddr>) {
        self.begin().extend_from_slice(bytes);
        self.commit(peer, local);
    }

    /// Datagrams that wait to be sent.
    pub fn pending(&self) -> usize {
        self.queue.len() - self.head
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// Whether the next datagram would be lost.
    pub fn is_full(&self) -> bool {
        self.pending() >= self.limit
    }

    /// Datagrams lost because the batch was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Forgets what waits. Returns how many datagrams that were.
    pub fn clear(&mut self) -> usize {
        let pending = self.pending();
        self.payload.clear();
        self.queue.clear();
        self.head = 0;
        self.is_mixed = false;
        pending
    }

    /// Where the committed datagrams end.
    fn committed(&self) -> usize {
        self.queue.last().map_or(0, |last| last.start + last.length)
    }

    /// Brings datagrams with the same ends together.
    fn bring_together(&mut self) {
        let Self {
            payload,
            queue,
            head,
            gather,
            ..
        } = self;
        gather.run(queue, payload, head);
    }

    /// Lays out the messages of the next call. Datagrams before `plain_until` are not
    /// merged.
    fn plan(&mut self, socket: &UdpSocket, plain_until: usize) {
        self.messages.clear();
        self.counts.clear();
        let keep_local = socket.fixed_local().is_none();
        let mut at = self.head;
        while at < self.queue.len() && self.messages.len() < self.slots.capacity() {
            let first = self.queue[at];
            let merge = socket.gso && at >= plain_until;
            let (count, length) = if merge {
                run(&self.queue[at..], socket.merge_size)
            } else {
                (1, first.length)
            };
            self.messages.push(Outgoing {
                start: first.start,
                length,
                peer: if socket.peer.is_some() {
                    None
                } else {
                    Some(first.peer)
                },
                local: first.local.filter(|_| keep_local),
                segment: (count > 1).then_some(first.length as u16),
            });
            self.counts.push(count);
            at += count;
        }
    }

    /// Makes room at the front once the greater part of the queue has been sent.
    fn compact(&mut self) {
        if self.is_empty() {
            self.clear();
        } else if self.head > self.queue.len() / 2 {
            let sent_bytes = self.queue[self.head].start;
            self.payload.drain(..sent_bytes);
            self.queue.drain(..self.head);
            self.queue
                .iter_mut()
                .for_each(|queued| queued.start -= sent_bytes);
            self.head = 0;
        }
    }
}

/// How many datagrams from the first on can be one message, and their bytes: all of
/// one size but the last, which may be shorter, and all with the same ends.
fn run(queue: &[Queued], size_max: usize) -> (usize, usize) {
    let first = queue[0];
    if first.length == 0 || first.length > size_max {
        return (1, first.length);
    }
    let (mut count, mut bytes) = (1, first.length);
    for next in queue.iter().take(MERGE_DATAGRAMS).skip(1) {
        let fits = next.length <= first.length && next.length > 0;
        if !fits || !next.has_ends_of(&first) || bytes + next.length > MERGE_BYTES {
            break;
        }
        count += 1;
        bytes += next.length;
        if next.length < first.length {
            break;
        }
    }
    (count, bytes)
}

impl UdpSocket {
    /// Sends what waits in the batch, to each peer in order. A datagram that the kernel refuses is
    /// dropped and counted, and the rest goes on; when the send buffer is full the
    /// rest stays in the batch.
    pub fn send(&mut self, batch: &mut SendBatch) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        // Datagrams before this place were refused when merged, and go one by one.
        let mut plain_until = 0;
        // Whether merging is the likely reason of that refusal.
        let mut suspect = false;
        // Where a pending error was reported in place of sending.
        let mut refused_at = None;
        if self.gso && batch.is_mixed {
            batch.bring_together();
        }
        while !batch.is_empty() {
            batch.plan(self, plain_until);
            let head = batch.head;
            match batch.slots.send(&self.fd, &batch.payload, &batch.messages) {
                Ok(messages) => {
                    if suspect {
                        // The same datagrams go when they are not merged.
                        (self.gso, suspect) = (false, false);
                    }
                    let counts = &batch.counts[..messages];
                    let sent: usize = counts.iter().sum();
                    self.stats.merged += counts.iter().filter(|&&count| count > 1).count() as u64;
                    batch.head += sent;
                    outcome.sent += sent;
                }
                Err(error) => match error.raw_os_error().unwrap_or(libc::EIO) {
                    libc::EINTR => {}
                    libc::EAGAIN => {
                        outcome.blocked = true;
                        self.stats.blocked += 1;
                        break;
                    }
                    code if batch.counts[0] > 1 && may_blame_merging(code) => {
                        plain_until = head + batch.counts[0];
                        let size = batch.queue[head].length;
                        if size > MERGE_SIZE_SAFE {
                            // Some path is narrower than Ethernet's.
                            self.merge_size = MERGE_SIZE_SAFE.max(size - 1);
                        } else {
                            suspect = code != libc::EMSGSIZE;
                        }
                    }
                    // Says that an earlier datagram found the port closed: this one
                    // was not tried yet.
                    libc::ECONNREFUSED if refused_at != Some(head) => refused_at = Some(head),
                    code => {
                        suspect = false;
                        batch.head += batch.counts[0];
                        outcome.dropped += batch.counts[0];
                        outcome.error = Some(code);
                    }
                },
            }
        }
        self.stats.sent += outcome.sent as u64;
        self.stats.dropped += outcome.dropped as u64;
        batch.compact();
        outcome
    }
}

/// Whether the kernel may mean that it cannot merge (udp(7), `UDP_SEGMENT`).
fn may_blame_merging(code: i32) -> bool {
    matches!(
        code,
        libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOPROTOOPT | libc::EMSGSIZE
    )
}

impl SendOutcome {
    /// The last refusal as an error with a text.
    pub fn last_error(&self) -> Option<io::Error> {
        self.error.map(io::Error::from_raw_os_error)
    }
}
