//! Makes a page and pictures of many made-up pings, and says how long that took.
//!
//! `pings COUNT DIRECTORY` writes `page.html`, `time.svg`, `time.png`, `dots.png` and `distribution.png`.

use plot::{Axis, Chart, Kind, Page, Series, Thinner};
use std::path::Path;
use std::time::Instant;

/// Names and the round-trip time without a queue, in ms.
const HOSTS: [(&str, f64); 4] = [
    ("a.example, 64 octets, CS0", 20.0),
    ("a.example, 1400 octets, EF", 24.0),
    ("b.example, 64 octets", 35.0),
    ("b.example over IPv6", 36.5),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().ok_or("how many pings?")?.parse()?;
    let directory = arguments.next().ok_or("which directory?")?;
    let directory = Path::new(&directory);
    let start = Instant::now();
    let (x, y) = (
        Axis::linear("time since the start", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(
        Kind::OverTime,
        "Round-trip times through a queue that fills",
        x,
        y,
    )
    .of_packets();
    chart.subtitle = format!("Four streams, {count} made-up pings at 10 ms.");
    let each = count / HOSTS.len() as u64;
    chart.series = HOSTS.map(|(name, base)| pings(name, base, each)).into();
    let thinned = start.elapsed();
    let distribution = chart.to_cdf("How the round-trip times are distributed");
    let dots = chart.drawn_as(Kind::Scatter, "Every ping a dot");
    let page = Page::new("Pings")
        .with(chart.clone())
        .with(distribution.clone())
        .with(dots.clone());
    let html = page.to_html();
    println!(
        "{count} samples: {:.2} s to thin, {:.2} s in all, {:.2} MB",
        thinned.as_secs_f64(),
        start.elapsed().as_secs_f64(),
        html.len() as f64 / 1e6
    );
    std::fs::write(directory.join("page.html"), html)?;
    std::fs::write(directory.join("time.svg"), chart.to_svg())?;
    std::fs::write(directory.join("time.png"), chart.to_png(1.5)?)?;
    std::fs::write(directory.join("dots.png"), dots.to_png(1.5)?)?;
    std::fs::write(
        directory.join("distribution.png"),
        distribution.to_png(1.5)?,
    )?;
    Ok(())
}

/// A queue that fills and empties, noise, rare spikes, and losses where the queue is full.
fn pings(name: &str, base: f64, count: u64) -> Series {
    let mut thinner = Thinner::new();
    let mut noise = base.to_bits() | 1;
    for i in 0..count {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let random = (noise >> 40) as f64 / 16_777_216.0;
        let second = i as f64 / 100.0;
        let fill = ((i as f64 / count as f64 * 19.0).sin() - 0.6).max(0.0);
        if random < fill * 0.2 {
            thinner.push_lost(second);
            continue;
        }
        let spike = if noise >> 30 & 0xffff == 0 {
            150.0
        } else {
            0.0
        };
        thinner.push(second, base + 2.0 * random * random + fill * 90.0 + spike);
    }
    thinner.finish(name)
}
