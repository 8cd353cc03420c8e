//! `docs/l2tp-avps.md` is generated from the table of attributes. To regenerate it: `REWRITE_DOCS=1 cargo test
//! -p wire`.

use std::path::Path;

use wire::l2tp::{Attribute, VALUE_LEN_MAX, Version};

const HEAD: &str = "\
# L2TP attributes

This page lists every attribute of RFC 2661 (L2TPv2), RFC 3931 (L2TPv3), RFC 3145 and RFC 5515 with vendor id 0 that
headend reads and writes. The page is generated from the table in `crates/wire/src/l2tp/attribute.rs`, and a test compares the page with
the table. To regenerate the page, run `REWRITE_DOCS=1 cargo test -p headend-wire`.

- The columns *M in v2* and *M in v3* give the M (mandatory) bit that headend sends in L2TPv2 and L2TPv3. `-` means that
  the version's RFC does not define the attribute. A receiver checks the M bit only if it does not recognise the
  attribute, or if the length of the attribute's value is wrong.
- The column *hiding* says whether the value may be hidden. RFC 2661 4.3 and RFC 3931 5.3 define hiding.
- The column *octets* gives the valid lengths of the attribute's value, before hiding.

| number | attribute | M in v2 | M in v3 | hiding | octets | defined in |
|---:|---|---|---|---|---|---|
";

fn mandatory(attribute: Attribute, version: Version) -> &'static str {
    match (attribute.defined_in(version), attribute.mandatory(version)) {
        (false, _) => "-",
        (true, false) => "0",
        (true, true) => "1",
    }
}

/// The value lengths, listed per version if they differ.
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
        return "even, 2 or more".to_owned();
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
        (start, VALUE_LEN_MAX) => format!("{start} or more"),
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
                "allowed"
            } else {
                "forbidden"
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
