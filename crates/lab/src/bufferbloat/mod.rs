//! The bufferbloat test: what load adds to the delay of other packets.
//!
//! | module | contents |
//! |---|---|
//! | `run` | what one run measured: phases, pings, rates |
//! | `account` | medians, percentiles and rates of each phase |
//! | `grade` | grades, and where their thresholds come from |
//! | `verdict` | the result in one sentence, and rates for a shaper |
//! | `file` | the JSON document `lab.bufferbloat/1`, written and read |
//! | `flent` | flent's data files, written and read |
//! | `charts` | delay and throughput over time as one picture or page |
//!
//! Sockets, streams and the command line are in `tools/lab`. Start with [`Run`].

mod account;
mod charts;
mod file;
mod flent;
mod grade;
mod run;
#[cfg(test)]
mod tests;
mod verdict;

pub use account::{Account, Delay, accounts};
pub use charts::{page, stack};
pub use file::{ReadError, SCHEMA, document, read};
pub use flent::{read as read_flent, write as write_flent};
pub use grade::{Grade, SOURCE};
pub use run::{Kind, Load, Phase, Pings, Run, pings_of};
pub use verdict::Verdict;
