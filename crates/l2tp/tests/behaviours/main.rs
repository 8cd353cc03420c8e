//! How an endpoint behaves before a peer, behaviour by behaviour: each test's
//! name begins with the number of what it shows, and quotes the RFC for it.
#![forbid(unsafe_code)]

mod authentication;
mod chaos;
mod common;
mod config_ids;
mod hiding;
mod keepalive;
mod mac;
mod ports;
mod reliable;
mod requests;
mod sessions;
mod storms;
mod teardown;
mod ties;
mod version3;
