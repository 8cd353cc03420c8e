//! TOML files that operators write, read with places.
//!
//! An operator sees all faults of a file at once, each with line, column, key, what is wrong and what would be right.
//! A new kind of file needs a few lines:
//!
//! ```
//! use settings::{Notes, Section, document};
//!
//! let notes = Notes::new("[link]\nmtu = 20\nuq = \"2mbit\"\n");
//! let read = document(&notes).map(|root| {
//!     settings::only_sections(&root, 0, &["link"], &notes);
//!     let mut link = Section::open(&root, "link", &notes);
//!     let mtu = link.integer("mtu", 68..=65_535, "bytes");
//!     let up = link.string("up");
//!     link.finish();
//!     (mtu, up)
//! });
//! let faults = notes.finish(read).map(|_| ()).expect_err("two faults");
//! assert_eq!(
//!     faults.to_string(),
//!     "2:7: link.mtu: 20 is out of range; it must be 68 to 65535 bytes\n\
//!      3:1: link.uq: unknown key; did you mean up?"
//! );
//! ```
//!
//! | module | purpose | I/O |
//! |---|---|---|
//! | `fault` | one fault, all faults of a file, notes that collect them | none |
//! | `syntax` | parses TOML, explains syntax faults | none |
//! | `section` | one table; reports keys that nobody reads | none |
//! | `value`, `list` | the values of a section | none |
//! | `units` | rates, and numbers with units | none |
//! | `record` | keys and values of two readings, compared | none |
//! | `file` | reads a text file with a size limit | yes |
//! | `secret` | secrets from the file itself or from a private file | yes |
//!
//! This crate knows no key: the crate that reads a kind of file knows its keys. Start reading in `section`.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod fault;
mod file;
mod list;
mod record;
pub mod secret;
mod section;
mod syntax;
#[cfg(test)]
mod tests;
pub mod units;
mod value;

pub use fault::{FAULTS_MAX, Fault, Faults, Notes, Place, Words};
pub use file::{beside, network_names, text_of, utf8};
pub use record::{Difference, Key, Record, Value};
pub use section::{At, Section, only_sections};
pub use syntax::{document, part};
pub use value::{choose, set};
