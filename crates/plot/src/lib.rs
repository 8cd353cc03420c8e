//! Charts of measurements: SVG and PNG for print, HTML pages that zoom and read values.
//!
//! | module | what it is |
//! |---|---|
//! | `samples` | a [`Thinner`] reduces any number of samples to columns with exact extremes |
//! | `chart` | a [`Chart`] of [`Series`]: line, steps, dots, line over time, or distribution, over named [`Band`]s |
//! | `picture`, `png` | a chart as one picture, [`Chart::to_svg`] and [`Chart::to_png`]; several as a [`Stack`] |
//! | [`viewer`] | uPlot and our script on top of it, which all pages share |
//! | `page` | a [`Page`] of charts, figures, tables and text as one HTML file that zooms, pans and reads values |
//! | `card` | a [`Card`] of numbers, as a picture to share |
//! | [`sketch`] | a drawing of boxes and arrows for a page |
//! | [`figure`] | small charts of known points and bars, as the benchmarks draw them |
//! | [`number`] | numbers with grouped digits and units of time |
//!
//! ```
//! use plot::{Axis, Chart, Kind, Page, Thinner};
//!
//! let mut thinner = Thinner::new();
//! for second in 0..100 {
//!     thinner.push(f64::from(second), 20.0);
//! }
//! thinner.push_lost(100.0);
//! let pings = thinner.finish("host a");
//! let axes = (Axis::linear("time", "s"), Axis::linear("round-trip time", "ms"));
//! let mut chart = Chart::new(Kind::OverTime, "Pings", axes.0, axes.1);
//! chart.series.push(pings);
//! let distribution = chart.to_cdf("How the round-trip times are distributed");
//! let page = Page::new("Pings").with(chart).with(distribution);
//! assert!(page.to_html().starts_with("<!doctype html>"));
//! ```
//!
//! The crate opens no file: it returns pictures as text or bytes. Left out: maps, stacked areas, second axes.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod axis;
mod card;
mod chart;
pub mod figure;
pub mod number;
mod page;
mod picture;
mod png;
mod samples;
mod scale;
pub mod sketch;
mod svg;
pub mod viewer;

pub use axis::Axis;
pub use card::{CARD_SIZE, Card, Panel};
pub use chart::{Band, Chart, Kind, Series, Summary};
pub use page::{Block, Page};
pub use picture::Stack;
pub use png::{CAN_WRITE_PNG, PngError};
pub use samples::{Samples, Thinner};
pub use sketch::Sketch;
pub use svg::escape;
