//! What the importers of other programs' files share: `headend import` and `headend qos import`.
//!
//! An importer reads a [`source::Source`], reports the [`Fate`] of each option to a [`Report`], and sets keys of a
//! [`Document`], which keeps the origin of each key. [`repair`] then lets the reader of the result judge it, and removes
//! and reports what that reader refuses. This crate knows no option of any source, and no key of any result.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `report` | what became of each option | none |
//! | `document` | TOML with the origin of each key | none |
//! | `source` | a text with the places of its lines | reads files |
//! | `repair` | a result that its reader accepts | none |
#![forbid(unsafe_code)]

pub mod document;
mod repair;
pub mod report;
pub mod source;

pub use document::{Document, Entry, Origin, Table, Value};
pub use repair::{Wrong, repair, take_back, wrong};
pub use report::{Fate, Line, Place, Report, Rule};
pub use source::Source;
