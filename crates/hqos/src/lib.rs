//! Hierarchical queues for subscribers of an edge.
//!
//! [`spec`] has the values that an operator decides: rates, templates, shared links.
//!
//! This crate does no I/O, reads no clock and draws no random numbers: time and seeds are arguments.
#![forbid(unsafe_code)]

pub mod spec;
