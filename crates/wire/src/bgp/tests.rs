//! Golden messages, both ways.

mod messages;
