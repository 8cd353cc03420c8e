//! Many clients at several concentrators, on bad networks, with authorities that are slow or silent: afterwards nothing
//! has leaked, both ends agree, and every account is in order.
#![forbid(unsafe_code)]

mod authority;
mod books;
mod by_hand;
mod chaos;
mod hostile;
mod node;
mod state;
mod wishes;
