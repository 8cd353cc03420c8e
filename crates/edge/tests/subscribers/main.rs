//! Subscribers connect, receive their settings, and end; every end releases all resources.
#![forbid(unsafe_code)]

mod coming;
mod packets;
mod paths;
mod shaped;
mod queues;
mod stage;
mod tapped;
