//! How worlds, links and records behave, in one binary.
#![forbid(unsafe_code)]

mod determinism;
mod links;
mod records;
mod toy;
mod worlds;
