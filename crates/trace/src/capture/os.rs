//! What differs between operating systems: kinds of files, standard input, and unnamed files.
//!
//! wasm32 has no files: there, captures come from readers ([`super::Captures::from_readers`]), and connections beyond
//! the memory limit are an error.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(super) use unix::{is_pipe, read_exact_at, standard_input, unnamed_file, write_all_at};

#[cfg(not(unix))]
mod none;
#[cfg(not(unix))]
pub(super) use none::{is_pipe, read_exact_at, standard_input, unnamed_file, write_all_at};
