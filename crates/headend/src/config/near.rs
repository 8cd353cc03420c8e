//! The known word nearest to a mistyped one.

/// The word of `known` that `typed` was most likely meant to be: at most a third
/// of its letters differ, or one begins with the other.
pub(super) fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let (differ, word) = known
        .iter()
        .map(|word| (distance(typed, word), *word))
        .min()?;
    if differ <= word.chars().count().max(3) / 3 {
        return Some(word);
    }
    let begins =
        |word: &&&str| typed.len() > 3 && (typed.starts_with(**word) || word.starts_with(typed));
    known
        .iter()
        .filter(begins)
        .max_by_key(|word| word.len())
        .copied()
}

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of
/// `a` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_word_and_another_word_finds_none() {
        let known = [
            "listen",
            "host_name",
            "hello_interval_s",
            "secret",
            "secret_file",
        ];
        assert_eq!(nearest("lisetn", &known), Some("listen"));
        assert_eq!(nearest("hostname", &known), Some("host_name"));
        assert_eq!(nearest("secretfile", &known), Some("secret_file"));
        assert_eq!(nearest("listen_on", &known), Some("listen"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn distance_counts_a_swap_once() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
