//! How an endpoint behaves before a peer, behaviour by behaviour: each test's
//! name begins with the number of what it shows, and quotes the RFC for it.
#![forbid(unsafe_code)]

mod authentication;
mod calls;
mod chaos;
mod common;
mod data;
mod digests;
mod establishment;
mod hiding;
mod ids;
mod keepalive;
mod limits;
mod mac;
mod ports;
mod pseudowires;
mod reasons;
mod recovery;
mod reliable;
mod requests;
mod sequence;
mod sessions;
mod storms;
mod teardown;
mod ties;
mod versions;
mod windows;
