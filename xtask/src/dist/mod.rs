//! `cargo xtask dist`: the files of a release.
//!
//! Without `--target`, it builds for this machine, to measure. Each `--target` builds a static binary with musl's C
//! library and runs it; [`release`] writes the binaries, their symbols, their parts lists ([`sbom`]), checksums and a
//! signature to `target/release-files`. [`reproduce`] builds twice in two directories and compares the bytes.
//! docs/release.md has the steps of a release in order.

pub(crate) mod release;
mod reproduce;
mod sbom;
mod symbols;
pub(crate) mod target;

use crate::cargo::{self, Metadata};
use crate::page;
use crate::run::Report;
use std::path::PathBuf;

/// What was typed after `dist`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    /// The targets to build for; none: this machine, with its own C library.
    targets: Vec<String>,
    /// Build twice in two directories instead, and compare.
    check_reproducible: bool,
    /// The secret key that signs the checksums.
    sign: Option<PathBuf>,
}

impl Arguments {
    /// `None` if the words cannot be understood.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let mut arguments = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--target" => arguments.targets.push((*words.next()?).to_owned()),
                "--check-reproducible" => arguments.check_reproducible = true,
                "--sign" => arguments.sign = Some(PathBuf::from(words.next()?)),
                _ => return None,
            }
        }
        let idle = arguments.targets.is_empty();
        let clash = arguments.check_reproducible && arguments.targets.len() > 1;
        let unsigned = arguments.sign.is_some() && (idle || arguments.check_reproducible);
        (!clash && !unsigned).then_some(arguments)
    }
}

/// Builds what the arguments ask for.
pub(crate) fn run(report: &mut Report, metadata: &Metadata, arguments: &Arguments) -> bool {
    if arguments.check_reproducible {
        let target = arguments.targets.first().map(String::as_str);
        return reproduce::check(report, metadata, target.unwrap_or(target::DEFAULT));
    }
    if arguments.targets.is_empty() {
        return report.command(
            "build headend",
            cargo::locked("build").args(["--profile", "dist", "--package", "headend"]),
        ) && symbols::split(report, &metadata.target.join("dist"), "objcopy");
    }
    let built = arguments
        .targets
        .iter()
        .all(|name| target::build(report, metadata, name));
    built && page::build(report, metadata) && release::write(report, metadata, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        let read = Arguments::of(&["--target", "a", "--target", "b", "--sign", "k"]).unwrap();
        assert_eq!(read.targets, ["a", "b"]);
        assert_eq!(read.sign, Some(PathBuf::from("k")));
        assert_eq!(Arguments::of(&[]), Some(Arguments::default()));
        for wrong in [
            &["--target"][..],
            &["--sign", "k"],
            &["x"],
            &["--check-reproducible", "--target", "a", "--target", "b"],
            &["--check-reproducible", "--target", "a", "--sign", "k"],
        ] {
            assert_eq!(Arguments::of(wrong), None, "{wrong:?}");
        }
    }
}
