//! Charts of the results.

use plot::figure::{Bar, BarChart, BarGroup, Figure, Style};
use plot::{Axis, Chart, Kind, Series};

use super::super::outcome::{Experiment, Outcome, RowOutcome, Spread, Stream};
use super::super::rows::{Load, Result};
use super::load_words;
use crate::report::Cell;

/// Label and colour of published figures, of our measurements, and of measurements by a browser.
const PUBLISHED: (&str, usize) = ("published", 0);
const HERE: (&str, usize) = ("here", plot::figure::COLOUR_OURS);
const BROWSER: (&str, usize) = ("browser", 2);

/// Colours of the engines, in every chart the same.
const ENGINES: [(&str, usize); 3] = [
    ("user", plot::figure::COLOUR_OURS),
    ("kernel", 3),
    ("cake", 4),
];

fn colour_of(engine: &str) -> usize {
    let known = ENGINES.iter().find(|(name, _)| *name == engine);
    known.map_or(plot::figure::COLOUR_OURS, |(_, colour)| *colour)
}

fn trips(name: impl Into<String>, pings: &[(f64, Option<f64>)]) -> Series {
    let answered = pings
        .iter()
        .filter_map(|(sent, rtt)| Some((*sent, (*rtt)?)));
    let lost = pings.iter().filter(|ping| ping.1.is_none());
    Series::from_points(name, answered, lost.map(|ping| ping.0))
}

fn over_time(title: String) -> Chart {
    let time = Axis::linear("time", "s");
    Chart::new(
        Kind::OverTime,
        title,
        time,
        Axis::linear("round trip", "ms"),
    )
    .of_packets()
}

/// Of several measurements, the first is drawn.
fn which_is_drawn(outcome: &Outcome) -> String {
    match outcome.rows.iter().map(|row| row.runs.len()).max() {
        Some(runs) if runs > 1 => format!("The first of {runs} measurements"),
        _ => String::new(),
    }
}

/// B's pings under one load, without and with the policy in one chart; `None` if neither was
/// measured.
pub(super) fn ping_chart(outcome: &Outcome, load: Load) -> Option<Chart> {
    let title = match load {
        Load::None => "B's pings while A does nothing".to_owned(),
        Load::Bulk | Load::Flood => format!("B's pings while A sends: {}", load_words(load)),
    };
    let mut chart = over_time(title);
    chart.subtitle = which_is_drawn(outcome);
    let rows = outcome.rows.iter().filter(|row| row.row.load == load);
    let series = rows.filter_map(|row| {
        let number = row.row.number;
        let (name, colour) = match row.engine {
            None => (format!("row {number}: without policy"), 1),
            Some(engine) if outcome.compares() => {
                (format!("row {number}: {engine}"), colour_of(engine))
            }
            Some(_) => {
                let name = format!("row {number}: with policy ({})", outcome.treatment);
                (name, 2)
            }
        };
        let run = row.runs.first()?;
        Some(trips(name, &run.pings).coloured(colour))
    });
    chart.series = series.collect();
    (!chart.series.is_empty()).then_some(chart)
}

/// The pings of the other loads, and the distribution of all.
pub(super) fn ping_charts(outcome: &Outcome) -> Vec<Chart> {
    let others = [Load::Flood, Load::None];
    let mut charts: Vec<Chart> = others
        .into_iter()
        .filter_map(|load| ping_chart(outcome, load))
        .collect();
    let mut all = over_time(String::new());
    // With several engines, the rows of one load are enough for a chart.
    let load = [Load::Bulk, Load::Flood, Load::None];
    let load = load.into_iter().find(|load| {
        let mut rows = outcome.rows.iter();
        rows.any(|row| row.row.load == *load && row.row.shaped)
    });
    let with = |row: &RowOutcome| {
        if outcome.compares() {
            let (engine, colour) = match row.engine {
                None => ("without policy", 1),
                Some(engine) => (engine, colour_of(engine)),
            };
            let run = row.runs.first().filter(|_| Some(row.row.load) == load)?;
            let name = format!("row {}: {engine}", row.row.number);
            return Some(trips(name, &run.pings).coloured(colour));
        }
        let load = load_words(row.row.load);
        let name = format!(
            "row {}: {load}, {}",
            row.row.number,
            policy_of(outcome, row)
        );
        row.runs.first().map(|run| trips(name, &run.pings))
    };
    all.series = outcome.rows.iter().filter_map(with).collect();
    if !all.series.is_empty() {
        all.y = Axis::log("round trip", "ms");
        all.subtitle = which_is_drawn(outcome);
        charts.push(all.to_cdf("How the round trips are distributed"));
    }
    charts
}

