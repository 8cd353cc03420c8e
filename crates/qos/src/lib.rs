//! Queue disciplines: which packets wait, which are dropped, and which leaves next. Start with [`tree`] for use and
//! [`registry`] for the list of disciplines.
//!
//! ```text
//! let mut pool = Pool::new(10_000);
//! let mut tree = Tree::new(&spec, seed, now)?;           // disciplines, nested
//! if let Some(id) = pool.insert(packet) {                // keys were read once, by `wire::flow`
//!     tree.enqueue(&mut pool, id, now);                  // may discard this packet or another
//! }
//! while let Some(id) = tree.dequeue(&mut pool, now) {    // what may leave now
//!     let packet = pool.take(id);                        // its handle, and whether to mark it
//! }
//! for lost in pool.discarded() {}                        // handles to give back
//! let wake = tree.next_time(now);                        // when to ask again
//! ```
//!
//! This crate does no I/O, reads no clock and draws no random numbers: time and seeds are arguments. A packet's bytes
//! stay with the caller; the queues hold a handle.
#![forbid(unsafe_code)]

mod account;
pub mod bucket;
pub mod classifier;
pub mod classify;
pub mod codel;
pub mod discipline;
pub mod drr;
pub mod fair;
pub mod fattest;
pub mod fifo;
pub mod fq_codel;
pub mod htb;
pub mod packet;
pub mod pfifo_fast;
pub mod plan;
pub mod policy;
pub mod prio;
pub mod queue;
pub mod registry;
mod round;
pub mod sfq;
pub mod tbf;
pub mod tree;
pub mod units;

pub use discipline::{Backlog, Class, Classify, Discipline, Statistics};
pub use packet::{Id, List, Packet, Pool, Reason};
