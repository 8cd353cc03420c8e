//! `headend ping` as its users see it: text, exit status, files. All traffic is on loopback.

mod errors;
mod files;
mod peer;
mod plots;
mod support;
mod texts;
mod udp;
mod wire;
