//! Charts of the results.

use plot::{Axis, Chart, Kind, Series};

use super::{AddressResult, EventResult, Results, Share};

/// Limit of events of one address that get a close-up chart.
const CLOSE_UPS_MAX: usize = 4;
/// Limit of spans in the activity chart.
const SPANS_MAX: usize = 150;

impl Results {
    /// All charts of the results: shares over time by address, path lengths, activity, and UPDATEs
    /// by router.
    #[must_use]
    pub fn charts(&self) -> Vec<Chart> {
        let mut charts: Vec<Chart> = Vec::new();
        for address in &self.addresses {
            charts.push(self.shares(address));
            let after = self
                .events
                .iter()
                .filter_map(|event| self.after(address, event));
            charts.extend(after.take(CLOSE_UPS_MAX));
        }
        if self.addresses.iter().any(|a| !a.path_lengths.is_empty()) {
            charts.push(self.path_lengths());
        }
        charts.push(self.activity());
        charts.push(self.by_router());
        charts
    }

    /// The charts as SVG, each with a unique file name.
    #[must_use]
    pub fn svgs(&self) -> Vec<(String, String)> {
        let mut svgs: Vec<(String, String)> = Vec::new();
        for chart in self.charts() {
            let title = chart.title.to_ascii_lowercase();
            let words = title.split(|letter: char| !letter.is_ascii_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let plain = words.join("-");
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            let name = std::iter::once(plain.clone())
                .chain(numbered)
                .find(|name| svgs.iter().all(|(taken, _)| taken != name));
            svgs.push((name.unwrap_or(plain), chart.to_svg()));
        }
        svgs
    }

    /// Where a chart starts: a second before the first event after the start-up.
    fn first_s(&self) -> f64 {
        let events = self.events.iter().filter(|event| event.kind != "start");
        let first = events.map(|event| event.at_s).fold(f64::INFINITY, f64::min);
        if first.is_finite() {
            (first - 1.0).max(0.0)
        } else {
            0.0
        }
    }

    /// The shares over the whole run.
    fn shares(&self, address: &AddressResult) -> Chart {
        let mut chart = Chart::new(
            Kind::Steps,
            format!("Where routes to {} lead", address.address),
            Axis::linear("time", "s"),
            Axis::linear("share of routers", "%").up_to(100.0),
        );
        chart.series = series(address, self.first_s(), self.end_s, 0.0, 1.0);
        chart.subtitle = format!(
            "AS{} owns {}",
            address.owner_asn,
            address.prefixes.join(", ")
        );
        chart.notes = self.marks();
        chart
    }

    /// The shares from an event until the last change or the next event; none if the event changes
    /// nothing.
    fn after(&self, address: &AddressResult, event: &EventResult) -> Option<Chart> {
        let converged_s = event.last_step_s + event.convergence_s?;
        let longer_s = event.at_s + 1.1 * (converged_s - event.at_s);
        let later = self.events.iter().map(|other| other.at_s);
        let end_s = later
            .filter(|&at_s| at_s > event.at_s)
            .fold(longer_s, f64::min);
        let inside = |share: &&Share| share.at_s >= event.at_s && share.at_s < end_s;
        if event.kind == "start" || address.shares.iter().filter(inside).count() < 2 {
            return None;
        }
        let mut chart = Chart::new(
            Kind::Steps,
            format!("Routes to {} after {}", address.address, event.label),
            Axis::linear("time since the event", "ms"),
            Axis::linear("share of routers", "%").up_to(100.0),
        );
        chart.subtitle = format!("The event is at {} s", rounded(event.at_s));
        chart.series = series(address, event.at_s, end_s, event.at_s, 1e3);
        Some(chart)
    }

    fn path_lengths(&self) -> Chart {
        let mut chart = Chart::new(
            Kind::Scatter,
            "How long the paths are",
            Axis::linear("autonomous systems on the path", ""),
            Axis::linear("routers", ""),
        );
        chart.subtitle = "Best routes at the end of the run".to_owned();
        for address in &self.addresses {
            let counts = address.path_lengths.iter().enumerate();
            let points = counts.map(|(length, count)| (length as f64, f64::from(*count)));
            chart.series.push(Series::from_points(
                format!("to {}", address.address),
                points,
                [],
            ));
        }
        chart
    }

    fn activity(&self) -> Chart {
        let mut chart = Chart::new(
            Kind::Steps,
            "UPDATEs and changes of best routes",
            Axis::linear("time", "s"),
            Axis::linear("a second", ""),
        );
        let span_s = self.activity.span_s;
        let joined = self.activity.updates.len().div_ceil(SPANS_MAX).max(1);
        chart.subtitle = format!("Counted in spans of {} s", rounded(span_s * joined as f64));
        for (name, counts) in [
            ("UPDATEs sent", &self.activity.updates),
            ("best routes changed", &self.activity.changes),
        ] {
            let rates = rates(counts, joined, span_s);
            chart.series.push(Series::from_points(name, rates, []));
        }
        chart.notes = self.marks();
        chart
    }

    fn by_router(&self) -> Chart {
        let routers = &self.per_router;
        let mut chart = Chart::new(
            Kind::Cdf,
            "UPDATEs by router",
            Axis::linear("UPDATEs in the whole run", ""),
            Axis::linear("share of routers up to this value", ""),
        );
        for (name, value) in [
            (
                "sent",
                (|r| r.updates_sent) as fn(&super::RouterResult) -> u32,
            ),
            ("received", |r| r.updates_received),
        ] {
            let points = routers.iter().enumerate();
            let points = points.map(|(i, router)| (i as f64, f64::from(value(router))));
            chart.series.push(Series::from_points(name, points, []));
        }
        chart.log_if_crushed()
    }

    /// The times of the events, for the text below a chart.
    fn marks(&self) -> Vec<String> {
        let events = self.events.iter().filter(|event| event.kind != "start");
        let mut marks: Vec<String> = events
            .take(6)
            .map(|event| format!("{} s: {}", rounded(event.at_s), event.label))
            .collect();
        let more = self.events.len().saturating_sub(7);
        if more > 0 {
            marks.push(format!("and {more} more"));
        }
        marks
    }
}

/// The shares of an address from `from_s` to `to_s`, with time counted from `zero_s` in units of
/// 1/`units` of a second.
fn series(address: &AddressResult, from_s: f64, to_s: f64, zero_s: f64, units: f64) -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |name: String, colour: usize, value: fn(&Share) -> f64| {
        let points = steps(address, value, from_s, to_s);
        let points = points
            .into_iter()
            .map(|(x, y)| ((x - zero_s) * units, 100.0 * y));
        all.push(Series::from_points(name, points, []).coloured(colour));
    };
    add(format!("to AS{}", address.owner_asn), 2, |share| {
        share.owner
    });
    let names = |numbers: &[u32]| {
        let names: Vec<String> = numbers.iter().map(|asn| format!("AS{asn}")).collect();
        names.join(", ")
    };
    if !address.hijackers.is_empty() {
        let name = format!("to {}, the hijacker", names(&address.hijackers));
        add(name, 6, |share| share.deceived);
    } else if !address.leakers.is_empty() {
        let name = format!("through {}, the leaker", names(&address.leakers));
        add(name, 6, |share| share.deceived);
    }
    add("no route".to_owned(), 7, |share| share.without);
    all
}

