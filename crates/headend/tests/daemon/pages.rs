//! Follows pages of the documentation: writes their files and runs their commands in order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Directory, HEADEND};

/// Names and contents of the page's files.
type Files = Vec<(String, String)>;

/// The files and commands of a page.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) files: usize,
    pub(crate) commands: usize,
}

/// The page's files, and its commands with their exit status.
fn read(name: &str) -> (Files, Vec<(String, i32)>) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let page = fs::read_to_string(page).unwrap();
    let mut files = Files::new();
    let mut commands = Vec::new();
    let mut is_file = false;
    for line in page.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            let name = fence.split_once(' ').map(|(_, name)| name.to_owned());
            is_file = name.is_some();
            files.extend(name.map(|name| (name, String::new())));
        } else if let (true, Some((_, text))) = (is_file, files.last_mut()) {
            *text += &format!("{line}\n");
        } else if let Some(command) = line.strip_prefix("$ ") {
            let (command, remark) = command.split_once("  #").unwrap_or((command, ""));
            commands.push((command.to_owned(), i32::from(remark.contains("status 1"))));
        }
    }
    (files, commands)
}

/// Daemons that the page starts; killed when this is dropped.
struct Started(Vec<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the page's commands in a separate directory, with each replacement of `instead` applied to the page's text.
/// Commands that end in `&` are daemons. `before` is called with each command before it runs.
pub(crate) fn run(
    name: &str,
    instead: &[(&str, &str)],
    mut before: impl FnMut(&Path, &str),
) -> Done {
    let directory = Directory::new();
    let (files, commands) = read(name);
    let here = |text: &str| {
        let mut text = text.to_owned();
        for (there, here) in instead {
            text = text.replace(there, here);
        }
        text
    };
    for (name, text) in &files {
        directory.write(name, &here(text));
    }
    let home = directory.path("");
    symlink(HEADEND, directory.path("headend")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", home.display());
    let done = Done {
        files: files.len(),
        commands: commands.len(),
    };
    let mut started = Started(Vec::new());
    for (command, status) in commands {
        let command = here(&command);
        before(&home, &command);
        if let Some(daemon) = command.strip_suffix(" &") {
            let words: Vec<&str> = daemon.split(' ').collect();
            let child = Command::new(HEADEND)
                .args(&words[1..])
                .current_dir(&home)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            started.0.push(child);
            let socket = directory.path(&words[3].replace(".toml", ".sock"));
            let begun = Instant::now();
            while std::os::unix::net::UnixStream::connect(&socket).is_err() {
                assert!(begun.elapsed() < Duration::from_secs(60), "{command}");
                std::thread::sleep(Duration::from_millis(5));
            }
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&home)
            .env("PATH", &path)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{command}: {errors}");
    }
    done
}
