//! Experiments: load on an L2TP server, costs of timer stores and pollers, the home gateway, and
//! reports that compare results with published figures.
//!
//! | module | contents |
//! |---|---|
//! | `generator` | a LAC in this process that opens thousands of tunnels |
//! | `gateway` | the home-gateway experiment: loads and probes through one slow link |
//! | `captures` | capture files that are hard to analyse |
//! | `segments` | the 2005 test harness for segment lists |
//! | `timers`, `poll` | costs of the timer stores and of the pollers |
//! | `fit` | exponents of measured curves, and extrapolation |
//! | `report` | tables and charts as text, JSON, CSV and SVG, with a description of the machine |
//! | `bufferbloat` | what load adds to the delay of other packets: account, grade, files, pictures |
//! | `host` | utilisation, saturation and errors of this host's resources |
//! | `history` | the page of published figures re-run here |
//!
//! Start with the module of the experiment you want.
#![forbid(unsafe_code)]

pub mod bufferbloat;
pub mod captures;
pub mod fit;
pub mod gateway;
pub mod generator;
pub mod history;
pub mod host;
pub mod poll;
pub mod report;
pub mod segments;
pub mod timers;

/// The benchmarks' charts.
pub use ::plot::figure as plot;
