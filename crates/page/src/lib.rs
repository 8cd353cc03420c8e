//! The capture analyser in a web page: the same crates as `headend trace`, compiled for wasm32.
//!
//! | module | what it does |
//! |---|---|
//! | `session` | analyses files on one thread, and answers the page's questions about the results |
//! | `keep` | keeps finished connections up to a limit |
//! | `json`, `intervals`, `table` | the lines of `headend trace --json`; they are the command's own files |
//! | `abi` | the functions that JavaScript calls; only in the page |
//!
//! `web/` has the page itself: `glue.js` calls the functions, `worker.js` runs it beside the page, and `page.js` shows
//! the results. JavaScript reads the files piece by piece, so that memory does not grow with a file. Start reading at
//! [`Session`].
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
#[path = "../../tools/trace/src/intervals.rs"]
#[allow(dead_code, reason = "the command also writes Parquet files")]
mod intervals;
#[path = "../../tools/trace/src/json.rs"]
#[allow(
    dead_code,
    reason = "the command also writes UDP flows and live captures"
)]
mod json;
mod keep;
#[cfg(test)]
#[path = "../../trace/src/columns/samples.rs"]
mod samples;
mod session;
#[path = "../../tools/trace/src/table.rs"]
#[allow(dead_code, reason = "the command also lets its user choose columns")]
mod table;

pub use session::{File, Session};
