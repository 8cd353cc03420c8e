//! lab

pub mod fit;
pub mod plot;
pub mod report;
pub mod timers;
