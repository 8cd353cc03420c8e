//! Links against each other, and against packets written by hand.

mod by_hand;
mod harness;
mod lossy;
mod pair;
