//! Packets for queues or NATs on another path, in batches.
//!
//! A path checks and filters a packet of a shaped subscriber where the packet arrives. If the queues are on another path,
//! the packet goes into a batch for it. So does a packet that another path translates (`translators`). The owner moves batches between cores: it takes them
//! ([`Path::poll_handovers`]) before it reports changes as applied, and gives each to its path
//! ([`Path::take_handover`]), in order. If a path has too many batches, the owner returns the batch
//! ([`Path::refuse_handover`]), and its packets are counted as dropped.

use std::collections::VecDeque;

use base::{Duration, Instant};
use hqos::{Counts, Direction};
use nat::Fragmented;

use super::entry::Lane;
use super::queues::To;
use super::{Entry, Headers, Inside, Nobody, Outside, Path, Taken};
use crate::access::Encapsulation;
use crate::counters::Discard;

/// Bytes of a batch; a further packet starts the next one.
const OCTETS_MAX: usize = 256 << 10;
/// Complete batches that wait for the owner.
const SEALED_MAX: usize = 64;

/// How long packets wait for the change that announces their subscriber.
const EARLY_MAX: Duration = Duration::from_secs(1);

/// The place and generation of a packet whose subscriber is not known.
pub(super) const NOBODY: (u32, u32) = (u32::MAX, 0);

/// A batch of packets for one path.
#[derive(Debug, Default)]
pub struct Handover {
    octets: Vec<u8>,
    items: Vec<Item>,
    /// What queues that moved have counted, in the order of their items.
    counts: Vec<[Counts; 2]>,
    /// Translations of fragmented datagrams, in the order of their items.
    fragmented: Vec<Fragmented>,
    /// Whether queues that moved are in it.
    has_moved: bool,
}

/// A packet, or the end of the packets of queues that moved.
#[derive(Clone, Copy, Debug)]
struct Item {
    place: u32,
    generation: u32,
    length: u32,
    kind: Kind,
    version: u8,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is for the subscriber's queue.
    Queue(Direction),
    /// It has left its queue and needs a header with a number.
    Numbered,
    /// It was in a queue that moved.
    Moved(Direction),
    /// No more packets of a queue that moved follow.
    End,
    /// It is from a subscriber, and is to be translated.
    Outbound,
    /// It is from the inside: what a TUN device returned. The path that has it now forwards it.
    Inbound,
    /// It is an ICMP error of ours to the inside, and is to be translated.
    Error,
    /// No packet: how the first fragment of a datagram was translated.
    Fragmented,
}

impl Kind {
    fn is_moved(self) -> bool {
        matches!(self, Self::Moved(_) | Self::End)
    }

    fn is_packet(self) -> bool {
        !matches!(self, Self::End | Self::Fragmented)
    }

    /// Whether the path that gets it has to know its subscriber.
    fn is_of_subscriber(self) -> bool {
        matches!(self, Self::Queue(_) | Self::Outbound)
    }
}

impl Handover {
    /// Whether it has no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.iter().filter(|one| one.kind.is_packet()).count()
    }

    fn push(
        &mut self,
        (place, generation): (u32, u32),
        kind: Kind,
        version: u8,
        packet: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.octets.len();
        packet(&mut self.octets);
        self.has_moved |= kind.is_moved();
        self.items.push(Item {
            place,
            generation,
            length: (self.octets.len() - start) as u32,
            kind,
            version,
        });
    }

    /// Adds a packet of another batch.
    fn add(&mut self, item: Item, octets: &[u8]) {
        let of = (item.place, item.generation);
        self.push(of, item.kind, item.version, |out| {
            out.extend_from_slice(octets);
        });
    }

    /// Each item with its bytes.
    fn each(&self) -> impl Iterator<Item = (Item, &[u8])> {
        let mut rest = &self.octets[..];
        self.items.iter().map(move |item| {
            let (octets, behind) = rest.split_at(item.length as usize);
            rest = behind;
            (*item, octets)
        })
    }
}

/// The batches of a path for others.
#[derive(Debug, Default)]
pub(super) struct Handovers {
    /// By path.
    open: Vec<Handover>,
    /// Complete ones, oldest first.
    sealed: VecDeque<(usize, Handover)>,
    /// Queues that moved and found no room.
    owed: Vec<(usize, Handover)>,
    /// Packets of subscribers that this path does not know yet, and until when they wait.
    early: Handover,
    early_until: Instant,
}

impl Handovers {
    /// The open batch for a path; `None` if too many wait. Queues that moved always find room.
    fn open(&mut self, path: u8, must: bool) -> Option<&mut Handover> {
        let path = usize::from(path);
        if self.open.len() <= path {
            self.open.resize_with(path + 1, Handover::default);
        }
        let open = &mut self.open[path];
        if open.octets.len() >= OCTETS_MAX {
            if self.sealed.len() >= SEALED_MAX && !must {
                return None;
            }
            self.sealed.push_back((path, core::mem::take(open)));
        }
        self.open.get_mut(path)
    }

