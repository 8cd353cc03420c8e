//! Links against each other, and against packets written by hand.

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
