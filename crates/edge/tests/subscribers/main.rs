//! Subscribers connect, receive their settings, and end; every end releases all resources.
#![forbid(unsafe_code)]

mod coming;
mod packets;
mod paths;
mod queues;
mod several;
mod shaped;
mod speed;
mod stage;
mod tapped;
