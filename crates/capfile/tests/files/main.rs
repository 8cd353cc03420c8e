//! Files of packets, built octet by octet and real ones, read as a user of the crate reads them.
#![forbid(unsafe_code)]

mod compressed;
mod erf;
mod etherpeek;
mod hostile;
mod mrt;
mod pcap;
mod pcapng;
mod real;
mod resync;
mod snoop;
mod statistics;
mod support;
mod tsh;
mod writing;
mod writing_pcapng;
