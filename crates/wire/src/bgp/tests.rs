//! Golden messages read and written, every case of RFC 7606, two-octet AS numbers, packing.

mod as4;
mod messages;
mod packing;
mod revised;
mod round_trips;
