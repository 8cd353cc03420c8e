//! lab

pub mod fit;
pub mod generator;
pub mod history;
pub mod plot;
pub mod poll;
pub mod report;
pub mod timers;
