//! Sessions are handed over to LNSs: by realm, by profile and by line; over PPPoE and from tunnel to tunnel. LNSs fail,
//! datagrams get lost, and no session stays on one side alone.
#![forbid(unsafe_code)]

mod changed;
mod chaos;
mod handed;
mod paths;
mod world;
