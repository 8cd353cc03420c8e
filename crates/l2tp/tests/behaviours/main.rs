//! How an endpoint behaves before a peer, behaviour by behaviour: each test's
//! name begins with the number of what it shows, and quotes the RFC for it.
#![forbid(unsafe_code)]

mod authentication;
mod common;
mod hiding;
mod keepalive;
mod mac;
mod ports;
mod reliable;
mod requests;
mod sessions;
mod teardown;
mod ties;
mod version3;
