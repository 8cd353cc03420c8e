//! The capture analyser in a web page: the same crates as `headend trace`, compiled for wasm32.
//!
//! | module | what it does |
//! |---|---|
//! | `session` | analyses files on one thread, and answers the page's questions about the results |
//! | `udp` | explains UDP flows, in a reading of their own |
//! | `keep` | keeps finished connections up to a limit |
//! | `abi` | the functions that JavaScript calls; only in the page |
//!
//! [`trace::json`] writes the lines, as for the command.
//!
//! `web/` has the page itself: `glue.js` calls the functions, `worker.js` runs it beside the page, and `page.js` shows
//! the results. JavaScript reads the files piece by piece, so that memory does not grow with a file. Start reading at
//! [`Session`].
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
mod keep;
mod session;
mod udp;

pub use session::{File, Session};
