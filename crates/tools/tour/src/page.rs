//! The page and the picture to share.

use std::time::Duration;

use lab::report::MachineInfo;
use plot::{Block, Card, Page, Panel, PngError};

use crate::parts::Part;

/// A page that has this text was written by a tour.
pub(crate) const MARK: &str = "written by headend tour";

/// Widths of the numbers on a screen and on a phone, in user units.
const WIDTHS: [f64; 2] = [860.0, 420.0];

/// The three numbers as a picture.
pub(crate) fn card(all: &[Part]) -> Card {
    let panel = |part: &Part| Panel {
        number: part.number.clone(),
        words: part.words.clone(),
        lines: part.lines.clone(),
    };
    Card {
        title: "headend on this machine".into(),
        subtitle: "A software broadband edge, and the lab that measures it".into(),
        panels: all.iter().map(panel).collect(),
        foot: format!("headend tour, version {}", env!("CARGO_PKG_VERSION")),
    }
}

/// The whole page. `picture` is the reason why there is no picture.
pub(crate) fn html(all: &[Part], took: Duration, picture: Option<&PngError>) -> String {
    let mut page = Page::new("A tour of headend");
    page.subtitle = format!(
        "Version {}, {MARK} in {:.0} s on the machine below.",
        env!("CARGO_PKG_VERSION"),
        took.as_secs_f64().max(1.0)
    );
    let card = card(all);
    let [wide, narrow] = WIDTHS.map(|width| card.to_inline_svg(width));
    page.blocks.push(Block::Drawing { wide, narrow });
    for part in all {
        if let Some(why) = &part.missing {
            let text = format!("Not measured: {} ({why}).", part.name);
            page.blocks.push(Block::Text(text));
        }
    }
    for part in all {
        if part.missing.is_none() {
            page.blocks.push(Block::Lead(part.lead.clone()));
        }
        page.blocks.extend(part.chart.clone().map(Block::from));
        page.blocks
            .extend(part.how.iter().cloned().map(Block::Text));
    }
    page.blocks.push(Block::Heading("Next".into()));
    page.blocks.push(Block::Text(match picture {
        None => "The image to share is tour.png, beside this page.".into(),
        Some(why) => format!("There is no image to share: {why}."),
    }));
    page.blocks.push(Block::Text(
        "headend check and headend doctor compare a configuration with this host; headend run starts the daemon.".into(),
    ));
    page.blocks.push(Block::Heading("The machine".into()));
    let lines = MachineInfo::read().lines();
    page.blocks.extend(lines.into_iter().map(Block::Text));
    page.to_html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &'static str, missing: Option<&str>) -> Part {
        Part {
            name,
            number: "7 <b>".into(),
            words: "somethings".into(),
            lead: format!("The lead of {name}."),
            how: vec!["How it was.".into()],
            missing: missing.map(str::to_owned),
            ..Part::default()
        }
    }

    #[test]
    fn the_page_has_its_mark_and_says_what_is_missing() {
        let all = [
            part("subscribers", None),
            part("hijack", Some("no namespaces")),
        ];
        let why = PngError::NotBuilt;
        let page = html(&all, Duration::from_secs(12), Some(&why));
        for text in [
            MARK,
            "The lead of subscribers.",
            "Not measured: hijack (no namespaces).",
            "There is no image to share",
            "7 &lt;b&gt;",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("The lead of hijack."));
        // Nothing is fetched from elsewhere.
        for fetch in ["<script src", "<link", "@import", "<img"] {
            assert!(!page.contains(fetch), "{fetch}");
        }
    }
}
