//! Compares our decoders with other projects' decoders on the same bytes.
//!
//! This crate contains only tests, so that building headend does not require building those decoders:
//! bgpkit-parser for MRT files, NetGauze for BGP messages.
#![forbid(unsafe_code)]
