//! What an edge tells its paths: one step each, to be taken in order.

use core::net::IpAddr;
use std::sync::Arc;

use filter::{FilterSet, Hits};

use super::{Entry, Path, TapId};
use crate::access::{Access, Encapsulation, Served};
use crate::key::SubscriberKey;

/// A step that a path takes.
#[derive(Clone, Debug)]
pub struct Change<E: Encapsulation = <Served as Access>::Encapsulation>(pub(crate) Step<E>);

#[derive(Clone, Debug)]
pub(crate) enum Step<E: Encapsulation> {
    /// A subscriber's packets may pass, or differently from now on.
    Put(u32, Box<Entry<E>>),
    /// They may not any more.
    Remove(u32),
    /// A prefix leads to a subscriber.
    Route(Table, IpAddr, u8, u32),
    /// It does not any more.
    Unroute(Table, IpAddr, u8, u32),
    /// Other filters, and where each path counts their lines.
    Filters(Arc<FilterSet>, Arc<[Hits]>),
    /// Whether somebody writes down what rules want logged.
    Logs(bool),
    /// Who is looked at by whom.
    Taps(Arc<[(TapId, SubscriberKey)]>),
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
    /// Takes a step of its edge.
    pub fn apply(&mut self, change: Change<E>) {
        self.step(change.0);
    }

    /// Takes a step, and says whether it could: a prefix may be held already, or the table be full.
    pub(crate) fn step(&mut self, step: Step<E>) -> bool {
        match step {
            Step::Put(place, entry) => self.put(place, *entry),
            Step::Remove(place) => self.take_out(place),
            // A client's address may be had again before it is known that the one before is gone.
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
            Step::Logs(logs) => self.filters.log(logs),
            Step::Taps(on) => self.copies.set_on(&on),
        }
        true
    }
}
