//! The time and memory for a page of many pings.

use std::time::Instant;

use plot::{Axis, Chart, Kind, Page, Series, Thinner};

use super::packets::Random;

/// Names, with the round-trip time without a queue, in ms.
const STREAMS: [(&str, f64); 4] = [
    ("a.example, 64 octets", 20.0),
    ("a.example, 1400 octets, EF", 24.0),
    ("b.example, 64 octets", 35.0),
    ("b.example over IPv6", 36.5),
];

/// Costs of a page.
pub(super) struct Taken {
    /// Seconds until the samples were collected.
    pub(super) thin_s: f64,
    /// Seconds until the page was written, including the samples.
    pub(super) all_s: f64,
    /// Size of the page, in megabytes.
    pub(super) megabytes: f64,
}

/// Makes a page of `count` pings: over time, as a distribution, and each as a dot.
pub(super) fn run(count: u64) -> Taken {
    let start = Instant::now();
    let x = Axis::linear("time since the start", "s");
    let y = Axis::linear("round-trip time", "ms");
    let mut chart = Chart::new(Kind::OverTime, "Round-trip times", x, y);
    let each = count / STREAMS.len() as u64;
    chart.series = STREAMS.map(|(name, base)| pings(name, base, each)).into();
    let thin_s = start.elapsed().as_secs_f64();
    let distribution = chart.to_cdf("How the round-trip times are distributed");
    let dots = chart.drawn_as(Kind::Scatter, "Every ping a dot");
    let page = Page::new("Pings")
        .with(chart)
        .with(distribution)
        .with(dots)
        .to_html();
    Taken {
        thin_s,
        all_s: start.elapsed().as_secs_f64(),
        megabytes: page.len() as f64 / 1e6,
    }
}

/// A queue that fills and drains, noise, rare spikes, and losses where the queue is full.
fn pings(name: &str, base: f64, count: u64) -> Series {
    let mut thinner = Thinner::new();
    let mut random = Random::new(base.to_bits());
    for i in 0..count {
        let noise = random.below(1 << 24) as f64 / 16_777_216.0;
        let second = i as f64 / 100.0;
        let fill = ((i as f64 / count as f64 * 19.0).sin() - 0.6).max(0.0);
        if noise < fill * 0.2 {
            thinner.push_lost(second);
            continue;
        }
        let spike = if random.below(65_536) == 0 {
            150.0
        } else {
            0.0
        };
        thinner.push(second, base + 2.0 * noise * noise + fill * 90.0 + spike);
    }
    thinner.finish(name)
}
