//! Subscribers come, get what is theirs, and go; each end gives everything back.
#![forbid(unsafe_code)]

mod coming;
mod packets;
mod paths;
mod stage;
mod tapped;
