//! Runs each command of the user documentation.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::home::{HEADEND, Home, plain, source};

/// The commands on the page, with the text after `#`.
fn commands(page: &str) -> Vec<(String, String)> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("$ "));
    lines
        .map(|line| match line.split_once("  #") {
            Some((command, remark)) => (command.trim().to_owned(), remark.to_owned()),
            None => (line.to_owned(), String::new()),
        })
        .collect()
}

#[test]
fn every_command_on_the_page_runs() {
    let home = Home::new("page");
    fs::copy(source("fast_reuse.dmp.gz"), home.0.join("capture.pcap.gz")).unwrap();
    fs::copy(source("udpping.dmp.gz"), home.0.join("second.pcap.gz")).unwrap();
    let upload = "../../testdata/twin/upload.pcap.gz";
    let upload = Path::new(env!("CARGO_MANIFEST_DIR")).join(upload);
    fs::copy(upload, home.0.join("upload.pcap.gz")).unwrap();
    home.put(
        "policy.toml",
        b"[link]\nup = \"900kbit\"\noverhead = \"none\"\n",
    );
    // Nothing is captured here: a substitute for tcpdump writes an existing capture.
    let bin = home.0.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(HEADEND, bin.join("headend")).unwrap();
    home.put("live.pcap", &plain("fast_reuse.dmp.gz"));
    home.put("bin/tcpdump", b"#!/bin/sh\nexec cat live.pcap\n");
    fs::set_permissions(bin.join("tcpdump"), fs::Permissions::from_mode(0o755)).unwrap();

    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    crate::two::write_captures(&home);
    let pages = ["trace.md", "why.md", "diff.md", "twin.md"]
        .map(|page| fs::read_to_string(docs.join(page)).unwrap());
    let commands: Vec<_> = pages.iter().flat_map(|page| commands(page)).collect();
    assert!(commands.len() > 20);
    let path = std::env::var("PATH").unwrap_or_default();
    for (command, remark) in commands {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&home.0)
            .env("PATH", format!("{}:{path}", bin.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let expected = i32::from(remark.contains("exit status 1"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{command}: {errors}");
        let silent = command.contains(".part ")
            || command.ends_with("cut.pcap")
            || command.ends_with(".part");
        assert!(
            silent || command.contains("--part") || !output.stdout.is_empty(),
            "{command}"
        );
    }
}

#[test]
fn the_page_names_every_flag() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.md");
    let page = fs::read_to_string(page).unwrap();
    let help = Home::new("flags").good("--help");
    for word in help.split([' ', ',', '=', '[', '\n']) {
        let Some(name) = word.strip_prefix("--").filter(|name| name.len() > 2) else {
            continue;
        };
        let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
        let shown = name.starts_with("show") || name.starts_with("noshow") || name == "version";
        let joined = ["oTCPN", "iTCPN", "oUDPN", "iUDPN"].contains(&name);
        assert!(
            shown || joined || page.contains(&format!("--{name}")),
            "--{name}"
        );
    }
}
