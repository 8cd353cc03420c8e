//! What other people's decoders read of the same octets, held against what ours read.
//!
//! There is nothing here but tests, so that nobody else who builds headend has to build those decoders: bgpkit-parser for
//! MRT files, NetGauze for BGP messages.
#![forbid(unsafe_code)]
