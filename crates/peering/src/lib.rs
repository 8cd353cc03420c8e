//! BGP speakers on TCP: who listens, who dials, and whose turn it is to read and to write.
//!
//! A [`Peering`] has the sockets of one [`Speaker`](bgp::Speaker). The loop around it owns the reactor, which several
//! of them may share, and the [`Buffers`] of a turn. In each turn the loop passes ready descriptors to
//! [`Peering::ready`], fires the speaker's timers, passes the speaker's events to [`Peering::act`], which dials and
//! closes, and calls [`Peering::write`].
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
