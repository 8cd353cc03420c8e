//! Experiments: load on an L2TP server, what timer stores and pollers cost, and
//! how results are drawn, written and held against published figures.
//!
//! | module | what it is |
//! |---|---|
//! | `generator` | a LAC in this process that opens tunnels by the thousand |
//! | `gateway` | the home-gateway experiment: loads and probes through one slow link |
//! | `captures` | packets of connections that are hard to analyse, as files |
//! | `segments` | the 2005 harness of segment lists |
//! | `timers`, `poll` | curves of the timer stores and of the pollers |
//! | `fit` | exponents of measured curves, and where they lead |
//! | `report` | tables and charts as text, JSON, CSV and SVG, with the machine |
//! | `history` | the page of published figures re-run here |
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
