//! The rows of every `show`. Each carries its schema's name and version; a field may be added to a version, and
//! removing one or changing its meaning makes the next.
//!
//! | file | rows |
//! |---|---|
//! | `declare` | how a row is declared: struct, schema, kinds of fields, headings |
//! | `tunnels` | tunnels, sessions, peers, counters |
//! | `events` | the event loop: waits, timers, handlers, shards; the server |
//! | `now` | the state of the whole daemon in one row, and its past |
//! | `subscribers` | subscribers, pools, captures |
//! | `nat` | translation of addresses |
//! | `queues` | queues of subscribers |
//! | `services` | RADIUS servers, filters |
//! | `bgp` | routers, peers, routes |
//! | `emulate` | a running emulation |
//! | `qos` | a running shaper |

#[macro_use]
mod declare;
mod bgp;
mod emulate;
mod events;
mod nat;
mod now;
mod qos;
mod queues;
mod services;
mod subscribers;
#[cfg(test)]
mod tests;
mod tunnels;

use std::fmt::Display;

use serde::Serializer;

pub use bgp::*;
pub use declare::{Field, Kind, Layout, RowType, Shown, Unit};
pub use emulate::*;
pub use events::*;
pub use nat::*;
pub use now::*;
pub use qos::*;
pub use queues::*;
pub use services::*;
pub use subscribers::*;
pub use tunnels::*;

/// Every type of row.
pub const TYPES: &[RowType] = &[
    Tunnel::TYPE,
    Session::TYPE,
    Peer::TYPE,
    Ended::TYPE,
    Counter::TYPE,
    Descriptor::TYPE,
    Waits::TYPE,
    Timers::TYPE,
    LatenessClass::TYPE,
    Handler::TYPE,
    Overrun::TYPE,
    Shard::TYPE,
    SysCall::TYPE,
    Server::TYPE,
    ReloadChange::TYPE,
    Reload::TYPE,
    Kernel::TYPE,
    PppoeInterface::TYPE,
    Nat::TYPE,
    NatSubscriber::TYPE,
    NatForward::TYPE,
    NatWho::TYPE,
    Now::TYPE,
    History::TYPE,
    Subscriber::TYPE,
    Detail::TYPE,
    EndedSubscriber::TYPE,
    Dropped::TYPE,
    Queue::TYPE,
    QueueHost::TYPE,
    SubscriberSet::TYPE,
    Pool::TYPE,
    PrefixPool::TYPE,
    Outside::TYPE,
    Capture::TYPE,
    CaptureEnd::TYPE,
    RadiusServer::TYPE,
    Radius::TYPE,
    Filter::TYPE,
    FilterLine::TYPE,
    BgpSummary::TYPE,
    BgpNeighbor::TYPE,
    BgpNeighborDetail::TYPE,
    BgpRoute::TYPE,
    BgpPath::TYPE,
    BgpRib::TYPE,
    BgpEvent::TYPE,
    BgpHold::TYPE,
    EmulateProgress::TYPE,
    EmulateInjected::TYPE,
    EmulateWaits::TYPE,
    EmulateHandler::TYPE,
    QosRun::TYPE,
    QOS_SHOWN,
    QosNodeRow::TYPE,
    QosReloaded::TYPE,
    QosRate::TYPE,
    QosHosts::TYPE,
    QosHost::TYPE,
];

/// The type of row with this schema; none if only another version of headend knows it.
pub fn row_type(schema: &str) -> Option<&'static RowType> {
    TYPES.iter().find(|row| row.schema == schema)
}

/// Writes the text of a value without a copy of it.
fn text<S: Serializer>(value: &&dyn Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same for a value that may be absent.
fn maybe_text<S: Serializer>(
    value: &Option<&dyn Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
