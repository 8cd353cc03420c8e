//! The samples themselves: lines, dots and steps.

use super::line;
use crate::chart::{Chart, Kind, Series};
use crate::figure::lines::Frame;
use crate::samples::{corners_of, narrow};
use crate::svg::{Svg, hollow, stroke};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of a series' dots, at most.
const COLUMNS: usize = 1 << 16;

/// Dots of all series of a picture, at most or so; more of them become one where they touch.
const DOTS: usize = 16_000;

/// A line of at most this many points has a marker on each, and a scatter of so many is of markers.
const LINE_MARKED: usize = 20;
const DOTS_MARKED: usize = 400;

/// A line with more samples than this for each unit across is drawn by columns.
const DENSE: f64 = 0.5;

/// Columns of steps for each unit across.
const STEPS: usize = 2;

/// A gap as wide as this in which packets were lost parts a line.
const GAP: f64 = 8.0;

/// A dense series by columns one unit wide.
pub(super) struct Bins {
    left: f64,
    columns: Vec<Option<Bin>>,
}

/// What is drawn of a column: places down the picture.
#[derive(Clone, Copy)]
struct Bin {
    first: f64,
    last: f64,
    top: f64,
    foot: f64,
    count: u64,
}

impl Bins {
    /// `None` if the series is better drawn as a line through its samples.
    fn of(frame: &Frame, series: &Series) -> Option<Self> {
        let samples = series.samples();
        if samples.per_column == 1 && (samples.columns.len() as f64) < frame.width * DENSE {
            return None;
        }
        let mut columns = vec![None; frame.width.ceil() as usize + 1];
        for column in &samples.columns {
            let (from, to) = column.x;
            let middle = from + (to - from) / 2.0;
            let Some((x, top)) = frame.place((middle, column.max)) else {
                continue;
            };
            let y = |value| frame.place((middle, value)).map(|p| p.1);
            // On a log axis what is not above zero has no place: the column begins where it can.
            let foot = y(column.min).unwrap_or(top);
            let (first, last) = (y(column.first), y(column.last));
            let (first, last) = (first.unwrap_or(foot), last.unwrap_or(top));
            let at = (x - frame.left).max(0.0) as usize;
            let Some(bin) = columns.get_mut(at) else {
                continue;
            };
            let bin = bin.get_or_insert(Bin {
                first,
                last,
                top,
                foot,
                count: 0,
            });
            bin.last = last;
            bin.top = bin.top.min(top);
            bin.foot = bin.foot.max(foot);
            bin.count += column.count;
        }
        let left = frame.left;
        Some(Self { left, columns })
    }

    /// Samples in the columns from one place across the picture to another.
    pub(super) fn count(&self, from: f64, to: f64) -> u64 {
        let column = |x: f64| (x - self.left).max(0.0) as usize;
        let end = (column(to) + 1).min(self.columns.len());
        let within = self.columns.get(column(from).min(end)..end);
        let bins = within.into_iter().flatten().flatten();
        bins.map(|bin| bin.count).sum()
    }

    /// Upright strokes, each as far as the one before reached, and lines over gaps.
    fn path(&self, frame: &Frame, series: &Series) -> String {
        let mut path = String::new();
        let mut before: Option<(usize, Bin)> = None;
        for (i, bin) in self.columns.iter().enumerate() {
            let Some(bin) = bin else { continue };
            let x = self.left + i as f64 + 0.5;
            let (mut top, mut foot) = (bin.top, bin.foot);
            match before {
                Some((last, ref b)) if last + 1 == i => {
                    (top, foot) = (top.min(b.foot), foot.max(b.top));
                }
                Some((last, ref b)) => {
                    let from = self.left + last as f64 + 0.5;
                    if !parted(frame, series, from, x) {
                        let _ = write!(path, "M{from:.1} {:.1}L{x:.1} {:.1}", b.last, bin.first);
                    }
                }
                None => {}
            }
            let _ = write!(path, "M{x:.1} {:.1}V{:.1}", top - 0.6, foot + 0.6);
            before = Some((i, *bin));
        }
        path
    }

    /// Where markers may be.
    fn places(&self) -> Vec<(f64, f64)> {
        let place =
            |(i, bin): (usize, &Option<Bin>)| bin.map(|bin| (self.left + i as f64 + 0.5, bin.last));
        self.columns.iter().enumerate().filter_map(place).collect()
    }
}

