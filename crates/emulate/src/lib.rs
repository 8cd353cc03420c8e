//! Routers by the thousand in one process, each a speaker of `bgp`, in real or in virtual time.
//!
//! | module | what it is |
//! |---|---|
//! | `scenario` | a TOML file becomes a [`Scenario`], or the list of its faults |
//! | [`topology`] | routers and links: mesh, ring, tree, fabric, random graph, AS relationships |
//! | `event` | the events of a scenario; `world::steps` are the changes that an event makes |
//! | `world` | the routers, and a calendar of the messages under way between them |
//! | `observer` | the counts and shares recorded during a run |
//! | `results` | JSON, CSV, SVG, one HTML page |
//! | `emulation` | the public entry point: an [`Emulation`] |
//!
//! The state machines and the bytes of messages are the real ones. In memory TCP is left out, with its segments,
//! retransmissions and windows. The same scenario and seed give a bit-identical run.
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
mod real;
mod results;
mod scenario;
pub mod topology;
mod world;

pub use emulation::{Emulation, Progress, Recording};
pub use event::{Action, Event};
pub use real::{Fleet, LoopStats};
pub use results::{Activity, AddressResult, EventResult, Results, RouterResult, Share};
pub use scenario::{Authorisation, ClockKind, Scenario};
pub use topology::Topology;
