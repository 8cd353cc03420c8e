//! `cargo xtask site`: the pages of the tree as a site with search, in `target/site`.
//!
//! Each page keeps its place in the tree, so its relative links stay as they are but for the ending: `docs/bgp.md`
//! becomes `docs/bgp.html`, and a `README.md` the `index.html` of its directory. The site needs no server and nothing
//! from the network. mdBook does the same and more; it would multiply the build time of xtask by ten.
//!
//! [`page`] turns a page into HTML, [`check`] follows every link of the result.

mod check;
mod page;

use crate::run::Report;
use crate::sources::Source;
use crate::{links, packages, sources};
use page::{Page, Section};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

const STYLE: &str = include_str!("site.css");
const SCRIPT: &str = include_str!("site.js");

/// The pages of the project that are not below docs/, in the order of the navigation.
const PROJECT: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
];

/// Builds the site and follows its links.
pub(crate) fn build(report: &mut Report, root: &Path, target: &Path) -> bool {
    let directory = target.join("site");
    let mut pages = Vec::new();
    report.check("links of the pages", || {
        pages = sources::pages(root).map_err(|fault| vec![fault])?;
        links::check(root, &pages)
    }) && report.check("write the site", || {
        write(root, &pages, &directory).map_err(|fault| vec![fault])
    }) && report.check("links of the site", || check::follow(&directory))
}

/// The pages of the site: a group and its pages, in the order of the navigation.
fn groups(pages: &[Source]) -> Vec<(&'static str, Vec<&Source>)> {
    let find = |path: &str| pages.iter().find(|page| page.path == path);
    let start: Vec<&Source> = ["README.md", "docs/README.md"]
        .into_iter()
        .filter_map(find)
        .collect();
    // In the order of the table in docs/README.md.
    let listed = start.iter().flat_map(|page| links::links(&page.text));
    let mut seen: BTreeSet<String> = start.iter().map(|page| page.path.clone()).collect();
    let mut guides: Vec<&Source> = listed
        .filter_map(|(_, link)| find(&format!("docs/{}", link.split('#').next()?)))
        .filter(|page| seen.insert(page.path.clone()))
        .collect();
    let below_docs = pages.iter().filter(|page| page.path.starts_with("docs/"));
    guides.extend(below_docs.filter(|page| seen.insert(page.path.clone())));
    let (rfc, guides) = guides
        .into_iter()
        .partition(|page| page.path.starts_with("docs/rfc/"));
    let crates = packages::LIBRARIES.iter();
    vec![
        ("Start", start),
        ("Guides", guides),
        ("RFCs", rfc),
        (
            "Libraries",
            crates
                .filter_map(|(name, ..)| find(&format!("crates/{name}/README.md")))
                .collect(),
        ),
        (
            "Project",
            PROJECT.iter().copied().filter_map(find).collect(),
        ),
    ]
}

fn write(root: &Path, pages: &[Source], directory: &Path) -> Result<String, String> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(|error| error.to_string())?;
    }
    let groups = groups(pages);
    let known: BTreeSet<&str> = groups
        .iter()
        .flat_map(|(_, pages)| pages.iter().map(|page| page.path.as_str()))
        .collect();
    let (mut sections, mut files) = (Vec::new(), BTreeSet::new());
    let mut count = 0;
    for page in groups.iter().flat_map(|(_, pages)| pages) {
        let read = page::read(page, &known, &|path| root.join(path).is_file());
        put(directory, &read.place, whole(&read, &groups).as_bytes())?;
        sections.extend(read.sections);
        files.extend(read.files);
        count += 1;
    }
    for file in &files {
        let bytes = std::fs::read(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        put(directory, file, &bytes)?;
    }
    put(directory, "site.css", STYLE.as_bytes())?;
    put(directory, "site.js", SCRIPT.as_bytes())?;
    put(directory, "index-of-words.js", index(&sections)?.as_bytes())?;
    Ok(format!(
        "{count} pages, {} sections, {} other files: {}",
        sections.len(),
        files.len(),
        directory.join("index.html").display()
    ))
}

fn put(directory: &Path, place: &str, bytes: &[u8]) -> Result<(), String> {
    let path = directory.join(place);
    let parent = path.parent().unwrap_or(directory);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The sections as a script, because a page that is opened as a file may not read other files.
fn index(sections: &[Section]) -> Result<String, String> {
    let rows: Vec<_> = sections
        .iter()
        .map(|section| [&section.place, &section.page, &section.title, &section.text])
        .collect();
    let rows = serde_json::to_string(&rows).map_err(|error| error.to_string())?;
    Ok(format!("window.indexOfWords = {rows};\n"))
}

/// A page with its head and its navigation.
fn whole(page: &Page, groups: &[(&str, Vec<&Source>)]) -> String {
    let up = "../".repeat(page.place.matches('/').count());
    let mut menu = String::new();
    for (group, pages) in groups.iter().filter(|(_, pages)| !pages.is_empty()) {
        let _ = write!(menu, "<h2>{group}</h2><ul>");
        for other in pages {
            let place = page::place(&other.path);
            let here = if place == page.place {
                " aria-current=\"page\""
            } else {
                ""
            };
            let title = page::escape(&page::title(other));
            let _ = write!(menu, "<li><a href=\"{up}{place}\"{here}>{title}</a></li>");
        }
        menu += "</ul>";
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - headend</title>\n\
         <link rel=\"stylesheet\" href=\"{up}site.css\">\n</head>\n<body data-up=\"{up}\">\n\
         <a class=\"skip\" href=\"#content\">To the page's text</a>\n<header>\n\
         <button id=\"menu\" aria-expanded=\"false\" aria-controls=\"pages\">Pages</button>\n\
         <a class=\"home\" href=\"{up}index.html\">headend</a>\n\
         <input id=\"search\" type=\"search\" placeholder=\"Search (/)\" aria-label=\"Search all pages\" \
         autocomplete=\"off\" spellcheck=\"false\">\n</header>\n\
         <div id=\"found\" role=\"region\" aria-live=\"polite\" aria-label=\"Found sections\" hidden></div>\n\
         <nav id=\"pages\" aria-label=\"Pages\">{menu}</nav>\n<main id=\"content\">\n{body}</main>\n\
         <script src=\"{up}site.js\"></script>\n</body>\n</html>\n",
        title = page::escape(&page.title),
        body = page.body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_of_this_tree_is_whole() {
        let metadata = crate::cargo::Metadata::read().unwrap();
        let target = std::env::temp_dir().join(format!("xtask-site-{}", std::process::id()));
        let pages = sources::pages(&metadata.root).unwrap();
        write(&metadata.root, &pages, &target).unwrap();
        check::follow(&target).unwrap();
        let text = |name: &str| std::fs::read_to_string(target.join(name)).unwrap();
        assert!(text("docs/bgp.html").contains("aria-current=\"page\""));
        assert!(text("index-of-words.js").contains("docs/bgp.html#"));
        // A link that leads nowhere is noticed.
        std::fs::remove_file(target.join("docs/bgp.html")).unwrap();
        assert!(!check::follow(&target).unwrap_err().is_empty());
        std::fs::remove_dir_all(&target).unwrap();
    }
}
