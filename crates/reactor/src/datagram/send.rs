//! Sending a batch with few calls.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::datagram::UdpSocket;
use crate::datagram::gather::{Gather, Queued};
use crate::sys::mmsg::{Outgoing, SendSlots};

/// Messages in one call.
const SLOTS: usize = 64;

/// The kernel's limit of datagrams in one message.
const MERGE_DATAGRAMS: usize = 64;

/// Bytes in one message, below the kernel's own limit.
const MERGE_BYTES: usize = 65_000;

/// The kernel refuses to merge datagrams that it would have to fragment. Datagrams of this size fit any IPv6 path
/// (RFC 8200 5); larger sizes are tried.
pub(super) const MERGE_SIZE_SAFE: usize = 1_200;

/// Larger datagrams are sent one by one: they fit no Ethernet path.
pub(super) const MERGE_SIZE_MAX: usize = 1_500 - 28;

/// Datagrams to send, one after the other in a reused buffer.
pub struct SendBatch {
    payload: Vec<u8>,
    queue: Vec<Queued>,
    /// The first unsent datagram of the queue.
    head: usize,
    /// Whether a datagram has different ends than the one before it, or is late.
    is_mixed: bool,
    gather: Gather,
    limit: usize,
    overflowed: u64,
    slots: SendSlots,
    messages: Vec<Outgoing>,
    /// Datagrams in each message.
    counts: Vec<usize>,
}

/// The result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SendOutcome {
    /// Datagrams sent.
    pub sent: usize,
    /// Datagrams that the kernel refused.
    pub dropped: usize,
    /// The send buffer is full. The rest stays in the batch until the socket is writable.
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

    /// Starts a datagram: append its bytes to the buffer without touching earlier bytes, then [`SendBatch::commit`]
    /// it. A datagram that is not committed is discarded.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.payload.truncate(self.committed());
        &mut self.payload
    }

    /// Finishes the datagram: it goes to `peer`, from `local` if given. If the batch is full, the datagram is lost
    /// and counted.
    pub fn commit(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        self.finish(peer, local, false);
    }

    fn finish(&mut self, peer: SocketAddr, local: Option<IpAddr>, is_late: bool) {
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
            is_late,
        };
        let before = self.queue.last();
        self.is_mixed |= is_late || before.is_some_and(|before| !before.has_ends_of(&queued));
        self.queue.push(queued);
    }

    /// Appends a datagram.
    pub fn push(&mut self, bytes: &[u8], peer: SocketAddr, local: Option<IpAddr>) {
        self.begin().extend_from_slice(bytes);
        self.commit(peer, local);
    }

    /// Appends a datagram that may leave after later ones of this batch to the same peer, if that merges them.
    pub fn push_late(&mut self, bytes: &[u8], peer: SocketAddr, local: Option<IpAddr>) {
        self.begin().extend_from_slice(bytes);
        self.finish(peer, local, true);
    }

    /// Datagrams waiting to be sent.
    pub fn pending(&self) -> usize {
        self.queue.len() - self.head
    }

    /// Whether no datagram waits.
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

    /// Discards the waiting datagrams. Returns their number.
    pub fn clear(&mut self) -> usize {
        let pending = self.pending();
        self.payload.clear();
        self.queue.clear();
        self.head = 0;
        self.is_mixed = false;
        pending
    }

    /// The end of the committed datagrams.
    fn committed(&self) -> usize {
        self.queue.last().map_or(0, |last| last.start + last.length)
    }

    /// Moves datagrams with the same ends together.
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

    /// Prepares the messages of the next call. Datagrams before `plain_until` are not merged.
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

    /// Frees the front of the buffer once most of the queue has been sent.
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

/// How many datagrams from the first on can form one message, and their bytes. All have the same ends and the same
/// size, but the last may be shorter.
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
    /// Sends the batch, in order for each peer. A datagram that the kernel refuses is dropped and counted, and the
    /// others are sent. If the send buffer is full, the rest stays in the batch.
    pub fn send(&mut self, batch: &mut SendBatch) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        // Datagrams before this index were refused when merged, and are sent one by one.
        let mut plain_until = 0;
        // Whether merging is the likely reason of the refusal.
        let mut suspect = false;
        // The index at which a pending error was reported instead of sending.
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
                        // The same datagrams are sent again without merging.
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
                            // Some path has a smaller MTU than Ethernet.
                            self.merge_size = MERGE_SIZE_SAFE.max(size - 1);
                        } else {
                            suspect = code != libc::EMSGSIZE;
                        }
                    }
                    // The error is about an earlier datagram to a closed port: this datagram was not tried yet.
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

/// Whether the error may mean that the kernel cannot merge (udp(7), `UDP_SEGMENT`).
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
