//! Chapter 4: the capture analyser that searches its whole history for every packet.

use super::published::{
    self, CAPTURE_CONNECTION_PACKETS as OF_CONNECTION, CAPTURE_PACKETS as OF_CAPTURE, WALKS, Walk,
};
use super::{Chapter, Claim, Ratio, Verdict};
use crate::report::{Cell, Table};
use crate::segments::{Case, FLOOR, SegmentsReport, Subject};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Chart, Series, Style};
use plot::number::{grouped, human_seconds, short};

/// The name of our own structure among the lists.
const OURS: &str = "ours";

/// Exponents that count as quadratic: one pass over all segments for each packet.
const QUADRATIC: std::ops::RangeInclusive<f64> = 1.8..=2.6;

/// Exponents with which times are extrapolated. Below, a packet would cost less the more there are; above, a list would
/// walk more than all segments for a packet. Either is noise of short measurements.
const EXTRAPOLATED: std::ops::RangeInclusive<f64> = 0.8..=*QUADRATIC.end();

/// Least factor that counts as the published gain.
const GAIN_MIN: f64 = 1.2;

/// Analysis of a whole capture by `headend trace`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Packets of the capture.
    pub packets: u64,
    /// Size of its file in bytes.
    pub bytes: u64,
    /// Its connections.
    pub connections: u64,
    /// Processor seconds from file to statistics.
    pub cpu_s: f64,
}

/// Measurements of the recovery case, scaled to the published capture.
struct Walks<'a>(&'a SegmentsReport);

impl Walks<'_> {
    /// Seconds for one connection of the published length, and whether that is extrapolated; none if it was not measured
    /// and the exponent over the measured sizes is outside of [`EXTRAPOLATED`].
    fn connection(&self, subject: &str) -> Option<(f64, bool)> {
        let rows = || self.0.curve(Case::Recovery, subject);
        let measured = rows().find(|row| row.n as u64 == OF_CONNECTION && !row.extrapolated);
        if let Some(seconds) = measured.and_then(|row| row.seconds) {
            return Some((seconds, false));
        }
        // From the largest measured size, with the exponent over all sizes.
        let (n, seconds) = rows()
            .filter(|row| !row.extrapolated)
            .filter_map(|row| Some((row.n as f64, row.seconds?)))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let exponent = self.exponent(subject)?;
        if !EXTRAPOLATED.contains(&exponent) {
            return None;
        }
        Some((seconds * (OF_CONNECTION as f64 / n).powf(exponent), true))
    }

    /// Why the times of some lists are not extrapolated, as a sentence; none if all can be.
    fn refused(&self) -> Option<String> {
        let subjects = Case::Recovery.subjects().into_iter();
        let refused: Vec<String> = subjects
            .filter(|subject| self.connection(subject.name).is_none())
            .filter_map(|subject| {
                let exponent = self.exponent(subject.name)?;
                Some(format!("{} ({exponent:.2})", label(&subject)))
            })
            .collect();
        (!refused.is_empty()).then(|| {
            format!(
                "Not extrapolated, because the exponent over all measured numbers of packets is not from {} to {}: {}.",
                EXTRAPOLATED.start(),
                EXTRAPOLATED.end(),
                refused.join(", ")
            )
        })
    }

    /// Seconds for the number of such connections that have as many packets as the capture.
    fn capture(&self, subject: &str) -> Option<f64> {
        let (seconds, _) = self.connection(subject)?;
        Some(seconds * OF_CAPTURE as f64 / OF_CONNECTION as f64)
    }

    fn exponent(&self, subject: &str) -> Option<f64> {
        Some(self.0.law(Case::Recovery, subject)?.exponent)
    }

    /// The time of the walk `slow` for the capture, divided by that of `fast`.
    fn ratio(&self, slow: &str, fast: &str) -> Option<f64> {
        Some(self.capture(slow)? / self.capture(fast)?.max(1e-12))
    }
}

/// The chapter on segment lists, from measurements of [`Case::Recovery`] and from our own time for
/// a capture like the published one.
pub fn chapter_capture(measured: &SegmentsReport, ours: Option<Whole>) -> Chapter {
    let walks = Walks(measured);
    Chapter {
        title: "The capture analyser that walks its whole history".into(),
        source: published::CAPTURE_SOURCE.into(),
        account: account(),
        charts: vec![
            chart_growth(&walks).into(),
            chart_capture(&walks, ours).into(),
        ],
        tables: vec![table_capture(&walks, ours), table_sizes(&walks)],
        verdict: verdict(&walks, ours),
        old_builds: old_builds(&walks),
        ratio: ratio(&walks),
        method: method(),
    }
}

/// The lists of the account that were measured.
fn old_builds(walks: &Walks<'_>) -> Vec<String> {
    let mut names: Vec<String> = WALKS
        .iter()
        .filter(|walk| walks.ratio(walk.subject, walk.subject).is_some())
        .map(|walk| walk.subject.to_owned())
        .collect();
    names.dedup();
    names
}

