//! Explains faults of the TOML syntax to operators: which key, what is wrong with its line, what would be right.

/// Key, message and remedy of a fault that TOML's reader found at the byte `at`.
pub(super) fn explain(text: &str, at: usize, message: &str) -> (String, String, String) {
    let start = text
        .get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    let message = message.replace('\n', "; ");
    let of = |message: &str, right: String| (String::new(), message.to_owned(), right);
    if let Some(name) = line.strip_prefix('[') {
        let name = name.trim_matches(['[', ']', ' ']);
        return of(
            &message,
            format!("write a section as [{name}] or [[{name}]]"),
        );
    }
    let Some((key, value)) = line.split_once('=') else {
        return of(
            &message,
            "write each line as KEY = VALUE, or # before a comment".to_owned(),
        );
    };
    let (key, value) = (key.trim(), value.trim());
    let name = match section(&text[..start]) {
        Some(section) => format!("{section}.{key}"),
        None => key.to_owned(),
    };
    let (message, right) = if message == "duplicate key" {
        (message, "give each key once".to_owned())
    } else if value.is_empty() {
        ("has no value".to_owned(), format!("write {key} = VALUE"))
    } else if value.starts_with(|c: char| c.is_alphanumeric() || c == '.') {
        let bare = value.split('#').next().unwrap_or(value).trim();
        let right = format!("write {key} = \"{bare}\"");
        (
            format!("{bare} is neither a number nor true nor false, and text stands in quotes"),
            right,
        )
    } else if value.matches('"').count() % 2 == 1 {
        let bare = value.trim_matches('"');
        let right = format!("write {key} = \"{bare}\"");
        ("has a quote that does not end".to_owned(), right)
    } else {
        (
            message,
            "write text in quotes, a number, true, false, or a list in [ ]".to_owned(),
        )
    };
    (name, message, right)
}

/// The section that is open after `text`, as remarks call it: `link`, `first[2]`.
fn section(text: &str) -> Option<String> {
    let headers = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('['));
    let headers: Vec<&str> = headers.collect();
    let last = headers.last()?;
    let name = |header: &str| {
        let end = header.find(']').unwrap_or(header.len());
        header[..end].trim_matches(['[', ' ']).to_owned()
    };
    if !last.starts_with("[[") {
        return Some(name(last));
    }
    let same = headers.iter().filter(|header| name(header) == name(last));
    Some(format!("{}[{}]", name(last), same.count()))
}

#[cfg(test)]
mod tests {
    use crate::policy::Policy;

    /// The faults of a text as they are printed.
    fn faults(text: &str) -> Vec<String> {
        let faults = Policy::parse(text).expect_err("no TOML");
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn text_without_quotes_is_told_with_its_key_and_what_to_write() {
        assert_eq!(
            faults("[link]\nup = 2.3mbit # or so\n"),
            [
                "2:9: link.up: 2.3mbit is neither a number nor true nor false, and text stands in quotes; write up = \"2.3mbit\""
            ]
        );
        let text = "[link]\nup = \"1mbit\"\n[[first]]\nport = 22\n[[first]]\ndscp = ef\n";
        let found = faults(text);
        assert!(
            found[0].starts_with("6:8: first[2].dscp: ef is "),
            "{found:?}"
        );
        assert!(found[0].ends_with("; write dscp = \"ef\""), "{found:?}");
    }

    #[test]
    fn every_fault_of_the_syntax_says_what_would_be_right() {
        for (text, place, right) in [
            (
                "[link]\nup = \"1mbit\"\nup = \"2mbit\"\n",
                "3:1: link.up: duplicate key",
                "give each key once",
            ),
            (
                "[link\nup = 1\n",
                "1:6: ",
                "write a section as [link] or [[link]]",
            ),
            (
                "[link]\nup = \"10mbit\n",
                "2:13: link.up: has a quote that does not end",
                "write up = \"10mbit\"",
            ),
            (
                "[link]\nup =\n",
                "2:5: link.up: has no value",
                "write up = VALUE",
            ),
            (
                "[link]\nup\n",
                "2:3: ",
                "write each line as KEY = VALUE, or # before a comment",
            ),
            (
                "[link]\nup = [\"1mbit\"\n",
                "",
                "write text in quotes, a number, true, false, or a list in [ ]",
            ),
            (
                "up = \u{e9}\n",
                "1:6: up: \u{e9} is ",
                "write up = \"\u{e9}\"",
            ),
        ] {
            let found = faults(text);
            assert!(found[0].starts_with(place), "{found:?}");
            assert!(
                found
                    .iter()
                    .any(|fault| fault.ends_with(&format!("; {right}"))),
                "{found:?}"
            );
        }
    }
}
