//! Tests what the documentation promises operators: keys of packets, shares of hosts, and rates over any second.

mod keys;
mod rates;
mod shares;