/// The time of the released lists, divided by the time of the lists with both changes.
fn ratio(walks: &Walks<'_>) -> Option<Ratio> {
    let [released, .., both] = &WALKS;
    let ratio = walks.ratio(released.subject, both.subject);
    Ratio::new(
        "segments of a capture",
        ["lists from the head", "lists from the tail"],
        ratio,
    )
}

fn account() -> Vec<String> {
    [
        "tcptrace keeps all segments of a connection in linked lists. For each packet after a connection's first \
         retransmission, tcptrace looks up the segment that ends where the packet begins. The look-up walks from the \
         head of the list, over all segments that the connection has ever sent. To insert a segment that is not the \
         last one, tcptrace also walks from the head. A connection of n packets with an early loss therefore costs \
         n\u{b2}.",
        "One capture of 302 Mbyte took 7 hours. It has 2.87 million packets in a few connections of 200,000 packets \
         and more each, with the first retransmission near packet 100. Without the look-up, the analysis took 54 s. \
         With a look-up that walks from the tail, where the segment nearly always is, it took 75 s. In a later \
         set-up, with the file in memory and raised priority, the same version took 40.15 s, and 20.34 s when \
         insertion walked from the tail too. The author left a structure without walks for later.",
    ]
    .map(String::from)
    .into()
}

fn method() -> Vec<String> {
    vec![
        "The walks use our own lists, as the account describes them. The load is one connection: each packet from the \
         100th on is looked up by its start, and each 500th packet repeats the packet 24 before it. The nodes of a \
         list are in one array, so a step costs less than with nodes that are allocated one by one."
            .into(),
        format!(
            "Values marked with ~ and dotted lines are extrapolated. The time of one connection of {} packets is \
             extrapolated from the largest measured number of packets, with the exponent over all measured numbers. An \
             exponent that is not from {} to {} is noise of short measurements, and nothing is extrapolated with it. \
             The capture is as many such connections as make {} packets. The published connections had at least that \
             many packets.",
            grouped(OF_CONNECTION as f64, 0),
            EXTRAPOLATED.start(),
            EXTRAPOLATED.end(),
            grouped(OF_CAPTURE as f64, 0)
        ),
        "The published times are those of the whole program, on a machine of 2005. Our times are those of the lists \
         alone, except for the last bar: it shows the whole analysis, from the file's bytes to the statistics of its \
         connections."
            .into(),
        "The floor appends each segment to an array, and looks nothing up.".into(),
    ]
}

/// A colour for each walk; ours has the colour of our own designs.
fn colour(subject: &str) -> usize {
    let subjects = Case::Recovery.subjects();
    let place = subjects.iter().position(|other| other.name == subject);
    match subject {
        OURS => COLOUR_OURS,
        FLOOR => 7,
        _ => place.unwrap_or(0) % COLOUR_OURS,
    }
}

fn label(subject: &Subject) -> &'static str {
    match subject.name {
        OURS => "headend",
        "ours, looked up" => "headend, with look-ups too",
        name => name,
    }
}

fn chart_growth(walks: &Walks<'_>) -> Chart {
    let mut chart = Chart::new(
        "Time of the lists against the packets of a connection",
        "Slope one: each packet costs the same, however long its connection is. Slope two: each packet walks over \
         all.",
        Axis::log("packets of a connection in recovery", ""),
        Axis::log("time", "s"),
    );
    let dashed = head_line(walks);
    chart.series.extend(dashed);
    for subject in Case::Recovery.subjects() {
        let points: Vec<(f64, f64)> = walks
            .0
            .curve(Case::Recovery, subject.name)
            .filter(|row| !row.extrapolated)
            .filter_map(|row| Some((row.n as f64, row.seconds?)))
            .collect();
        let last = points.last().copied();
        let name = format!("{}, here", label(&subject));
        let series = Series::new(name, Style::Solid, colour(subject.name), points);
        chart.series.push(if subject.name == OURS {
            series.bold()
        } else {
            series
        });
        if let (Some(last), Some((seconds, true))) = (last, walks.connection(subject.name)) {
            let name = format!("{}, extrapolated", label(&subject));
            let points = vec![last, (OF_CONNECTION as f64, seconds)];
            chart.series.push(Series::new(
                name,
                Style::Dotted,
                colour(subject.name),
                points,
            ));
        }
    }
    chart.notes.push(
        "Dashed: the published 7 h, divided over connections of 200,000 packets. Only that point is published; the \
         line to it has the published slope."
            .into(),
    );
    chart.notes.extend(walks.refused());
    chart
}

