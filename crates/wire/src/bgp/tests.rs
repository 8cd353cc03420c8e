//! Golden messages both ways; every case of RFC 7606; AS numbers of two octets; packing.

mod as4;
mod messages;
mod packing;
mod revised;
mod round_trips;
