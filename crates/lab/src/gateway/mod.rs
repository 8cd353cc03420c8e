//! The home gateway: two hosts behind a slow link, what they do to each other, and what a queue can do about it.

pub mod model;
pub mod rows;
pub mod topology;
pub mod traffic;
