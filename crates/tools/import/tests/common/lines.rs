//! Lines that a report must have.

/// The places of lines that say something: not empty, and not starting with one of `comments`.
pub(crate) fn lines_that_count(text: &str, comments: &[char]) -> Vec<usize> {
    let lines = (1..).zip(text.lines());
    let counts =
        lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with(comments));
    counts.map(|(number, _)| number).collect()
}
