//! What operators were promised: keys of packets as they come, hosts' shares, rates over any second.

mod keys;
mod rates;
mod shares;
