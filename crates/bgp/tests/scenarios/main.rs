//! Speakers in a small simulated network of streams, in virtual time.

mod bring_up;
mod dynamic;
mod events;
mod first_as;
mod hand;
mod keeping;
mod losses;
mod net;
mod refresh;
mod reload;
mod routes;
