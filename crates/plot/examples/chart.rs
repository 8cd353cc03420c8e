//! Writes a chart of invented round-trip times to standard output, as SVG or as a page.
//!
//! `cargo run -p headend-plot --example chart > chart.svg`, or `-- html > chart.html`
#![forbid(unsafe_code)]

use plot::{Axis, Chart, Kind, Page, Thinner};

fn main() {
    let mut thinner = Thinner::new();
    for n in 0..10_000_u32 {
        let second = f64::from(n) / 10.0;
        match n % 997 {
            0 => thinner.push_lost(second),
            wave => thinner.push(second, 20.0 + f64::from(wave % 50) / 10.0),
        }
    }
    let (time, rtt) = (
        Axis::linear("time", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(Kind::OverTime, "Round trips", time, rtt);
    chart.series.push(thinner.finish("host a"));
    match std::env::args().nth(1).as_deref() {
        Some("html") => print!("{}", Page::new("Round trips").with(chart).to_html()),
        _ => print!("{}", chart.to_svg()),
    }
}
