//! What an endpoint does, by the RFCs, packet by packet; and whole networks in virtual time.
#![forbid(unsafe_code)]

mod chaos;
mod client;
mod common;
mod cookies;
mod delay;
mod discovery;
mod faults;
mod floods;
mod limits;
mod lines;
mod payload;
mod sessions;
mod terminate;
