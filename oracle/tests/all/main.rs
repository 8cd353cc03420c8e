//! Other decoders compared with ours, in one test binary.
#![forbid(unsafe_code)]

mod messages;
mod mrt;
