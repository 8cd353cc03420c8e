//! Random trees of every discipline, nested, under random load and changes, in virtual time.
//!
//! What is known of a tree here comes from its [`Spec`](qos::tree::Spec) alone: which way a packet goes, which rates it
//! passes, which bands go before it.

mod changes;
mod starvation;
mod trees;
mod way;
mod world;
