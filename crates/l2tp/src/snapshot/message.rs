//! Queued control messages as values.

use base::slab::Key;
use base::snapshot::{Codec, Part};
use wire::l2tp::{CONTROL_HEADER_LEN, Message as Parsed, MessageType, Version};

use crate::pool::{Message, MessagePool, Queue};

/// The most messages of a list that are read. Each takes an octet at least, so the octets limit them before.
pub(super) const MESSAGES_MAX: usize = 1 << 24;

/// The longest body: a message has 16 bits for its length.
const BODY_MAX: usize = u16::MAX as usize - CONTROL_HEADER_LEN;

impl Part for Message {
    const NAME: &'static str = "message";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        codec.number(1, "session", &mut self.session);
        let mut place = self.connects.map(|key| key.index);
        let mut generation = self.connects.map_or(0, |key| key.generation);
        codec.maybe(2, "connects", &mut place);
        codec.number(3, "connects_generation", &mut generation);
        codec.number(4, "ns", &mut self.ns);
        codec.bytes(5, "body", &mut self.body, BODY_MAX);
        if C::READS {
            self.connects = place.map(|index| Key { index, generation });
            if place.is_none() && generation != 0 {
                codec.refuse();
            }
        }
    }
}

impl Message {
    /// Whether this endpoint may have composed it.
    pub(crate) fn is_ours(&self, version: Version) -> bool {
        let message = Parsed::parse(version, &self.body);
        self.ns == 0 && message.kind() != MessageType::Unknown(0)
    }
}

/// Takes the messages of a queue, which then have empty bodies. A slot that is used again keeps what its last message
/// had besides; `wanted` clears that.
pub(super) fn take_all(
    pool: &mut MessagePool,
    queue: &Queue,
    wanted: fn(Message) -> Message,
) -> Vec<Message> {
    let mut all = Vec::new();
    let mut at = queue.head;
    while all.len() < queue.len() as usize {
        all.push(wanted(core::mem::take(pool.get_mut(at))));
        at = pool.next(at);
    }
    all
}

/// Puts the messages back that [`take_all`] took.
pub(super) fn put_back(pool: &mut MessagePool, queue: &Queue, all: Vec<Message>) {
    let mut at = queue.head;
    for message in all {
        *pool.get_mut(at) = message;
        at = pool.next(at);
    }
}

/// Of a message to the peer.
pub(super) fn outgoing(message: Message) -> Message {
    Message { ns: 0, ..message }
}

/// Of a message that arrived early.
pub(super) fn early(message: Message) -> Message {
    Message {
        connects: None,
        ..message
    }
}
