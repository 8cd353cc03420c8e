//! Tests of links against each other, and against hand-written packets.

mod by_hand;
mod eap;
mod floods;
mod harness;
mod hostile;
mod mschap;
mod options;
mod pair;
mod phases;
mod proofs;
mod proxied;
mod resumed;
mod simulation;
mod snapshot;
mod timers;
mod twins;