/// Whether packets were lost between two places across the picture that are some way apart.
fn parted(frame: &Frame, series: &Series, from: f64, to: f64) -> bool {
    let lost = &series.samples().lost;
    let at = |x| frame.left + frame.along(x).unwrap_or(0.0) * frame.width;
    to - from >= GAP && {
        let next = lost.partition_point(|lost| at(lost.x.1) <= from);
        lost.get(next).is_some_and(|lost| at(lost.x.0) < to)
    }
}

/// Draws a series; the columns it was drawn by, if it is dense.
pub(super) fn draw(svg: &mut Svg, frame: &Frame, chart: &Chart, index: usize) -> Option<Bins> {
    let (series, look) = (&chart.series[index], chart.colour(index));
    match chart.kind {
        Kind::Scatter => {
            dots(svg, frame, series, look, DOTS / chart.series.len());
            Bins::of(frame, series)
        }
        Kind::Cdf => {
            let places = steps(frame, series);
            // Losses have a time and no value: they part no distribution.
            let path = polyline(&places, |_, _| false);
            draw_line(svg, frame, chart, look, (false, &path));
            for (x, y) in along(&places, frame, index) {
                svg.marker(x, y, look, hollow(look), "");
            }
            None
        }
        Kind::Steps => {
            let bins = Bins::of(frame, series);
            let columns = narrow(&series.samples().columns, STEPS * frame.width as usize);
            let points = columns.iter().flat_map(corners_of);
            let places: Vec<_> = points.filter_map(|p| frame.place(p)).collect();
            let path = polyline(&corners(&places), |from, to| {
                parted(frame, series, from, to)
            });
            draw_line(svg, frame, chart, look, (bins.is_some(), &path));
            mark(svg, &spread(&places, frame, index), look, bins.is_some());
            bins
        }
        Kind::Line | Kind::OverTime => {
            let bins = Bins::of(frame, series);
            let places = if let Some(bins) = &bins {
                let path = bins.path(frame, series);
                draw_line(svg, frame, chart, look, (true, &path));
                bins.places()
            } else {
                let points = series.samples().columns.iter().map(|c| (c.x.0, c.first));
                let places: Vec<_> = points.filter_map(|p| frame.place(p)).collect();
                let path = polyline(&places, |from, to| parted(frame, series, from, to));
                draw_line(svg, frame, chart, look, (false, &path));
                places
            };
            mark(svg, &spread(&places, frame, index), look, bins.is_some());
            bins
        }
    }
}

/// Draws the markers of a series.
fn mark(svg: &mut Svg, places: &[(f64, f64)], look: usize, on_dense: bool) {
    for &(x, y) in places {
        if on_dense {
            svg.marker_on_dense(x, y, look);
        } else {
            svg.marker(x, y, look, hollow(look), "");
        }
    }
}

/// The places of steps with the corner before each: a value holds until the next.
fn corners(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut height = places.first().map_or(0.0, |place| place.1);
    let with_corner = |&(x, y): &(f64, f64)| {
        let before = std::mem::replace(&mut height, y);
        [(x, before), (x, y)]
    };
    places.iter().flat_map(with_corner).collect()
}

/// The corners of a distribution's steps.
fn steps(frame: &Frame, series: &Series) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut below = 0.0;
    for (value, share) in &series.samples().shares {
        points.extend([(*value, below), (*value, *share)]);
        below = *share;
    }
    points.into_iter().filter_map(|p| frame.place(p)).collect()
}

/// A line through places, parted between those of which `parted` says so.
fn polyline(places: &[(f64, f64)], parted: impl Fn(f64, f64) -> bool) -> String {
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    let end = places.len().saturating_sub(1);
    for (i, &(x, y)) in places.iter().enumerate() {
        let command = match last {
            Some((lx, ly)) if (x - lx).hypot(y - ly) < 0.7 && i != end => continue,
            Some((lx, _)) if parted(lx, x) => 'M',
            Some(_) => 'L',
            None => 'M',
        };
        let _ = write!(path, "{command}{x:.1} {y:.1}");
        last = Some((x, y));
    }
    path
}

