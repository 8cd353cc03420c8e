//! Routers by the thousand in one process, each a speaker of `bgp`, in real or in virtual time.
#![forbid(unsafe_code)]

mod event;
mod files;
mod scenario;
pub mod topology;

pub use event::{Action, Event};
pub use scenario::{Authorisation, ClockKind, Fault, Scenario};
pub use topology::Topology;
