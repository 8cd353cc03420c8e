//! Writes reports as files.

use super::{Report, SCHEMA};
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// A directory or file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The path that was to be written.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: std::io::Error,
}

/// The files of a report, in the order of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The contents of each file, and its path.
    pub files: Vec<(String, PathBuf)>,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Written:")?;
        let width = self
            .files
            .iter()
            .map(|(_, p)| p.display().to_string().chars().count())
            .max();
        for (what, path) in &self.files {
            writeln!(
                f,
                "  {:<1$}  {what}",
                path.display().to_string(),
                width.unwrap_or(0)
            )?;
        }
        Ok(())
    }
}

/// The JSON file's outermost object.
#[derive(Serialize)]
struct Document<'a> {
    schema: String,
    kind: &'static str,
    #[serde(flatten)]
    report: &'a Report,
    files: Vec<&'a str>,
}

impl Report {
    /// Writes `NAME.json`, a CSV file per table and an SVG file per chart into `dir`, which is
    /// created if necessary.
    ///
    /// Files are named after titles and overwritten; other files in `dir` are not changed.
    ///
    /// # Errors
    /// The first directory or file that cannot be written.
    pub fn write(&self, dir: &Path) -> Result<Written, WriteError> {
        let mut taken = HashSet::new();
        let mut outputs: Vec<(String, String, String)> = Vec::new();
        for table in &self.tables {
            outputs.push((
                free_name(&mut taken, &table.title, "csv"),
                table.title.clone(),
                table.to_csv(),
            ));
        }
        for chart in &self.charts {
            let title = chart.title();
            outputs.push((
                free_name(&mut taken, title, "svg"),
                title.into(),
                chart.to_svg(),
            ));
        }
        let files = outputs.iter().map(|(name, ..)| name.as_str()).collect();
        let document = Document {
            schema: format!("bench.{}/{SCHEMA}", slug(&self.name)),
            kind: "headend-bench",
            report: self,
            files,
        };
        let json = serde_json::to_string_pretty(&document)
            .expect("a report holds only strings, numbers and lists of them");
        let json_name = format!("{}.json", slug(&self.name));
        outputs.insert(
            0,
            (
                json_name,
                "all of it, with method and machine".into(),
                json + "\n",
            ),
        );

        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError { path, source }
        };
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        let mut written = Written { files: Vec::new() };
        for (name, what, content) in outputs {
            let path = dir.join(name);
            std::fs::write(&path, content).map_err(failed(&path))?;
            written.files.push((what, path));
        }
        Ok(written)
    }
}

/// `title` as a file name: lower-case letters, digits and single hyphens, at most 60 of them.
pub fn slug(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= 60 {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "unnamed".into()
    } else {
        name.into()
    }
}

/// A file name derived from `title` that is not used yet.
fn free_name(taken: &mut HashSet<String>, title: &str, extension: &str) -> String {
    let stem = slug(title);
    let mut name = format!("{stem}.{extension}");
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{stem}-{number}.{extension}");
        number += 1;
    }
    name
}