/// Draws a path, whether dense or not; within the frame alone where an axis ends before the samples do.
fn draw_line(svg: &mut Svg, frame: &Frame, chart: &Chart, look: usize, path: (bool, &str)) {
    if path.1.is_empty() {
        return;
    }
    let line = line(look, path.0, path.1);
    if chart.x.max.or(chart.y.max).is_none() {
        return svg.raw(&line);
    }
    // A nested picture cuts the line off without needing an id for a clip path.
    let place = [frame.left, frame.top, frame.width + 2.0, frame.height];
    let [x, y, wide, tall] = place.map(|side| format!("{side:.1}"));
    svg.raw(&format!(
        "<svg x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\" viewBox=\"{x} {y} {wide} {tall}\" \
         overflow=\"hidden\">{line}</svg>"
    ));
}

/// A marker for each sample, or small dots for many.
fn dots(svg: &mut Svg, frame: &Frame, series: &Series, look: usize, limit: usize) {
    let mut points = Vec::new();
    for column in series.samples().at_most(COLUMNS) {
        let (from, to) = column.x;
        let middle = from + (to - from) / 2.0;
        points.push((from, column.first));
        if column.count > 1 {
            points.extend([
                (middle, column.min),
                (middle, column.max),
                (to, column.last),
            ]);
        }
    }
    let places: Vec<_> = points.into_iter().filter_map(|p| frame.place(p)).collect();
    if places.len() <= DOTS_MARKED {
        for (x, y) in places.into_iter().filter(|p| frame.holds(*p)) {
            svg.marker(x, y, look, hollow(look), "");
        }
        return;
    }
    let mut path = String::new();
    for (x, y, to) in runs(places.into_iter().filter(|p| frame.holds(*p)), limit) {
        let _ = write!(path, "M{x:.1} {y:.1}v{:.1}", to - y);
    }
    let (class, ink) = stroke(look);
    svg.raw(&format!(
        "<path class=\"{class}\" {ink} fill=\"none\" stroke-width=\"2.4\" stroke-linecap=\"round\" \
         stroke-opacity=\"0.7\" d=\"{path}\"/>"
    ));
}

/// Each place of a short line, and some of a long one, elsewhere on each series.
fn spread(places: &[(f64, f64)], frame: &Frame, index: usize) -> Vec<(f64, f64)> {
    let each = places.len() <= LINE_MARKED;
    let step = frame.width / 7.0;
    let mut next = frame.left + step * (0.15 + index as f64 * 0.37).fract();
    let mut marked = Vec::new();
    for &(x, y) in places {
        if frame.holds((x, y)) && (each || x >= next) {
            marked.push((x, y));
            next = next.max(x) + step;
        }
    }
    marked
}

/// Some places evenly along the way through all, elsewhere on each series.
fn along(places: &[(f64, f64)], frame: &Frame, index: usize) -> Vec<(f64, f64)> {
    let step = (frame.width + frame.height) / 9.0;
    let mut left = step * (0.15 + index as f64 * 0.37).fract();
    let mut marked = Vec::new();
    for pair in places.windows(2) {
        // Steps go straight across or straight up.
        let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        let length = dx.abs() + dy.abs();
        // What leads far outside has no marks.
        if length.is_nan() || length > 1e5 {
            continue;
        }
        let mut walked = left;
        while walked < length {
            let share = walked / length;
            marked.push((pair[0].0 + dx * share, pair[0].1 + dy * share));
            walked += step;
        }
        left = walked - length;
    }
    marked.retain(|place| frame.holds(*place));
    marked
}

/// Dots as upright runs `(x, from, to)` of those that touch, about `limit` of them at most.
fn runs(places: impl Iterator<Item = (f64, f64)>, limit: usize) -> Vec<(f64, f64, f64)> {
    let places: Vec<_> = places.collect();
    let mut size = 1.5;
    loop {
        // Each cell with its highest and its lowest dot.
        let mut cells: BTreeMap<(i64, i64), (f64, f64)> = BTreeMap::new();
        for (x, y) in &places {
            let of = |v: f64| (v / size).floor() as i64;
            let ends = cells.entry((of(*x), of(*y))).or_insert((*y, *y));
            *ends = (ends.0.min(*y), ends.1.max(*y));
        }
        let mut runs: Vec<(f64, f64, f64)> = Vec::new();
        let mut before = None;
        for ((column, row), (top, foot)) in cells {
            match runs.last_mut() {
                Some(run) if before == Some((column, row - 1)) => run.2 = foot,
                _ => runs.push(((column as f64 + 0.5) * size, top, foot)),
            }
            before = Some((column, row));
        }
        if runs.len() <= limit || size > 8.0 {
            return runs;
        }
        size *= 1.3;
    }
}
