//! Reads the golden packets of `testdata/pppoe`: hexadecimal octets, and comments from `#` to the end of the line.

use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pppoe")
}

/// The names of all golden packets, without `.hex`.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("testdata/pppoe is there");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    names
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".hex")?.to_owned()))
        .collect()
}

/// The octets of a golden packet.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = directory().join(name).with_extension("hex");
    let text = std::fs::read_to_string(path).expect("readable");
    let octets = text.lines().flat_map(|line| {
        let (octets, _) = line.split_once('#').unwrap_or((line, ""));
        octets.split_whitespace()
    });
    octets
        .map(|octet| u8::from_str_radix(octet, 16).expect("two hexadecimal digits"))
        .collect()
}
