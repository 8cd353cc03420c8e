//! Subscribers connect, receive their settings, and end; every end releases all resources.
#![forbid(unsafe_code)]

mod coming;
mod cores;
mod gardens;
mod packets;
mod paths;
mod policy;
mod queues;
mod several;
mod shaped;
mod speed;
mod stage;
mod tapped;
mod translated;
mod translated_several;
mod uplinks;
mod v6;
