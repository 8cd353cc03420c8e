//! Follows every link of the written site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks that each `href` and `src` of each page names a file of the site, and each anchor an id in it.
///
/// # Errors
/// One line for each link that leads nowhere.
pub(super) fn follow(directory: &Path) -> Result<String, Vec<String>> {
    let mut files = BTreeMap::new();
    walk(directory, "", &mut files).map_err(|error| vec![error.to_string()])?;
    let ids: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .map(|(path, text)| (path.as_str(), values(text, "id=\"").collect()))
        .collect();
    let (mut count, mut faults) = (0, Vec::new());
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".html")) {
        for link in values(text, "href=\"").chain(values(text, "src=\"")) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let full = match file {
                "" => Some(path.clone()),
                file => crate::links::resolve(path, file),
            };
            let found = full.as_deref().and_then(|full| ids.get(full));
            if found.is_none_or(|ids| !anchor.is_empty() && !ids.contains(anchor)) {
                faults.push(format!("{path}: {link} leads nowhere"));
            }
        }
    }
    match faults.is_empty() {
        true => Ok(format!("{count} links of {} files", files.len())),
        false => Err(faults),
    }
}

/// The values of an attribute in HTML that this program wrote. Text has no quotes: they are escaped.
fn values<'t>(text: &'t str, mark: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices(mark).filter_map(move |(at, _)| {
        let before = text[..at].bytes().next_back()?;
        let value = text[at + mark.len()..].split('"').next()?;
        before.is_ascii_whitespace().then_some(value)
    })
}

/// Reads the texts of all files; of others than text, an empty one.
fn walk(
    directory: &Path,
    prefix: &str,
    into: &mut BTreeMap<String, String>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), into)?;
        } else {
            let bytes = std::fs::read(entry.path())?;
            into.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
    }
    Ok(())
}
