//! What the translation of active FTP (RFC 959, RFC 2428) needs to know of a control connection: commands in its text, and
//! where the text was changed. [`crate::nat`] has the packets.
//!
//! | file | what it has |
//! |---|---|
//! | `command` | PORT and EPRT |
//! | `stream` | sequence numbers of a text that was changed |
//!
//! Left out: passive servers behind the NAT, whose replies name an address, because a port is forwarded to a server at
//! best; control connections to ports other than 21; TLS (RFC 4217), whose text nobody can read.

pub(crate) mod command;
pub(crate) mod stream;

/// The port of control connections (RFC 959 section 3.2 calls it L).
pub(crate) const PORT: u16 = 21;
/// The server's port for data connections (RFC 959 section 3.2: L-1).
pub(crate) const DATA_PORT: u16 = 20;
