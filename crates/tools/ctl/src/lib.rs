//! `headend tunnel`, `session`, `show`, `bgp` and `capture`: the running daemon through its control socket.
//!
//! | file | verb |
//! |---|---|
//! | `bgp` | `headend bgp`, and the columns of `show bgp` |
//! | `capture` | `headend capture` |
//! | `session` | `headend session` |
//! | `show` | `headend show` |
//! | `subscriber` | `headend show subscriber`: one subscriber, laid out for people |
//! | `tunnel` | `headend tunnel` |
#![forbid(unsafe_code)]

pub mod bgp;
pub mod capture;
pub mod session;
pub mod show;
mod subscriber;
pub mod tunnel;
