//! SPDX licence expressions, as far as crates write them: identifiers, `AND`, `OR`, `WITH`, brackets, and the old `/`.

/// The first licence term that makes `expression` unacceptable, or `None` when `allowed` satisfies it.
///
/// `AND` binds more tightly than `OR`, as in SPDX 2.3 annex D. An unreadable expression is refused as a whole.
pub(crate) fn refusal(expression: &str, allowed: &[&str]) -> Option<String> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    let verdict = reader.any();
    match verdict {
        Some(verdict) if reader.words.is_empty() => verdict,
        _ => Some(format!("{expression:?} is no licence expression")),
    }
}

/// A term's refusal: `None` when it is acceptable.
type Verdict = Option<String>;

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    /// Terms joined by `OR`: one acceptable term is enough.
    fn any(&mut self) -> Option<Verdict> {
        let mut verdict = self.all()?;
        while self.take("OR") {
            let next = self.all()?;
            verdict = verdict.and(next);
        }
        Some(verdict)
    }

    /// Terms joined by `AND`: each must be acceptable.
    fn all(&mut self) -> Option<Verdict> {
        let mut verdict = self.term()?;
        while self.take("AND") {
            let next = self.term()?;
            verdict = verdict.or(next);
        }
        Some(verdict)
    }

    fn term(&mut self) -> Option<Verdict> {
        if self.take("(") {
            let verdict = self.any()?;
            return self.take(")").then_some(verdict);
        }
        let (name, rest) = self.words.split_first()?;
        if ["AND", "OR", "WITH", ")"].contains(name) {
            return None;
        }
        self.words = rest;
        let mut licence = (*name).to_owned();
        if self.take("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            licence = format!("{licence} WITH {exception}");
        }
        let acceptable = self.allowed.contains(&licence.as_str());
        Some((!acceptable).then_some(licence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn one_branch_of_an_or_is_enough() {
        assert_eq!(refusal("GPL-3.0-only OR MIT", ALLOWED), None);
        assert_eq!(refusal("MIT/Apache-2.0", ALLOWED), None);
        assert_eq!(
            refusal(
                "LGPL-2.1 OR (GPL-2.0 OR Apache-2.0 WITH LLVM-exception)",
                ALLOWED
            ),
            None
        );
    }

    #[test]
    fn every_branch_of_an_and_is_needed() {
        assert_eq!(refusal("MIT AND ISC", ALLOWED).as_deref(), Some("ISC"));
        assert_eq!(refusal("(MIT OR ISC) AND Apache-2.0", ALLOWED), None);
        assert_eq!(
            refusal("GPL-2.0 AND MIT OR ISC", ALLOWED).as_deref(),
            Some("ISC")
        );
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for bad in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR MIT", "MIT WITH"] {
            assert!(refusal(bad, ALLOWED).is_some(), "{bad:?}");
        }
    }
}
