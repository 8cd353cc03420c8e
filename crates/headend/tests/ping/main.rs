//! Tests `headend ping` from its user's view: text, exit status, files. All traffic is on loopback.

mod errors;
mod files;
mod peer;
mod plots;
mod support;
mod texts;
mod udp;
mod wire;
