//! The table of `headend lab use`: one line for each row, or lines that fit a terminal.

use lab::host::{Row, Verdict};

/// A terminal narrower than this gets lines of this width.
const COLUMNS_MIN: usize = 70;

/// Columns that the second line of a sentence is further in.
const INDENT: usize = 4;

/// The head and the rows. On a terminal, text that is wider than `columns` goes on below itself.
pub(super) fn lines(rows: &[Row], columns: Option<usize>) -> Vec<String> {
    let mut lines = vec![line(
        ("RESOURCE", "ASPECT", "VALUE", "VERDICT"),
        "WHAT, AND WHAT SHOWS IT",
    )];
    for row in rows {
        let value = row
            .value
            .map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let item = match row.item.is_empty() {
            true => String::new(),
            false => format!("{}: ", row.item),
        };
        let text = format!("{item}{}: {}", row.unit, row.shown_by);
        let left = (
            row.resource,
            row.aspect.name(),
            value.as_str(),
            row.verdict.name(),
        );
        let start = line(left, "").chars().count();
        let room = columns.map_or(usize::MAX, |columns| columns.max(COLUMNS_MIN) - start);
        let mut left = Some(left);
        for part in wrapped(&text, room) {
            lines.push(match left.take() {
                Some(left) => line(left, &part),
                None => format!("{:start$}{part}", ""),
            });
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// Sentences. On a terminal, one that is wider than `columns` goes on below itself, by four columns further in.
pub(super) fn hanging(sentences: &[String], columns: Option<usize>) -> Vec<String> {
    let room = columns.map_or(usize::MAX, |columns| columns.max(COLUMNS_MIN) - INDENT);
    let mut lines = Vec::new();
    for sentence in sentences {
        for (at, part) in wrapped(sentence, room).into_iter().enumerate() {
            let indent = if at == 0 { 0 } else { INDENT };
            lines.push(format!("{:indent$}{part}", ""));
        }
    }
    lines
}

fn line((resource, aspect, value, verdict): (&str, &str, &str, &str), text: &str) -> String {
    format!("{resource:<11} {aspect:<11} {value:>7} {verdict:<9} {text}")
}

/// The rows that are not ok first, for a terminal that shows only the first lines.
pub(super) fn worst_first(rows: &[Row]) -> Vec<Row> {
    let rank = |row: &Row| match row.verdict {
        Verdict::Saturated => 0,
        Verdict::Failing => 1,
        Verdict::High => 2,
        Verdict::Ok => 3,
        Verdict::Unknown => 4,
    };
    let mut rows = rows.to_vec();
    rows.sort_by_key(rank);
    rows
}

/// Lines of at most `room` characters, broken between words; a word that is longer is broken behind slashes.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let is_long = word.chars().count() > room;
        let pieces: Vec<&str> = match is_long {
            true => word.split_inclusive('/').collect(),
            false => vec![word],
        };
        for (at, piece) in pieces.into_iter().enumerate() {
            let space = usize::from(at == 0 && !line.is_empty());
            if !line.is_empty() && line.chars().count() + space + piece.chars().count() > room {
                lines.push(core::mem::take(&mut line));
            } else if space > 0 {
                line.push(' ');
            }
            line.push_str(piece);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use lab::host::{Reading, rows};

    use super::*;

    #[test]
    fn every_row_fits_eighty_columns_and_loses_nothing() {
        let rows = rows(&Reading::default(), &Reading::default(), 1.0);
        let whole = lines(&rows, None);
        assert_eq!(whole.len(), rows.len() + 1);
        for columns in [80, 70, 10] {
            let narrow = lines(&rows, Some(columns));
            let longest = narrow.iter().map(|line| line.chars().count()).max();
            assert!(longest <= Some(columns.max(COLUMNS_MIN)), "{narrow:#?}");
            let letters = |lines: &[String]| lines.concat().replace(' ', "");
            assert_eq!(letters(&narrow), letters(&whole));
        }
    }

    #[test]
    fn sentences_fit_the_terminal_and_break_between_words() {
        let sentence = "saturated cpu: 9.0 threads ready beyond the CPUs, at both readings; the threshold is 1 (Gregg, \
                        USE method: Linux checklist)";
        let sentences = [sentence.to_owned(), "nothing is saturated".to_owned()];
        assert_eq!(hanging(&sentences, None), sentences);
        let lines = hanging(&sentences, Some(80));
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        assert!(lines[1].starts_with("    ") && lines[2] == sentences[1]);
        let words: Vec<&str> = lines[..2]
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert_eq!(words.join(" "), sentence);
    }

    #[test]
    fn what_is_saturated_comes_first() {
        let mut rows = rows(&Reading::default(), &Reading::default(), 1.0);
        rows[5].verdict = Verdict::Saturated;
        rows[3].verdict = Verdict::High;
        let sorted = worst_first(&rows);
        assert_eq!(sorted[0], rows[5]);
        assert_eq!(sorted[1], rows[3]);
        assert_eq!(sorted.len(), rows.len());
    }
}
