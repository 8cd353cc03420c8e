//! A bounded log of datagrams, with the fate of each.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use base::Instant;

use crate::NodeId;

/// One datagram, or one copy that a link made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was sent.
    pub sent: Instant,
    /// Its source address.
    pub from: SocketAddr,
    /// Its destination address.
    pub to: SocketAddr,
    /// The sender; `None` if the test injected it.
    pub from_node: Option<NodeId>,
    /// The node that had the address `to` when it was sent, if any.
    pub to_node: Option<NodeId>,
    /// Whether it is a copy that a link made.
    pub copy: bool,
    /// Its UDP payload.
    pub bytes: Rc<[u8]>,
    /// Its fate so far.
    pub fate: Fate,
}

/// The fate of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in flight.
    InFlight {
        /// When it arrives.
        due: Instant,
    },
    /// The receiving machine took it.
    Delivered {
        /// When it arrived.
        at: Instant,
    },
    /// The receiving machine ignored it.
    Discarded {
        /// When it arrived.
        at: Instant,
        /// The machine's reason.
        reason: String,
    },
    /// It was lost at random.
    Lost,
    /// The link was cut, or one of its nodes isolated.
    Cut,
    /// The link's queue was full.
    QueueFull,
    /// An interceptor or `drop_next` removed it.
    Dropped,
    /// No node has the destination address.
    NoSuchAddress,
    /// The sender has no such socket, or the socket cannot use this source address or family.
    BadRoute,
    /// It does not fit into a UDP datagram.
    TooLong,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::InFlight { due } => write!(f, "in flight until {due:?}"),
            Fate::Delivered { at } => write!(f, "delivered {at:?}"),
            Fate::Discarded { at, reason } => write!(f, "discarded {at:?}: {reason}"),
            Fate::Lost => f.write_str("lost"),
            Fate::Cut => f.write_str("cut"),
            Fate::QueueFull => f.write_str("queue full"),
            Fate::Dropped => f.write_str("dropped"),
            Fate::NoSuchAddress => f.write_str("no such address"),
            Fate::BadRoute => f.write_str("bad route"),
            Fate::TooLong => f.write_str("too long"),
        }
    }
}

/// The number of a record since the world began.
pub(crate) type RecordId = u64;

/// The last `limit` records; older ones are forgotten.
pub(crate) struct Log {
    records: VecDeque<Record>,
    /// The number of the first record kept.
    first: RecordId,
    limit: usize,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            limit,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.trim();
    }

    pub(crate) fn push(&mut self, record: Record) -> RecordId {
        let id = self.first + self.records.len() as u64;
        self.records.push_back(record);
        self.trim();
        id
    }

    /// Sets the fate of a record that is still kept.
    pub(crate) fn settle(&mut self, id: RecordId, fate: Fate) {
        let index = id
            .checked_sub(self.first)
            .and_then(|i| usize::try_from(i).ok());
        if let Some(record) = index.and_then(|i| self.records.get_mut(i)) {
            record.fate = fate;
        }
    }

    pub(crate) fn records(&self) -> &VecDeque<Record> {
        &self.records
    }

    /// How many records were made, kept or not.
    pub(crate) fn made(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    fn trim(&mut self) {
        while self.records.len() > self.limit {
            self.records.pop_front();
            self.first += 1;
        }
    }
}
