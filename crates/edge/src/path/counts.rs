//! The counters of a path. Only the path writes them; others read them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::Path;
use super::entry::add;
use crate::access::Encapsulation;
use crate::counters::Discard;

/// The counters of one path, as they are written.
#[derive(Debug)]
pub(crate) struct Counts {
    discards: [AtomicU64; Discard::COUNT],
    packets_in: AtomicU64,
    packets_out: AtomicU64,
    octets_in: AtomicU64,
    octets_out: AtomicU64,
    left: AtomicU64,
    handed: AtomicU64,
    errors: AtomicU64,
    walled: AtomicU64,
    not_logged: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            discards: [const { AtomicU64::new(0) }; Discard::COUNT],
            packets_in: AtomicU64::new(0),
            packets_out: AtomicU64::new(0),
            octets_in: AtomicU64::new(0),
            octets_out: AtomicU64::new(0),
            left: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            walled: AtomicU64::new(0),
            not_logged: AtomicU64::new(0),
        }
    }
}

impl Counts {
    pub(crate) fn discard(&self, why: Discard) {
        add(&self.discards[why.place()], 1);
    }

    pub(crate) fn discarded(&self, why: Discard) -> u64 {
        self.discards[why.place()].load(Relaxed)
    }

    #[inline]
    pub(super) fn pass_in(&self, octets: usize) {
        add(&self.packets_in, 1);
        add(&self.octets_in, octets as u64);
    }

    #[inline]
    pub(super) fn pass_out(&self, octets: u64) {
        add(&self.packets_out, 1);
        add(&self.octets_out, octets);
    }

    pub(super) fn leave(&self) {
        add(&self.left, 1);
    }

    pub(super) fn hand(&self) {
        add(&self.handed, 1);
    }

    pub(super) fn tell(&self) {
        add(&self.errors, 1);
    }

    pub(super) fn wall(&self) {
        add(&self.walled, 1);
    }

    pub(super) fn miss_log(&self) {
        add(&self.not_logged, 1);
    }

    pub(crate) fn view(&self) -> PathCounts {
        PathCounts {
            packets_in: self.packets_in.load(Relaxed),
            packets_out: self.packets_out.load(Relaxed),
            octets_in: self.octets_in.load(Relaxed),
            octets_out: self.octets_out.load(Relaxed),
            discarded: self.discards.iter().map(|count| count.load(Relaxed)).sum(),
            left: self.left.load(Relaxed),
            handed: self.handed.load(Relaxed),
            errors: self.errors(),
            walled: self.walled.load(Relaxed),
            not_logged: self.not_logged.load(Relaxed),
        }
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }
}

/// The counters of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathCounts {
    /// Packets from subscribers that were forwarded.
    pub packets_in: u64,
    /// Packets forwarded to subscribers.
    pub packets_out: u64,
    /// Bytes of the packets from subscribers.
    pub octets_in: u64,
    /// Bytes of the packets to subscribers.
    pub octets_out: u64,
    /// Packets and frames that were discarded.
    pub discarded: u64,
    /// Datagrams and packets left to the edge: control messages, frames of links, packets of numbered sessions.
    pub left: u64,
    /// Packets handed to the path with their subscriber's queues.
    pub handed: u64,
    /// ICMP errors sent.
    pub errors: u64,
    /// Answers to web requests of subscribers in walled gardens.
    pub walled: u64,
    /// Packets not logged because the queue was full.
    pub not_logged: u64,
}

impl<E: Encapsulation> Path<E> {
    /// The counters of all paths of this edge, by number.
    pub(crate) fn all_counts(&self) -> &[Counts] {
        &self.counts
    }

    #[inline]
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts[self.number]
    }
}
