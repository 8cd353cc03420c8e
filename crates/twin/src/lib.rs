//! A twin of a congested path: infers the bottleneck from the packets of a capture, and runs the flows again, closed
//! loop and in virtual time, through that bottleneck or through another queue.
//!
//! | module | what it has |
//! |---|---|
//! | [`tap`] | a [`Tap`] turns the packets of one direction into a [`Flow`]: sends, ACKs, round trips, losses |
//! | [`path`] | [`Path::infer`]: rate, base round trip, buffer, losses and cross traffic, each with an interval |
//! | [`demand`] | what each flow asks of the path: bytes, pauses, receiver's window, congestion control |
//! | [`tcp`] | TCP's sender and receiver as values |
//! | [`mod@line`] | the bottleneck: a queue discipline of `qos` and a rate |
//! | [`world`] | flows and bottleneck on a virtual clock; the result is again a list of [`Flow`]s |
//! | [`model`] | a [`Twin`]: all of it together |
//! | [`figures`] | throughput, round trips and losses of flows, and the error between two lists of flows |
//!
//! A captured flow and a simulated flow have the same form, so that both are measured by the same code.
//!
//! Times are in nanoseconds since the first packet. The crate does no I/O and reads no clock; all chance comes from a
//! seed. Left out: congestion in both directions at once (ACKs of a twin never wait), reordering, ECN.
//!
//! RFC 5681, 6582, 6675, 6937 and 8985 (loss recovery), 6298 (time-out), 9438 (CUBIC).
#![forbid(unsafe_code)]

pub mod demand;
pub mod figures;
pub mod line;
pub mod model;
pub mod path;
mod rank;
pub mod tap;
pub mod tcp;
pub mod world;

pub use demand::Demand;
pub use figures::Figures;
pub use model::{Captured, NoTwin, Twin};
pub use path::{Path, Refusal};
pub use tap::{Flow, Tap};
pub use world::{Run, run};
