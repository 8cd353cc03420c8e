//! The web page of the analyser: one HTML file, `target/page/headend-trace.html`.
//!
//! The file contains the module for wasm32, compressed, and every script and style: after it is loaded, the page
//! makes no request. Its test under Node compares the page's JSON with the command's.

use crate::cargo::{self, Metadata};
use crate::run::Report;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// The file's name.
pub(crate) const NAME: &str = "headend-trace.html";

const CHECK: &str = "web page of the analyser";

/// The largest page, in bytes.
const SIZE_MAX: usize = 3_000_000;

/// The interop test of the page.
const INTEROP: &str = "the_page_of_the_analyser_shows_what_trace_does";

/// Whether the interop tests with these names have the page's among them; no name means all.
pub(crate) fn is_wanted(names: &[&str]) -> bool {
    names.is_empty() || names.iter().any(|name| INTEROP.contains(name))
}

/// Builds the page and tests it. `headend` is the command to compare it with.
pub(crate) fn check(report: &mut Report, metadata: &Metadata, headend: &Path) -> bool {
    if !ready() {
        report.left_out(
            CHECK,
            &format!("no Rust for it: rustup target add {TARGET}"),
        );
        return true;
    }
    if !build(report, metadata) {
        return false;
    }
    const TEST: &str = "web page against the command";
    if Command::new("node").arg("--version").output().is_err() {
        report.left_out(TEST, "no node; apt-get install nodejs");
        return true;
    }
    report.command(
        TEST,
        Command::new("node")
            .arg("--test")
            .arg(metadata.root.join("crates/page/tests/page.mjs"))
            .env("HEADEND", headend)
            .env("PAGE", file(metadata))
            .env("CAPTURES", metadata.root.join("testdata/interop-trace")),
    )
}

/// Builds the page.
pub(crate) fn build(report: &mut Report, metadata: &Metadata) -> bool {
    let target = metadata.target.join("page");
    report.check("Rust for the web page", || match ready() {
        true => Ok(TARGET.to_owned()),
        false => Err(vec![format!("rustup target add {TARGET}")]),
    }) && report.command(
        "compile the web page",
        cargo::locked("rustc")
            .args([
                "--package",
                "headend-page",
                "--lib",
                "--crate-type",
                "cdylib",
            ])
            .args(["--profile", "page", "--target", TARGET])
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTFLAGS", "-Ctarget-feature=+simd128"),
    ) && report.check(CHECK, || write(&metadata.root, &target, &file(metadata)))
}

/// The page's file.
pub(crate) fn file(metadata: &Metadata) -> PathBuf {
    metadata.target.join("page").join(NAME)
}

/// Whether the target is installed; tries to install it.
fn ready() -> bool {
    let installed = || {
        let output = Command::new("rustup")
            .args(["target", "list", "--installed"])
            .output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(TARGET))
    };
    installed()
        || Command::new("rustup")
            .args(["target", "add", TARGET])
            .output()
            .is_ok_and(|output| output.status.success())
            && installed()
}

/// Puts the page together.
fn write(root: &Path, target: &Path, file: &Path) -> Result<String, Vec<String>> {
    let plain = |error: std::io::Error| vec![error.to_string()];
    let module = std::fs::read(target.join(TARGET).join("page/page.wasm")).map_err(plain)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&module).map_err(plain)?;
    let packed = packed.finish().map_err(plain)?;
    let web = root.join("crates/page/web");
    let read = |name: &str| std::fs::read_to_string(web.join(name)).map_err(plain);
    let parts = [
        ("style", read("page.css")?),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("wasm", STANDARD.encode(&packed)),
        ("glue", read("glue.js")?),
        ("worker", read("worker.js")?),
        ("page", read("page.js")?),
    ];
    let mut page = read("page.html")?;
    for (name, part) in parts {
        let place = format!("/*{name}*/");
        if page.matches(&place).count() != 1 {
            return Err(vec![format!("page.html: {place} must occur once")]);
        }
        page = page.replace(&place, &part);
    }
    if page.len() > SIZE_MAX {
        return Err(vec![format!(
            "the page has {} bytes, {SIZE_MAX} is the most",
            page.len()
        )]);
    }
    std::fs::write(file, &page).map_err(plain)?;
    Ok(format!(
        "{}: {} kB, the module {} kB uncompressed",
        file.display(),
        page.len() / 1000,
        module.len() / 1000
    ))
}
