//! Reads the golden packets of `testdata/l2tp`: hex bytes, comments from `#` to the end of the line, and a
//! comment `# from: lac` or `# from: lns` that names the sender.

use std::path::{Path, PathBuf};

/// A golden packet.
pub(crate) struct Golden {
    /// The file's name without `.hex`.
    pub(crate) name: String,
    /// The UDP payload.
    pub(crate) octets: Vec<u8>,
    /// Whether the side that the files call `lac` (A in v3) sent it.
    pub(crate) from_lac: bool,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/l2tp")
}

/// Every golden packet, by name.
pub(crate) fn all() -> Vec<Golden> {
    let entries = std::fs::read_dir(directory()).expect("testdata/l2tp is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "hex"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Golden {
    let name = path
        .file_stem()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path).expect("readable");
    let from = |side: &str| text.lines().any(|line| line == format!("# from: {side}"));
    assert!(from("lac") != from("lns"), "{name} names its sender once");
    let digits: Vec<u8> = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").bytes())
        .filter(|octet| !octet.is_ascii_whitespace())
        .map(|octet| char::from(octet).to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "{name} has whole octets");
    let octets = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    Golden {
        name,
        octets,
        from_lac: from("lac"),
    }
}
