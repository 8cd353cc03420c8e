//! What the analyser has to get right, each behaviour by its name: scripted conversations of two hosts, packet by
//! packet.

mod acknowledgments;
mod bounds;
mod copies;
mod encapsulations;
mod flight;
mod handshakes;
mod loss;
mod memory;
mod partitions;
mod sequence;
mod statistics;
mod support;
mod time;
mod windows;