/// The values from `first_s` to `end_s`, each at the time from which it holds. A change at `end_s`
/// is left out.
fn steps(
    address: &AddressResult,
    value: fn(&Share) -> f64,
    first_s: f64,
    end_s: f64,
) -> Vec<(f64, f64)> {
    let none = Share {
        at_s: 0.0,
        owner: 0.0,
        deceived: 0.0,
        without: 1.0,
    };
    let before = address.shares.iter().rfind(|share| share.at_s <= first_s);
    let mut last = value(before.unwrap_or(&none));
    let mut points = vec![(first_s, last)];
    let between = |share: &&Share| share.at_s > first_s && share.at_s < end_s;
    for share in address.shares.iter().filter(between) {
        last = value(share);
        points.push((share.at_s, last));
    }
    points.push((end_s, last));
    points
}

/// Converts counts in spans of `span_s` to rates per second, `joined` spans at a time. Each rate is
/// at the start of its spans; the last is repeated at their end.
pub(super) fn rates(counts: &[u32], joined: usize, span_s: f64) -> Vec<(f64, f64)> {
    let edge_s = |span: usize| span as f64 * span_s;
    let steps = counts.chunks(joined).zip((0..).step_by(joined));
    let mut steps: Vec<(f64, f64)> = steps
        .map(|(counts, first)| {
            let count: u64 = counts.iter().copied().map(u64::from).sum();
            (edge_s(first), count as f64 / edge_s(counts.len()))
        })
        .collect();
    if let Some(&(_, rate)) = steps.last() {
        steps.push((edge_s(counts.len()), rate));
    }
    steps
}

/// Rounds to at most three decimals.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
