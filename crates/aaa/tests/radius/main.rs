//! A RADIUS client among servers that answer, are silent, slow or lie (RFC 2865, RFC 2866, RFC 5080).

mod accounts;
mod dynauth;
mod exchange;
mod lab;
mod servers;
