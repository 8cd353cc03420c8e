//! The known word nearest to a mistyped one.

/// The word of `known` that `typed` was most likely meant to be: at most a third of its letters differ, or one begins
/// with the other.
pub(super) fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let ranked = known.iter().map(|word| {
        let is_other = !word.starts_with(&typed);
        (distance(&typed, word), is_other, *word)
    });
    let (differ, _, word) = ranked.min()?;
    if differ <= word.len().max(3) / 3 {
        return Some(word);
    }
    let begins =
        |word: &&&str| typed.len() > 2 && (typed.starts_with(**word) || word.starts_with(&typed));
    known
        .iter()
        .filter(begins)
        .max_by_key(|word| word.len())
        .copied()
}

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let differs = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (rows[i - 1][j] + 1)
                    .min(rows[i][j - 1] + 1)
                    .min(rows[i - 1][j - 1] + differs);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_word_and_another_word_finds_none() {
        let known = ["up", "down", "line_up", "line_down", "overhead"];
        assert_eq!(nearest("donw", &known), Some("down"));
        assert_eq!(nearest("line-up", &known), Some("line_up"));
        assert_eq!(nearest("over", &known), Some("overhead"));
        assert_eq!(nearest("downstream", &known), Some("down"));
        assert_eq!(nearest("prot", &["port", "proto"]), Some("proto"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
