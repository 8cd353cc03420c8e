//! Ping experiments without I/O: when each stream sends, what became of each packet, and what that amounts to.
#![forbid(unsafe_code)]
