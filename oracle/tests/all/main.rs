//! Other decoders against ours, in one binary.
#![forbid(unsafe_code)]

mod messages;
mod mrt;