    /// Completes all batches: later packets leave after them.
    pub(super) fn seal(&mut self) {
        for (path, open) in self.open.iter_mut().enumerate() {
            if !open.is_empty() {
                self.sealed.push_back((path, core::mem::take(open)));
            }
        }
    }

    /// Adds a packet of queues that moved.
    pub(super) fn push_moved(
        &mut self,
        path: u8,
        of: (u32, u32),
        (direction, version): (Direction, u8),
        packet: &[u8],
    ) {
        if let Some(open) = self.open(path, true) {
            open.push(of, Kind::Moved(direction), version, |out| {
                out.extend_from_slice(packet);
            });
        }
    }

    /// Adds the translation of a datagram. Without room the datagram's other fragments are lost.
    pub(super) fn push_fragmented(&mut self, path: u8, fragmented: Fragmented) {
        if let Some(open) = self.open(path, false) {
            open.push(NOBODY, Kind::Fragmented, 4, |_| {});
            open.fragmented.push(fragmented);
        }
    }

    /// Ends queues that moved.
    pub(super) fn end_moved(&mut self, path: u8, of: (u32, u32), counts: [Counts; 2]) {
        if let Some(open) = self.open(path, true) {
            open.push(of, Kind::End, 0, |_| {});
            open.counts.push(counts);
        }
    }
}

impl<E: Encapsulation> Path<E> {
    /// Adds the batches for other paths to `out`, each with the number of its path.
    pub fn poll_handovers(&mut self, out: &mut Vec<(usize, Handover)>) {
        let handovers = &mut self.handovers;
        out.append(&mut handovers.owed);
        handovers.seal();
        out.extend(handovers.sealed.drain(..));
    }

    /// Takes back a batch for which a path has no room. Its packets are dropped, except those of queues that moved: they
    /// are in the next batches.
    #[cold]
    pub fn refuse_handover(&mut self, path: usize, batch: &Handover) {
        let mut owed = Handover::default();
        for (item, octets) in batch.each() {
            if item.kind.is_moved() {
                owed.add(item, octets);
            } else if item.kind.is_packet() {
                self.drop_of(item.place, Discard::Handover);
            }
        }
        owed.counts.clone_from(&batch.counts);
        if !owed.is_empty() {
            self.handovers.owed.push((path, owed));
        }
    }

    /// Whether queues that moved wait for room on another path. Until then, no change counts as applied.
    #[must_use]
    pub fn owes(&self) -> bool {
        let handovers = &self.handovers;
        let mut waiting = handovers.sealed.iter().map(|(_, batch)| batch);
        !handovers.owed.is_empty()
            || handovers.open.iter().any(|batch| batch.has_moved)
            || waiting.any(|batch| batch.has_moved)
    }

    /// Takes the packets that another path handed over.
    pub fn take_handover(
        &mut self,
        batch: &Handover,
        now: Instant,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) {
        self.take_by(batch, now, None::<&mut Nobody>, outside, inside);
    }

    pub(crate) fn take_by(
        &mut self,
        batch: &Handover,
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) {
        let mut counts = batch.counts.iter();
        let mut fragmented = batch.fragmented.iter();
        for (item, octets) in batch.each() {
            let headers = headers.as_deref_mut();
            let of = (item.place, item.generation);
            let taken = match item.kind {
                kind if kind.is_of_subscriber() && self.is_early(of) => {
                    self.keep_early(item, octets, now)
                }
                Kind::Queue(direction) => {
                    let one = (direction, item.version, octets);
                    self.arrive(of, one, now, headers, outside, inside)
                }
                Kind::Numbered => self.check(of).and_then(|()| {
                    self.send_now(item.place, item.version, headers, outside, |out| {
                        out.extend_from_slice(octets);
                    })
                }),
                Kind::Moved(direction) => {
                    self.arrive_moved(of, (direction, item.version), octets, now);
                    Ok(())
                }
                Kind::End => {
                    let counts = counts.next().copied().unwrap_or_default();
                    self.end_hold(of, counts, now, headers, outside, inside);
                    Ok(())
                }
                Kind::Outbound => self
                    .check(of)
                    .and_then(|()| self.translate_in(item.place, octets, now, inside)),
                Kind::Inbound => {
                    self.take_inbound(octets, now, headers, outside);
                    Ok(())
                }
                Kind::Error => {
                    let place = self.check(of).is_ok().then_some(item.place);
                    self.push_inside(place, &mut octets.to_vec(), now);
                    Ok(())
                }
                Kind::Fragmented => {
                    if let Some((nat, one)) = self.nat.as_mut().zip(fragmented.next()) {
                        nat.nat.note_fragmented(one, now);
                    }
                    self.forward_released(now, headers, outside);
                    Ok(())
                }
            };
            if let Err(why) = taken {
                self.drop_of(item.place, why);
            }
        }
    }

