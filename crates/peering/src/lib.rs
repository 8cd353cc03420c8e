//! BGP speakers on TCP: listening, connecting, and fair turns for reading and writing.
//!
//! A [`Peering`] has the sockets of one [`Speaker`](bgp::Speaker). The loop around it owns the reactor, which many peerings may
//! share, and the [`Buffers`] of a turn. In each turn the loop calls [`Peering::ready`] for each ready descriptor,
//! fires the speaker's timers, and calls [`Peering::act`] and [`Peering::write`] to connect, close and write as the speaker asks.
//!
//! An idle connection costs no memory here beyond its descriptor and a small record. If a stream does not accept all
//! data, the rest is stored for that connection, and no more messages are written for it until the rest is sent.
#![forbid(unsafe_code)]

mod connection;

mod listener;

pub mod show;

mod read;

mod turn;

mod write;

pub use listener::{Listen, Signature};
pub use read::Buffers;
pub use turn::{Counts, Peering};
