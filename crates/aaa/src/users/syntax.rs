//! What is no TOML, in words for operators. A value is never repeated: it may be a password.

/// The key, what is wrong with its line, and what would be right.
pub(super) struct Explained {
    pub(super) key: Option<String>,
    pub(super) message: String,
    pub(super) right: String,
}

/// Explains the fault that TOML's reader found at the byte `at`.
pub(super) fn explain(text: &str, at: usize, message: &str) -> Explained {
    let before = text.get(..at).unwrap_or("");
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    if line.starts_with('[') {
        return Explained {
            key: None,
            message: told(message),
            right: "begin each user with a line of its own: [[user]]".to_owned(),
        };
    }
    let Some((key, value)) = line.split_once('=') else {
        return Explained {
            key: None,
            message: told(message),
            right: "write each line as KEY = VALUE, or # before a comment".to_owned(),
        };
    };
    let (key, value) = (key.trim(), value.trim());
    let is_name = key.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let key = (is_name && !key.is_empty() && key.len() <= 32).then(|| key.to_owned());
    let named = key.as_deref().unwrap_or("KEY");
    let (message, right) = if message == "duplicate key" {
        (message.to_owned(), "give each key once".to_owned())
    } else if value.is_empty() {
        ("has no value".to_owned(), format!("write {named} = VALUE"))
    } else if value.starts_with(|c: char| c.is_alphanumeric() || c == '.') {
        (
            "is neither a number nor true nor false".to_owned(),
            format!("write text in quotes: {named} = \"TEXT\""),
        )
    } else if value.starts_with("\"\"\"") || value.starts_with("'''") {
        (
            "is text of several lines".to_owned(),
            format!("write it on one line: {named} = \"TEXT\""),
        )
    } else if value.matches('"').count() % 2 == 1 {
        (
            "has a quote that does not end, or one within the text".to_owned(),
            format!("write {named} = \"TEXT\", and \\\" for a quote in it"),
        )
    } else {
        (
            told(message),
            "write text in quotes, a number, true, false, or a list in [ ]".to_owned(),
        )
    };
    Explained {
        key,
        message,
        right,
    }
}

/// The first line of what TOML's reader says, which is of its own words.
fn told(message: &str) -> String {
    message.lines().next().unwrap_or("is no TOML").to_owned()
}