    /// Forwards what a TUN device returned to another path.
    fn take_inbound(
        &mut self,
        octets: &[u8],
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
    ) {
        let mut packet = core::mem::take(&mut self.inbound);
        packet.clear();
        packet.extend_from_slice(octets);
        if self.forward_here(&mut packet, now, headers, outside) == Taken::Left {
            self.hand_to_edge(&packet);
        }
        self.inbound = packet;
    }

    /// Takes the packets that arrived before the changes that announced their subscribers; others wait on, for a second at
    /// most. Call it after each [`Path::apply`] of several changes.
    pub fn retry_handovers(
        &mut self,
        now: Instant,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) {
        if self.handovers.early.is_empty() {
            return;
        }
        let early = core::mem::take(&mut self.handovers.early);
        let is_over = self.handovers.early_until <= now;
        for (item, octets) in early.each() {
            let of = (item.place, item.generation);
            if !is_over && self.is_early(of) {
                self.handovers.early.add(item, octets);
                continue;
            }
            let taken = match item.kind {
                Kind::Queue(direction) => {
                    let one = (direction, item.version, octets);
                    self.arrive(of, one, now, None::<&mut Nobody>, outside, inside)
                }
                Kind::Outbound => self
                    .check(of)
                    .and_then(|()| self.translate_in(item.place, octets, now, inside)),
                Kind::Numbered
                | Kind::Moved(_)
                | Kind::End
                | Kind::Inbound
                | Kind::Error
                | Kind::Fragmented => Ok(()),
            };
            if let Err(why) = taken {
                self.drop_of(item.place, why);
            }
        }
    }

    /// Whether this path may not know a packet's subscriber yet. The edge's own path knows all.
    fn is_early(&self, (place, generation): (u32, u32)) -> bool {
        let known = |entry: &Entry<E>| entry.generation() >= generation;
        self.number != 0 && !self.entry(place).is_some_and(known)
    }

    fn keep_early(&mut self, item: Item, octets: &[u8], now: Instant) -> Result<(), Discard> {
        let Handovers {
            early, early_until, ..
        } = &mut self.handovers;
        if early.octets.len() >= OCTETS_MAX {
            return Err(Discard::Handover);
        }
        if early.is_empty() {
            *early_until = now + EARLY_MAX;
        }
        early.add(item, octets);
        Ok(())
    }

    /// Whether a packet's subscriber is still the one at its place.
    fn check(&self, (place, generation): (u32, u32)) -> Result<(), Discard> {
        let entry = self.entry(place);
        let is_same = entry.is_some_and(|entry| entry.generation() == generation);
        is_same.then_some(()).ok_or(Discard::NotOpen)
    }

    /// Queues or forwards a packet that another path checked.
    pub(super) fn arrive(
        &mut self,
        of: (u32, u32),
        (direction, version, octets): (Direction, u8, &[u8]),
        now: Instant,
        headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) -> Result<(), Discard> {
        self.check(of)?;
        let place = of.0;
        // Queues that leave this path take packets until they are gone.
        let seat = self.seat(place).map(Lane::Here);
        let lane = seat.or_else(|| self.entry(place)?.lane());
        let packet = |out: &mut Vec<u8>| out.extend_from_slice(octets);
        if let Some(lane) = lane {
            let to = To {
                lane,
                direction,
                place,
                version,
            };
            if !self.passes(to, octets.len(), now, packet) {
                return Ok(());
            }
        }
        match direction {
            Direction::Down => self.leave(place, version, headers, outside, packet),
            Direction::Up => self.pass_inside(place, octets, inside),
        }
    }

    /// Adds a packet to the batch for another path.
    pub(super) fn hand_to(&mut self, path: u8, to: To, packet: impl FnOnce(&mut Vec<u8>)) {
        let Some(entry) = self.entry(to.place) else {
            return;
        };
        let of = (to.place, entry.generation());
        let kind = Kind::Queue(to.direction);
        if let Err(why) = self.hand_over(path, of, kind, to.version, packet) {
            self.drop_of(to.place, why);
        }
    }

    pub(super) fn hand_over(
        &mut self,
        path: u8,
        of: (u32, u32),
        kind: Kind,
        version: u8,
        packet: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Discard> {
        let open = self.handovers.open(path, false);
        let open = open.ok_or(Discard::Handover)?;
        open.push(of, kind, version, packet);
        self.counts().hand();
        Ok(())
    }
}
