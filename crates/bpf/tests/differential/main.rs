//! Programs in this kernel give the answers of `qos::classify`, for thousands of frames.
//!
//! Without the privilege to load programs, these tests print that they were skipped; as root they fail.

#[path = "../../../wire/src/flow/tests/build.rs"]
mod build;
mod frames;
mod kernel;
mod policies;
mod rest;
