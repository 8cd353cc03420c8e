//! The chart at the top of the page, which compares each old design with the new one, and a sentence to quote.

use super::{Chapter, Outcome, Ratio};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Figure, Style};
use plot::number::short;

/// The ratios of the chapters that have one.
fn ratios(chapters: &[Chapter]) -> impl Iterator<Item = &Ratio> {
    chapters.iter().filter_map(|chapter| chapter.ratio.as_ref())
}

/// A ratio to two digits: further digits would differ in the next run.
fn rounded(ratio: f64) -> String {
    let unit = 10_f64.powf(ratio.log10().floor() - 1.0);
    short((ratio / unit).round() * unit)
}

/// The one sentence to quote; `None` for a quick run, and if no chapter compares an old design with a new one.
pub(super) fn sentence(chapters: &[Chapter]) -> Option<String> {
    if chapters
        .iter()
        .any(|chapter| chapter.verdict.outcome == Outcome::NotJudged)
    {
        return None;
    }
    let all = || ratios(chapters).map(|ratio| ratio.ratio);
    let count = all().count();
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    Some(match count {
        1 => format!(
            "On this machine the old design costs {} times what the new one costs.",
            rounded(high)
        ),
        _ => format!(
            "On this machine {count} old designs cost {} to {} times what the new ones cost.",
            rounded(low),
            rounded(high)
        ),
    })
}

/// A bar for each chapter: the old design's cost divided by the new design's.
pub(super) fn chart(chapters: &[Chapter]) -> Option<Figure> {
    let bars: Vec<Bar> = ratios(chapters)
        .map(|compared| {
            Bar::new(compared.of(), Style::Solid, COLOUR_OURS, compared.ratio)
                .labelled(format!("{} \u{d7}", rounded(compared.ratio)))
        })
        .collect();
    (!bars.is_empty()).then(|| {
        Figure::from(BarChart {
            title: "Cost of the old design, divided by the cost of the new design".into(),
            subtitle: "Both measured on this machine, at the same size. Longer: the new design gains more."
                .into(),
            value: Axis::log("old / new", "times"),
            groups: vec![BarGroup {
                name: String::new(),
                bars,
            }],
            notes: Vec::new(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{chapter_bringup, chapter_poll};

    #[test]
    fn the_sentence_has_the_ends_of_the_ratios_and_the_chart_a_bar_for_each() {
        let mut chapters = [chapter_bringup(&[]), chapter_poll(&[])];
        assert_eq!(sentence(&chapters), None);
        assert!(chart(&chapters).is_none());
        for (chapter, ratio) in chapters.iter_mut().zip([12.0, 3.4]) {
            chapter.ratio = Ratio::new("timers", ["list", "wheel"], Some(ratio));
        }
        let found = sentence(&chapters);
        let expected = "On this machine 2 old designs cost 3.4 to 12 times what the new ones cost.";
        assert_eq!(found.as_deref(), Some(expected));
        let svg = chart(&chapters).map(|chart| chart.to_svg());
        assert!(svg.is_some_and(|svg| svg.contains("3.4 \u{d7}")));
        assert_eq!(Ratio::new("", ["", ""], Some(f64::NAN)), None);
    }
}
