//! A RADIUS client with servers that answer, are silent, are slow or send wrong replies (RFC 2865, RFC 2866,
//! RFC 5080).

mod accounts;
mod coa;
mod dynauth;
mod exchange;
mod lab;
mod proofs;
mod reload;
mod servers;
mod storms;
