//! TOML files that operators write, read with places.
//!
//! [`Notes`] collects every fault of a file with its line and key; [`Section`] reads one table key by key and reports
//! every key that nobody reads. An operator sees all faults of a file at once, each with its remedy.
//!
//! | file | purpose |
//! |---|---|
//! | `file` | reads a text file with a size limit |
//! | `fault` | one fault, and all faults of a file |
//! | `reader` | the tables of a document, key by key |
//! | `secret` | secrets from the file itself or from a private file |
//!
//! This crate knows no key: which keys a file has is for the crate that reads it.
#![forbid(unsafe_code)]

mod fault;
mod file;
mod reader;
pub mod secret;

pub use fault::{Fault, Faults, Notes};
pub use file::{network_names, text_of};
pub use reader::{At, Section, set, unknown_key};
