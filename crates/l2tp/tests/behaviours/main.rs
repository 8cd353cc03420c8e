//! An endpoint's behaviour towards a peer, one behaviour at a time. Each test's name starts with the number of
//! the behaviour, and its comment quotes the RFC.
#![forbid(unsafe_code)]

mod authentication;
mod calls;
mod causes;
mod chaos;
mod common;
mod data;
mod digests;
mod establishment;
mod floods;
mod hiding;
mod idle;
mod ids;
mod keepalive;
mod limits;
mod mac;
mod ordered;
mod ports;
mod pseudowires;
mod reasons;
mod recovery;
mod reliable;
mod requests;
mod resumed;
mod sequence;
mod sessions;
mod snapshots;
mod speeds;
mod storms;
mod teardown;
mod ties;
mod twins;
mod versions;
mod windows;
