//! `--html FILE`: one page with the delays over time, the losses, and the report's tables.

use paths::{Clock, Findings, Lost, Point, Way};
use plot::number::grouped;
use plot::{Axis, Block, Chart, Kind, Page, Series, Thinner};

use super::Compared;
use super::page;

/// The page.
pub(super) fn page(compared: &Compared<'_>) -> Page {
    let found = compared.found;
    let captures = compared.captures;
    let mut document = Page::new(format!("{} and {}", captures[0].name, captures[1].name));
    document.subtitle = format!(
        "Two captures of one path, compared by headend trace diff: A is {}, B is {}.",
        captures[0].name, captures[1].name
    );
    document = document.with(Block::Lead(page::sentence(compared)));
    let series = series(compared);
    if !series.is_empty() {
        let axes = (
            Axis::linear("time by A's clock, since the first packet", "s"),
            Axis::linear("delay above the least", "ms"),
        );
        let mut chart = Chart::new(
            Kind::OverTime,
            "One-way delay above the least",
            axes.0,
            axes.1,
        );
        chart = chart.of_packets();
        chart.subtitle = "The clocks' offset, drift and steps are taken out.".to_owned();
        chart.series = series;
        for way in Way::ALL {
            let delay = &found.clock.delays[way as usize];
            if delay.count > 0 {
                chart
                    .notes
                    .push(format!("{}: {}.", name(way), page::least(found, delay)));
            }
        }
        let distribution = chart.to_cdf("How the delays above the least are distributed");
        document = document.with(chart).with(distribution);
    }
    document = document
        .with(Block::Heading("Packets".to_owned()))
        .with(packets(found));
    document = document
        .with(Block::Heading("Clocks".to_owned()))
        .with(clocks(found));
    if !found.rewrites.changes.is_empty() || !found.mappings.is_empty() {
        document = document
            .with(Block::Heading("Rewritten".to_owned()))
            .with(rewritten(found));
    }
    if !compared.kept.marked.is_empty() {
        document = document
            .with(Block::Heading("Lost packets".to_owned()))
            .with(lost(compared));
    }
    document
}

fn name(way: Way) -> &'static str {
    match way {
        Way::AToB => "A to B",
        Way::BToA => "B to A",
    }
}

/// Lost packets in the table of the page.
const LISTED: usize = 200;

/// A line of delays for each direction, with the times of lost packets.
fn series(compared: &Compared<'_>) -> Vec<Series> {
    let found = compared.found;
    let start = found.points[0].time.map_or(0, |time| time.0);
    let seconds = |time: i64| time.saturating_sub(start) as f64 / 1e9;
    let mut all = Vec::new();
    for way in Way::ALL {
        let mut curve = found.clock.curves[way as usize].clone();
        if curve.is_empty() {
            continue;
        }
        curve.sort_by_key(|point| point.0);
        let lost = compared.kept.marked.iter().filter(|lost| lost.way == way);
        let mut lost: Vec<f64> = lost
            .map(|lost| seconds(time_at_a(&found.clock, lost)))
            .collect();
        lost.sort_by(f64::total_cmp);
        let mut thinner = Thinner::new();
        let mut lost = lost.into_iter().peekable();
        for (time, delay) in curve {
            let x = seconds(time);
            while let Some(earlier) = lost.next_if(|lost| *lost <= x) {
                thinner.push_lost(earlier);
            }
            thinner.push(x, delay / 1e6);
        }
        lost.for_each(|x| thinner.push_lost(x));
        all.push(thinner.finish(name(way)));
    }
    all
}

/// When a packet was lost, by A's clock.
fn time_at_a(clock: &Clock, lost: &Lost) -> i64 {
    match lost.point {
        Point::A => lost.time,
        Point::B => clock.to_a(lost.time),
    }
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table {
        head: head.iter().map(|&name| name.to_owned()).collect(),
        rows,
    }
}

fn count(value: u64) -> String {
    grouped(value as f64, 0)
}

fn packets(found: &Findings) -> Block {
    let [there, back] = &found.ways;
    let rows = [
        ("matched", there.pairs, back.pairs),
        (
            "lost between the points",
            there.lost.packets,
            back.lost.packets,
        ),
        (
            "lost before the near point",
            there.lost_before.packets,
            back.lost_before.packets,
        ),
        (
            "lost after the far point",
            there.lost_after.packets,
            back.lost_after.packets,
        ),
        (
            "sent again without need",
            there.needless.packets,
            back.needless.packets,
        ),
        ("reordered", there.reordered.packets, back.reordered.packets),
        (
            "duplicated",
            there.duplicated.packets,
            back.duplicated.packets,
        ),
        (
            "only at the far point",
            there.extra.packets,
            back.extra.packets,
        ),
    ];
    let rows = rows.map(|(name, there, back)| vec![name.to_owned(), count(there), count(back)]);
    table(&["packets", "A to B", "B to A"], rows.into())
}

fn clocks(found: &Findings) -> Block {
    let start = found.points[0].time.map_or(0, |time| time.0);
    let pieces = found.clock.pieces.iter().map(|piece| {
        let bound = |value: Option<f64>| value.map_or("-".to_owned(), page::time);
        vec![
            format!("{:.3} s", piece.time.0.saturating_sub(start) as f64 / 1e9),
            bound(piece.offset.0),
            bound(piece.offset.1),
            format!("{:+.2} ppm", piece.drift * 1e6),
        ]
    });
    table(
        &["from", "B less A, at least", "at most", "drift"],
        pieces.collect(),
    )
}

fn rewritten(found: &Findings) -> Block {
    let changes = found.rewrites.changes.iter().map(|(change, changed)| {
        vec![
            name(change.way).to_owned(),
            page::change(change),
            count(changed.packets),
        ]
    });
    let mappings = found.mappings.iter().map(|mapping| {
        let moved = match mapping.moved {
            0 => String::new(),
            moved => format!(", sequence numbers moved by {moved}"),
        };
        vec![
            "flow".to_owned(),
            format!("{} is {} at B{moved}", mapping.a, mapping.b),
            String::new(),
        ]
    });
    table(
        &["direction", "what", "packets"],
        changes.chain(mappings).collect(),
    )
}

fn lost(compared: &Compared<'_>) -> Block {
    let start = compared.found.points[0].time.map_or(0, |time| time.0);
    let rows = compared.kept.marked.iter().take(LISTED).map(|lost| {
        let time = time_at_a(&compared.found.clock, lost).saturating_sub(start);
        vec![
            name(lost.way).to_owned(),
            super::kept::place(lost.point, lost.number),
            format!("{:.6}", time as f64 / 1e9),
            count(lost.bytes),
            lost.key.to_string(),
        ]
    });
    table(
        &["direction", "packet", "s", "bytes", "flow"],
        rows.collect(),
    )
}