/// The released version's time for one connection, with the published slope.
fn head_line(walks: &Walks<'_>) -> Option<Series> {
    let released = &WALKS[0];
    let from = walks
        .0
        .curve(Case::Recovery, released.subject)
        .map(|row| row.n)
        .min()? as f64;
    let to = OF_CONNECTION as f64;
    let seconds = released.seconds * to / OF_CAPTURE as f64;
    let points = vec![(from, seconds * (from / to).powi(2)), (to, seconds)];
    let name = "published: 7 h for the capture";
    Some(Series::new(name, Style::Dashed, colour(released.subject), points).marked_at_end())
}

fn chart_capture(walks: &Walks<'_>, ours: Option<Whole>) -> BarChart {
    let old = WALKS.iter().map(|walk| {
        let name = format!(
            "{}{}",
            walk.subject,
            if walk.later { ", later" } else { "" }
        );
        let text = human_seconds(walk.seconds);
        Bar::new(name, Style::Dashed, colour(walk.subject), walk.seconds).labelled(text)
    });
    let mut groups = vec![BarGroup {
        name: "published: the whole program on the capture of 2.87 million packets".into(),
        bars: old.collect(),
    }];
    let here = Case::Recovery.subjects().into_iter().filter_map(|subject| {
        let seconds = walks.capture(subject.name)?;
        let (text, colour) = (
            format!("~ {}", human_seconds(seconds)),
            colour(subject.name),
        );
        Some(Bar::new(label(&subject), Style::Dotted, colour, seconds).labelled(text))
    });
    groups.push(BarGroup {
        name: "here: the lists alone, extrapolated to as many packets".into(),
        bars: here.collect(),
    });
    if let Some(whole) = ours {
        let packets = grouped(whole.packets as f64, 0);
        let bar = Bar::new("headend", Style::Solid, COLOUR_OURS, whole.cpu_s);
        groups.push(BarGroup {
            name: format!(
                "here: the whole analysis, measured on a similar capture of {packets} packets"
            ),
            bars: vec![bar.labelled(human_seconds(whole.cpu_s))],
        });
    }
    let dashes =
        "Dashed: published, on a machine of 2005. Dotted: extrapolated from shorter connections.";
    let notes = [dashes.to_owned()].into_iter().chain(walks.refused());
    BarChart {
        title: "The capture that took 7 hours".into(),
        subtitle: "Shorter is better.".into(),
        value: Axis::log("time", "s"),
        groups,
        notes: notes.collect(),
    }
}

/// The published versions, and the time of their walks here.
fn table_capture(walks: &Walks<'_>, ours: Option<Whole>) -> Table {
    let mut table = Table::new(
        "The capture of 2.87 million packets, published and here, also as multiples of the look-up from the tail",
        &[
            ("walk", ""),
            ("published, whole program", ""),
            ("here, lists alone", ""),
            ("published", "x"),
            ("here", "x"),
            ("exponent", ""),
        ],
    );
    let reference = |walk: &Walk| if walk.later { &WALKS[3] } else { &WALKS[2] };
    for walk in &WALKS {
        let same = reference(walk);
        table.row([
            walk.subject.into(),
            walk.wording.into(),
            capture(walks, walk.subject),
            Cell::num(walk.seconds / same.seconds, 2),
            walks
                .ratio(walk.subject, same.subject)
                .map(|ratio| Cell::num(ratio, 3))
                .into(),
            exponent(walks, walk.subject),
        ]);
    }
    table.row([
        "headend".into(),
        Cell::Missing,
        capture(walks, OURS),
        Cell::Missing,
        walks
            .ratio(OURS, WALKS[2].subject)
            .map(|ratio| Cell::num(ratio, 3))
            .into(),
        exponent(walks, OURS),
    ]);
    if let Some(whole) = ours {
        table.row([
            "headend, whole analysis".into(),
            Cell::Missing,
            format!("{}, measured", human_seconds(whole.cpu_s)).into(),
        ]);
    }
    table
}

/// The extrapolated time for the capture.
fn capture(walks: &Walks<'_>, subject: &str) -> Cell {
    match (walks.capture(subject), walks.exponent(subject)) {
        (Some(seconds), _) => format!("~ {}", human_seconds(seconds)).into(),
        (None, Some(_)) => "not extrapolated".into(),
        (None, None) => Cell::Missing,
    }
}

fn exponent(walks: &Walks<'_>, subject: &str) -> Cell {
    walks.exponent(subject).map(|e| Cell::num(e, 2)).into()
}

