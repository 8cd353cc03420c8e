//! A page of Markdown as HTML, with GitHub's anchors, and its sections for the search.

use crate::links;
use crate::sources::Source;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use std::collections::{BTreeMap, BTreeSet};

/// A page of the site.
pub(super) struct Page {
    /// Its path in the site.
    pub(super) place: String,
    pub(super) title: String,
    /// The HTML of its content.
    pub(super) body: String,
    pub(super) sections: Vec<Section>,
    /// Files of the tree that it shows or links to, by path.
    pub(super) files: Vec<String>,
}

/// A heading and the text up to the next one.
pub(super) struct Section {
    /// Path in the site and anchor.
    pub(super) place: String,
    /// The page's title.
    pub(super) page: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// The path of a page in the site.
pub(super) fn place(path: &str) -> String {
    let stem = path.strip_suffix(".md").unwrap_or(path);
    match stem.strip_suffix("README") {
        Some(directory) => format!("{directory}index.html"),
        None => format!("{stem}.html"),
    }
}

/// The text of a page's first heading.
pub(super) fn title(page: &Source) -> String {
    let heading = page.text.lines().find_map(|line| line.strip_prefix("# "));
    let title = heading.unwrap_or(&page.path);
    links::without_targets(title).replace(['`', '[', ']'], "")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Reads a page. `known` are the pages of the site; `is_file` asks for other files of the tree.
pub(super) fn read(
    source: &Source,
    known: &BTreeSet<&str>,
    is_file: &dyn Fn(&str) -> bool,
) -> Page {
    let mut page = Page {
        place: place(&source.path),
        title: title(source),
        body: String::new(),
        sections: Vec::new(),
        files: Vec::new(),
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // Where the open heading's events start.
    let mut heading: Option<(usize, HeadingLevel)> = None;
    for event in Parser::new_ext(&source.text, options) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some((events.len(), level)),
            Event::End(TagEnd::Heading(_)) => {
                let Some((start, level)) = heading.take() else {
                    continue;
                };
                let inner: Vec<Event<'_>> = events.drain(start..).collect();
                let text = plain(&inner);
                let id = numbered(&mut seen, links::anchor(&text));
                events.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
                events.extend(inner);
                let name = escape(&text);
                events.push(Event::Html(
                    format!(
                        " <a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to {name}\">#</a></{level}>\n"
                    )
                    .into(),
                ));
                page.sections.push(Section {
                    place: format!("{}#{id}", page.place),
                    page: page.title.clone(),
                    title: text,
                    text: String::new(),
                });
            }
            event => {
                if let (None, Some(section)) = (heading, page.sections.last_mut()) {
                    collect(&event, &mut section.text);
                }
                push(event, source, known, is_file, &mut page.files, &mut events);
            }
        }
    }
    html::push_html(&mut page.body, events.into_iter());
    page
}

/// Adds an event, with its link led to the place in the site. Tables may be wider than a page.
fn push<'a>(
    event: Event<'a>,
    source: &Source,
    known: &BTreeSet<&str>,
    is_file: &dyn Fn(&str) -> bool,
    files: &mut Vec<String>,
    events: &mut Vec<Event<'a>>,
) {
    let mut lead = |link: CowStr<'a>| -> CowStr<'a> {
        lead(&source.path, &link, known, is_file, files).map_or(link, CowStr::from)
    };
    match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let dest_url = lead(dest_url);
            events.push(Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }));
        }
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let dest_url = lead(dest_url);
            events.push(Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }));
        }
        Event::Start(Tag::Table(_)) => {
            events.push(Event::Html("<div class=\"wide\" tabindex=\"0\">".into()));
            events.push(event);
        }
        Event::End(TagEnd::Table) => {
            events.push(event);
            events.push(Event::Html("</div>\n".into()));
        }
        event => events.push(event),
    }
}

/// The link as the site has it: to a page, or to a file that is copied. `None`: it stays as it is.
fn lead(
    from: &str,
    link: &str,
    known: &BTreeSet<&str>,
    is_file: &dyn Fn(&str) -> bool,
    files: &mut Vec<String>,
) -> Option<String> {
    if link.starts_with('#') || link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (link, String::new()),
    };
    let full = links::resolve(from, path)?;
    let readme = match full.is_empty() {
        true => "README.md".to_owned(),
        false => format!("{full}/README.md"),
    };
    let page = [full.as_str(), readme.as_str()]
        .into_iter()
        .find(|path| known.contains(path));
    let target = match page {
        Some(page) => place(page),
        None if is_file(&full) => {
            files.push(full.clone());
            full
        }
        // A directory without a page, or a page that the site leaves out.
        None => return Some("#".to_owned()),
    };
    let up = "../".repeat(from.matches('/').count());
    Some(format!("{up}{target}{anchor}"))
}

/// The text of events.
fn plain(events: &[Event<'_>]) -> String {
    let mut text = String::new();
    for event in events {
        collect(event, &mut text);
    }
    text.trim().to_owned()
}

fn collect(event: &Event<'_>, text: &mut String) {
    match event {
        Event::Text(part) | Event::Code(part) => text.push_str(part),
        Event::End(TagEnd::Link | TagEnd::Strong | TagEnd::Emphasis) => {}
        Event::SoftBreak | Event::HardBreak | Event::End(_) if !text.ends_with(' ') => {
            text.push(' ');
        }
        _ => {}
    }
}

/// A second heading of the same text gets a number, as on GitHub.
fn numbered(seen: &mut BTreeMap<String, usize>, anchor: String) -> String {
    let count = seen.entry(anchor.clone()).or_default();
    *count += 1;
    match *count {
        1 => anchor,
        more => format!("{anchor}-{}", more - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        let source = Source {
            path: "docs/page.md".to_owned(),
            text: text.to_owned(),
        };
        let known = BTreeSet::from(["docs/page.md", "README.md", "docs/rfc/other.md"]);
        read(&source, &known, &|path| path == "docs/a.svg")
    }

    #[test]
    fn links_lead_to_the_pages_of_the_site() {
        for (link, target) in [
            ("rfc/other.md#part", "../docs/rfc/other.html#part"),
            ("../README.md", "../index.html"),
            ("..", "../index.html"),
            ("/README.md", "../index.html"),
            ("a.svg", "../docs/a.svg"),
            ("#here", "#here"),
            ("https://example.org/a.md", "https://example.org/a.md"),
        ] {
            let body = page(&format!("[text]({link})")).body;
            assert_eq!(body, format!("<p><a href=\"{target}\">text</a></p>\n"));
        }
        assert_eq!(page("![a](a.svg)").files, ["docs/a.svg"]);
    }

    #[test]
    fn headings_have_anchors_and_sections_have_text() {
        let page = page(
            "# The `page`\nOne\ntwo.\n## Set-up & run\n| a |\n|---|\n| b |\n## Set-up & run\n",
        );
        assert_eq!(page.title, "The page");
        let places: Vec<&str> = page
            .sections
            .iter()
            .map(|section| section.place.as_str())
            .collect();
        assert_eq!(
            places,
            [
                "docs/page.html#the-page",
                "docs/page.html#set-up--run",
                "docs/page.html#set-up--run-1"
            ]
        );
        assert_eq!(page.sections[0].text.trim(), "One two.");
        assert_eq!(page.sections[1].text.trim(), "a b");
        assert!(
            page.body
                .contains("<h2 id=\"set-up--run\">Set-up &amp; run")
        );
    }
}
