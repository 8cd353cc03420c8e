//! `docs/l2tp-avps.md` is printed from the table of attributes. To write it
//! anew: `REWRITE_DOCS=1 cargo test -p wire`.

use std::path::Path;

use wire::l2tp::{Attribute, VALUE_LEN_MAX, Version};

const HEAD: &str = "\
# L2TP attributes

Every attribute of RFC 2661 (L2TPv2) and RFC 3931 (L2TPv3) that headend reads and writes, vendor 0.
This page is printed from the table in `crates/wire/src/l2tp/attribute.rs`; a test compares the two, and
`REWRITE_DOCS=1 cargo test -p wire` writes it anew.

- M in v2, M in v3: the mandatory bit as it is sent in that version; `-` where its RFC does not define the attribute. A
  receiver looks at the bit only when it does not recognise the attribute, or when the value's length is wrong.
- Hidden: whether the value may be hidden (RFC 2661 4.3, RFC 3931 5.3).
- Octets: the lengths that a value may have, before hiding.

| number | attribute | M in v2 | M in v3 | hidden | octets | defined in |
|---:|---|---|---|---|---|---|
";

fn mandatory(attribute: Attribute, version: Version) -> &'static str {
    match (attribute.defined_in(version), attribute.mandatory(version)) {
        (false, _) => "-",
        (true, false) => "0",
        (true, true) => "1",
    }
}

/// The lengths, of each version apart where they differ.
fn lengths(attribute: Attribute) -> String {
    let of = |version| {
        attribute
            .defined_in(version)
            .then(|| ranges(attribute, version))
    };
    match (of(Version::V2), of(Version::V3)) {
        (Some(v2), Some(v3)) if v2 != v3 => format!("{v2}; in v3 {v3}"),
        (v2, v3) => v2.or(v3).expect("a version defines it"),
    }
}

fn ranges(attribute: Attribute, version: Version) -> String {
    if attribute == Attribute::PseudowireCapabilitiesList {
        return "even, from 2".to_owned();
    }
    let allowed = |len: &usize| attribute.allows_len(version, *len);
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for len in (0..=VALUE_LEN_MAX).filter(allowed) {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == len => *end = len,
            _ => ranges.push((len, len)),
        }
    }
    let words = ranges.iter().map(|&(start, end)| match (start, end) {
        (start, end) if start == end => start.to_string(),
        (start, VALUE_LEN_MAX) => format!("from {start}"),
        (start, end) => format!("{start} to {end}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for &attribute in Attribute::all() {
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            attribute.number(),
            attribute.name(),
            mandatory(attribute, Version::V2),
            mandatory(attribute, Version::V3),
            if attribute.may_hide() {
                "may be"
            } else {
                "never"
            },
            lengths(attribute),
            attribute.sections(),
        );
    }
    page
}

#[test]
fn the_documented_attributes_are_those_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/l2tp-avps.md");
    if std::env::var_os("REWRITE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("docs is writable");
    }
    let written = std::fs::read_to_string(&path).expect("docs/l2tp-avps.md is there");
    assert!(
        written == page(),
        "docs/l2tp-avps.md is not what the table says"
    );
}
