//! `headend tunnel`, `session`, `show`, `bgp` and `capture`: commands to a running daemon over its control socket.
//!
//! | file | verb |
//! |---|---|
//! | `bgp` | `headend bgp`, and the verbs of `show bgp` |
//! | `capture` | `headend capture` |
//! | `session` | `headend session` |
//! | `show` | `headend show` |
//! | `subscriber` | `headend show subscriber`: one subscriber as a page |
//! | `tunnel` | `headend tunnel` |
#![forbid(unsafe_code)]

pub mod bgp;
pub mod capture;
pub mod session;
pub mod show;
mod subscriber;
pub mod tunnel;
