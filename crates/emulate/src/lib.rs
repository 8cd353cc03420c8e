//! Emulates thousands of BGP routers in one process, each a speaker of the `bgp` crate, in real or
//! in virtual time.
//!
//! Start with [`Emulation`], then read `world`, where the routers run.
//!
//! | module | contents |
//! |---|---|
//! | `scenario` | reads a TOML file into a [`Scenario`], or lists its [faults](settings::Faults) |
//! | [`topology`] | routers and links: mesh, ring, tree, fabric, random graph, AS relationships |
//! | `event` | the events that a scenario may contain; `world::steps` carries them out |
//! | `world` | the routers and the messages in flight between them, driven by a calendar |
//! | `observer`, `outcomes` | what is recorded during a run |
//! | `results` | JSON, CSV, SVG, one HTML page |
//! | `emulation` | the public interface: an [`Emulation`] |
//!
//! The state machines and the encoded messages are the real ones. Links in memory leave out TCP
//! only: segments, retransmissions, windows. The same scenario and seed give a bit-identical run.
//!
//! ```
//! use emulate::{Emulation, Scenario};
//!
//! let text = "run_s = 10\n[topology]\nkind = \"ring\"\nrouters = 5\n[routers]\noriginate = true\n";
//! let mut emulation = Emulation::new(Scenario::load(text, "ring.toml").expect("it is right"));
//! emulation.run();
//! let results = emulation.finish();
//! assert_eq!((results.endpoints_up, results.sessions_lost), (10, 0));
//! ```
//!
//! Left out: forwarding of packets.
#![forbid(unsafe_code)]

mod emulation;
mod event;
mod files;
mod observer;
mod outcomes;
mod real;
mod results;
mod scenario;
pub mod topology;
mod world;

pub use emulation::{Emulation, LoopStats, Progress, Recording};
pub use event::{Action, Event};
pub use real::Fleet;
pub use results::{
    Activity, AddressResult, EventResult, OutcomeResult, Results, RouterResult, Share, ShareMean,
};
pub use scenario::{Authorisation, ClockKind, OverrideError, Scenario, with_value};
pub use topology::Topology;
