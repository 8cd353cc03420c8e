//! Rules about the text of the sources: the length of a file, and where unsafe code is allowed.

use crate::sources::Source;

/// The longest a source file may be. Most should be near 300 lines.
const LINES_MAX: usize = 800;

/// The only crate with unsafe code in it.
const UNSAFE_CRATE: &str = "crates/reactor/";

/// The only file with unsafe code elsewhere: JavaScript finds functions by names that Rust does not mangle.
const UNSAFE_FILE: &str = "crates/page/src/abi.rs";

/// The root of that file's crate. It denies unsafe code, because a file cannot allow what the root forbids.
const DENYING_ROOT: &str = "crates/page/src/lib.rs";

// Split, so that this file passes its own check.
const KEYWORD: &str = concat!("un", "safe");

/// Checks that no file is over [`LINES_MAX`] lines.
///
/// # Errors
/// One line for each longer file.
pub(crate) fn lengths(sources: &[Source]) -> Result<String, Vec<String>> {
    let mut longest = 0;
    let mut faults = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        longest = longest.max(lines);
        if lines > LINES_MAX {
            faults.push(format!(
                "{}: {lines} lines, {LINES_MAX} is the most",
                source.path
            ));
        }
    }
    if faults.is_empty() {
        Ok(format!(
            "{} files, the longest {longest} lines",
            sources.len()
        ))
    } else {
        Err(faults)
    }
}

/// Checks that only [`UNSAFE_CRATE`] has unsafe code, and that every other crate forbids it in its root.
///
/// # Errors
/// The file and line of each use elsewhere, and each crate root that does not forbid it.
pub(crate) fn safety(sources: &[Source]) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let outside = sources.iter().filter(|source| {
        source.path.ends_with(".rs")
            && !source.path.starts_with(UNSAFE_CRATE)
            && source.path != UNSAFE_FILE
    });
    for source in outside {
        let word = match source.path.as_str() {
            DENYING_ROOT => "deny",
            _ => "forbid",
        };
        if is_crate_root(&source.path)
            && !source.text.contains(&format!("#![{word}({KEYWORD}_code)]"))
        {
            faults.push(format!("{}: does not {word} {KEYWORD} code", source.path));
        }
        for (number, line) in source.text.lines().enumerate() {
            if uses_keyword(line) {
                faults.push(format!(
                    "{}:{}: {KEYWORD} code outside {UNSAFE_CRATE}",
                    source.path,
                    number + 1
                ));
            }
        }
    }
    if faults.is_empty() {
        Ok(format!("only in {UNSAFE_CRATE} and {UNSAFE_FILE}"))
    } else {
        Err(faults)
    }
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") || path.contains("/src/bin/")
}

/// Whether the line has the keyword in code: not in a comment, and not inside a longer word.
fn uses_keyword(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c))
        .any(|word| word == KEYWORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        Source {
            path: path.to_owned(),
            text,
        }
    }

    #[test]
    fn a_file_over_the_limit_is_named() {
        assert!(lengths(&[source("crates/a/src/a.rs", "\n".repeat(LINES_MAX))]).is_ok());
        let faults =
            lengths(&[source("crates/a/src/a.rs", "\n".repeat(LINES_MAX + 1))]).unwrap_err();
        assert_eq!(
            faults,
            [format!(
                "crates/a/src/a.rs: {} lines, {LINES_MAX} is the most",
                LINES_MAX + 1
            )]
        );
    }

    #[test]
    fn the_keyword_counts_in_code_only() {
        assert!(uses_keyword(&format!("    {KEYWORD} {{ f() }}")));
        assert!(uses_keyword(&format!("pub {KEYWORD} fn f();")));
        assert!(!uses_keyword(&format!("#![forbid({KEYWORD}_code)]")));
        // For example a keyword of HTTP's Content-Security-Policy.
        assert!(!uses_keyword(&format!("style-src '{KEYWORD}-inline'")));
        assert!(!uses_keyword(&format!("// {KEYWORD} here means nothing")));
    }

    #[test]
    fn a_root_has_to_forbid_it_and_reactor_does_not() {
        assert!(safety(&[source("crates/a/src/lib.rs", String::new())]).is_err());
        assert!(
            safety(&[source(
                "crates/a/src/lib.rs",
                format!("#![forbid({KEYWORD}_code)]")
            )])
            .is_ok()
        );
        assert!(
            safety(&[source(
                "crates/reactor/src/lib.rs",
                format!("{KEYWORD} {{}}")
            )])
            .is_ok()
        );
    }
}
