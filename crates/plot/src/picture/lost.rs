//! When packets were lost: ticks above the picture.

use super::lines::Bins;
use crate::chart::{Chart, Kind, Series};
use crate::figure::lines::Frame;
use crate::samples::Lost;
use crate::svg::{Svg, fill};
use std::fmt::Write as _;

/// How high the row of a series is.
pub(super) const ROW: f64 = 9.0;

/// How high a tick is where all packets were lost, and where hardly any was.
const TALL: f64 = 7.0;
const LEAST: f64 = 3.0;

/// Series that have a row of ticks.
pub(super) fn rows(chart: &Chart) -> usize {
    let lost = chart.series.iter().filter(|s| s.samples().lost() > 0);
    if chart.kind == Kind::Cdf {
        0
    } else {
        lost.count()
    }
}

/// Draws the ticks of a series, one for those closer than its width; the taller the larger the share of lost packets,
/// where that is known.
pub(super) fn draw(svg: &mut Svg, frame: &Frame, chart: &Chart, index: usize, bins: Option<&Bins>) {
    let below = rows(chart) - chart.series[..index].iter().filter(|s| has(s)).count();
    let foot = frame.top - 4.0 - (below as f64 - 1.0) * ROW;
    let at = |x| frame.left + frame.along(x).unwrap_or(0.0) * frame.width;
    let place = |lost: &Lost| (at(lost.x.0), at(lost.x.1), lost.count);
    let mut path = String::new();
    let mut lost = chart.series[index]
        .samples()
        .lost
        .iter()
        .map(place)
        .peekable();
    while let Some((from, mut to, mut count)) = lost.next() {
        while let Some((_, end, more)) = lost.next_if(|next| next.0 - from < 1.0) {
            (to, count) = (to.max(end), count + more);
        }
        let kept = bins.map_or(0, |bins| bins.count(from, to));
        let share = count as f64 / (count + kept) as f64;
        let tall = LEAST + (TALL - LEAST) * share.sqrt();
        let wide = (to - from).max(1.4);
        let _ = write!(
            path,
            "M{:.1} {foot:.1}h{wide:.1}v-{tall:.1}h-{wide:.1}z",
            from - 0.7
        );
    }
    let (class, ink) = fill(chart.colour(index));
    svg.raw(&format!("<path class=\"{class}\" {ink} d=\"{path}\"/>"));
}

fn has(series: &Series) -> bool {
    series.samples().lost() > 0
}
