//! Tests of links against each other, and against hand-written packets.

mod by_hand;
mod floods;
mod harness;
mod options;
mod pair;
mod phases;
mod proofs;
mod proxied;
mod simulation;
mod timers;
