//! Many clients at several concentrators, over lossy networks, with slow or silent authorities. Afterwards
//! nothing has leaked, both ends agree, and every account is in order.
#![forbid(unsafe_code)]

mod authority;
mod books;
mod by_hand;
mod chaos;
mod hostile;
mod node;
mod state;
mod v6;
mod wishes;
