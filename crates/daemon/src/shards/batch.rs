//! A batch: the items that a packet thread passes to the first thread in one turn, with one buffer for all bytes.

use crate::served::{Passed, Tapped};
use crate::served::{Route, Session};
use edge::{Logged, TapId};

/// Limit of bytes in a batch; later items are dropped.
const OCTETS_MAX: usize = 512 << 10;

/// Limit of small items kept for another try.
const SMALL_MAX: usize = 4_096;

/// Events of the translation in a batch.
pub(super) const NAT_EVENTS_MAX: usize = 4_096;

/// The items that a packet thread passes to the first thread in one turn.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    /// Each datagram with the range of its bytes.
    datagrams: Vec<(Route, Span)>,
    packets: Vec<Span>,
    tapped: Vec<(Tapped, Span)>,
    pub(crate) lost: Vec<(TapId, [u64; 2])>,
    pub(crate) heard: Vec<Session>,
    pub(crate) logged: Vec<Logged>,
    /// Events of the translation. They are kept until the first thread takes them.
    pub(crate) nat: Vec<nat::Event>,
}

type Span = core::ops::Range<usize>;

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.octets.is_empty()
            && self.lost.is_empty()
            && self.heard.is_empty()
            && self.logged.is_empty()
            && self.nat.is_empty()
    }

    /// Number of datagrams and packets.
    pub(crate) fn len(&self) -> u64 {
        (self.datagrams.len() + self.packets.len()) as u64
    }

    pub(crate) fn remains(self) -> Self {
        let Self {
            tapped,
            mut lost,
            mut heard,
            mut logged,
            nat,
            ..
        } = self;
        lost.extend(tapped.iter().map(|(tapped, _)| lost_one(tapped)));
        lost.sort_unstable_by_key(|(tap, _)| tap.to_number());
        lost.dedup_by(|(tap, more), (before, sum)| {
            let same = tap == before;
            if same {
                sum.iter_mut()
                    .zip(more)
                    .for_each(|(sum, more)| *sum += *more);
            }
            same
        });
        heard.truncate(SMALL_MAX);
        logged.truncate(SMALL_MAX);
        Self {
            lost,
            heard,
            logged,
            nat,
            ..Self::default()
        }
    }

    fn append(&mut self, octets: &[u8]) -> Option<Span> {
        let start = self.octets.len();
        if start + octets.len() > OCTETS_MAX {
            return None;
        }
        self.octets.extend_from_slice(octets);
        Some(start..self.octets.len())
    }

    /// Adds a peer's datagram; `false` if there is no room.
    pub(crate) fn push_datagram(&mut self, route: Route, octets: &[u8]) -> bool {
        let span = self.append(octets);
        let room = span.is_some();
        self.datagrams.extend(span.map(|span| (route, span)));
        room
    }

    /// Adds a packet of the TUN device; `false` if there is no room.
    pub(crate) fn push_packet(&mut self, octets: &[u8]) -> bool {
        let span = self.append(octets);
        let room = span.is_some();
        self.packets.extend(span);
        room
    }

    /// Adds a copy for a capture. Without room, records that one was lost.
    pub(crate) fn push_tapped(&mut self, tapped: Tapped, octets: &[u8]) {
        match self.append(octets) {
            Some(span) => self.tapped.push((tapped, span)),
            None => self.lost.push(lost_one(&tapped)),
        }
    }

    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (Route, &[u8])> {
        let datagrams = self.datagrams.iter();
        datagrams.map(|(route, span)| (*route, &self.octets[span.clone()]))
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = Vec<u8>> {
        let packets = self.packets.iter();
        packets.map(|span| self.octets[span.clone()].to_vec())
    }

    pub(crate) fn tapped(&self) -> impl Iterator<Item = (Tapped, &[u8])> {
        let tapped = self.tapped.iter();
        tapped.map(|(tapped, span)| (*tapped, &self.octets[span.clone()]))
    }
}

/// The count for one lost copy, inside or outside.
fn lost_one(tapped: &Tapped) -> (TapId, [u64; 2]) {
    let is_inside = tapped.passed == Passed::Inside;
    (tapped.tap, [u64::from(is_inside), u64::from(!is_inside)])
}
