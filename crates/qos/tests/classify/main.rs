//! Classifiers against straightforward models of what tc-flow(8) and tc-u32(8) say, and against statistics.

mod filter;
mod hash;
mod keys;
mod map;
mod packets;
