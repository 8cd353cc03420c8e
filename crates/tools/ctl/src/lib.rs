//! `headend tunnel`, `session`, `show`, `bgp`, `capture`, `reload` and `confirm`: commands to a running daemon over its control socket.
//!
//! | file | verb |
//! |---|---|
//! | `bgp` | `headend bgp`, and the verbs of `show bgp` |
//! | `capture` | `headend capture` |
//! | `now` | `headend show now`: the whole daemon as a page |
//! | `reload` | `headend reload` and `headend confirm` |
//! | `session` | `headend session` |
//! | `show` | `headend show` |
//! | `subscriber` | `headend show subscriber`: one subscriber as a page |
//! | `tunnel` | `headend tunnel` |
#![forbid(unsafe_code)]

pub mod bgp;
pub mod capture;
mod now;
pub mod reload;
pub mod session;
pub mod show;
mod subscriber;
pub mod tunnel;