/// The results at each number of packets.
fn table_sizes(walks: &Walks<'_>) -> Table {
    let mut sizes: Vec<usize> = walks.0.rows.iter().map(|row| row.n).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let headings: Vec<String> = sizes.iter().map(|n| grouped(*n as f64, 0)).collect();
    let mut columns = vec![("packets of the connection", "")];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), "ms")));
    let mut table = Table::new("Lists of one connection, as measured here", &columns);
    for subject in Case::Recovery.subjects() {
        let mut cells = vec![Cell::from(label(&subject))];
        let rows = walks.0.curve(Case::Recovery, subject.name);
        cells.extend(rows.map(|row| {
            let measured = row.seconds.filter(|_| !row.extrapolated);
            measured.map(|seconds| Cell::num(seconds * 1e3, 3)).into()
        }));
        if subject.name == FLOOR {
            table.floor(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

/// Judges the claims: the walk from the head is quadratic, and walking from the tail, first for
/// look-ups and then for insertions, removes its cost.
fn verdict(walks: &Walks<'_>, ours: Option<Whole>) -> Verdict {
    let [released, without, look_up, later, both] = &WALKS;
    let exponent = walks.exponent(released.subject);
    let quadratic = Claim {
        holds: exponent.map(|e| QUADRATIC.contains(&e)),
        because: match exponent {
            Some(e) if QUADRATIC.contains(&e) => format!(
                "With look-ups from the head, the time of a connection in recovery grows with its packets to the \
                 power {e:.2}: quadratic."
            ),
            Some(e) => format!(
                "With look-ups from the head, the time of a connection in recovery grows with its packets to the \
                 power {e:.2}, which is not quadratic."
            ),
            None => {
                "The growth of the walk from the head is not known: too few lengths were measured."
                    .into()
            }
        },
    };
    let claims = vec![
        quadratic,
        gain(walks, "Looking up from the tail", released, look_up),
        gain(walks, "Inserting from the tail too", later, both),
        without_look_up(walks, without, look_up),
    ];
    let mut verdict = Verdict::from_claims(claims);
    verdict.remarks.extend(hours(walks, released));
    verdict.remarks.extend(walks.refused());
    verdict.remarks.extend(still_walks(walks, later));
    verdict.remarks.extend(our_own(walks, ours));
    verdict
}

/// The claim that a change has the published gain.
fn gain(walks: &Walks<'_>, what: &str, slow: &Walk, fast: &Walk) -> Claim {
    let published = short(slow.seconds / fast.seconds);
    let ratio = walks.ratio(slow.subject, fast.subject);
    let of_all = "for the whole program, which does more than walk";
    Claim {
        holds: ratio.map(|r| r >= GAIN_MIN),
        because: match ratio {
            Some(r) => format!(
                "{what} reduces the lists' time to 1/{} of what it was; the published figure is 1/{published} \
                 {of_all}.",
                short(r)
            ),
            None => format!(
                "The gain of {} is not known: the times were not measured, or cannot be extrapolated; the published \
                 figure is 1/{published} {of_all}.",
                what.to_lowercase()
            ),
        },
    }
}

/// The claim that a look-up from the tail costs little compared with the rest.
fn without_look_up(walks: &Walks<'_>, without: &Walk, with: &Walk) -> Claim {
    let share = walks.ratio(with.subject, without.subject);
    let published = with.seconds / without.seconds;
    Claim {
        holds: share.map(|r| r < 2.0),
        because: match share {
            Some(r) => format!(
                "With a look-up from the tail the lists take {r:.2} times as long as without a look-up; the published \
                 factor is {published:.2}."
            ),
            None => "What the look-up costs is not known: the times were not measured, or cannot be extrapolated.".into(),
        },
    }
}

/// The extrapolated time of the released version here.
fn hours(walks: &Walks<'_>, released: &Walk) -> Option<String> {
    let seconds = walks.capture(released.subject)?;
    Some(format!(
        "By extrapolation, the capture of 2.87 million packets would keep the walk from the head busy for {} here. \
         The published time is 7 h, on a machine of 2005, over nodes that were allocated one by one.",
        human_seconds(seconds)
    ))
}

/// The cost that remains while insertion still walks from the head.
fn still_walks(walks: &Walks<'_>, walk: &Walk) -> Option<String> {
    let exponent = walks.exponent(walk.subject)?;
    QUADRATIC.contains(&exponent).then(|| {
        format!(
            "With the look-up from the tail and insertion from the head, the power is still {exponent:.2}: each \
             retransmission walks from the head."
        )
    })
}

/// Our own time.
fn our_own(walks: &Walks<'_>, ours: Option<Whole>) -> Option<String> {
    let mut words = format!(
        "The time of headend's structure grows with the packets to the power {:.2}",
        walks.exponent(OURS)?
    );
    if let Some(whole) = ours {
        words += &format!(
            ". headend's whole analysis, from file to statistics, takes {} of processor time for a capture like the \
             published one ({} Mbyte, {} packets, {} connections)",
            human_seconds(whole.cpu_s),
            short(whole.bytes as f64 / 1e6),
            grouped(whole.packets as f64, 0),
            whole.connections
        );
    }
    Some(words + ".")
}

#[cfg(test)]
mod tests;