/// Settings with one stream each share a chart; those with more have one each, on the same scale.
pub(super) fn experiment_charts(experiment: &Experiment) -> Vec<Chart> {
    let settings = &experiment.settings;
    let streams = settings.iter().flat_map(|setting| &setting.streams);
    let longest = streams.filter_map(|stream| stream.percentile_ms(1.0));
    let longest = longest.fold(1.0, f64::max);
    let chart = |title: &str, series: Vec<Series>| {
        let mut chart = over_time(title.to_owned());
        chart.y = chart.y.up_to(longest);
        chart.series = series;
        chart
    };
    let series = |name: &str, stream: &Stream| trips(name, &stream.pings);
    if settings.iter().all(|setting| setting.streams.len() == 1) {
        let all = settings.iter().filter_map(|setting| {
            let stream = setting.streams.first()?;
            Some(series(
                &format!("{}: {}", setting.name, stream.name),
                stream,
            ))
        });
        return vec![chart("Pings in each setting", all.collect())];
    }
    let each = settings.iter().map(|setting| {
        let streams = setting.streams.iter();
        let all = streams.map(|stream| series(&stream.name, stream));
        chart(&setting.name, all.collect())
    });
    each.collect()
}

/// What shaped in a row, in words.
fn policy_of(outcome: &Outcome, row: &RowOutcome) -> String {
    match row.engine {
        None => "without policy".to_owned(),
        Some(engine) if outcome.compares() => format!("by {engine}"),
        Some(_) => "with policy".to_owned(),
    }
}

/// One group of bars for each row of the published table, with the bars of all engines.
fn group(row: &RowOutcome, bars: Vec<Bar>) -> BarGroup {
    let policy = if row.row.shaped { "with" } else { "without" };
    BarGroup {
        name: format!(
            "Row {}: A does {}, {policy} policy",
            row.row.number,
            load_words(row.row.load)
        ),
        bars,
    }
}

/// Label and colour of our measurements of a row.
fn here<'a>(outcome: &Outcome, row: &RowOutcome) -> (&'a str, usize) {
    match row.engine {
        Some(engine) if outcome.compares() => (engine, colour_of(engine)),
        _ => HERE,
    }
}

/// A bar of the mean, labelled with its spread if there is one; `missing` is shown if there is no
/// mean.
fn bar(
    (name, colour): (&str, usize),
    spread: Option<Spread>,
    decimals: usize,
    missing: &str,
) -> Bar {
    let Some(spread) = spread else {
        return Bar::missing(name, colour, missing);
    };
    let bar = Bar::new(name, Style::Solid, colour, spread.mean);
    let shown = |value| Cell::num(value, decimals).shown();
    let mean = shown(spread.mean);
    if spread.count < 2 {
        return bar.labelled(mean);
    }
    let (min, max) = (shown(spread.min), shown(spread.max));
    bar.labelled(format!("{mean} ({min} to {max}, n = {})", spread.count))
}

const STREAM: &str = "A stream of 200 kbit/s in datagrams of 500 octets from B to the far side";
const PAGES: &str = "A page of a dozen objects, 150 kB, loaded by B: the mean of all loads, by our own loader (here) and by a browser";

fn published_bar(value: Option<f64>, missing: &str) -> Bar {
    match value {
        Some(value) => Bar::new(PUBLISHED.0, Style::Dashed, PUBLISHED.1, value),
        None => Bar::missing(PUBLISHED.0, PUBLISHED.1, missing),
    }
}

