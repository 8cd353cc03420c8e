//! The home-gateway experiment: two hosts behind a slow link, how they affect each other, and how
//! queues change that. Start with `rows` for the six settings, then `run`.
//!
//! | module | contents |
//! |---|---|
//! | `rows` | the six rows of the published table, and its figures |
//! | `treatment` | the link, and queues by name |
//! | `engine` | what shapes: our queues, or those of the kernel |
//! | `topology`, `bridge`, `stage` | the hosts in namespaces, the boxes between them, and a run of both |
//! | `traffic`, `pinger` | loads and probes of hosts in namespaces |
//! | `model` | the same hosts, loads and probes in virtual time |
//! | `run`, `stop` | a row in either place, and ending it early |
//! | `experiments`, `tunnel` | tunnels, bands and SFQ's perturb |
//! | `outcome`, `targets`, `report` | the results as a value, compared with targets, and as a report |

mod bridge;
pub mod engine;
pub mod experiments;
pub mod model;
pub mod outcome;
mod pinger;
pub mod report;
pub mod rows;
pub mod run;
mod stage;
pub mod stop;
pub mod targets;
pub mod topology;
pub mod traffic;
pub mod treatment;
mod tunnel;

pub use stage::Error;
