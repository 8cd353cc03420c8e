//! What a picture says in words.

use crate::axis::Axis;
use crate::chart::{Chart, Kind, Series, Summary};
use crate::number;
use std::fmt::Write as _;

/// What the marks above the picture are.
pub(crate) const LOST_KEY: &str = "Ticks above the picture: when packets were lost, in the colour of their series; the \
                                   taller, the larger their share.";

/// A series' name, and what it lost.
pub(super) fn entry(series: &Series) -> String {
    let name = if series.name.trim().is_empty() {
        "-"
    } else {
        &series.name
    };
    match series.samples().lost() {
        0 => name.to_owned(),
        _ => format!("{name} ({} lost)", percent(series)),
    }
}

/// The share of packets that were lost, with enough digits not to be 0 or 100 where it is not; `-` without a packet.
pub(crate) fn percent(series: &Series) -> String {
    let Some(loss) = series.samples().loss().map(|share| share * 100.0) else {
        return "-".into();
    };
    let text = number::grouped(loss, 1);
    match text.as_str() {
        "0.0" if loss > 0.0 => "< 0.1 %".into(),
        "100.0" if loss < 100.0 => "> 99.9 %".into(),
        text => format!("{} %", text.trim_end_matches(".0")),
    }
}

/// The axis of the samples' values.
fn values(chart: &Chart) -> &Axis {
    if chart.kind == Kind::Cdf {
        &chart.x
    } else {
        &chart.y
    }
}

/// The axis of the samples' values, and the unit in which the largest median reads well, with the factor to it.
pub(crate) fn value_unit(chart: &Chart) -> (&Axis, f64, &str) {
    let medians = chart
        .series
        .iter()
        .filter_map(|s| s.samples().percentiles()[0]);
    let (factor, unit) = values(chart).unit_for(medians.fold(0.0, f64::max));
    (values(chart), factor, unit)
}

/// The picture in words: axes, and the figures of each series.
pub(crate) fn describe(chart: &Chart) -> String {
    let (_, factor, unit) = value_unit(chart);
    let mut text = format!(
        "{} Vertical: {}. Horizontal: {}.",
        chart.subtitle,
        chart.y.caption(),
        chart.x.caption()
    );
    for series in &chart.series {
        let samples = series.samples();
        if chart.summary == Summary::Steps {
            text.push_str(&steps(series, factor, unit));
            continue;
        }
        let _ = write!(
            text,
            " {}: {} samples",
            series.name,
            number::grouped(samples.count() as f64, 0)
        );
        if let (Some((low, high)), [Some(median), _, Some(p99)]) =
            (samples.range(), samples.percentiles())
        {
            let [low, median, p99, high] =
                [low, median, p99, high].map(|value| number::short(value * factor));
            let _ = write!(
                text,
                ", lowest {low}, median {median}, 99th percentile {p99}, highest {high} {unit}",
            );
        }
        if samples.lost() > 0 {
            let _ = write!(text, ", {} lost", number::grouped(samples.lost() as f64, 0));
        }
        text.push('.');
    }
    text.replace(" .", ".").trim_start().to_owned()
}

/// Steps in words. Their changes are no measurements, so that neither their number nor their median means anything.
fn steps(series: &Series, factor: f64, unit: &str) -> String {
    let samples = series.samples();
    let (Some((low, high)), Some(mean)) = (samples.range(), samples.mean_over_x()) else {
        return format!(" {}: no sample.", series.name);
    };
    let [low, mean, high] = [low, mean, high].map(|value| number::short(value * factor));
    let text = format!(
        " {}: lowest {low}, mean {mean}, highest {high} {unit}",
        series.name
    );
    format!("{}.", text.trim_end())
}
