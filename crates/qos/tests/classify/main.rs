//! Tests classifiers against simple models of tc-flow(8) and tc-u32(8), and against statistics.

mod filter;
mod hash;
mod keys;
mod map;
mod packets;
