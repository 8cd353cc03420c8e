//! Writes the captures that benchmarks read, through the release build of `headend bench captures`.

use crate::cargo::{self, Metadata};
use std::path::Path;

/// The default output directory, in cargo's target directory.
const DIRECTORY: &str = "captures";

/// Builds headend and writes the captures; prints failures to standard error.
pub(crate) fn generate(arguments: &[&str]) -> bool {
    let metadata = match Metadata::read() {
        Ok(metadata) => metadata,
        Err(why) => {
            eprintln!("{why}");
            return false;
        }
    };
    let arguments = with_directory(arguments, &metadata.target.join(DIRECTORY));
    let status = cargo::command()
        .args([
            "run",
            "--locked",
            "--quiet",
            "--release",
            "--package",
            "headend",
            "--",
        ])
        .args(["bench", "captures"])
        .args(arguments)
        .status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            false
        }
    }
}

/// The arguments, with `directory` added if none is given.
fn with_directory(arguments: &[&str], directory: &Path) -> Vec<String> {
    let mut words = arguments.iter();
    let mut has_directory = false;
    while let Some(word) = words.next() {
        match *word {
            // The words after these options are not directories.
            "--only" | "--scale" => drop(words.next()),
            option if option.starts_with('-') => {}
            _ => has_directory = true,
        }
    }
    let given = arguments.iter().map(|word| (*word).to_owned());
    let default = (!has_directory).then(|| directory.to_string_lossy().into_owned());
    given.chain(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_directory_the_captures_go_to_the_target_directory() {
        let directory = Path::new("target/captures");
        let arguments = |given: &[&str]| with_directory(given, directory).join(" ");
        assert_eq!(arguments(&[]), "target/captures");
        assert_eq!(
            arguments(&["--only", "clean", "--scale=0.1"]),
            "--only clean --scale=0.1 target/captures"
        );
        assert_eq!(arguments(&["--scale", "2", "here"]), "--scale 2 here");
        assert_eq!(arguments(&["here", "--only", "short"]), "here --only short");
    }
}
