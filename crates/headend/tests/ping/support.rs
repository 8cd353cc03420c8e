//! The binary under test, and a directory of one test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use reactor::namespace::{Namespace, root_command};
use serde_json::Value;

/// The binary under test.
pub(crate) const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// A directory for one test, removed when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-ping-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `headend ping`.
pub(crate) fn ping(args: &[&str]) -> Output {
    let mut command = Command::new(HEADEND);
    command.arg("ping").args(args).output().unwrap()
}

/// Runs `headend ping` and checks its exit status; returns its output.
pub(crate) fn ping_ok(status: i32, args: &[&str]) -> String {
    let output = ping(args);
    let errors = String::from_utf8(output.stderr).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        output.status.code(),
        Some(status),
        "{args:?}: {errors}{text}"
    );
    text
}

/// Whether ICMP can be sent here. If not, the ICMP tests are skipped.
pub(crate) fn can_ping() -> bool {
    let output = ping(&["-c", "1", "-q", "127.0.0.1"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    let permitted = !errors.contains("no permission");
    assert!(!permitted || output.status.success(), "{errors}");
    permitted
}

/// An uncompressed result file.
pub(crate) fn json(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const INNER: &str = "HEADEND_PING_TEST_IN_USER_NAMESPACE";

/// Runs `work` where namespaces can be made: here if this is root, else in a copy of this process that runs the test
/// `name` alone, in a user namespace. Fails if neither is possible.
pub(crate) fn privileged(name: &str, work: impl FnOnce()) {
    match Namespace::new() {
        Ok(_) => work(),
        Err(error) if std::env::var_os(INNER).is_some() => {
            panic!("neither root nor a user namespace: {error}")
        }
        Err(_) => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let args = [name, "--exact", "--nocapture"];
            let status = root_command(command.args(args).env(INNER, "1")).status();
            let status = status.expect("root, or a system that allows user namespaces");
            assert!(status.success(), "{name} in a user namespace: {status}");
        }
    }
}

/// Reads this many lines of a child's standard output; later lines are returned as they arrive.
pub(crate) fn read_lines(child: &mut Child, count: usize) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    for _ in 0..count {
        lines.next().unwrap();
    }
    lines
}

/// Replaces every number in a text, so that texts can be compared.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if shape.ends_with('N') => {}
            '0'..='9' => shape.push('N'),
            '.' if shape.ends_with('N') => shape.push('.'),
            other => shape.push(other),
        }
    }
    shape
}
