//! Changes values in the text of a scenario, for sweeps over them. The rest of the text stays as it is.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Why a value cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// The scenario is no TOML.
    #[error("the scenario is no TOML")]
    Scenario,
    /// The value is no TOML.
    #[error("{0}: {1} is no TOML value; give a number, true, false, or a string in quotes")]
    Value(String, String),
    /// The key does not fit the scenario.
    #[error("{0}: {1}")]
    Key(String, &'static str),
}

/// Where the value of a key is to be written.
enum Place {
    /// Instead of these bytes.
    Instead(Range<usize>),
    /// As a new line at this byte, with the rest of the key.
    Before(usize, String),
}

/// The text with another value of a key. `key` is a path such as `seed`, `links.delay_ms` or `event.0.at_s`, and `value`
/// is TOML. A key that is missing is added, unless it belongs to an element of a list.
///
/// # Errors
/// The text or the value is no TOML, or the key leads through a value that is neither a section nor a list.
pub fn with_value(text: &str, key: &str, value: &str) -> Result<String, OverrideError> {
    let is_value =
        DeTable::parse(&format!("x = {value}")).is_ok_and(|table| table.get_ref().len() == 1);
    if !is_value {
        return Err(OverrideError::Value(key.to_owned(), value.to_owned()));
    }
    let root = DeTable::parse(text).map_err(|_| OverrideError::Scenario)?;
    let place =
        find(text, root.get_ref(), key).map_err(|why| OverrideError::Key(key.to_owned(), why))?;
    Ok(match place {
        Place::Instead(range) => [&text[..range.start], value, &text[range.end..]].concat(),
        Place::Before(at, rest) => {
            let (before, after) = text.split_at(at);
            // The line of the section's header may be the last one, without an end.
            let end = if before.is_empty() || before.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            [before, end, &rest, " = ", value, "\n", after].concat()
        }
    })
}

fn find(text: &str, root: &DeTable<'_>, key: &str) -> Result<Place, &'static str> {
    let (mut table, mut rest) = (root, key);
    // Where a line of the section can be added. Lines before the first section belong to none.
    let mut line = 0;
    loop {
        let (name, after) = rest
            .split_once('.')
            .map_or((rest, None), |(name, after)| (name, Some(after)));
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        {
            return Err("is no key; write a path of names and numbers with dots");
        }
        let Some(value) = table.get(name) else {
            return Ok(Place::Before(line, rest.to_owned()));
        };
        let (mut value, mut after) = (value, after);
        while let (DeValue::Array(list), Some(path)) = (value.get_ref(), after) {
            let (number, behind) = path
                .split_once('.')
                .map_or((path, None), |(number, behind)| (number, Some(behind)));
            let number: usize = number
                .parse()
                .map_err(|_| "names a list; write the number of the element, from 0")?;
            value = list
                .get(number)
                .ok_or("names an element that the list does not have")?;
            after = behind;
        }
        match (value.get_ref(), after) {
            (DeValue::Table(inner), Some(path)) => {
                let span = value.span();
                // A section begins with its header; a table in braces has no lines.
                line = text[span.start..]
                    .find('\n')
                    .map_or(text.len(), |end| span.start + end + 1);
                if text[span.start..].starts_with('{') && !inner.contains_key(path) {
                    return Err("is missing in a table in braces; write it as a section");
                }
                (table, rest) = (inner, path);
            }
            (DeValue::Table(_), None) => return Err("is a section; name a key of it"),
            (_, Some(_)) => return Err("leads through a value that is no section"),
            (_, None) => return Ok(Place::Instead(value.span())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A comment.
seed = 3 # of all
[links]
delay_ms = 20
[[event]]
kind = \"announce\"
at_s = 2
[[event]]
at_s = 5
";

    fn table(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    #[test]
    fn a_value_is_replaced_and_the_rest_stays() {
        assert_eq!(
            with_value(TEXT, "seed", "77").unwrap(),
            TEXT.replace("= 3", "= 77")
        );
        assert_eq!(
            with_value(TEXT, "links.delay_ms", "2.5").unwrap(),
            TEXT.replace("= 20", "= 2.5")
        );
        assert_eq!(
            with_value(TEXT, "event.1.at_s", "9").unwrap(),
            TEXT.replace("= 5", "= 9")
        );
    }

    #[test]
    fn a_missing_key_is_added_to_its_section() {
        let mut expected = table(TEXT);
        expected["links"]
            .as_table_mut()
            .unwrap()
            .insert("jitter_ms".into(), 4.into());
        assert_eq!(
            table(&with_value(TEXT, "links.jitter_ms", "4").unwrap()),
            expected
        );
        let mut expected = table(TEXT);
        expected.insert("run_s".into(), 9.into());
        assert_eq!(table(&with_value(TEXT, "run_s", "9").unwrap()), expected);
        let with_section = with_value(TEXT, "routers.mrai_s", "30").unwrap();
        assert_eq!(
            table(&with_section)["routers"]["mrai_s"].as_integer(),
            Some(30)
        );
        assert_eq!(with_value("", "seed", "1").unwrap(), "seed = 1\n");
        assert_eq!(
            table(&with_value("[links]", "links.delay_ms", "1").unwrap())["links"]["delay_ms"]
                .as_integer(),
            Some(1)
        );
    }

    #[test]
    fn a_wrong_key_or_value_is_named() {
        for (key, value) in [
            ("links", "1"),
            ("seed.x", "1"),
            ("event.at_s", "1"),
            ("event.7.at_s", "1"),
            ("a b", "1"),
            ("", "1"),
            ("seed", "x"),
            ("seed", "1\nrun_s = 2"),
        ] {
            assert!(with_value(TEXT, key, value).is_err(), "{key} = {value}");
        }
        let error = with_value(TEXT, "event.at_s", "1").unwrap_err();
        assert!(error.to_string().starts_with("event.at_s: names a list"));
    }
}
