//! Random trees of every discipline, nested, under random load and changes, in virtual time.
//!
//! The tests derive what they expect from the tree's [`Spec`](qos::tree::Spec) alone: a packet's path, the rates it
//! passes, and the bands that take precedence.

mod changes;
mod starvation;
mod trees;
mod way;
mod world;
