//! lab

pub mod fit;
pub mod plot;
pub mod timers;
