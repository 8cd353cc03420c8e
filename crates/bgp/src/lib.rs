//! BGP-4 (RFC 4271) without I/O, clock or randomness of its own: the machine of a router, its sessions, its routes.
#![forbid(unsafe_code)]
