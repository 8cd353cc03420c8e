//! Checks the links between pages: each relative link and image names a file of the tree, and each `#anchor` names a
//! heading of that page.
//!
//! Links into the network are not followed. Code, in fences or between backticks, has no links.

use crate::sources::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// Checks the links of every page.
///
/// # Errors
/// One line, with page and line number, for each link to a file or heading that does not exist.
pub(crate) fn check(root: &Path, pages: &[Source]) -> Result<String, Vec<String>> {
    check_with(pages, &|path| root.join(path).exists())
}

fn check_with(pages: &[Source], exists: &dyn Fn(&str) -> bool) -> Result<String, Vec<String>> {
    let anchors: BTreeMap<&str, Vec<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), anchors(&page.text)))
        .collect();
    let (mut count, mut faults) = (0, Vec::new());
    for page in pages {
        for (line, link) in links(&page.text) {
            count += 1;
            if let Err(fault) = follow(&page.path, &link, &anchors, exists) {
                faults.push(format!("{}:{line}: {fault}", page.path));
            }
        }
    }
    if faults.is_empty() {
        Ok(format!("{} pages, {count} links", pages.len()))
    } else {
        Err(faults)
    }
}

/// Looks up the target of a link on the page `from`.
fn follow(
    from: &str,
    link: &str,
    anchors: &BTreeMap<&str, Vec<String>>,
    exists: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (link, None),
    };
    let path = if path.is_empty() {
        from.to_owned()
    } else {
        resolve(from, path).ok_or_else(|| format!("{link}: the path leaves the tree"))?
    };
    if !exists(&path) {
        return Err(format!("{link}: no file {path}"));
    }
    let Some(anchor) = anchor else {
        return Ok(());
    };
    match anchors.get(path.as_str()) {
        Some(known) if known.iter().any(|known| known == anchor) => Ok(()),
        Some(_) => Err(format!("{link}: {path} has no heading #{anchor}")),
        None => Err(format!("{link}: {path} is no page, so it has no headings")),
    }
}

/// The path of a link from the root of the tree.
pub(crate) fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = match path.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').collect(),
    };
    // The page itself.
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside of fences, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                false
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                false
            }
            (open, _) => open.is_none(),
        }
    })
}

/// Every link of a page that does not lead into the network, with its line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        // [text](target "title"), also of an image.
        for (at, mark) in line.match_indices("](") {
            found.push((number, target(&line[at + mark.len()..], &[')'])));
        }
        // [name]: target
        if let Some((name, rest)) = line.split_once("]: ")
            && name.starts_with('[')
        {
            found.push((number, target(rest, &[])));
        }
        for attribute in ["src=\"", "srcset=\"", "href=\""] {
            for (at, mark) in line.match_indices(attribute) {
                found.push((number, target(&line[at + mark.len()..], &['"'])));
            }
        }
    }
    found.retain(|(_, link)| !leads_outside(link));
    found
}

/// A link's target, up to one of `ends` or a space.
fn target(text: &str, ends: &[char]) -> String {
    let text = text.trim_start();
    if let Some((inside, _)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) {
        return inside.to_owned();
    }
    let end = text.find(|c: char| c.is_whitespace() || ends.contains(&c));
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Whether this has a scheme, such as `https:`, or names a host.
fn leads_outside(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    link.starts_with("//")
        || scheme.is_some_and(|scheme| {
            !scheme.is_empty()
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        })
}

/// A line without what is between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchors of a page's headings, as GitHub makes them, and of its `id` attributes.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(text) {
        for attribute in ["id=\"", "name=\""] {
            for (at, mark) in line.match_indices(attribute) {
                found.push(target(&line[at + mark.len()..], &['"']));
            }
        }
        let level = line.chars().take_while(|&c| c == '#').count();
        let Some(title) = line[level..].strip_prefix(' ') else {
            continue;
        };
        if !(1..=6).contains(&level) {
            continue;
        }
        let anchor = anchor(title);
        let count = seen.entry(anchor.clone()).or_default();
        found.push(match *count {
            0 => anchor,
            more => format!("{anchor}-{more}"),
        });
        *count += 1;
    }
    found
}

/// A heading's anchor: lower case, without marks, with a hyphen for each space.
pub(crate) fn anchor(title: &str) -> String {
    let title = without_targets(title.trim().trim_end_matches('#').trim_end());
    let kept = title
        .chars()
        .filter(|&c| c.is_alphanumeric() || " -_".contains(c));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A heading without the targets of its links: their texts remain.
pub(crate) fn without_targets(title: &str) -> String {
    let mut parts = title.split("](");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The faults of `docs/page.md` with this text, beside a page and an image.
    fn faults(text: &str) -> Vec<String> {
        let pages = [
            page("docs/page.md", text),
            page(
                "docs/rfc/other.md",
                "# Set-up & `run`\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n",
            ),
        ];
        let files = [
            "README.md",
            "docs/page.md",
            "docs/rfc/other.md",
            "docs/a.svg",
            "docs",
        ];
        check_with(&pages, &|path| files.contains(&path))
            .err()
            .unwrap_or_default()
    }

    #[test]
    fn links_to_files_and_headings_that_exist_pass() {
        for text in [
            "![a chart](a.svg)",
            "[other](rfc/other.md), [above](../README.md), [root](/README.md), [folder](../docs)",
            "[heading](rfc/other.md#set-up--run) and [twice](<rfc/other.md#twice-1> \"title\")",
            "# Own heading\n\n[own](#own-heading)",
            "# See [other](rfc/other.md)\n\n[own](#see-other)",
            "[name]: rfc/other.md#twice",
            "<img src=\"a.svg\">",
            "[out](https://example.org/no.md#x) [mail](mailto:a@example.org)",
            "`[code](no.md)`\n\n```md\n[code](no.md)\n```\n",
        ] {
            assert_eq!(faults(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn links_to_nothing_fail() {
        for (text, fault) in [
            (
                "![a chart](b.svg)",
                "docs/page.md:1: b.svg: no file docs/b.svg",
            ),
            (
                "\n[other](other.md)",
                "docs/page.md:2: other.md: no file docs/other.md",
            ),
            (
                "[gone](rfc/other.md#no-heading)",
                "docs/page.md:1: rfc/other.md#no-heading: docs/rfc/other.md has no heading #no-heading",
            ),
            (
                "[third](rfc/other.md#twice-2)",
                "docs/page.md:1: rfc/other.md#twice-2: docs/rfc/other.md has no heading #twice-2",
            ),
            (
                "[own](#gone)",
                "docs/page.md:1: #gone: docs/page.md has no heading #gone",
            ),
            (
                "[image](a.svg#x)",
                "docs/page.md:1: a.svg#x: docs/a.svg is no page, so it has no headings",
            ),
            (
                "[up](../../x.md)",
                "docs/page.md:1: ../../x.md: the path leaves the tree",
            ),
            (
                "[name]: gone.md",
                "docs/page.md:1: gone.md: no file docs/gone.md",
            ),
            (
                "<source srcset=\"dark.svg\">",
                "docs/page.md:1: dark.svg: no file docs/dark.svg",
            ),
        ] {
            assert_eq!(faults(text), [fault], "{text}");
        }
    }

    #[test]
    fn the_links_of_this_tree_lead_somewhere() {
        let metadata = crate::cargo::Metadata::read().unwrap();
        let pages = crate::sources::pages(&metadata.root).unwrap();
        check(&metadata.root, &pages).unwrap();
    }
}
