//! The configurations that Debian's packages ship, as an operator would import them: each import ends well, its report
//! has every option of the file, and `headend check` takes the result.

use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where gobgpd's package has its pages, whose examples are in blocks of TOML and YAML.
const GOBGP_PAGES: &str = "/usr/share/doc/gobgpd";

/// Every fate of a report.
const FATES: [&str; 5] = [
    "key",
    "kept",
    "no_effect",
    "not_supported",
    "syntax_unknown",
];

/// An example: what it is, its files, and what starts a line without an option.
struct Example {
    source: &'static str,
    files: Vec<PathBuf>,
    /// Starts of lines without an option.
    comments: &'static [&'static str],
}

/// The files of xl2tpd, l2tpns, FRR, BIRD and pppd.
pub(crate) fn of_packages(bench: &Bench<'_>) -> Result<()> {
    let xl2tpd = "/usr/share/doc/xl2tpd/examples";
    let ppp = format!("{xl2tpd}/ppp-options.xl2tpd");
    let chap = format!("{xl2tpd}/chapsecrets.sample");
    let example = format!("{xl2tpd}/xl2tpd.conf");
    let l2tpns = bench.work.l2tpns_package().join("startup-config");
    let l2tpns = l2tpns.to_string_lossy();
    for (source, files, comments) in [
        ("xl2tpd", &["/etc/xl2tpd/xl2tpd.conf"][..], &[";", "#"][..]),
        ("xl2tpd", &[&example, &ppp, &chap], &[";", "#"]),
        ("l2tpns", &[&l2tpns], &["#", "!"]),
        ("frr", &["/etc/frr/frr.conf"], &["#", "!"]),
        ("bird", &["/etc/bird/bird.conf"], &["#", "}"]),
        ("bird", &["/usr/share/bird2/bird.conf"], &["#", "}"]),
    ] {
        let files = files.iter().map(PathBuf::from).collect();
        imports(
            bench,
            &Example {
                source,
                files,
                comments,
            },
        )?;
    }
    Ok(())
}

/// Each block of each page of gobgpd's package.
pub(crate) fn of_gobgp_pages(bench: &Bench<'_>) -> Result<()> {
    let mut blocks = 0;
    for entry in std::fs::read_dir(GOBGP_PAGES).context(GOBGP_PAGES)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".md") && !name.ends_with(".md.gz") {
            continue;
        }
        let output = Command::new("gzip").args(["-dcf"]).arg(&path).output()?;
        ensure!(output.status.success(), "gzip: {}", path.display());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for kind in ["toml", "yaml"] {
            for part in text.split(&format!("```{kind}\n")).skip(1) {
                let block = part.split("```").next().unwrap_or_default();
                let stem = name.split('.').next().unwrap_or_default();
                let file = bench.directory.join(format!("{stem}-{blocks}.{kind}"));
                std::fs::write(&file, block)?;
                blocks += 1;
                imports(
                    bench,
                    &Example {
                        source: "gobgp",
                        files: vec![file],
                        comments: &["#", "[", "]", "}"],
                    },
                )?;
            }
        }
    }
    // Debian 12's package has 67; a few more or less in another version do not matter.
    ensure!(blocks > 40, "only {blocks} examples in {GOBGP_PAGES}");
    Ok(())
}

/// Imports, checks the result, and compares the report with the file.
fn imports(bench: &Bench<'_>, example: &Example) -> Result<()> {
    let Example { source, files, .. } = example;
    let name = files[0].display().to_string();
    let folder = bench.directory.join(name.replace('/', "-"));
    let import = |flags: &[&str]| {
        let mut command = Command::new(bench.headend);
        command.args(["import", source]).args(files).args(flags);
        command.output().with_context(|| name.clone())
    };
    let output = import(&["--json", "--out", &folder.to_string_lossy()])?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{name}: {errors}");
    let report: Value = serde_json::from_slice(&output.stdout).context("the report")?;
    let count = |fate: &str| report["counts"][fate].as_u64().unwrap_or(0);
    let lines = report["lines"].as_array().context("lines")?;
    let sum: u64 = FATES.into_iter().map(count).sum();
    ensure!(
        sum == lines.len() as u64,
        "{name}: {sum} of {}",
        lines.len()
    );
    let missing = missing(&files[0], example.comments, lines)?;
    ensure!(missing.is_empty(), "{name}: lines {missing:?} of {errors}");
    let lost = count("not_supported") + count("syntax_unknown");
    let strict = import(&["--strict"])?.status.code();
    ensure!(
        strict == Some(i32::from(lost > 0)),
        "{name}: {strict:?}, {lost}"
    );
    let config = folder.join("headend.toml");
    let check = Command::new(bench.headend)
        .arg("check")
        .arg(&config)
        .output()?;
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    ensure!(check.status.success(), "{name}: headend check: {said}");
    has_its_keys(&config, lines).with_context(|| name.clone())
}

/// The lines of a file that have an option and are not in the report.
fn missing(file: &Path, comments: &[&str], lines: &[Value]) -> Result<Vec<usize>> {
    let name = file.to_string_lossy();
    let known: BTreeSet<u64> = lines
        .iter()
        .filter(|line| line["file"] == *name)
        .filter_map(|line| line["line"].as_u64())
        .collect();
    let text = std::fs::read_to_string(file)?;
    let has_option = |line: &str| {
        let line = line.trim();
        // What is in quotes is an item of a list, whose option is in a line before.
        let is_item = line.starts_with(['"', '\'', '-', '{']) || line.ends_with(':');
        !line.is_empty() && !is_item && !comments.iter().any(|start| line.starts_with(start))
    };
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| has_option(line));
    let missing = numbered.filter(|(number, _)| !known.contains(&(*number as u64)));
    Ok(missing.map(|(number, _)| number).collect())
}

/// An option that the report calls a key is one: the result names its line.
fn has_its_keys(config: &Path, lines: &[Value]) -> Result<()> {
    let text = std::fs::read_to_string(config)?;
    for line in lines.iter().filter(|line| line["fate"] == "key") {
        let key = line["keys"][0].as_str().context("a key")?;
        let last = key.rsplit('.').next().unwrap_or_default();
        let is_there = text.contains(&format!("\n{last} = ")) || text.contains(&format!("[{key}]"));
        ensure!(
            is_there,
            "line {}: {key} is not in the result",
            line["line"]
        );
    }
    Ok(())
}
