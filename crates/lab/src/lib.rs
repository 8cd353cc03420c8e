//! Experiments: load on an L2TP server, the cost of timer stores and pollers, and reports that compare the results with
//! published figures.
//!
//! | module | what it is |
//! |---|---|
//! | `generator` | a LAC in this process that opens tunnels by the thousand |
//! | `gateway` | the home-gateway experiment: loads and probes through one slow link |
//! | `captures` | capture files whose connections are hard to analyse |
//! | `segments` | the 2005 harness of segment lists |
//! | `timers`, `poll` | curves of the timer stores and of the pollers |
//! | `fit` | exponents of measured curves, and their extrapolation |
//! | `report` | tables and charts as text, JSON, CSV and SVG, with the machine |
//! | `history` | the page that re-runs published scaling failures |
#![forbid(unsafe_code)]

pub mod captures;
pub mod fit;
pub mod gateway;
pub mod generator;
pub mod history;
pub mod poll;
pub mod report;
pub mod segments;
pub mod timers;

/// The benchmarks' charts.
pub use ::plot::figure as plot;
