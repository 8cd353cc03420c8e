//! Suggests a known word for a mistyped one.

use strsim::osa_distance;

/// Letters of a typed word that are compared; a longer word costs no more.
const LETTERS: usize = 64;

/// The word of `known` that `typed` most likely means. Either at most a third of its letters differ (two swapped
/// neighbours are one difference), or one starts with the other. Case is ignored, and `-` equals `_`.
#[must_use]
pub fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let folded = |letter: char| match letter {
        '-' => '_',
        letter => letter.to_ascii_lowercase(),
    };
    let typed: String = typed.chars().take(LETTERS).map(folded).collect();
    let ranked = known.iter().map(|word| {
        let is_other = !word.starts_with(&typed);
        (osa_distance(&typed, word), is_other, *word)
    });
    let (differ, _, word) = ranked.min()?;
    if differ <= word.chars().count().max(3) / 3 {
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
        assert_eq!(nearest("Host-Name", &known), Some("host_name"));
        assert_eq!(nearest("secretfile", &known), Some("secret_file"));
        assert_eq!(nearest("listen_on", &known), Some("listen"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn of_words_as_near_the_one_that_begins_so_is_meant() {
        let known = ["up", "down", "line_up", "line_down", "overhead"];
        assert_eq!(nearest("donw", &known), Some("down"));
        assert_eq!(nearest("over", &known), Some("overhead"));
        assert_eq!(nearest("downstream", &known), Some("down"));
        assert_eq!(nearest("prot", &["port", "proto"]), Some("proto"));
    }
}
