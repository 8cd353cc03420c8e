//! Changes that an edge sends its paths, to be applied in order.

use core::net::IpAddr;
use std::sync::Arc;

use base::Instant;
use filter::{FilterSet, Hits};
use hqos::{Plan, Shape};
use nat::Range;

use super::asked::Inquiry;
use super::look::Look;
use super::{Crossing, Entry, Path, TapId};
use crate::access::{Access, Encapsulation, L2tp};
use crate::garden::Gardens;
use crate::key::SubscriberKey;

/// A change of a path.
#[derive(Clone, Debug)]
pub struct Change<E: Encapsulation = <L2tp as Access>::Encapsulation>(pub(crate) Step<E>);

#[derive(Clone, Debug)]
pub(crate) enum Step<E: Encapsulation> {
    /// Adds or replaces a subscriber's entry: its packets may pass.
    Put(u32, Box<Entry<E>>),
    /// Removes an entry.
    Remove(u32),
    /// Adds or replaces a switched subscriber.
    Cross(u32, Box<Crossing<E>>),
    /// Removes a switched subscriber.
    Uncross(u32),
    /// Adds a route to a subscriber.
    Route(Table, IpAddr, u8, u32),
    /// Removes a route.
    Unroute(Table, IpAddr, u8, u32),
    /// Replaces the filters, and the counters of their lines.
    Filters(Arc<FilterSet>, Arc<[Hits]>),
    /// Replaces the walled gardens.
    Gardens(Arc<Gardens>),
    /// Whether packets that rules log are queued.
    Logs(bool),
    /// Whether packets from one subscriber to another are dropped.
    Isolate(bool),
    /// The tapped subscribers, by tap.
    Taps(Arc<[(TapId, SubscriberKey)]>),
    /// Replaces templates and shared links of queues.
    Plan(Arc<Plan>, Instant),
    /// Adds a subscriber's queues, or changes their shape.
    Shape(Box<Shaping>),
    /// Removes a subscriber's queues with their packets.
    Unshape(u32),
    /// Gives queues that moved, with their packets, to another path.
    Release(Arc<Release>),
    /// Asks for the state of a subscriber's queues.
    Look(Look),
    /// Changes the NATs, or asks them.
    Nat(Arc<NatStep>),
}

/// A change of all paths' NATs.
#[derive(Debug)]
pub(crate) enum NatStep {
    /// Inside addresses that are translated.
    Inside(Vec<Range>),
    /// Settings, as they are for all paths together.
    Config(Box<nat::Config>),
    /// A question, or a command with an answer.
    Ask(Inquiry),
}

/// A subscriber's queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaping {
    pub(crate) place: u32,
    pub(crate) generation: u32,
    pub(crate) shape: Shape,
    /// The path that has them from now on.
    pub(crate) home: u8,
    /// Numbers the stay of queues on a path.
    pub(crate) stay: u32,
    /// Whether another path still has packets of them.
    pub(crate) moves: bool,
    /// Of all trees.
    pub(crate) seed: u64,
    pub(crate) now: Instant,
}

/// Queues that one path gives to another.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) from: u8,
    pub(crate) to: u8,
    /// Places and stays of subscribers.
    pub(crate) of: Vec<(u32, u32)>,
}

/// Which table of prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    /// Subscribers by destinations.
    Subscribers,
    /// Our own addresses as a client, by sources.
    Own,
}

impl<E: Encapsulation> Path<E> {
    /// Applies a change.
    pub fn apply(&mut self, change: Change<E>) {
        self.step(change.0);
    }

    /// Applies a step. `false` if it cannot be applied: another subscriber has the prefix, or the table is full.
    pub(crate) fn step(&mut self, step: Step<E>) -> bool {
        match step {
            Step::Put(place, entry) => self.put(place, *entry),
            Step::Remove(place) => self.take_out(place),
            Step::Cross(place, crossing) => self.crossings.put(place, crossing),
            Step::Uncross(place) => self.crossings.take_out(place),
            // A client may get its address again before the edge learns that the earlier session ended.
            Step::Route(Table::Own, address, length, place) => {
                return self.own.replace(address, length, place).is_ok();
            }
            Step::Route(Table::Subscribers, address, length, place) => {
                return self.routes.insert(address, length, place).is_ok();
            }
            Step::Unroute(Table::Own, address, length, place) => {
                return self.own.remove(address, length, place);
            }
            Step::Unroute(Table::Subscribers, address, length, place) => {
                return self.routes.remove(address, length, place);
            }
            Step::Filters(set, hits) => self.filters.set_to(set, hits),
            Step::Gardens(gardens) => self.gardens = gardens,
            Step::Logs(logs) => self.filters.log(logs),
            Step::Isolate(isolate) => self.isolate = isolate,
            Step::Taps(on) => self.copies.set_on(&on),
            Step::Plan(plan, now) => self.set_plan(plan, now),
            Step::Shape(shaping) => return self.shape(&shaping),
            Step::Unshape(place) => self.unshape(place),
            Step::Release(release) => self.release(&release),
            Step::Look(look) => self.look(&look),
            Step::Nat(step) => return self.nat_step(&step),
        }
        true
    }
}
