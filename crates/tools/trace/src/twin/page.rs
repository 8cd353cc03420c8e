//! The report as a page: round trips and rates over time, as captured, of the twin, and under the policy.

use plot::{Axis, Block, Chart, Kind, Page, Series, Thinner};
use twin::{Flow, Twin};

use super::{Report, Side, text};

/// Rates are averaged over this time, in nanoseconds.
const STEP: u64 = 250_000_000;

/// The page.
pub(super) fn page(report: &Report) -> Page {
    let mut page = Page::new("Twin of a congested path").with(Block::Lead(text::sentence(report)));
    for side in &report.sides {
        let name = if side.direction.is_up {
            "Upload"
        } else {
            "Download"
        };
        page = page.with(Block::Heading(name.into()));
        match &side.twin {
            Ok(twin) => {
                page = page
                    .with(chart(report, side, twin, Shown::RoundTrip))
                    .with(chart(report, side, twin, Shown::Rate));
            }
            Err(error) => page = page.with(Block::Text(format!("No twin: {error}"))),
        }
    }
    page.with(Block::Lines(text::report(report)))
}

#[derive(Clone, Copy)]
enum Shown {
    RoundTrip,
    Rate,
}

fn chart(report: &Report, side: &Side, twin: &Twin, shown: Shown) -> Chart {
    let time = Axis::linear("time", "s");
    let (title, axis) = match shown {
        Shown::RoundTrip => ("Round trips", Axis::linear("round trip", "ms")),
        Shown::Rate => ("Delivered data", Axis::linear("rate", "Mbit/s")),
    };
    let mut chart = Chart::new(Kind::OverTime, title, time, axis);
    let captured: Vec<&Flow> = twin.chosen.iter().map(|&at| &side.found[at].flow).collect();
    let again: Vec<&Flow> = twin.again.flows.iter().collect();
    chart.series.push(series("captured", &captured, shown));
    chart.series.push(series("twin", &again, shown));
    if let Some(promise) = &side.promise {
        let under: Vec<&Flow> = promise.outcome.flows.iter().collect();
        chart
            .series
            .push(series(report.policy.name(), &under, shown));
    }
    chart
}

fn series(name: &str, flows: &[&Flow], shown: Shown) -> Series {
    let mut thinner = Thinner::new();
    let mut points: Vec<(u64, f64)> = Vec::new();
    match shown {
        Shown::RoundTrip => {
            for flow in flows {
                let trips = flow.trips.iter();
                points.extend(trips.map(|trip| (trip.at, (trip.time + flow.near) as f64 / 1e6)));
            }
            points.sort_unstable_by_key(|point| point.0);
        }
        Shown::Rate => {
            let mut sums: Vec<u64> = Vec::new();
            for flow in flows {
                let mut before = 0;
                for acked in flow.acked.iter().filter(|acked| acked.delivered > 0) {
                    let place = (acked.at / STEP) as usize;
                    sums.resize(sums.len().max(place + 1), 0);
                    sums[place] += acked.delivered.saturating_sub(before);
                    before = before.max(acked.delivered);
                }
            }
            let rate = |bytes: u64| bytes as f64 * 8e3 / STEP as f64;
            points.extend(
                (0..)
                    .zip(&sums)
                    .map(|(at, &bytes)| (at * STEP, rate(bytes))),
            );
        }
    }
    for (at, value) in points {
        thinner.push(at as f64 / 1e9, value);
    }
    thinner.finish(name)
}