pub(super) fn bar_charts(outcome: &Outcome) -> Vec<Figure> {
    if outcome.rows.is_empty() {
        return Vec::new();
    }
    let loss = |row: &RowOutcome| {
        let spread = row.spread(|run| Some(run.loss_percent));
        vec![
            published_bar(Some(row.published.loss_percent), ""),
            bar(here(outcome, row), spread, 2, &missing(row)),
        ]
    };
    let jitter = |row: &RowOutcome| {
        let spread = row.spread(|run| Some(run.jitter_ms));
        vec![
            published_bar(Some(row.published.jitter_ms), ""),
            bar(here(outcome, row), spread, 2, &missing(row)),
        ]
    };
    let pages = |row: &RowOutcome| page_bars(outcome, row);
    let mut charts = vec![
        chart(
            ["Loss of the stream", STREAM],
            Axis::linear("loss", "%"),
            groups(outcome, loss),
        ),
        chart(
            ["Jitter of the stream", STREAM],
            Axis::linear("jitter", "ms"),
            groups(outcome, jitter),
        ),
        chart(
            ["Page loads", PAGES],
            Axis::linear("time", "ms"),
            groups(outcome, pages),
        ),
    ];
    let mut runs = outcome.rows.iter().flat_map(|row| &row.runs);
    if runs.any(|run| run.share.is_some()) {
        charts.push(chart(
            ["B's share of the link", "One upload of B against A's load"],
            Axis::linear("share", "").up_to(1.0),
            groups(outcome, |row| share_bars(outcome, row)),
        ));
    }
    charts
}

/// A chart with a title and a subtitle.
fn chart([title, subtitle]: [&str; 2], value: Axis, groups: Vec<BarGroup>) -> Figure {
    Figure::from(BarChart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        value,
        groups,
        notes: Vec::new(),
    })
}

/// The first bar of each group is the published one. Rows of further engines add theirs to it.
fn groups(outcome: &Outcome, bars: impl Fn(&RowOutcome) -> Vec<Bar>) -> Vec<BarGroup> {
    let mut groups: Vec<(u8, BarGroup)> = Vec::new();
    for row in &outcome.rows {
        let (number, bars) = (row.row.number, bars(row));
        match groups.iter_mut().find(|(known, _)| *known == number) {
            Some((_, group)) => group.bars.extend(bars.into_iter().skip(1)),
            None if bars.is_empty() => {}
            None => groups.push((number, group(row, bars))),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Why a row has no figure.
fn missing(row: &RowOutcome) -> String {
    match row.failed {
        Some(_) => "did not finish".to_owned(),
        None => "not measured".to_owned(),
    }
}

fn share_bars(outcome: &Outcome, row: &RowOutcome) -> Vec<Bar> {
    // Without load, B does not share the link.
    if row.row.load == Load::None {
        return Vec::new();
    }
    let spread = row.spread(|run| run.share);
    vec![
        published_bar(row.published.share, "not published"),
        bar(here(outcome, row), spread, 3, &missing(row)),
    ]
}

/// The page loads of all measurements together, so their spread is that of single loads.
fn page_bars(outcome: &Outcome, row: &RowOutcome) -> Vec<Bar> {
    let (name, colour) = here(outcome, row);
    let missing = match row.runs.is_empty() {
        true => missing(row),
        false => format!("no page within {} s", outcome.seconds),
    };
    let all = |loads: fn(&Result) -> &Vec<f64>| {
        let each = row.runs.iter().flat_map(loads).copied();
        Spread::of(&each.collect::<Vec<f64>>())
    };
    let mut bars = vec![
        published_bar(row.published.page_ms, "no page within 120 s"),
        bar((name, colour), all(|run| &run.page_ms), 0, &missing),
    ];
    let browsed = |run: &Result| !run.browser_ms.is_empty() || run.browser_failures > 0;
    if row.runs.iter().any(browsed) {
        let browser = all(|run| &run.browser_ms);
        let label = match outcome.compares() && row.row.shaped {
            true => format!("{name}, {}", BROWSER.0),
            false => BROWSER.0.to_owned(),
        };
        let colour = if outcome.compares() {
            colour
        } else {
            BROWSER.1
        };
        bars.push(bar((&label, colour), browser, 0, "no page in time"));
    }
    bars
}
