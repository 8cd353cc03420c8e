//! BGP speakers on TCP: who listens, who dials, and whose turn it is to read and to write.
//!
//! A [`Peering`] has the sockets of one [`Speaker`]; the loop around it owns the reactor, which many of them may share,
//! and the [`Buffers`] of a turn. In each turn the loop hands [`Peering::ready`] what is ready, lets the speaker's
//! timers fire, and calls [`Peering::work`], which dials, closes and writes what the speaker asks for.
//!
//! Nothing is kept for a connection that waits but its descriptor. What a stream does not take stays in a buffer of its
//! own, and nothing more is made for it until that has gone.
#![forbid(unsafe_code)]

mod connection;

mod listener;

pub mod show;

mod turn;

pub use listener::{Listen, Signature};
pub use turn::{Buffers, Counts, Peering};
