//! Queues that move from one path to another, without loss and without a packet that overtakes another of its flow.
//!
//! | step | on the path that has the queues | on the path that gets them | on all others |
//! |---|---|---|---|
//! | [`Step::Shape`] | goes on; takes packets that other paths hand over | adds empty queues, and holds packets for them | hand packets to the new path |
//! | [`Step::Release`], once all paths have applied that | hands the queued packets over, then their counters | | |
//! | [`Kind::End`] arrives | | queues what it has held; the queues work | |
//!
//! A path's owner takes all batches that have arrived before it applies changes, and passes on all batches before it
//! reports changes as applied. So all earlier packets of a subscriber are in its old queue when that is released.
//!
//! Left out: a shape that is removed. Its queued packets are discarded when its path applies the change, so for that long
//! (under a millisecond in the daemon) a packet that already passes without queues may overtake one of the same flow.
//!
//! [`Step::Shape`]: super::change::Step::Shape
//! [`Step::Release`]: super::change::Step::Release
//! [`Kind::End`]: super::handover::Kind::End

use std::sync::Arc;

use base::Instant;
use hqos::{Counts, Direction, Plan, SubId};

use super::change::{Release, Shaping};
use super::entry::Lane;
use super::queues::{Queues, To};
use super::{Headers, Inside, Outside, Path};
use crate::access::Encapsulation;
use crate::counters::Discard;

/// Bytes of packets that a subscriber's new queues hold; later packets are dropped.
const HELD_MAX: usize = 1 << 20;

/// Packets for queues whose earlier packets are still on another path.
#[derive(Debug, Default)]
pub(crate) struct Held {
    octets: Vec<u8>,
    packets: Vec<(Direction, u8, u32)>,
}

impl Held {
    fn each(&self) -> impl Iterator<Item = (Direction, u8, &[u8])> {
        let mut rest = &self.octets[..];
        self.packets
            .iter()
            .map(move |&(direction, version, length)| {
                let (octets, behind) = rest.split_at(length as usize);
                rest = behind;
                (direction, version, octets)
            })
    }
}

impl<E: Encapsulation> Path<E> {
    pub(super) fn seat(&self, place: u32) -> Option<SubId> {
        Some(self.queues.as_ref()?.seat(place)?.id)
    }

    pub(super) fn set_plan(&mut self, plan: Arc<Plan>, now: Instant) {
        if let Some(queues) = &mut self.queues {
            let set = queues.set_plan(&plan, now);
            debug_assert!(set.is_ok(), "the edge has checked the plan");
        }
        self.plan = plan;
    }

    /// Adds or changes a subscriber's queues, if this path has them. `false` if there is no room.
    pub(super) fn shape(&mut self, shaping: &Shaping) -> bool {
        // Packets for the path that had the queues leave before those for the path that gets them.
        self.handovers.seal();
        let &Shaping {
            place,
            generation,
            shape,
            home,
            stay,
            moves,
            seed,
            now,
        } = shaping;
        if usize::from(home) != self.number {
            return true;
        }
        if self.queues.is_none() {
            let Ok(queues) = Queues::new(&self.plan, self.limits, seed, now) else {
                return false;
            };
            self.queues = Some(Box::new(queues));
        }
        let Some(queues) = &mut self.queues else {
            return false;
        };
        if let Some(seat) = queues.seat(place) {
            queues.change(seat.id, &shape, now);
            return true;
        }
        if queues.add(&shape, place, (generation, stay), now).is_none() {
            return false;
        }
        if moves {
            queues.held.insert(place, Held::default());
        }
        true
    }

    /// Removes a subscriber's queues.
    pub(super) fn unshape(&mut self, place: u32) {
        if let Some(queues) = &mut self.queues {
            queues.remove(place);
        }
    }

    /// Hands queues over, if they are on this path.
    pub(super) fn release(&mut self, release: &Release) {
        if usize::from(release.from) != self.number {
            return;
        }
        let Some(queues) = &mut self.queues else {
            return;
        };
        let (to, handovers) = (release.to, &mut self.handovers);
        for &(place, stay) in &release.of {
            let Some(seat) = queues.seat(place).filter(|seat| seat.stay == stay) else {
                continue;
            };
            let of = (place, seat.generation);
            let counts = queues
                .view(place, 0)
                .map(|views| views.map(|view| view.counts));
            let counts = counts.unwrap_or_default();
            queues.take_out(place, |direction, buffer| {
                handovers.push_moved(to, of, (direction, buffer.version), &buffer.octets);
            });
            queues.before.remove(&place);
            if let Some(held) = queues.held.remove(&place) {
                held.each().for_each(|(direction, version, octets)| {
                    handovers.push_moved(to, of, (direction, version), octets);
                });
            }
            handovers.end_moved(to, of, counts);
        }
    }

    /// Keeps a packet until those before it have arrived.
    pub(super) fn hold(&mut self, to: To, packet: impl FnOnce(&mut Vec<u8>)) {
        let queues = self.queues.as_mut();
        let Some(held) = queues.and_then(|queues| queues.held.get_mut(&to.place)) else {
            return;
        };
        if held.octets.len() >= HELD_MAX {
            self.drop_of(to.place, Discard::Handover);
            return;
        }
        let start = held.octets.len();
        packet(&mut held.octets);
        let length = (held.octets.len() - start) as u32;
        held.packets.push((to.direction, to.version, length));
    }

    /// Queues a packet that was in its queue on another path.
    pub(super) fn arrive_moved(
        &mut self,
        (place, generation): (u32, u32),
        (direction, version): (Direction, u8),
        octets: &[u8],
        now: Instant,
    ) {
        let Some(queues) = &mut self.queues else {
            return;
        };
        // Without its queues, the subscriber has lost its shape meanwhile, and with it the queued packets.
        let seat = queues.seat(place);
        let Some(seat) = seat.filter(|seat| seat.generation == generation) else {
            return;
        };
        let to = To {
            lane: Lane::Here(seat.id),
            direction,
            place,
            version,
        };
        queues.push(seat.id, to, now, |out| out.extend_from_slice(octets));
        self.count_lost();
    }

    /// The packets of queues that moved have arrived: now follow those that were held.
    pub(super) fn end_hold(
        &mut self,
        of: (u32, u32),
        counts: [Counts; 2],
        now: Instant,
        mut headers: Option<&mut impl Headers<E>>,
        outside: &mut impl Outside<E::Route>,
        inside: &mut impl Inside,
    ) {
        let Some(queues) = &mut self.queues else {
            return;
        };
        let seat = queues.seat(of.0);
        if seat.is_none_or(|seat| seat.generation != of.1) {
            return;
        }
        queues.before.insert(of.0, counts);
        let Some(held) = queues.held.remove(&of.0) else {
            return;
        };
        for one in held.each() {
            let headers = headers.as_deref_mut();
            if let Err(why) = self.arrive(of, one, now, headers, outside, inside) {
                self.drop_of(of.0, why);
            }
        }
    }
}
