//! `headend tunnel`, `session`, `show`, `bgp`, `capture`, `nat`, `reload` and `confirm`: commands to a running daemon over its control socket.
//!
//! | file | verb |
//! |---|---|
//! | `bgp` | `headend bgp`, and the verbs of `show bgp` |
//! | `capture` | `headend capture` |
//! | `date` | times as people write them |
//! | `nat` | `headend nat`: who has an external port, port forwarding |
//! | `now` | `headend show now`: the whole daemon as a page |
//! | `reload` | `headend reload` and `headend confirm` |
//! | `session` | `headend session` |
//! | `show` | `headend show` |
//! | `subscriber` | `headend show subscriber`: one subscriber as a page |
//! | `tunnel` | `headend tunnel` |
#![forbid(unsafe_code)]

pub mod bgp;
pub mod capture;
mod date;
pub mod nat;
mod now;
pub mod reload;
pub mod session;
pub mod show;
mod subscriber;
pub mod tunnel;
