//! Helpers that the command lines of all tools share.
//!
//! Exit status: 0 success, 1 failure, 2 wrong usage or a fault in a file that was checked. Results go to standard
//! output, messages to standard error.
//!
//! | file | purpose |
//! |---|---|
//! | `outcome` | exit statuses |
//! | `interrupt` | work to do when a signal ends the command |
//! | `progress` | progress bars on standard error |
//! | `results` | the directory of a command's page |
//! | `screen` | text that is shown repeatedly |
//! | `socket` | the `--socket` flag |
//! | `table` | tables and blocks of a `show` |
//! | `values` | values as people type them |
#![forbid(unsafe_code)]

pub mod interrupt;
mod outcome;
pub mod progress;
mod results;
pub mod screen;
mod socket;
pub mod table;
pub mod values;

pub use outcome::{finish, is_broken_pipe, or_exit_2};
pub use results::ResultsDirectory;
pub use socket::Socket;
