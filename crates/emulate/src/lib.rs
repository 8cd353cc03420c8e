//! Routers by the thousand in one process, each a speaker of `bgp`, in real or in virtual time.
//!
//! | module | what it is |
//! |---|---|
//! | `scenario` | a TOML file becomes a [`Scenario`], or the list of its [`Fault`]s |
//! | [`topology`] | routers and links: mesh, ring, tree, fabric, random graph, AS relationships |
//! | `event` | what can happen; `world::steps` is what it comes down to |
//! | `world` | the routers and all that is under way between them, by a calendar |
//! | `observer` | what is noted meanwhile |
//! | `results` | JSON, CSV, SVG, one HTML page |
//! | `emulation` | all of that from outside: an [`Emulation`] |
//!
//! The state machines and the octets are the real ones; in memory only TCP is left out, and what it would do: segments,
//! retransmissions, windows. A run is that of its scenario and seed, to the bit.
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
pub use scenario::{Authorisation, ClockKind, Fault, Scenario};
pub use topology::Topology;
