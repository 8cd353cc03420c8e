//! `cargo xtask package`: what people install, and the tests of it.
//!
//! `deb` builds a Debian package with cargo-deb, whose metadata is in `crates/headend/Cargo.toml`. `oci` writes an image
//! without a container engine. `files` checks the files of `packaging/`. `live` installs the package that is built
//! in a Debian with systemd; `life` does that too, and upgrades and removes the package in a clean root. `test` does all of that. Packages contain the static binary, which is built as
//! `cargo xtask dist` builds it if `--binary` names no other one: what `dist` has built already is not built again.

mod clean_root;
mod deb;
mod installer;
mod live;
mod observe;
mod oci;
mod service;
mod units;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::Metadata;
use crate::dist::target;
use crate::page;
use crate::run::Report;

/// The largest Debian package and image, in bytes.
const DEB_MAX: u64 = 12_000_000;
const IMAGE_MAX: u64 = 15_000_000;

/// The folders that packages are made of.
struct Place {
    root: PathBuf,
    /// `target/package`.
    out: PathBuf,
    binary: PathBuf,
}

impl Place {
    fn new(metadata: &Metadata, binary: PathBuf) -> Self {
        Self {
            root: metadata.root.clone(),
            out: metadata.target.join("package"),
            binary,
        }
    }
}

/// Does what the words ask; `None` if they are unclear.
pub(crate) fn run(words: &[&str]) -> Option<bool> {
    let (what, binary) = match words {
        [what] => (*what, None),
        [what, "--binary", file] => (*what, Some(PathBuf::from(file))),
        _ => return None,
    };
    if !["deb", "oci", "test", "files", "life", "live"].contains(&what) {
        return None;
    }
    let metadata = match Metadata::read() {
        Ok(metadata) => metadata,
        Err(fault) => {
            eprintln!("{fault}");
            return Some(false);
        }
    };
    let mut report = Report::default();
    if ["files", "test"].contains(&what) {
        files(&mut report, &metadata.root);
    }
    if ["life", "live"].contains(&what) {
        let place = Place::new(&metadata, PathBuf::new());
        if what == "life" {
            life(&mut report, &place);
        }
        live::test(&mut report, &place);
    } else if what != "files"
        && let Some(place) = place(&mut report, &metadata, binary)
    {
        match what {
            "deb" => drop(report.check("Debian package", || deb::build(&place).map_err(one))),
            "oci" => image(&mut report, &place),
            _ => packages(&mut report, &place),
        }
    }
    Some(report.close())
}

/// Checks the files of `packaging/`, without a build.
fn files(report: &mut Report, root: &Path) {
    let packaging = root.join("packaging");
    report.check("exposure of the units", || units::exposure(&packaging));
    report.check("syntax of the units", || units::syntax(&packaging));
    report.check("YAML and JSON files", || observe::syntax(&packaging));
    report.check("alert rules", || observe::rules(&packaging));
    report.check("installer", || installer::test(&packaging).map_err(one));
}

fn packages(report: &mut Report, place: &Place) {
    report.check("configurations", || configurations(place).map_err(one));
    let is_built = report.check("Debian package", || deb::build(place).map_err(one));
    image(report, place);
    if is_built {
        life(report, place);
        live::test(report, place);
    }
}

/// Builds the image, and reads it as an engine would.
fn image(report: &mut Report, place: &Place) {
    if report.check("image", || oci::build(place).map_err(one)) {
        report.check("contents of the image", || oci::verify(place).map_err(one));
    }
}

/// Tests the Debian package that is built.
fn life(report: &mut Report, place: &Place) {
    report.check("life of the Debian package", || {
        clean_root::test(place).map_err(one)
    });
}

/// Lets the binary check every configuration of `packaging/`, as files that only their owner may read.
fn configurations(place: &Place) -> Result<String, String> {
    let copy = place.out.join("check.toml");
    let mut names = Vec::new();
    for directory in ["etc", "compose", "containerlab"] {
        for file in observe::below(&place.root.join("packaging").join(directory), ".toml")? {
            let text = fs::read(&file).map_err(at(&file))?;
            fs::write(&copy, text).map_err(at(&copy))?;
            output(Command::new("chmod").arg("600").arg(&copy))?;
            output(
                Command::new(place.out.join("headend"))
                    .arg("check")
                    .arg(&copy),
            )
            .map_err(|fault| format!("{}: {fault}", file.display()))?;
            names.push(
                file.file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            );
        }
    }
    let _ = fs::remove_file(&copy);
    Ok(names.join(", "))
}

/// The folders, with the binary, what it prints about itself (manual pages and completions), and the web page.
fn place(report: &mut Report, metadata: &Metadata, binary: Option<PathBuf>) -> Option<Place> {
    let binary = match binary {
        Some(binary) => binary,
        None => {
            if !target::build(report, metadata, target::DEFAULT) {
                return None;
            }
            metadata.target.join(target::DEFAULT).join("dist/headend")
        }
    };
    if !page::build(report, metadata) {
        return None;
    }
    let place = Place::new(metadata, binary);
    report
        .check("manual pages and completions", || {
            prepare(&place, &page::file(metadata)).map_err(one)
        })
        .then_some(place)
}

fn prepare(place: &Place, page: &Path) -> Result<String, String> {
    let (out, own) = (&place.out, place.out.join("headend"));
    for directory in ["man", "completions"] {
        let directory = out.join(directory);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(at(&directory))?;
    }
    fs::copy(&place.binary, &own).map_err(at(&place.binary))?;
    fs::copy(page, out.join(page::NAME)).map_err(at(page))?;
    output(Command::new("strip").arg("--strip-debug").arg(&own))?;
    output(Command::new(&own).arg("man").arg(out.join("man")))?;
    for (shell, name) in [
        ("bash", "headend"),
        ("zsh", "_headend"),
        ("fish", "headend.fish"),
    ] {
        let text = output(Command::new(&own).args(["completions", shell]))?;
        let file = out.join("completions").join(name);
        fs::write(&file, text).map_err(at(&file))?;
    }
    let bytes = own.metadata().map_err(at(&own))?.len();
    Ok(format!("{}: {:.1} MB", own.display(), bytes as f64 / 1e6))
}

/// The time that the packages carry, so that the same commit gives the same bytes.
fn epoch(root: &Path) -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    let text = output(git.args(["log", "-1", "--format=%ct"]).current_dir(root))?;
    Ok(text.trim().to_owned())
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{name} {}: {}: {errors}{text}",
        words.join(" "),
        output.status
    ))
}

/// Names the file of an error.
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

fn one(fault: String) -> Vec<String> {
    vec![fault]
}

/// Fails with `fault` unless `holds`.
fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(fault()),
    }
}
