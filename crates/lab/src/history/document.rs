//! The chapters as one JSON object, for programs.

use serde::Serialize;

use super::{Chapter, Outcome};

/// The name and version of the object's form.
const SCHEMA: &str = "bench.history/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// Whether all chapters are there: an interrupted run has those that it finished.
    complete: bool,
    chapters: Vec<Row<'a>>,
}

/// One chapter.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    /// The old designs that were re-run.
    old_builds: &'a [String],
    /// What `old` and `new` are compared at; `null`, as the three after it, if one of them was not measured.
    at: Option<&'a str>,
    old: Option<&'a str>,
    new: Option<&'a str>,
    ratio: Option<f64>,
    verdict: Outcome,
    why: String,
    /// The page's file and the chapter's place on it.
    page: String,
}

/// The finished chapters, each under the name of the same place in `names`, on the page in the file `page`. `names` has
/// all chapters of a complete run.
pub fn document(names: &[&str], chapters: &[Chapter], page: &str) -> String {
    let rows = names.iter().zip(chapters).enumerate();
    let document = Document {
        schema: SCHEMA,
        complete: chapters.len() == names.len(),
        chapters: rows
            .map(|(place, (name, chapter))| row(place + 1, name, chapter, page))
            .collect(),
    };
    serde_json::to_string_pretty(&document).expect("the object holds only strings and numbers")
        + "\n"
}

fn row<'a>(number: usize, name: &'a str, chapter: &'a Chapter, page: &str) -> Row<'a> {
    let compared = chapter.ratio.as_ref();
    Row {
        name,
        title: &chapter.title,
        source: &chapter.source,
        old_builds: &chapter.old_builds,
        at: compared.map(|ratio| ratio.at.as_str()),
        old: compared.map(|ratio| ratio.old.as_str()),
        new: compared.map(|ratio| ratio.new.as_str()),
        ratio: compared.map(|ratio| ratio.ratio),
        verdict: chapter.verdict.outcome,
        why: chapter.verdict.why(),
        page: format!("{page}#chapter-{number}"),
    }
}
